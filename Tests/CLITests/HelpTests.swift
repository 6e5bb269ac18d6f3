import Foundation
import TestSupport
import Testing

@Suite struct HelpTests {
    // Fixtures/help-COMMAND.txt is the output of `COLUMNS=80 imprint COMMAND --help`. Review a change before you accept it.
    @Test(
        "The help pages match the fixtures",
        arguments: [
            "", "train", "train-detector", "classify", "detect", "evaluate", "personalize", "merge", "join", "inspect",
            "compare", "models", "serve",
            "import", "export", "quantize", "sign", "verify", "audit", "prepare", "augment", "draw", "studio", "bench",
        ])
    func helpPages(command: String) throws {
        let page = command.isEmpty ? try imprint("--help") : try imprint(command, "--help")
        let name = command.isEmpty ? "help" : "help-\(command)"
        let file = packageFolder.appending(path: "Tests/CLITests/Fixtures/\(name).txt")
        #expect(page.status == 0)
        #expect(page.output == (try String(contentsOf: file, encoding: .utf8)))
    }

    @Test("Invalid values exit with 64 and state the valid values")
    func wrongUse() throws {
        let unknown = try imprint("train", "photos", "--output", "m.imprint", "--network", "vgg")
        #expect(unknown.status == 64)
        #expect(unknown.errors.contains("unknown network \"vgg\". Choose one of lenet, logonet"))
        let epochs = try imprint("train", "photos", "--output", "m.imprint", "--epochs", "0")
        #expect(epochs.status == 64)
        #expect(epochs.errors.contains("--epochs is 0, expected 1 to 100000"))
    }

