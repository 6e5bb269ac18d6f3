import Foundation
import ImprintImages
import ImprintInterop
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@Suite struct ExportTests {
    /// Writes an untrained classifier and an untrained logo detector.
    private func writeModels(to folder: URL) throws {
        let network = try Network.logonet(labels: 2, inputSize: 16, width: 0.1)
        try ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["bright", "dark"],
            preprocessing: Preprocessing(width: 16, height: 16, cropAndScale: .scaleFit)
        ).write(to: folder.appending(path: "m.imprint"))
        let detector = try Network.logoDetector()
        try ModelFile(
            network: detector, parameters: try Parameters(detector, seed: 1), labels: ["leaf", "other"],
            preprocessing: Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill),
            detector: DetectorHead(levels: [96], stride: 16, span: 44, logos: [.init(label: "leaf")])
        ).write(to: folder.appending(path: "detector.imprint"))
    }

    @Test(
        "export writes the same file as the library, and reports it as text or JSON",
        arguments: [
            "m.imprint --to onnx", "m.imprint --to onnx --precision float16 --preprocessing-in-graph",
            "m.imprint --to coreml --float16", "m.imprint --to coreml --updatable", "detector.imprint --to onnx",
            "detector.imprint --to coreml --float16",
        ])
    func export(options: String) throws {
        try withTemporaryFolder { folder in
            try writeModels(to: folder)
            let run = try shell("$imprint export \(options) --output out", folder: folder)
            #expect(run.status == 0 && run.output.isEmpty && run.errors == "Wrote out.\n", "\(run.errors)")
            let line = try #require(
                try shell("$imprint export \(options) --output again --json", folder: folder).lines.first)
            #expect(line.keys.sorted() == ["event", "output", "unsupported"])
            #expect(line["event"] as? String == "finished" && line["output"] as? String == "again")
            #expect((line["unsupported"] as? [Any])?.isEmpty == true)

            let name = options.hasPrefix("detector") ? "detector.imprint" : "m.imprint"
            let model = try ModelFile(contentsOf: folder.appending(path: name))
            let expected = folder.appending(path: "expected")
            let precision: Safetensors.Precision = options.contains("float16") ? .float16 : .float32
            if options.contains("onnx") {
                try model.writeONNX(
                    to: expected,
                    options: ONNXOptions(
                        storagePrecision: precision, containsPreprocessing: options.contains("--preprocessing-in-graph")
                    ))
            } else {
                try model.writeCoreML(
                    to: expected,
                    options: CoreMLOptions(storagePrecision: precision, isUpdatable: options.contains("--updatable")))
            }
            for name in ["out", "again"] {
                #expect(try Data(contentsOf: folder.appending(path: name)) == Data(contentsOf: expected))
            }
        }
    }

    @Test(
        "Invalid options and models are errors, and no file is written",
        arguments: [
            ("m.imprint --to tflite --output o", 64, "tflite"),
            ("m.imprint --to onnx --updatable --output o", 64, "--updatable is only for coreml"),
            ("m.imprint --to coreml --updatable --precision float16 --output o", 64, "needs --precision float32"),
            (
                "m.imprint --to coreml --preprocessing-in-graph --output o", 64,
                "--preprocessing-in-graph is only for onnx"
            ),
            ("m.imprint --to imprint --updatable --output o", 64, "--updatable is only for coreml"),
            (
                "m.imprint --to imprint --preprocessing-in-graph --output o", 64,
                "--preprocessing-in-graph is only for onnx"
            ),
            ("m.imprint --to onnx --precision int8 --output o", 64, "--precision int8 is only for imprint"),
            ("m.imprint --to onnx --int8 --output o", 64, "--precision int8 is only for imprint"),
            ("m.imprint --to imprint --output ./m.imprint", 64, "the file is the model to export"),
            ("m.imprint --to onnx --output ./m.imprint", 64, "the file is the model to export"),
            ("m.imprint --to onnx --output ''", 64, "A path is empty"),
            ("m.imprint --output o", 64, "Missing expected argument '--to <onnx, coreml or imprint>'"),
            (
                "m.imprint --to onnx --output o.mlmodel", 64,
                "the extension is that of a Core ML model, expected an ONNX model. Choose a name that ends in .onnx, or --to coreml."
            ),
            ("m.imprint --to onnx --output o.MLPackage", 64, "that of a Core ML package, which is a folder"),
            (
                "m.imprint --to coreml --output o.imprint", 64,
                "the extension is that of a model file, expected a Core ML model. Choose a name that ends in .mlmodel, or --to imprint."
            ),
            ("m.imprint --to imprint --output o.onnx", 64, "the extension is that of an ONNX model"),
            ("m.imprint --to coreml --output o.mlpackage", 64, "that of a Core ML package, which is a folder"),
            ("m.imprint --to onnx --output nowhere/o", 1, "nowhere"),
            ("missing.imprint --to onnx --output o", 1, "missing.imprint"),
            ("detector.imprint --to coreml --updatable --output o", 64, "on a device: it is a logo detector"),
        ])
    func refusals(arguments: String, status: Int32, message: String) throws {
        try withTemporaryFolder { folder in
            try writeModels(to: folder)
            let before = try Data(contentsOf: folder.appending(path: "m.imprint"))
            let run = try shell("$imprint export \(arguments)", folder: folder)
            #expect(run.status == status && run.errors.contains(message), "\(run.errors)")
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(!names.contains { $0 == "o" || $0.hasPrefix("o.") }, "\(names)")
            #expect(try Data(contentsOf: folder.appending(path: "m.imprint")) == before)
        }
    }

    @Test(
        "export --to imprint writes classifiers and detectors in other precisions",
        arguments: ["m", "detector"],
        [("", "float32", "1"), ("--precision float16", "float16", "1"), ("--int8", "int8", "2")]
            as [(String, String, String)])
    func precisions(model: String, _ example: (option: String, storage: String, format: String)) throws {
        try withTemporaryFolder { folder in
            try writeModels(to: folder)
            let run = try shell(
                "$imprint export \(model).imprint --to imprint \(example.option) --output o", folder: folder)
            #expect(run.status == 0 && run.errors == "Wrote o.\n", "\(run.errors)")
            let line = try #require(try imprint("inspect", "o", "--json", folder: folder).lines.first)
            #expect(line["storage"] as? String == example.storage && line["format"] as? String == example.format)
            let size = try Data(contentsOf: folder.appending(path: "o")).count
            #expect(line["fileByteCount"] as? Int == size)
            let text = try imprint("inspect", "o", folder: folder).output
            #expect(text.contains("format       \(example.format)\n") && text.contains(", \(example.storage)\n"))
        }
    }

    @Test("An int8 model can be fine-tuned and personalized, and the fine-tuned model is float32")
    func fineTuning() throws {
        try withTemporaryFolder { folder in
            try writeModels(to: folder)
            try writeImages(to: folder.appending(path: "photos"), count: 16)
            let run = try shell(
                """
                set -e
                $imprint export m.imprint --to imprint --int8 --output q.imprint
                $imprint train photos --base q.imprint --unfreeze all --epochs 2 --validation 0 --output t.imprint
                $imprint personalize q.imprint photos --output me
                $imprint classify q.imprint photos/dark/0.png --personalization me
                """, folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let lines = try ["q.imprint", "t.imprint", "me"].map {
                try #require(try imprint("inspect", $0, "--json", folder: folder).lines.first)
            }
            #expect(lines[1]["storage"] as? String == "float32" && lines[1]["format"] as? String == "1")
            let digest = try #require(lines[0]["digest"] as? String)
            #expect(lines[1]["base"] as? String == digest && lines[2]["base"] as? String == digest)
            // The int8 model has a different digest than the float32 model.
            let other = try imprint(
                "classify", "m.imprint", "photos/dark/0.png", "--personalization", "me", folder: folder)
            #expect(other.status == 1 && other.errors.contains("was made for another model"), "\(other.errors)")
        }
    }

    @Test("A failed export prints a JSON line with the event \"failed\"")
    func failureLine() throws {
        try withTemporaryFolder { folder in
            try writeModels(to: folder)
            let run = try imprint(
                "export", "detector.imprint", "--to", "coreml", "--updatable", "--output", "o", "--json",
                folder: folder)
            #expect(run.status == 64)
            #expect(run.lines.count == 1 && run.lines.first?["event"] as? String == "failed")
            #expect((run.lines.first?["unsupported"] as? [Any])?.isEmpty == true)
        }
    }
}
