import Foundation
import ImprintImages
import ImprintInterop
import ImprintModel
import TestSupport
import Testing

/// The rule for all files that `imprint` writes: it replaces only files of the same kind that Imprint wrote.
@Suite struct OverwriteTests {
    /// A command that writes the file TARGET, and the kind of that file.
    struct Output: CustomTestStringConvertible, Sendable {
        let command: String
        let kind: OutputKind

        /// The name of the file, with an extension if the kind needs one.
        var target: String { kind == .contactSheet || kind == .cutOut ? "target.png" : "target" }
        /// The command that writes the file.
        var targetCommand: String { command.replacing("TARGET", with: target) }
        var testDescription: String { command }
    }

    static let outputs = [
        Output(command: "train photos --epochs 1 --input-size 16 --output TARGET", kind: .model),
        Output(
            command: "train photos --epochs 1 --input-size 16 --output o --report TARGET", kind: .trainingReport),
        Output(
            command: "train photos --folds 2 --epochs 1 --input-size 16 --width 0.125 --random-split --report TARGET",
            kind: .crossValidationReport),
        Output(command: "evaluate m.imprint photos --report TARGET", kind: .evaluationReport),
        Output(command: "audit photos --report TARGET", kind: .auditReport),
        Output(command: "personalize m.imprint photos --output TARGET", kind: .personalization),
        Output(command: "personalize m.imprint photos --output o --cache TARGET", kind: .featureCache),
        Output(command: "merge m.imprint p.personal --output TARGET", kind: .model),
        Output(command: "import foreign.onnx --labels a,b,c --output TARGET", kind: .model),
        Output(command: "export m.imprint --to onnx --output TARGET", kind: .onnxModel),
        Output(command: "export m.imprint --to coreml --output TARGET", kind: .coreMLModel),
        Output(command: "export m.imprint --to imprint --int8 --output TARGET", kind: .model),
        Output(command: "draw $recipe --count 4 --output drawn --contact-sheet TARGET", kind: .contactSheet),
        Output(command: "augment photos --count 1 --epochs 1 --contact-sheet TARGET", kind: .contactSheet),
        Output(
            command: "augment --artwork Logo=logo.png --count 1 --epochs 1 --contact-sheet o.png --cut-out TARGET",
            kind: .cutOut),
        Output(command: "sign m.imprint --private-key key.pem --output TARGET", kind: .signature),
    ]

    /// Files that may exist at the target; the kind is nil if Imprint did not write the file.
    static let existing: [(file: String, kind: OutputKind?)] = [
        ("m.imprint", .model), ("p.personal", .personalization), ("c.features", .featureCache),
        ("saved/checkpoint.safetensors", .checkpoint), ("report.html", .trainingReport),
        ("folds.html", .crossValidationReport), ("evaluation.html", .evaluationReport), ("audit.html", .auditReport),
        ("sheet.png", .contactSheet), ("sheet.jpg", .contactSheet), ("cut.png", .cutOut), ("m.onnx", .onnxModel),
        ("m.mlmodel", .coreMLModel), ("model.sig", .signature),
        ("foreign.onnx", nil), ("foreign.mlmodel", nil), ("foreign.safetensors", nil), ("foreign.html", nil),
        ("photos/dark/0.png", nil), ("photo.jpg", nil), ("notes.txt", nil),
    ]

    @Test("Each kind recognizes its own files and no others", arguments: OutputKind.allCases)
    func kinds(kind: OutputKind) throws {
        try withExistingFiles { folder in
            for (file, writer) in Self.existing {
                #expect(kind.wrote(folder.appending(path: file)) == (kind == writer), "\(file)")
            }
        }
    }

