import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@Suite("Categories in commands") struct CategoriesCommandTests {
    private func withModel(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let network = try Network.logonet(labels: 3, inputSize: 16, width: 0.1)
            try ModelFile(
                network: network, parameters: try Parameters(network, seed: 1), labels: ["laptop", "desktop", "cat"],
                preprocessing: Preprocessing(width: 16, height: 16)
            ).write(to: folder.appending(path: "m.imprint"))
            try Data(#"{"computer": ["laptop", "desktop"]}"#.utf8).write(to: folder.appending(path: "groups.json"))
            try Data("{}".utf8).write(to: folder.appending(path: "empty.json"))
            try Data(#"{"cats": ["lynx"]}"#.utf8).write(to: folder.appending(path: "other.json"))
            try Data(#"{"cat": ["laptop"]}"#.utf8).write(to: folder.appending(path: "swallowed.json"))
            try ImageFile.write(
                RasterImage(width: 16, height: 16, filledWith: 90), to: folder.appending(path: "x.png"))
            try body(folder)
        }
    }

    private func confidences(_ run: CommandOutput) throws -> [String: Double] {
        let line = try #require(run.lines.first)
        let classifications = try #require(line["observations"] as? [[String: Any]])
        return Dictionary(
            uniqueKeysWithValues: try classifications.map {
                (try #require($0["label"] as? String), try #require($0["confidence"] as? Double))
            })
    }

    @Test("The confidence of a category is the sum of its labels, for categories from a file or from the model")
    func rollUp() throws {
        try withModel { folder in
            let plain = try confidences(shell("$imprint classify m.imprint x.png --json", folder: folder))
            let expected = ["computer": plain["laptop"]! + plain["desktop"]!, "cat": plain["cat"]!]
            #expect(
                try shell(
                    "$imprint export m.imprint --to imprint --categories groups.json --output g.imprint", folder: folder
                ).status == 0)
            for options in ["m.imprint x.png --categories groups.json", "g.imprint x.png --categories auto"] {
                let seen = try confidences(shell("$imprint classify \(options) --json", folder: folder))
                #expect(seen.keys.sorted() == ["cat", "computer"])
                for (label, confidence) in expected { #expect(abs((seen[label] ?? -1) - confidence) < 1e-6) }
            }
            #expect(try shell("$imprint inspect g.imprint", folder: folder).output.contains("categories   computer\n"))
            let line = try #require(try shell("$imprint inspect g.imprint --json", folder: folder).lines.first)
            #expect(line["categories"] as? [String: [String]] == ["computer": ["laptop", "desktop"]])
        }
    }

    @Test(
        "export and classify warn about a category that is similar to another or to a label without a category",
        arguments: [
            (
                #"{"computer": ["laptop"], "Computer": ["desktop"]}"#,
                "\"Computer\" and \"computer\" differ only in case"
            ),
            (#"{"Cat": ["laptop", "desktop"]}"#, "\"Cat\" and \"cat\" differ only in case"),
            (#"{"Laptop": ["laptop", "desktop"]}"#, nil),
        ] as [(String, String?)])
    func similarNames(categories: String, warning: String?) throws {
        try withModel { folder in
            try Data(categories.utf8).write(to: folder.appending(path: "names.json"))
            for command in ["export m.imprint --to imprint --output n.imprint", "classify m.imprint x.png"] {
                let run = try shell("$imprint \(command) --categories names.json", folder: folder)
                #expect(run.status == 0, "\(run.errors)")
                #expect(run.errors.contains("The categories and labels ") == (warning != nil), "\(run.errors)")
                if let warning { #expect(run.errors.contains(warning), "\(run.errors)") }
            }
        }
    }

    @Test("A personal label with the name of a category belongs to that category, also after merging")
    func personalLabel() throws {
        try withModel { folder in
            let run = try shell(
                """
                mkdir -p mine/computer && cp x.png mine/computer
                echo '{"computer": ["laptop", "desktop", "computer"]}' >listed.json
                $imprint export m.imprint --to imprint --categories groups.json --output g.imprint &&
                $imprint personalize g.imprint mine --output me &&
                $imprint merge g.imprint me --output merged.imprint
                """, folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            for model in ["g.imprint --personalization me", "merged.imprint"] {
                let plain = try confidences(shell("$imprint classify \(model) x.png --json", folder: folder))
                #expect(plain.keys.sorted() == ["cat", "computer", "desktop", "laptop"])
                // A file for the merged model must list the label.
                for categories in model == "merged.imprint" ? ["auto", "listed.json"] : ["auto", "groups.json"] {
                    let seen = try confidences(
                        shell("$imprint classify \(model) x.png --json --categories \(categories)", folder: folder))
                    #expect(seen.keys.sorted() == ["cat", "computer"])
                    let sum = plain.values.reduce(0, +)
                    #expect(abs((seen["computer"] ?? -1) - (sum - plain["cat"]!)) < 1e-6, "\(plain) \(seen)")
                }
            }
        }
    }

    @Test("Categories may come from a pipe that the shell has opened", arguments: ["/dev/stdin", "/dev/fd/0"])
    func pipes(path: String) throws {
        try withModel { folder in
            let command = "$imprint classify m.imprint x.png --json --categories \(path)"
            let seen = try confidences(shell("cat groups.json | \(command)", folder: folder))
            #expect(seen.keys.sorted() == ["cat", "computer"])
        }
    }

    @Test(
        "Invalid categories and options are errors with the reason",
        arguments: [
            (
                "classify m.imprint x.png --categories auto", 64,
                "m.imprint has no categories. Name a file of categories"
            ),
            (
                "classify m.imprint x.png --categories groups.json --threshold auto", 64,
                "categories have no threshold, precision or recall"
            ),
            ("classify m.imprint x.png --categories none.json", 1, "none.json: the file cannot be read"),
            (
                "export m.imprint --to imprint --output o.imprint --categories empty.json", 1,
                "empty.json: found no category, expected at least one, such as {\"computer\": [\"laptop\", \"desktop\"]}. Add one"
            ),
            ("classify m.imprint x.png --categories empty.json", 1, "empty.json: found no category"),
            (
                "classify m.imprint x.png --categories .", 1,
                ": the file cannot be read: it is a folder, expected a regular file. Check the name"
            ),
            ("classify m.imprint x.png --categories pipe", 1, "pipe: the file cannot be read: it is a pipe"),
            ("classify m.imprint x.png --categories /dev/stdin <other.json", 1, "/dev/stdin: the label \"lynx\""),
            ("classify m.imprint x.png --categories other.json", 1, "other.json: the label \"lynx\" of the category"),
            (
                "export m.imprint --to imprint --output o.imprint --categories other.json", 1,
                "other.json: the label \"lynx\" of the category"
            ),
            (
                "classify m.imprint x.png --categories swallowed.json", 1,
                "swallowed.json: the category \"cat\" has the name of the label \"cat\", which it does not list"
            ),
            (
                "export m.imprint --to imprint --output o.imprint --categories swallowed.json", 1,
                "swallowed.json: the category \"cat\" has the name of the label"
            ),
            ("classify m.imprint x.png --categories x.png", 1, "expected a JSON object"),
            (
                "export m.imprint --to onnx --output o.onnx --categories groups.json", 64,
                "--categories is only for imprint"
            ),
            (
                "export m.imprint --to imprint --output groups.json --categories groups.json", 64,
                "the file is the list of categories"
            ),
        ] as [(String, Int32, String)])
    func refused(arguments: String, status: Int32, text: String) throws {
        try withModel { folder in
            try #require(mkfifo(folder.appending(path: "pipe").path, 0o600) == 0)
            let run = try shell("$imprint \(arguments)", folder: folder)
            #expect(run.status == status && run.errors.contains(text), "\(run.status) \(run.errors)")
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "o.imprint").path))
        }
    }
}
