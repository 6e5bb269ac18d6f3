import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Networks of torchvision with random weights, exported by torch.onnx (Fixtures/export_torchvision.py), against ONNX Runtime.
@Suite(
    .serialized,
    .enabled(if: Python.exportsTorchvision, "IMPRINT_PYTHON has no torch and torchvision; see CONTRIBUTING.md"))
struct TorchInteropTests {
    static let networks = [
        "mobilenet_v2", "resnet50", "inception_v3", "squeezenet1_1", "densenet121", "efficientnet_b0", "vgg11",
        "shufflenet_v2_x1_0", "convnext_tiny",
    ]

    @Test(
        "Logits are ONNX Runtime's within a thousandth of the largest, whichever exporter wrote the file",
        arguments: networks, ["dynamo", "script", "script-13"])
    func logits(network: String, exporter: String) throws {
        try withTemporaryFolder { folder in
            _ = try Python.output(
                of: "ImprintFormatsTests/Fixtures/export_torchvision.py", [folder.path, network, exporter])
            let difference = try Self.difference(in: folder)
            print("torchvision \(network), exporter \(exporter): logits differ by \(difference) of the largest")
            #expect(difference < 1e-3)
        }
    }

    /// The greatest difference of a logit from ONNX Runtime's, as a share of the largest.
    static func difference(in folder: URL) throws -> Float {
        let model = try ModelImporter().read(folder.appending(path: "model.onnx"))
        func numbers(_ name: String) throws -> [Float] {
            try Data(contentsOf: folder.appending(path: name)).withUnsafeBytes { bytes in
                stride(from: 0, to: bytes.count, by: 4).map { bytes.loadUnaligned(fromByteOffset: $0, as: Float.self) }
            }
        }
        let (found, expected) = try (model.logits(numbers("image")), numbers("logits"))
        let largest = try #require(expected.map(\.magnitude).max())
        try #require(largest > 0.01, "the logits say nothing")
        return greatestDifference(found, expected) / largest
    }
}

extension Python {
    /// Whether it has what exports networks of torchvision.
    static let exportsTorchvision = has("torch", "torchvision", "onnxscript", "onnxruntime")
}

extension ImportedModel {
    /// What the network gives for numbers of an image before the softmax that the import added.
    func logits(_ image: [Float]) throws -> [Float] {
        let network = weights.network
        try #require(network.nodes.last?.layer is Softmax)
        let shorter = try Network(name: network.name, input: network.input, nodes: network.nodes.dropLast())
        let plan = try ExecutionPlan(
            shorter, parameters: weights.parameters, options: ExecutionPlan.Options(batchSize: 1, mode: .prediction))
        try #require(plan.input.count == image.count)
        _ = plan.input.update(fromContentsOf: image)
        plan.forward(count: 1)
        return Array(plan.output.prefix(network.output.channels))
    }
}