    /// Each command with the files of its kind, one of another kind, and one that Imprint did not write: `kinds` covers the others.
    @Test("A file is only replaced by one of the same kind that Imprint wrote", arguments: outputs)
    func table(output: Output) throws {
        try withExistingFiles { folder in
            let target = folder.appending(path: output.target)
            let command = output.targetCommand
            let others = [
                Self.existing.first { $0.kind != nil && $0.kind != output.kind },
                Self.existing.first { $0.kind == nil },
            ]
            for (file, kind) in Self.existing.filter({ $0.kind == output.kind }) + others.compactMap(\.self) {
                let before = try Data(contentsOf: folder.appending(path: file))
                try before.write(to: target)
                let run = try imprint(command, folder: folder)
                if kind == output.kind {
                    #expect(run.status == 0, "\(file): \(run.errors)")
                    #expect(output.kind.wrote(target), "\(file)")
                } else {
                    #expect(run.status == 64, "\(file): \(run.errors)")
                    #expect(
                        run.errors.contains(
                            "\(output.target): the file exists and is not \(output.kind.withArticle) that Imprint wrote"
                        ),
                        "\(run.errors)")
                    #expect(try Data(contentsOf: target) == before, "\(file)")
                }
            }
        }
    }

    @Test("An empty file is replaced, and for a symbolic link the rule applies to its destination", arguments: outputs)
    func emptyFilesAndLinks(output: Output) throws {
        try withExistingFiles { folder in
            let target = folder.appending(path: output.target)
            let command = output.targetCommand
            try Data().write(to: target)
            var run = try imprint(command, folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(output.kind.wrote(target))
            try FileManager.default.removeItem(at: target)
            let notes = folder.appending(path: "notes.txt")
            try FileManager.default.createSymbolicLink(at: target, withDestinationURL: notes)
            run = try imprint(command, folder: folder)
            #expect(run.status == 64)
            #expect(try Data(contentsOf: notes) == Data("notes".utf8))
        }
    }

    @Test(
        "A file that cannot be read is not replaced, and the error gives the reason",
        .disabled(if: geteuid() == 0, "root can read every file"), arguments: outputs)
    func unreadableFiles(output: Output) throws {
        try withExistingFiles { folder in
            let target = folder.appending(path: output.target)
            try Data("text".utf8).write(to: target)
            try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: target.path)
            let run = try imprint(output.targetCommand, folder: folder)
            let message =
                "\(output.target): the file exists and cannot be read (Permission denied), so it is not replaced."
            #expect(run.status == 64 && run.errors.contains(message), "\(run.errors)")
        }
    }

    @Test("A file in the checkpoint folder that is not a checkpoint is not replaced", arguments: existing.map(\.file))
    func checkpoints(file: String) throws {
        try withExistingFiles { folder in
            let before = try Data(contentsOf: folder.appending(path: file))
            let target = folder.appending(path: "other/checkpoint.safetensors")
            try FileManager.default.createDirectory(
                at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
            try before.write(to: target)
            let run = try imprint(
                "train photos --epochs 1 --input-size 16 --output o --checkpoint other", folder: folder)
            if file.hasSuffix("checkpoint.safetensors") {
                #expect(run.status == 0, "\(run.errors)")
            } else {
                #expect(run.status == 64, "\(run.errors)")
                #expect(run.errors.contains("not a checkpoint of Imprint, so it is not replaced"), "\(run.errors)")
                #expect(try Data(contentsOf: target) == before)
            }
        }
    }

    @Test(
        "Commands do not write into a folder with other files",
        arguments: ["draw $recipe --count 4 --output mine", "prepare photos --output mine"])
    func folders(command: String) throws {
        try withExistingFiles { folder in
            let note = folder.appending(path: "mine/notes.txt")
            try FileManager.default.createDirectory(
                at: note.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data("notes".utf8).write(to: note)
            let run = try imprint(command, folder: folder)
            #expect(run.status == 64 && run.errors.contains("notes.txt"), "\(run.errors)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "mine").path).count == 1)
        }
    }

    @Test(
        "An output that is also an input is a usage error",
        arguments: [
            ("train photos --base m.imprint --output m.imprint", "--output: m.imprint: the file is the base model"),
            (
                "train photos --output o --checkpoint saved --report saved/checkpoint.safetensors",
                "the file is the checkpoint"
            ),
            ("train photos --output o --report ./o", "--output names the same file"),
            ("personalize m.imprint photos --output ./m.imprint", "the file is the model"),
            ("personalize m.imprint photos --output p --cache p", "--output names the same file"),
            ("merge m.imprint p.personal --output p.personal", "the file is a file to merge"),
            ("import m.onnx --output m.onnx", "the file is the model to import"),
            ("import m.onnx --labels notes.txt --output notes.txt", "the file is the list of labels"),
            ("export m.imprint --to imprint --output m.imprint", "the file is the model to export"),
            (
                "export m.imprint --to imprint --categories notes.txt --output notes.txt",
                "the file is the list of categories"
            ),
            ("augment photos --contact-sheet photos/dark/sheet.png", "the file is a photo"),
            ("augment --artwork a=sheet.png --contact-sheet sheet.png", "the file is the artwork"),
            (
                "augment --artwork a=photo.jpg --backgrounds photos/dark --contact-sheet photos/dark/sheet.png",
                "the file is a background photo"
            ),
        ])
    func inputs(command: String, message: String) throws {
        try withExistingFiles { folder in
            // An earlier contact sheet among the photos is a photo.
            try FileManager.default.copyItem(
                at: folder.appending(path: "sheet.png"), to: folder.appending(path: "photos/dark/sheet.png"))
            let before = try contents(of: folder)
            let run = try imprint(command, folder: folder)
            #expect(run.status == 64 && run.errors.contains(message), "\(run.errors)")
            #expect(try contents(of: folder) == before)
        }
    }

    @Test(
        "An output with the extension of another format is a usage error",
        arguments: [
            ("train photos -o o.onnx", "an ONNX model, expected a model file. Choose a name that ends in .imprint."),
            ("train photos -o o.JPG", "an image, expected a model file"),
            ("train-detector --artwork a=two-circles -o o.mlpackage", "a Core ML package, which is a folder"),
            ("merge m p -o o.csv", "a CSV table"), ("import m.onnx -o o.onnx", "an ONNX model, expected a model file"),
            ("quantize m --photos photos -o o.txt", "a text file, expected a model file"),
            ("personalize m photos -o o.html", "an HTML page, expected a personalization file"),
            ("personalize m photos -o o --cache o.json", "a JSON file, expected a feature cache"),
            (
                "audit photos --report o.txt",
                "a text file, expected an audit report. Choose a name that ends in .html."
            ),
            ("train photos -o o --report o.imprint", "a model file, expected a training report"),
            ("evaluate m photos --report o.json", "a JSON file, expected an evaluation report"),
            ("train photos --folds 2 --predictions o.html", "an HTML page, expected a table of fold predictions"),
            ("detect m a.jpg --coco o.csv", "a CSV table, expected a COCO file of detections"),
            ("sign m --private-key k -o o.imprint", "a model file, expected a model signature"),
            ("augment photos --contact-sheet o.html", "an HTML page, expected a contact sheet"),
            ("train photos -o o.h5", "an HDF5 file (Keras or Caffe), expected a model file"),
            ("train photos -o o.gguf", "a GGUF model, expected a model file"),
        ])
    func otherExtensions(command: String, message: String) throws {
        try withTemporaryFolder { folder in
            let run = try shell("$imprint \(command)", folder: folder)
            #expect(run.status == 64, "\(run.errors)")
            #expect(run.errors.contains("the extension is that of \(message)"), "\(run.errors)")
        }
    }

    @Test(
        "Usual and unknown extensions fit every kind of file",
        arguments: [
            ("o", OutputKind.allCases), ("o.model", OutputKind.allCases), ("o.2", OutputKind.allCases),
            ("o.IMPRINT", [.model, .personalization, .featureCache]), ("o.safetensors", [.model, .checkpoint]),
            ("o.htm", [.auditReport, .evaluationReport]), ("o.json", [.detections, .signature]),
            ("o.txt", [.predictionTable, .detections]), ("o.jpeg", [.contactSheet]),
        ] as [(String, [OutputKind])])
    func fittingExtensions(name: String, kinds: [OutputKind]) {
        for kind in kinds { #expect(kind.otherFormat(ofExtensionIn: name) == nil, "\(kind)") }
    }

    // MARK: Files

    /// Runs an `imprint` command in which `$recipe` is the path of the demo's drawing recipe.
    private func imprint(_ command: String, folder: URL) throws -> CommandOutput {
        try Self.imprint(command, folder: folder)
    }

    private static func imprint(_ command: String, folder: URL) throws -> CommandOutput {
        let recipe = packageFolder.appending(path: "datasets/two-circles.json").path
        return try shell("recipe='\(recipe)'\n$imprint \(command)", folder: folder)
    }

    private func contents(of folder: URL) throws -> [String: Data] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.path).reduce(into: [:]) { contents, path in
            contents[path] = try? Data(contentsOf: folder.appending(path: path))
        }
    }

    /// Calls `body` with a new folder that contains all files of `existing` and 8 photos.
    private func withExistingFiles(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            for (path, data) in try Self.files.get() {
                let url = folder.appending(path: path)
                try FileManager.default.createDirectory(
                    at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
                try data.write(to: url)
            }
            try body(folder)
        }
    }

    /// A private key that signs nothing else.
    private static let privateKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgh1s/3x2ZEXH8Lmk1
        keJZglEED3IapjPJv2lwGUU0WJGhRANCAARnIGV0hFQnC57Vv7ekpn55WRH6G9a1
        bI3wPjsouwSydA8DWGEJ7as1lWqnx6YDVP6V/k0IQlV5K4Tn4kPBR1ZG
        -----END PRIVATE KEY-----

        """

    /// The contents of these files, generated once.
    private static let files = Result { () throws -> [String: Data] in
        var files: [String: Data] = [:]
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            var logo = RasterImage(width: 120, height: 90, filledWith: 240)
            for y in 20..<70 {
                for sample in (3 * (y * 120 + 30))..<(3 * (y * 120 + 100)) { logo.samples[sample] = 20 }
            }
            try ImageFile.write(logo, to: folder.appending(path: "logo.png"))
            try Data(privateKey.utf8).write(to: folder.appending(path: "key.pem"))
            let commands = [
                "train photos --epochs 1 --input-size 16 --output m.imprint --report report.html --checkpoint saved",
                "train photos --folds 2 --epochs 1 --input-size 16 --width 0.125 --random-split --report folds.html",
                "evaluate m.imprint photos --report evaluation.html", "audit photos --report audit.html",
                "personalize m.imprint photos --output p.personal --cache c.features",
                "export m.imprint --to onnx --output m.onnx", "export m.imprint --to coreml --output m.mlmodel",
                "augment photos --count 1 --epochs 1 --contact-sheet sheet.png",
                "augment photos --count 1 --epochs 1 --contact-sheet sheet.jpg",
                "augment --artwork Logo=logo.png --count 1 --epochs 1 --contact-sheet s.png --cut-out cut.png",
                "sign m.imprint --private-key key.pem",
            ]
            for command in commands {
                let run = try imprint(command, folder: folder)
                #expect(run.status == 0, "\(command): \(run.errors)")
            }
            try ImageFile.write(
                RasterImage(width: 9, height: 9, filledWith: 90), to: folder.appending(path: "photo.jpg"))
            let fixtures = packageFolder.appending(path: "Tests/FileFormatTests/Fixtures")
            for (fixture, name) in [
                ("ONNX/gemm.onnx", "foreign.onnx"), ("CoreML/network-rgb.mlmodel", "foreign.mlmodel"),
            ] {
                try FileManager.default.copyItem(
                    at: fixtures.appending(path: fixture), to: folder.appending(path: name))
            }
            try Safetensors.write(
                [Safetensors.Tensor(name: "a", shape: [1], values: [1])],
                to: folder.appending(path: "foreign.safetensors")
            ) { _ in [:] }
            try Data("<!doctype html>\n<title>Imprint training report</title>\n".utf8).write(
                to: folder.appending(path: "foreign.html"))
            try Data("notes".utf8).write(to: folder.appending(path: "notes.txt"))
            for path in existing.map(\.file) + ["logo.png", "key.pem"]
                + (0..<4).flatMap({ ["photos/dark/\($0).png", "photos/bright/\($0).png"] })
            {
                files[path] = try Data(contentsOf: folder.appending(path: path))
            }
        }
        return files
    }
}
