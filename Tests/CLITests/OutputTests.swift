import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

/// The text and JSON output of the commands, for a model with fixed parameters.
@Suite struct OutputTests {
    // Fixtures/output-COMMAND.txt is the expected output, with ENGINE for the names of the kernels. Review a change before you accept it.
    @Test(
        "The text output matches the fixtures",
        arguments: [
            ("inspect", "inspect m.imprint --plan --threads 1"), ("inspect-layers", "inspect m.imprint"),
            ("evaluate", "evaluate m.imprint photos"),
            ("classify", "classify m.imprint photos/dark/0.png photos/bright/0.png --threshold 0.1"),
            ("classify-auto", "classify m.imprint photos/*/*.png --threshold auto"),
        ])
    func printed(name: String, command: String) throws {
        try withTemporaryFolder { folder in
            try writeModelAndPhotos(to: folder)
            let run = try shell("$imprint \(command)", folder: folder)
            let fixture = packageFolder.appending(path: "Tests/CLITests/Fixtures/output-\(name).txt")
            #expect(run.status == 0)
            // The kernels depend on the processor.
            let expected = try String(contentsOf: fixture, encoding: .utf8).replacing(
                "ENGINE", with: "\(Engine.current)")
            #expect(run.output == expected)
        }
    }

    @Test("Photos are classified in the given order, with the same output for any number of threads")
    func manyPhotos() throws {
        try withTemporaryFolder { folder in
            try writeModelAndPhotos(to: folder)
            let photos = (0..<40).map {
                $0 % 9 == 5 ? "missing\($0).png" : "photos/\($0 % 2 == 0 ? "dark" : "bright")/0.png"
            }
            let runs = try ["1", "2", "7"].map { threads in
                try run(tool, ["classify", "m.imprint"] + photos + ["--json", "--threads", threads], folder: folder)
            }
            #expect(runs[0].status == 1)
            #expect(runs[0].lines.map { $0["file"] as? String } == photos)
            for (line, photo) in zip(runs[0].lines, photos) {
                #expect(line.keys.sorted() == [photo.hasPrefix("missing") ? "error" : "observations", "file"].sorted())
            }
            #expect(runs[0].errors.split(separator: "\n").count == photos.filter { $0.hasPrefix("missing") }.count)
            for run in runs {
                #expect(run.status == runs[0].status)
                #expect(run.output == runs[0].output)
                #expect(run.errors == runs[0].errors)
            }
        }
    }

