import Foundation
import TestSupport
import Testing

/// The exit codes for the same mistake in different subcommands; docs/reference/command-line-behaviour.md has the rule.
@Suite struct ExitCodeTests {
    private static let recipe = packageFolder.appending(path: "datasets/two-circles.json").path

    /// Runs a command in a folder with labelled photos, a model, and the folder `full` with a file.
    private func check(_ command: String, _ status: Int32, _ message: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            try writeRandomDetector(logos: ["crest"], to: folder.appending(path: "m.imprint"))
            try FileManager.default.createDirectory(
                at: folder.appending(path: "full"), withIntermediateDirectories: false)
            try Data("text".utf8).write(to: folder.appending(path: "full/note.txt"))
            let run = try shell(
                "export IMPRINT_HOME=home; recipe='\(Self.recipe)'; $imprint \(command)", folder: folder)
            #expect(run.status == status && run.errors.contains(message), "\(command): \(run.status) \(run.errors)")
            #expect(!run.errors.contains("could not be completed"), "\(run.errors)")
        }
    }

    @Test(
        "A missing input is a failure",
        arguments: [
            "train missing -o o", "train photos --validation missing -o o", "evaluate m.imprint missing",
            "classify m.imprint missing", "audit missing", "prepare missing -o o", "personalize m.imprint missing -o o",
            "personalize m.imprint photos --not crest=missing -o o", "augment missing --contact-sheet s.png",
            "compare m.imprint m.imprint --images missing", "bench data --data missing",
            "train-detector --artwork a=$recipe --photos missing -o o", "export missing.imprint --to onnx -o o",
            "import missing.onnx -o o", "classify missing.onnx photos", "import m.onnx --labels missing.txt -o o",
        ])
    func missingInputs(command: String) throws { try check(command, 1, "missing") }

    @Test(
        "Too few photos are a failure",
        arguments: [
            (
                "quantize m.imprint --photos photos/dark -o o",
                "photos/dark: found 2 readable files, expected at least 4 photos."
            ),
            ("train photos/dark -o o", "contains 2 photos and no sub-folders"),
        ])
    func tooFewPhotos(command: String, message: String) throws { try check(command, 1, message) }

    @Test(
        "A name of a model that is not installed is wrong usage",
        arguments: ["classify nomodel photos", "detect nomodel photos", "inspect nomodel", "evaluate nomodel photos"])
    func unknownModels(command: String) throws {
        try check(
            command, 64,
            "nomodel is neither a file nor an installed model. imprint models list shows the installed models.")
    }

    @Test(
        "An output that must not be replaced, or that names a file or folder of the other kind, is wrong usage",
        arguments: [
            "draw $recipe --count 4 -o full", "draw --artwork a=$recipe -o full", "prepare photos -o full",
            "train photos -o o --checkpoint m.imprint", "train photos --folds 2 --keep m.imprint",
            "draw $recipe --count 4 -o m.imprint", "draw --artwork a=$recipe -o m.imprint",
            "prepare photos -o m.imprint", "classify m.imprint photos --copy-to m.imprint",
            "export m.imprint --to onnx -o full", "train photos -o full", "audit photos --report full",
            "merge m.imprint p -o full", "personalize m.imprint photos -o full",
            "augment photos --contact-sheet photos/dark/0.png",
        ])
    func outputs(command: String) throws { try check(command, 64, "Choose another") }

    @Test(
        "An output in a missing folder is a failure with the system's reason",
        arguments: [
            "export m.imprint --to onnx -o none/o", "train photos -o none/o", "personalize m.imprint photos -o none/o",
            "audit photos --report none/r.html", "augment photos --contact-sheet none/s.png",
        ])
    func missingFolders(command: String) throws {
        try check(command, 1, "cannot be written (No such file or directory). Create its folder first.")
    }

    @Test(
        "An unknown name is wrong usage",
        arguments: [
            ("models remove nope", "nope is not installed, so there is nothing to remove."),
            ("models remove built-in", "comes with Imprint and cannot be removed"),
            ("models install nope", "no base model of this name"), ("train photos --base nope -o o", "nope"),
            ("detect centerface photos", "imprint models install centerface installs it."),
            ("classify centerface photos", "imprint models install centerface installs it."),
            ("draw nope -o o", "There is no recipe"),
            ("models install m.imprint --name built-in", "Choose another name"),
        ])
    func unknownNames(command: String, message: String) throws { try check(command, 64, message) }

    @Test(
        "--mirror with a detector is wrong usage",
        arguments: ["evaluate m.imprint photos", "classify m.imprint photos", "serve m.imprint --port 0"])
    func mirroredDetectors(command: String) throws {
        try check(
            "\(command) --mirror", 64,
            "--mirror: m.imprint: the model is a detector, expected a classifier, whose confidences --mirror averages.")
    }

    @Test("classify without a model names the missing argument")
    func missingModel() throws { try check("classify photos", 64, "imprint classify pets.imprint photos") }

    @Test(
        "Every subcommand with a model accepts the name of an installed one",
        arguments: [
            "classify mine photos/dark/0.png", "detect mine photos/dark/0.png", "inspect mine",
            "export mine --to onnx -o o.onnx", "compare mine mine --images photos", "inspect built-in",
        ])
    func installedNames(command: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            try writeRandomDetector(logos: ["crest"], to: folder.appending(path: "m.imprint"))
            let run = try shell(
                "export IMPRINT_HOME=home; $imprint models install m.imprint --name mine && $imprint \(command)",
                folder: folder)
            #expect(run.status == 0, "\(command): \(run.errors)")
        }
    }
}
