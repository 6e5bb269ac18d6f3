import Foundation
import ImprintModel
import TestSupport
import Testing

/// The command `personalize`; the tests of the library cover the training itself.
@Suite struct PersonalizeTests {
    /// Calls `body` with a folder that contains a model with the labels "bright" and "dark", its training photos and a user's photos.
    private func withModel(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "data"), count: 16)
            try writeImages(to: folder.appending(path: "photos"), count: 6)
            let trained = try imprint(
                "train", "data", "--output", "m.imprint", "--input-size", "16", "--width", "0.1", "--epochs", "2",
                "--random-split", folder: folder)
            #expect(trained.status == 0, "\(trained.errors)")
            try body(folder)
        }
    }

    @Test("personalize writes a file that other commands apply on request; the model file does not change")
    func mainJob() throws {
        try withModel { folder in
            let model = folder.appending(path: "m.imprint")
            let before = try Data(contentsOf: model)
            try FileManager.default.moveItem(
                at: folder.appending(path: "photos/dark"), to: folder.appending(path: "photos/dusk"))
            let personalized = try imprint(
                "personalize", "m.imprint", "photos", "--output", "me", "--not", "bright=photos/dusk/0.png", "--json",
                folder: folder)
            #expect(personalized.status == 0 && personalized.lines.count == 1, "\(personalized.errors)")
            let line = try #require(personalized.lines.last)
            #expect(line["event"] as? String == "finished" && line["added"] as? [String] == ["dusk"])
            #expect(line["images"] as? Int == 7 && line["ending"] as? String == "completed")
            #expect(line["labels"] as? [String] == ["bright", "dark", "dusk"])
            #expect(line["accuracyBefore"] is NSNull && line["accuracyAfter"] is NSNull)
            let size = try Data(contentsOf: folder.appending(path: "me")).count
            #expect(line["bytes"] as? Int == size && size < 4096)
            let classified = try imprint(
                "classify", "m.imprint", "photos/dusk/1.png", "--personalization", "me", "--json", folder: folder)
            #expect((classified.lines.last?["observations"] as? [Any])?.count == 3)
            let plain = try imprint("classify", "m.imprint", "photos/dusk/1.png", "--json", folder: folder)
            #expect((plain.lines.last?["observations"] as? [Any])?.count == 2)
            let evaluated = try imprint(
                "evaluate", "m.imprint", "photos", "--personalization", "me", "--json", folder: folder)
            #expect(evaluated.lines.last?["labels"] as? [String] == ["bright", "dark", "dusk"])
            let inspected = try imprint("inspect", "me", "--json", folder: folder)
            #expect(inspected.lines.last?["kind"] as? String == "personalization")
            #expect(inspected.lines.last?["examples"] as? [String: Int] == ["bright": 3, "dusk": 3])
            #expect(try Data(contentsOf: model) == before)
        }
    }

    @Test("The accuracy before states that the model did not know new labels", arguments: [false, true])
    func accuracyOfNewLabels(isNew: Bool) throws {
        try withModel { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 24)
            if isNew {
                try FileManager.default.moveItem(
                    at: folder.appending(path: "photos/dark"), to: folder.appending(path: "photos/dusk"))
            }
            let run = try imprint("personalize", "m.imprint", "photos", "--output", "me", folder: folder)
            #expect(run.status == 0 && run.errors.contains("(5-fold cross-validation)."), "\(run.errors)")
            let isExplained = run.errors.contains(
                " The model did not know dusk before, so all photos of dusk counted as mistakes.")
            #expect(isExplained == isNew, "\(run.errors)")
        }
    }

    @Test(
        "An accuracy before of 0 is not called too high, unlike that of an earlier personalization",
        arguments: [true, false])
    func accuracyOfEarlierPersonalization(isNew: Bool) throws {
        try withModel { folder in
            let first = try imprint("personalize", "m.imprint", "photos", "--output", "first", folder: folder)
            #expect(first.status == 0, "\(first.errors)")
            try writeImages(to: folder.appending(path: "more"), count: 24)
            try FileManager.default.removeItem(at: folder.appending(path: "more/bright"))
            if isNew {
                try FileManager.default.moveItem(
                    at: folder.appending(path: "more/dark"), to: folder.appending(path: "more/dusk"))
            }
            let run = try imprint(
                "personalize", "m.imprint", "more", "--resume", "first", "--output", "me", folder: folder)
            #expect(run.status == 0 && run.errors.contains("(5-fold cross-validation)."), "\(run.errors)")
            #expect(run.errors.contains("Accuracy on these photos: 0.0 % before") == isNew, "\(run.errors)")
            #expect(run.errors.contains("The accuracy before is too high") == !isNew, "\(run.errors)")
        }
    }

    @Test("A new label that differs from a known one only in case gives a warning", arguments: ["Dark", "dusk"])
    func similarLabel(label: String) throws {
        try withModel { folder in
            try FileManager.default.moveItem(
                at: folder.appending(path: "photos/dark"), to: folder.appending(path: "photos/\(label)"))
            let run = try imprint("personalize", "m.imprint", "photos", "--output", "me", folder: folder)
            #expect(run.status == 0 && run.errors.contains("New labels: \(label)."), "\(run.errors)")
            let isWarned = run.errors.contains(
                "The labels \"dark\" and \"Dark\" differ only in case, spaces, hyphens, underscores or Unicode form. The model learns them"
            )
            #expect(isWarned == (label == "Dark"), "\(run.errors)")
        }
    }

    @Test(
        "A new label that is nearly a label of the model gives a warning",
        arguments: [("darkk", true), ("night", false)])
    func misspeltLabel(label: String, isWarned: Bool) throws {
        try withModel { folder in
            try FileManager.default.moveItem(
                at: folder.appending(path: "photos/dark"), to: folder.appending(path: "photos/\(label)"))
            let run = try imprint("personalize", "m.imprint", "photos", "--output", "me", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let warning = "The new label \"\(label)\" is nearly the label \"dark\" of the model"
            #expect(run.errors.contains(warning) == isWarned, "\(run.errors)")
        }
    }

    @Test("--not corrects mistakes without a folder of photos")
    func onlyCorrections() throws {
        try withModel { folder in
            let run = try imprint(
                "personalize", "m.imprint", "--not", "bright=photos/dark", "--not", "dark=photos/bright/0.png",
                "--output", "me", "--json", folder: folder)
            #expect(run.status == 0 && run.lines.count == 1, "\(run.errors)")
            #expect(run.lines.last?["images"] as? Int == 4 && run.lines.last?["added"] as? [String] == [])
            let inspected = try imprint("inspect", "me", "--json", folder: folder)
            #expect(inspected.lines.last?["corrections"] as? [String: Int] == ["bright": 3, "dark": 1])
            #expect(inspected.lines.last?["examples"] as? [String: Int] == [:])
        }
    }

    @Test("evaluate names --personalization for labels that the model does not have; train does not")
    func labelsOfPersonalizations() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            try writeBrightnessModel(photos: ["mine/bright/0.png": 240, "mine/dusk/0.png": 60], to: folder)
            for (command, names) in [
                ("evaluate m.imprint mine", true), ("train photos --validation mine --output o --input-size 16", false),
            ] {
                let run = try shell("$imprint \(command)", folder: folder)
                #expect(run.status == 1 && run.errors.contains("labels that the model does not have: dusk"))
                #expect(run.errors.contains("pass it with --personalization") == names, "\(run.errors)")
            }
        }
    }

    @Test("Invalid options and files are errors with the expected value, and no file is replaced")
    func errors() throws {
        try withModel { folder in
            try FileManager.default.createSymbolicLink(
                at: folder.appending(path: "link"), withDestinationURL: folder.appending(path: "m.imprint"))
            let cases: [([String], Int32, String)] = [
                (["--output", "m.imprint"], 64, "the file is the model"),
                (["--output", "link"], 64, "the file is the model"),
                (["--output", "photos/dark/0.png"], 64, "the file exists and is not a personalization file"),
                (["--output", "me", "--views", "0"], 64, "--views is 0, expected 1 to 64"),
                (["--output", "me", "--penalty", "nan"], 64, "--penalty is nan"),
                (["--output", "me", "--blocks", "9"], 64, "blocks is 9, expected 0 to"),
                (["--output", "me", "--not", "bright"], 64, "as in Logo=photo.jpg"),
                (["--output", "me", "--not", "bright=nowhere.png"], 1, "nowhere.png: cannot be read"),
                (["--output", "me", "--not", "dusk=data/dark/0.png"], 64, "--not: \"dusk\" is not a label"),
                (
                    ["--output", "data/dark/0.png", "--not", "bright=data/dark"], 64,
                    "the file exists and is not a personalization file"
                ),
                (["--output", "me", "--continue", "m.imprint"], 1, "m.imprint"),
                (["--output", "me", "--cache", "m.imprint"], 64, "--cache: m.imprint: the file is the model"),
            ]
            for (arguments, status, text) in cases {
                let line = (["personalize", "m.imprint", "photos"] + arguments).map { "'\($0)'" }.joined(separator: " ")
                let result = try shell("\"$imprint\" \(line)", folder: folder)
                #expect(result.status == status && result.errors.contains(text), "\(line): \(result.errors)")
            }
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "me").path))
            #expect(try ModelFile(contentsOf: folder.appending(path: "m.imprint")).labels == ["bright", "dark"])
        }
    }

    @Test(
        "A path of the output or the cache that cannot be written is reported before any work",
        arguments: ["output", "cache"])
    func unwritablePaths(option: String) throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(photos: ["photos/dusk/0.png": 60], to: folder)
            let paths = option == "output" ? "--output none/file" : "--output me --cache none/file"
            let run = try shell("$imprint personalize m.imprint photos \(paths)", folder: folder)
            #expect(run.status == 1 && run.output.isEmpty)
            // Later, the command would also report that the label is new.
            let message = "none/file: cannot be written (No such file or directory). Create its folder first.\n"
            #expect(run.errors.hasPrefix("Error: ") && run.errors.hasSuffix(message), "\(run.errors)")
            #expect(run.errors.split(separator: "\n").count == 1, "\(run.errors)")
        }
    }

    @Test("A cache that is cut off is not called a file of another program")
    func truncatedCache() throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(photos: ["photos/dark/0.png": 60, "photos/bright/0.png": 200], to: folder)
            let command = "$imprint personalize m.imprint photos --output me --cache features"
            let first = try shell(command, folder: folder)
            #expect(first.status == 0, "\(first.errors)")
            let cache = folder.appending(path: "features")
            let bytes = try Data(contentsOf: cache).dropLast(5)
            try bytes.write(to: cache)
            let run = try shell(command, folder: folder)
            #expect(run.status == 1, "\(run.errors)")
            #expect(
                run.errors.contains("features is an incomplete or damaged feature cache. Delete it"), "\(run.errors)")
            #expect(try Data(contentsOf: cache) == bytes)
        }
    }

    @Test("A cache of another model is reported before it is replaced")
    func otherCache() throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(photos: ["photos/dark/0.png": 60, "photos/bright/0.png": 200], to: folder)
            let run = try shell(
                """
                $imprint personalize m.imprint photos --output me --cache features || exit 2
                $imprint export m.imprint --to imprint --precision float16 --output n.imprint || exit 3
                $imprint personalize n.imprint photos --output you --cache features
                """, folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let note = "--cache: features: it belongs to another model, so this run computes all features again"
            #expect(run.errors.components(separatedBy: note).count == 2, "\(run.errors)")
        }
    }

    // MARK: New logos of a detector

    private static let leaf = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/artwork-leaf.png").path

    @Test("--artwork and --annotations add logos to a detector, and detect and evaluate apply the file")
    func newLogos() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 2)
            let model = folder.appending(path: "logos.imprint")
            try writeRandomDetector(logos: ["crest"], to: model)
            let before = try Data(contentsOf: model)
            let result = try imprint(
                "personalize", "logos.imprint", "--artwork", "Crest=\(Self.leaf)", "--output", "me", "--json",
                folder: folder)
            #expect(result.status == 0 && result.lines.count == 1, "\(result.errors)")
            let warning =
                "The labels \"crest\" and \"Crest\" differ only in case, spaces, hyphens, underscores or Unicode form. The model learns them as different labels. "
                + "If they mean the same, use one spelling."
            #expect(result.errors.contains(warning), "\(result.errors)")
            let line = try #require(result.lines.last)
            #expect(line["event"] as? String == "finished" && line["added"] as? [String] == ["Crest"])
            #expect(line["labels"] as? [String] == ["dark", "crest", "Crest"] && line["images"] as? Int == 0)
            #expect(line["ending"] as? String == "completed" && line["accuracyAfter"] is NSNull)
            #expect(try Data(contentsOf: model) == before)
            let detected = try imprint(
                "detect", "logos.imprint", "photos/dark/0.png", Self.leaf, "--personalization", "me", "--threshold",
                "0", "--json", folder: folder)
            let detections = detected.lines.flatMap { $0["detections"] as? [[String: Any]] ?? [] }
            #expect(Set(detections.compactMap { $0["label"] as? String }).contains("Crest"))
            try Data(
                #"[{"image": "photos/dark/0.png", "annotations": [{"label": "Crest", "coordinates": {"x": 8, "y": 8, "width": 8, "height": 8}}]}]"#
                    .utf8
            ).write(to: folder.appending(path: "boxes.json"))
            let evaluated = try imprint(
                "evaluate", "logos.imprint", "--annotations", "boxes.json", "--personalization", "me", "--json",
                folder: folder)
            #expect(evaluated.lines.last?["labels"] as? [String] == ["crest", "Crest"], "\(evaluated.errors)")
        }
    }

    @Test("New logos need a detector without their label, and no options or photos of the other way to personalize")
    func newLogoErrors() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 2)
            try writeRandomDetector(logos: ["crest"], to: folder.appending(path: "logos.imprint"))
            try brightnessModel(labels: ["a", "b"], weights: alternatingWeights(1, labels: 2))
                .write(to: folder.appending(path: "m.imprint"))
            let new = ["--artwork", "Leaf=\(Self.leaf)"]
            let cases: [(String, [String], Int32, String)] = [
                ("logos.imprint", [], 64, "nothing to learn from, expected a folder of photos, --not"),
                ("logos.imprint", ["--backgrounds", "drawn"], 64, "--backgrounds needs --artwork"),
                ("logos.imprint", ["photos"] + new, 64, "found both (photos)"),
                (
                    "logos.imprint", new + ["--not", "crest=photos"], 64,
                    "photos without the new logos with --backgrounds"
                ),
                ("logos.imprint", new + ["--views", "2", "--cache", "c"], 64, "--views, --cache: not available with"),
                ("logos.imprint", ["--artwork", "crest=\(Self.leaf)"], 1, "already has the label \"crest\""),
                ("logos.imprint", ["--artwork", "dark=\(Self.leaf)"], 1, "already has the label \"dark\""),
                ("logos.imprint", ["--artwork", "Leaf=missing.png"], 1, "missing.png"),
                ("logos.imprint", ["--annotations", "missing.json"], 1, "missing.json"),
                ("logos.imprint", ["photos"], 1, "imprint personalize --artwork LABEL=FILE"),
                ("logos.imprint", ["photos", "--views", "8"], 64, "--views: logos.imprint is a logo detector"),
                ("m.imprint", new, 64, "expected a detector"),
            ]
            for (model, arguments, status, text) in cases {
                let line = (["personalize", model, "--output", "me"] + arguments).map { "'\($0)'" }.joined(
                    separator: " ")
                let result = try shell("\"$imprint\" \(line)", folder: folder)
                #expect(result.status == status && result.errors.contains(text), "\(line): \(result.errors)")
                // A detector cannot learn the labels of the folder.
                #expect(!result.errors.contains("New labels"), "\(line): \(result.errors)")
            }
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "me").path))
            let join = try shell(
                "$imprint join http://127.0.0.1:1 --model logos.imprint --photos photos --views 8", folder: folder)
            #expect(join.status == 64 && join.errors.contains("--views: logos.imprint is a logo detector"))
        }
    }
}