    @Test("inspect --plan --training --json describes the execution plan of a training step")
    func plan() throws {
        try withTemporaryFolder { folder in
            try model().write(to: folder.appending(path: "m.imprint"))
            let run = try imprint(
                "inspect", "m.imprint", "--plan", "--training", "--batch-size", "5", "--threads", "2", "--json",
                folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let line = try #require(run.lines.first)
            let plan = try #require(line["plan"] as? [String: Any])
            #expect(plan["mode"] as? String == "training")
            #expect(plan["batchSize"] as? Int == 5)
            #expect(plan["threads"] as? Int == 2)
            #expect(plan["multiplications"] as? Int == 6)
            let layers = try #require(plan["layers"] as? [[String: Any]])
            // The loss contains the softmax.
            #expect(layers.map { $0["name"] as? String } == ["mean", "head"])
            #expect(layers.map { $0["activationByteCount"] as? Int } == [60, 40])
            #expect(layers[1]["algorithm"] as? String == "matrixProduct")
            #expect(layers.allSatisfy { $0["precision"] as? String == "float32" })
            for key in ["arenaByteCount", "gradientByteCount", "preparedByteCount"] { #expect(plan[key] is Int) }
            let engine = try #require(line["engine"] as? [String: Any])
            #expect(engine["matrixKernels"] as? String == Engine.current.matrixKernels)
            #expect(engine["vectorInstructions"] as? String == Engine.current.vectorInstructions)
            let without = try #require(try imprint("inspect", "m.imprint", "--json", folder: folder).lines.first)
            #expect(without["plan"] == nil && without["engine"] == nil)
        }
    }

    @Test("inspect --json lists all layers and labels; the text output lists only ten labels")
    func layers() throws {
        try withTemporaryFolder { folder in
            let labels = (1...30).map { "label \($0)" }
            try model(labels: labels).write(to: folder.appending(path: "m.imprint"))
            let line = try #require(try imprint("inspect", "m.imprint", "--json", folder: folder).lines.first)
            #expect(line["labels"] as? [String] == labels && line["layers"] as? Int == 3)
            let nodes = try #require(line["nodes"] as? [[String: Any]])
            #expect(nodes.map { $0["name"] as? String } == ["mean", "head", "confidence"])
            #expect(nodes.map { $0["kind"] as? String } == ["globalAveragePool", "dense", "softmax"])
            #expect(nodes.map { $0["inputs"] as? [String] } == [["input"], ["mean"], ["head"]])
            #expect(nodes.map { $0["parameterCount"] as? Int } == [0, 120, 0])
            #expect(nodes.map { $0["multiplications"] as? Int } == [0, 90, 0])
            #expect((nodes[1]["output"] as? [String: Int]) == ["height": 1, "width": 1, "channels": 30])
            #expect(line["multiplications"] as? Int == 90 && line["storage"] as? String == "float32")
            let memory = try #require(line["memory"] as? [String: Int])
            let parts = ["parameterByteCount", "preparedByteCount", "arenaByteCount"].compactMap { memory[$0] }
            #expect(parts.count == 3 && memory["byteCount"] == parts.reduce(0, +))
            let text = try imprint("inspect", "m.imprint", folder: folder).output
            #expect(text.contains("label 9, label 10, … and 20 more\n"), "\(text)")
        }
    }

    @Test("inspect --json writes values that JSON cannot represent as strings")
    func numbersBeyondJSON() throws {
        try withTemporaryFolder { folder in
            let epoch = EpochMetrics(
                epoch: 1, loss: .nan, accuracy: 0.5, validationLoss: .infinity, learningRate: 0.1)
            let record = TrainingRecord(.classifier(ClassifierHyperparameters()), history: [epoch])
            try brightnessModel(labels: ["a", "b"], weights: [1, 0, 0, 1, 1, 0], training: record)
                .write(to: folder.appending(path: "m.imprint"))
            let line = try #require(try imprint("inspect", "m.imprint", "--json", folder: folder).lines.first)
            let training = try #require(line["training"] as? [String: Any])
            let history = try #require(training["history"] as? [[String: Any]])
            #expect(history.count == 1 && history[0]["loss"] as? String == "NaN")
            #expect(history[0]["validationLoss"] as? String == "Infinity")
        }
    }

    @Test("Options that need --plan are usage errors without it", arguments: ["--training", "--batch-size 2"])
    func planOptions(_ options: String) throws {
        let run = try shell("$imprint inspect m.imprint \(options)", folder: packageFolder)
        #expect(run.status == 64)
        #expect(run.errors.contains("apply only to the plan. Add --plan."), "\(run.errors)")
    }

    @Test(
        "--minimum-precision, --minimum-recall and --threshold select classifications by their confidence",
        arguments: [
            // The confidences of "dark" are 0.967, 0.634, 0.331, 0.039 and 0.403; those of "bright" are 1 minus these.
            ("--minimum-precision 0.9", [["dark"], [], [], ["bright"], []]),
            (
                "--minimum-recall 1",
                [["dark"], ["dark", "bright"], ["bright", "dark"], ["bright"], ["bright", "dark"]]
            ),
            ("--minimum-recall 0.4 --minimum-precision 0.9", [["dark"], [], [], ["bright"], []]),
            ("--minimum-recall 1 --minimum-precision 0.9", [[], [], [], [], []]),
            ("--threshold auto", [["dark"], ["dark"], [], ["bright"], []]),
            ("--threshold auto --minimum-precision 0.9", [["dark"], [], [], ["bright"], []]),
            ("--threshold 0.5 --top 1", [["dark"], ["dark"], ["bright"], ["bright"], ["bright"]]),
        ])
    func minimumConfidence(options: String, expected: [[String]]) throws {
        try withTemporaryFolder { folder in
            try writeModelAndPhotos(to: folder)
            let files = ["dark/0", "dark/1", "dark/2", "bright/0", "bright/1"].map { "photos/\($0).png" }
            let run = try shell(
                "$imprint classify m.imprint \(files.joined(separator: " ")) \(options) --json", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let labels = run.lines.map { line in
                (line["observations"] as? [[String: Any]])?.compactMap { $0["label"] as? String }
            }
            #expect(labels == expected)
        }
    }

    @Test(
        "Options that need validation results are wrong usage for a model without them",
        arguments: [
            ("--threshold auto", "no threshold for bright, dark"),
            ("--minimum-precision 0.9", "no precision–recall curve for bright, dark"),
            ("--minimum-recall 0.9", "because it has no training record, like an imported model."),
            ("--threshold auto", "--threshold 0.5 requires a confidence of at least 0.5 for all labels."),
        ])
    func unvalidatedModel(options: String, message: String) throws {
        try withTemporaryFolder { folder in
            try model().write(to: folder.appending(path: "m.imprint"))
            let run = try shell("$imprint classify m.imprint x.png \(options) --json", folder: folder)
            #expect(run.status == 64 && run.output.isEmpty)
            #expect(run.errors.contains(message), "\(run.errors)")
        }
    }

    @Test("evaluate --json prints all documented keys, and with --images a line per photo")
    func evaluationLines() throws {
        try withTemporaryFolder { folder in
            try writeModelAndPhotos(to: folder)
            let lines = try imprint("evaluate", "m.imprint", "photos", "--json", "--images", folder: folder).lines
            #expect(lines.count == 6)
            let image = try #require(lines.first { ($0["file"] as? String)?.hasSuffix("photos/dark/2.png") == true })
            #expect(image["event"] as? String == "image" && image["correct"] as? Bool == false)
            #expect(image["label"] as? String == "dark" && image["predicted"] as? String == "bright")
            let classifications = try #require(image["observations"] as? [[String: Any]])
            #expect(classifications.map { $0["label"] as? String } == ["bright", "dark"])
            #expect(classifications.allSatisfy { $0.count == 2 && $0["confidence"] is Double })
            let last = try #require(lines.last)
            #expect(
                last.keys.sorted() == [
                    "accuracy", "accuracyInterval", "auc", "balancedAccuracy", "calibrationError", "confusion",
                    "images",
                    "labels", "logLoss", "macroF1", "macroPrecision", "macroRecall", "numericPrecision", "perLabel",
                    "skipped",
                    "top5",
                ])
            #expect(last["top5"] is NSNull && last["auc"] is Double)
            #expect((last["accuracyInterval"] as? [Double])?.count == 2)
            let labels = try #require(last["perLabel"] as? [[String: Any]])
            #expect(
                labels.allSatisfy {
                    $0.keys.sorted() == ["auc", "averagePrecision", "count", "f1", "label", "precision", "recall"]
                })
            let plain = try imprint("evaluate", "m.imprint", "photos", "--json", folder: folder).lines
            #expect(plain.count == 1)
        }
    }

    @Test("evaluate lists the worst mistakes, and prints tables of at most 80 columns")
    func manyLabels() throws {
        try withTemporaryFolder { folder in
            let labels = (0..<12).map { "a label that is quite long \($0)" }
            try model(labels: labels).write(to: folder.appending(path: "m.imprint"))
            for label in labels.suffix(3) {
                for (index, grey) in [10, 240].enumerated() {
                    try writePhoto(folder.appending(path: "photos/\(label)/\(index).png"), grey: UInt8(grey))
                }
            }
            let run = try imprint("evaluate", "m.imprint", "photos", "--images", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let lines = run.output.split(separator: "\n", omittingEmptySubsequences: false)
            let mistakes = try #require(lines.firstIndex { $0.hasPrefix("worst mistakes") })
            #expect(lines[..<mistakes].allSatisfy { $0.count <= 80 }, "\(run.output)")
            #expect(run.output.contains("top-5 accuracy"))
            #expect(run.output.contains("most frequent confusions"))
            #expect(lines[(mistakes + 1)...].filter { !$0.isEmpty }.allSatisfy { $0.hasSuffix(".png") })
            let line = try #require(try imprint("evaluate", "m.imprint", "photos", "--json", folder: folder).lines.last)
            #expect(line["top5"] is Double && line["auc"] is NSNull)
        }
    }

    private func writePhoto(_ file: URL, grey: UInt8) throws {
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try ImageFile.write(RasterImage(width: 9, height: 12, filledWith: grey), to: file)
    }

    /// Writes photos, and a model whose training record contains validation results.
    private func writeModelAndPhotos(to folder: URL) throws {
        let record = TrainingRecord(
            .classifier(ClassifierHyperparameters()),
            trainingImages: ["bright": 4, "dark": 6], validationImages: ["bright": 2, "dark": 3],
            history: [
                EpochMetrics(epoch: 1, loss: 0.5, accuracy: 0.9, validationAccuracy: 0.8, learningRate: 0.1)
            ],
            precisionRecall: [
                "bright": [
                    .init(threshold: 0.3, precision: 0.5, recall: 1), .init(threshold: 0.9, precision: 1, recall: 0.5),
                ],
                "dark": [
                    .init(threshold: 0.3, precision: 0.75, recall: 1),
                    .init(threshold: 0.6, precision: 0.8, recall: 0.7),
                    .init(threshold: 0.9, precision: 1, recall: 0.4),
                ],
            ], thresholds: ["bright": 0.7, "dark": 0.5])
        try model(training: record).write(to: folder.appending(path: "m.imprint"))
        for (path, grey) in [
            ("dark/0", 20), ("dark/1", 110), ("dark/2", 150), ("bright/0", 230), ("bright/1", 140),
        ] {
            try writePhoto(folder.appending(path: "photos/\(path).png"), grey: UInt8(grey))
        }
    }

    /// Creates a classifier by brightness: for an image with the mean x, from −1 to 1, the logits are alternately 2x and −2x.
    private func model(
        labels: [String] = ["bright", "dark"], training: TrainingRecord? = nil
    ) throws -> ModelFile {
        try brightnessModel(
            labels: labels, weights: alternatingWeights(2.0 / 3, labels: labels.count), training: training)
    }
}