    @Test(
        "Values out of range are usage errors",
        arguments: [
            ("train '' --output m", "A path is empty"), ("classify m ''", "A path is empty"),
            ("train photos --output m --input-size 15", "--input-size is 15, expected at least 16"),
            ("train photos --ouput m", "Unknown option '--ouput'. Did you mean '--output'?"),
            ("export m --too onnx -o o", "Unknown option '--too'. Did you mean '--to'?"),
            ("train photos --output m --width 0", "--width is 0, expected more than 0 and at most 16"),
            ("classify m x --minimum-recall 2", "--minimum-recall is 2, expected 0 to 1"),
            ("train photos --output m --network lenet --input-size 8", "--input-size is 8, expected at least 16"),
            ("prepare photos --output d --size 0", "--size is 0, expected 1 to 8192"),
            ("prepare photos --output d --quality 101", "--quality is 101, expected 1 to 100"),
            ("train photos --output runs/checkpoint.safetensors --checkpoint runs", "the file is the checkpoint"),
            (
                "train photos --output m --report runs/./checkpoint.safetensors --checkpoint runs",
                "the file is the checkpoint"
            ),
            ("train photos --output m --checkpoint-interval 5", "Name their folder with --checkpoint"),
            ("train photos --output m --resume", "Name its folder with --checkpoint"),
            ("train photos --output m --port 80", "Add --watch"),
            ("personalize m photos --output me --rank 8", "--rank sets the rank of the adapters of --blocks"),
            ("personalize m photos --output me --blocks 1 --penalty 1", "has no effect with --blocks"),
            ("merge m p --output n --delta 1e-6", "there is no ε without noise. Add --noise"),
            (
                "join http://127.0.0.1:1 --model m --photos photos --delta 1e-6",
                "there is no ε without noise. Add --noise"
            ),
            ("train photos --output m --multi-label --rehearsal 8", "--rehearsal stores features for"),
            ("train photos --output m --patience 0", "--patience is 0, expected 1 to 100000"),
            ("train photos --output m --learning-rate fast", "fast"),
            ("train photos --output m --artwork A=x.png --network lenet", "Unknown option '--network'"),
            ("train-detector --output m --artwork A=x.png --unfreeze gradual", "Unknown option '--unfreeze'"),
            ("train-detector --output m --photos photos", "expected --artwork LABEL=FILE or --annotations FILE"),
            ("train-detector --output m --artwork none=x.png", "this label is reserved for photos without a logo"),
            ("train-detector --output m --artwork A/B=x.png", "contains \"/\" or begins with"),
            ("detect a.jpg --artwork logo.png", "--artwork is logo.png, expected LABEL=FILE"),
            ("train-detector --output m --artwork =logo.png", "--artwork is =logo.png, expected LABEL=FILE"),
            ("detect", "neither a model nor artwork"),
            ("detect m.imprint", "m.imprint is read as the model, and there are no photos"),
            ("detect --artwork A=x.png", "There are no photos"),
            ("detect m.imprint a.jpg --artwork A=x.png", "found both (m.imprint)"),
            ("detect m.imprint a.jpg --base b.imprint", "--base needs --artwork"),
            ("detect a.jpg --artwork A=x.png --personalization p.imprint", "--artwork uses no model"),
            ("classify m.imprint", "m.imprint is read as the model, and there are no photos"),
            ("classify m.imprint", "as in: imprint classify m.imprint photo.jpg"),
            (
                "classify m https://example.org/a.jpg",
                "https://example.org/a.jpg is a URL, expected a path. Imprint reads"
            ),
            ("train s3://photos/pets --output m", "s3://photos/pets is a URL"),
            (
                "train photos --output s3://models/m.imprint",
                "s3://models/m.imprint is a URL, expected a path. Imprint reads and writes only local files. Write a local file"
            ),
            ("draw two-circles --output s3://models/m", "Write a local file, and upload it afterwards."),
            ("train photos --output m --validation https://example.org/a", "https://example.org/a is a URL"),
            ("train photos --output m --validation ''", "A path is empty"),
            ("train photos --output m --base https://example.org/b", "https://example.org/b is a URL"),
            (
                "train-detector --output m --artwork A=x.png --base https://example.org/b",
                "https://example.org/b is a URL"
            ),
            ("classify m file:///a/b%20c.jpg", "is a URL, expected a path. Write /a/b c.jpg instead."),
            ("detect a.jpg --artwork A=https://example.org/a.png", "https://example.org/a.png is a URL"),
            ("classify cat.png", "as in: imprint classify pets.imprint cat.png"),
            ("train photos --output m --time-limit soon", "soon"),
            ("train photos --output m --time-limit 0", "--time-limit is 0, expected more than 0 seconds"),
            ("train photos --output m --minutes -1", "--time-limit is -1m, expected more than 0 seconds"),
            ("augment --artwork ../x=x.png --contact-sheet s.png", "Expected the name of a folder"),
            ("audit ''", "A path is empty"), ("audit photos --report ''", "A path is empty"),
            ("draw two-circles --output d --count 1", "at least one image for each of 2 labels"),
            ("draw two-circles --output d --user 0", "--user is 0, expected 1 to 100000"),
            ("draw marks --output d --user 1 --count 119", "at least one image for each of 120 labels"),
            ("train photos --output m --memory 2XB", "--memory is 2XB, expected a number of MB"),
            ("train photos --output m --memory -1", "--memory"),
        ])
    func values(command: String, message: String) throws {
        let run = try shell("$imprint \(command)", folder: packageFolder)
        #expect(run.status == 64)
        #expect(run.errors.contains(message), "\(run.errors)")
    }

    @Test(
        "The help of --precision states whether it sets the computation or the stored parameters",
        arguments: [
            (["classify", "detect", "evaluate", "serve", "studio", "compare", "bench"], "compute"),
            (["train", "train-detector", "export"], "precision of the parameters"),
        ])
    func precisions(commands: [String], meaning: String) throws {
        for command in commands {
            let help = try imprint(command, "--help").output
            let option = try #require(help.components(separatedBy: "\n  --precision <precision>").dropFirst().first)
            let text = option.components(separatedBy: "\n  -")[0].split(whereSeparator: \.isWhitespace)
            #expect(text.joined(separator: " ").contains(meaning), "\(command): \(option)")
        }
    }

