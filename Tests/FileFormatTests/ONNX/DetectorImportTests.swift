import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// The import of detectors with several outputs from ONNX.
@Suite struct DetectorImportTests {
    /// Returns a small detector with the outputs of CenterFace: heat map, log size, offset, landmarks.
    private func sample(
        labels: Int = 1, hasSigmoid: Bool = true, sizeChannels: Int = 2,
        outputs: [String] = ["size", "offset", "marks"]
    ) -> ONNXSample {
        func weight(_ name: String, _ channels: Int) -> ONNXSample.Tensor {
            .floats(name, [channels, 3, 1, 1], (0..<(3 * channels)).map { Float($0 % 7 - 3) / 512 })
        }
        var sample = ONNXSample()
        // The batch size in the file differs from the batch size of the network, as in the published file.
        sample.image = [10, 3, 32, 32]
        sample.initializers = [
            weight("wh", labels), weight("ws", sizeChannels), weight("wo", 2), weight("wm", 10),
        ]
        let side: [ONNXSample.Attribute] = [.integers("kernel_shape", [4, 4]), .integers("strides", [4, 4])]
        sample.node("AveragePool", ["image"], side, to: "cells")
        sample.node("Conv", ["cells", "ws"], to: "size")
        sample.node("Conv", ["cells", "wo"], to: "offset")
        sample.node("Conv", ["cells", "wm"], to: "marks")
        sample.node("Conv", ["cells", "wh"], to: "logits")
        if hasSigmoid { sample.node("Sigmoid", to: "heat") }
        let channels = ["size": sizeChannels, "offset": 2, "marks": 10]
        sample.more = outputs.map { .message(12, ONNXSample.value($0, [10, channels[$0] ?? 0, 8, 8])) }
        return sample
    }

    private func read(_ sample: ONNXSample, _ change: (inout ModelImporter) -> Void = { _ in }) throws -> ModelFile {
        try importModel(sample.bytes, ending: "onnx") {
            $0.detector = .centerFace
            change(&$0)
        }.model
    }

    private func problem(
        of sample: ONNXSample, _ change: (inout ModelImporter) -> Void = { _ in }
    ) -> ImportError.Problem? {
        do {
            _ = try read(sample, change)
            return nil
        } catch {
            return (error as? ImportError)?.problem
        }
    }

    @Test(
        "The outputs are concatenated, landmarks are left out, and a missing sigmoid is added",
        arguments: [true, false])
    func outputs(hasSigmoid: Bool) throws {
        let model = try read(sample(hasSigmoid: hasSigmoid)) { $0.inputSize = 64 }
        #expect(model.labels == ["face"])
        #expect(model.centerPoints == CenterPointHead(stride: 4, sideMultiple: 32, iouThreshold: 0.3))
        #expect(model.network.output == TensorShape(height: 16, width: 16, channels: 5))
        #expect(model.preprocessing.mean == [0, 0, 0] && model.preprocessing.scale == [1, 1, 1])
        #expect(model.parameters.layout["marks.weight"] == nil)
        let sampleCount = 64 * 64 * 3
        let samples = (0..<sampleCount).map { UInt8($0 * 37 % 251) }
        let plan = try ExecutionPlan(
            model.network, parameters: model.parameters,
            options: ExecutionPlan.Options(batchSize: 1, mode: .prediction))
        model.preprocessing.normalize(
            RasterImage(width: 64, height: 64, channels: 3, samples: samples), into: plan.input)
        plan.forward(count: 1)
        let found = Array(plan.output)
        for position in [0, 17, 255] {
            let (row, column) = (position / 16, position % 16)
            let means = (0..<3).map { channel in
                (0..<16).reduce(Float(0)) { sum, pixel in
                    sum + Float(samples[((row * 4 + pixel / 4) * 64 + column * 4 + pixel % 4) * 3 + channel]) / 16
                }
            }
            func product(_ first: Int) -> Float {
                (0..<3).reduce(Float(0)) { $0 + means[$1] * Float((first + $1) % 7 - 3) / 512 }
            }
            let expected: [Float] = [1 / (1 + exp(-product(0))), product(0), product(3), product(0), product(3)]
            for (channel, value) in expected.enumerated() {
                #expect(abs(found[position * 5 + channel] - value) < 1e-5)
            }
        }
    }

