import Foundation
import ImprintFormats
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@Suite struct ExportTests {
    /// Writes a model that has learnt nothing, and one that spots marks.
    private func writeModels(to folder: URL) throws {
        let network = try Network.logonet(labels: 2, inputSize: 16, width: 0.1)
        try WeightsFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["bright", "dark"],
            preprocessing: Preprocessing(width: 16, height: 16, cropAndScale: .scaleFit)
        ).write(to: folder.appending(path: "m.imprint"))
        let spots = try Network.logospot()
        try WeightsFile(
            network: spots, parameters: try Parameters(spots, seed: 1), labels: ["leaf", "other"],
            preprocessing: Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill),
            spotting: Spotting(levels: [96], stride: 16, span: 44, marks: [.init(label: "leaf")])
        ).write(to: folder.appending(path: "spots.imprint"))
    }

    @Test(
        "Writes what the library writes, and says so in words or in JSON",
        arguments: [
            "--to onnx", "--to onnx --float16 --preprocessing-in-graph", "--to coreml --float16",
            "--to coreml --updatable",
        ])
    func export(options: String) throws {
        try withTemporaryFolder { folder in
            try writeModels(to: folder)
            let run = try shell("$imprint export m.imprint \(options) --output out", folder: folder)
            #expect(run.status == 0 && run.output.isEmpty && run.errors == "Wrote out.\n", "\(run.errors)")
            let line = try #require(
                try shell("$imprint export m.imprint \(options) --output again --json", folder: folder).lines.first)
            #expect(line.keys.sorted() == ["event", "output", "unsupported"])
            #expect(line["event"] as? String == "finished" && line["output"] as? String == "again")
            #expect((line["unsupported"] as? [Any])?.isEmpty == true)

            let weights = try WeightsFile(contentsOf: folder.appending(path: "m.imprint"))
            let expected = folder.appending(path: "expected")
            let precision: Safetensors.Precision = options.contains("--float16") ? .float16 : .float32
            if options.contains("onnx") {
                try weights.writeONNX(
                    to: expected,
                    options: ONNXOptions(
                        precision: precision, containsPreprocessing: options.contains("--preprocessing-in-graph")))
            } else {
                try weights.writeCoreML(
                    to: expected,
                    options: CoreMLOptions(precision: precision, isUpdatable: options.contains("--updatable")))
            }
            for name in ["out", "again"] {
                #expect(try Data(contentsOf: folder.appending(path: name)) == Data(contentsOf: expected))
            }
        }
    }

    @Test(
        "What cannot be exported is refused and nothing is written",
        arguments: [
            ("m.imprint --to tflite --output o", 64, "tflite"),
            ("m.imprint --to onnx --updatable --output o", 64, "--updatable is for coreml"),
            ("m.imprint --to coreml --updatable --float16 --output o", 64, "exclude one another"),
            ("m.imprint --to coreml --preprocessing-in-graph --output o", 64, "--preprocessing-in-graph is for onnx"),
            ("m.imprint --to onnx --output ./m.imprint", 64, "would replace the model"),
            ("m.imprint --to onnx --output ''", 64, "A path is empty"),
            ("m.imprint --to onnx --output nowhere/o", 1, "nowhere"),
            ("missing.imprint --to onnx --output o", 1, "missing.imprint"),
            ("spots.imprint --to coreml --output o", 1, "o: was not written: the model spots marks"),
        ])
    func refusals(arguments: String, status: Int32, message: String) throws {
        try withTemporaryFolder { folder in
            try writeModels(to: folder)
            let before = try Data(contentsOf: folder.appending(path: "m.imprint"))
            let run = try shell("$imprint export \(arguments)", folder: folder)
            #expect(run.status == status && run.errors.contains(message), "\(run.errors)")
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "o").path))
            #expect(try Data(contentsOf: folder.appending(path: "m.imprint")) == before)
        }
    }

    @Test("A refusal says in JSON too that nothing was written")
    func failureLine() throws {
        try withTemporaryFolder { folder in
            try writeModels(to: folder)
            let run = try imprint("export", "spots.imprint", "--to", "onnx", "--output", "o", "--json", folder: folder)
            #expect(run.status == 1)
            #expect(run.lines.count == 1 && run.lines.first?["event"] as? String == "failed")
            #expect((run.lines.first?["unsupported"] as? [Any])?.isEmpty == true)
        }
    }
}