    @Test(
        "An output named - is an error, because no subcommand writes a file to standard output",
        arguments: [
            "train photos --output", "train photos --output m --report", "train photos --output m --checkpoint",
            "train photos --folds 2 --keep", "train photos --folds 2 --predictions", "train-detector --output",
            "personalize m photos --output", "personalize m photos --output p --cache", "merge m p --output",
            "import m.onnx --output", "export m --to onnx --output", "quantize m --photos photos --output",
            "sign m --private-key k --output", "prepare photos --output", "draw two-circles --output",
            "draw two-circles --output d --contact-sheet", "augment photos --contact-sheet",
            "evaluate m photos --report", "audit photos --report", "detect m a.jpg --coco", "detect m a.jpg --crop-to",
            "classify m a.jpg --copy-to", "classify m a.jpg --annotate",
        ])
    func standardOutput(command: String) throws {
        try withTemporaryFolder { folder in
            let command = command.replacing("train-detector", with: "train-detector --artwork A=two-circles")
            let run = try shell("$imprint \(command) -", folder: folder)
            let option = try #require(command.split(separator: " ").last)
            #expect(run.status == 64, "\(run.errors)")
            #expect(
                run.errors.contains("\(option): Imprint does not write this output to standard output"), "\(run.errors)"
            )
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        }
    }

    @Test(
        "An error found after parsing is one line, without the usage of the command",
        arguments: [
            (
                "draw two-circles --output d --count 1",
                "--count is 1, expected at least one image for each of 2 labels."
            ),
            (
                "classify docs/examples/Sources/TypedModel/TwoCircles.imprint x.jpg --categories auto",
                "--categories auto: docs/examples/Sources/TypedModel/TwoCircles.imprint has no categories. Name a file of categories, or "
                    + "add them to the model with imprint export --to imprint --precision int8 --categories FILE."
            ),
        ])
    func lateErrors(command: String, message: String) throws {
        let run = try shell("$imprint \(command)", folder: packageFolder)
        #expect(run.status == 64 && run.errors == "Error: \(message)\n", "\(run.errors)")
        // An error found while parsing also prints the usage of the command.
        let early = try imprint("classify", "m.imprint", "x.jpg", "--top", "0")
        #expect(
            early.status == 64 && early.errors.contains("Usage: imprint classify [<options>] <model>"),
            "\(early.errors)")
    }

    @Test("A file name that begins with a dash is an error, not a request for help")
    func dashes() throws {
        for arguments in [["import", "-dash", "--output", "x"], ["classify", "m", "-photo.jpg"], ["-photo"]] {
            let run = try run(tool, arguments)
            let name = arguments.first { $0.hasPrefix("-") }!
            #expect(run.status == 64 && run.output.isEmpty)
            #expect(run.errors == "Error: \(name) is not an option; for a file of that name, write ./\(name).\n")
        }
        for arguments in [
            ["import", "-h"], ["-help"], ["help", "import"], ["import", "-dash", "--help"], ["--version"],
        ] {
            let run = try run(tool, arguments)
            #expect(run.status == 0 && run.errors.isEmpty && !run.output.isEmpty)
        }
        let file = try imprint("audit", "--", "-photos")
        #expect(file.status == 1 && file.errors.contains("-photos"), "\(file.errors)")
    }

    @Test(
        "Contradictory options are usage errors",
        arguments: [
            ("--base b.imprint --network lenet", "Leave out --network"),
            ("--base b.imprint --width 0.5", "Leave out --network, --width"),
            ("--base b.imprint --crop-and-scale scale-fit", "--crop-and-scale"),
            ("--network lenet --unfreeze all", "--unfreeze: there is no base model to fine-tune"),
            (
                "--width 0.5 --layer-decay 0.5 --batch-statistics",
                "--layer-decay, --batch-statistics: there is no base model"
            ),
            ("--unfreeze head --layer-decay 0.5", "Add --unfreeze all, head-first or gradual"),
            ("--base b.imprint --recipe head --layer-decay 0.5", "Add --unfreeze all, head-first or gradual"),
            ("--base b.imprint --recipe manual --layer-decay 0.5", "Add --unfreeze all, head-first or gradual"),
            ("--recipe head --unfreeze all", "Leave out --unfreeze"),
            ("--network lenet --recipe head", "--recipe: there is no base model"),
            ("--base b.imprint --unfreeze head --batch-statistics", "Add --unfreeze all, head-first or gradual"),
            ("--base b.imprint --unfreeze all --stage-epochs 2", "Add --unfreeze head-first or gradual"),
            ("--base b.imprint --unfreeze all --layer-decay 0", "--layer-decay is 0, expected more than 0"),
            ("--base b.imprint --unfreeze all --layer-decay 1.5", "--layer-decay is 1.5, expected more than 0"),
            ("--base b.imprint --unfreeze gradual --stage-epochs 0", "--stage-epochs is 0, expected 1 to 100000"),
            ("--report ./m.imprint", "expected two files"),
        ])
    func contradictions(options: String, message: String) throws {
        try withTemporaryFolder { folder in
            let run = try shell("$imprint train photos --output m.imprint \(options)", folder: folder)
            #expect(run.status == 64)
            #expect(run.errors.contains(message), "\(run.errors)")
        }
    }
}