    @Test("Settings replace the defaults: labels, input size, normalization") func settings() throws {
        let standard = try read(sample())
        #expect(standard.network.input == TensorShape(height: 1280, width: 1280, channels: 3))
        let model = try read(sample(labels: 2)) {
            $0.labels = ["face", "mask"]
            $0.inputSize = Size2D(height: 96, width: 160)
            $0.normalization = ModelImporter.InputNormalization(mean: [1, 2, 3], scale: [0.5], isBGR: true)
        }
        #expect(model.labels == ["face", "mask"] && model.network.output.channels == 6)
        #expect(model.network.input == TensorShape(height: 96, width: 160, channels: 3))
        #expect(model.preprocessing.mean == [1, 2, 3] && model.preprocessing.scale == [0.5, 0.5, 0.5])
        #expect(model.network.nodes.first?.layer is SelectChannels)
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "faces.imprint")
            try model.write(to: file)
            #expect(try ModelFile(contentsOf: file).head == model.head)
        }
    }

    @Test("A model that is not a detector of this kind is rejected") func refusals() {
        func text(_ problem: ImportError.Problem?) -> String {
            problem.map { ImportError(path: "m.onnx", problem: $0).description } ?? ""
        }
        for other in [
            sample(sizeChannels: 3), sample(outputs: ["size"]), sample(outputs: []),
            sample(outputs: ["size", "marks"]),
        ] {
            guard case .unsuitableModel(let found, _, .detector?)? = problem(of: other) else {
                Issue.record("\(String(describing: problem(of: other)))")
                continue
            }
            #expect(found.hasPrefix("a model whose first outputs have the shapes ["))
        }
        #expect(text(problem(of: sample(labels: 2))).contains("Set exactly 2 labels"))
        let wrongSize = problem(of: sample()) { $0.inputSize = 1000 }
        #expect(wrongSize == .sideMultiple(.centerFace, 1000, multiple: 32))
        // The size is wrong even if the default size does not fit the file either.
        #expect(problem(of: sample(outputs: [])) { $0.inputSize = 1000 } == wrongSize)
        #expect(
            text(wrongSize)
                == "m.onnx: the input size is 1000x1000 pixels. Expected sides that are multiples of 32 for centerface. "
                + "Choose 1024x1024.")
        #expect(text(problem(of: sample()) { $0.cropAndScale = .centerCrop }).contains("without a crop and scale mode"))
        var flat = sample()
        flat.node("Flatten")
        guard case .unsuitableModel(_, _, .detector?)? = problem(of: flat) else {
            Issue.record("a flat heat map is accepted")
            return
        }
    }

    @Test("Without the kind, a detector is rejected as one that may have a kind") func noKind() {
        #expect(problem(of: sample()) { $0.detector = nil } == .notScores([1, 1, 8, 8]))
        guard case .unsuitableModel(_, _, .noDetector?) = ImportError.Problem.notScores([1, 2, 3, 4]) else {
            Issue.record("no setting")
            return
        }
    }

    @Test("Only ONNX models can be detectors") func otherFormats() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.safetensors")
            try Safetensors.write(
                [Safetensors.Tensor(name: "a", shape: [1], values: [1])], to: file
            ) { _ in [:] }
            var importer = ModelImporter()
            importer.detector = .centerFace
            importer.architecture = "resnet-18"
            let error = #expect(throws: ImportError.self) { try importer.read(file) }
            #expect(
                error?.description.contains("but centerface is an ONNX model") == true, "\(String(describing: error))")
        }
    }
}
