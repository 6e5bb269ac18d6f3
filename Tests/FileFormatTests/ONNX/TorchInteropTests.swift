import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// torchvision networks with random weights, exported by torch.onnx (Fixtures/export_torchvision.py), compared to ONNX Runtime.
@Suite(
    .serialized,
    .enabled(if: Python.exportsTorchvision, "IMPRINT_PYTHON has no torch and torchvision; see CONTRIBUTING.md"))
struct TorchInteropTests {
    static let networks = [
        "mobilenet_v2", "resnet50", "inception_v3", "squeezenet1_1", "densenet121", "efficientnet_b0", "vgg11",
        "shufflenet_v2_x1_0", "convnext_tiny",
    ]

    @Test(
        "Logits differ from ONNX Runtime by less than 0.001 of the largest logit, for every exporter",
        arguments: networks, ["dynamo", "script", "script-13"])
    func logits(network: String, exporter: String) throws {
        try withTemporaryFolder { folder in
            _ = try Python.output(
                of: "FileFormatTests/Fixtures/export_torchvision.py", [folder.path, network, exporter])
            let difference = try Self.difference(in: folder)
            print("torchvision \(network), exporter \(exporter): logits differ by \(difference) of the largest")
            #expect(difference < 1e-3)
        }
    }

    /// Returns the largest difference of a logit from ONNX Runtime, relative to the largest logit.
    static func difference(in folder: URL) throws -> Float {
        let imported = try ModelImporter().read(folder.appending(path: "model.onnx"))
        func values(in name: String) throws -> [Float] {
            try Data(contentsOf: folder.appending(path: name)).withUnsafeBytes { bytes in
                stride(from: 0, to: bytes.count, by: 4).map { bytes.loadUnaligned(fromByteOffset: $0, as: Float.self) }
            }
        }
        let (found, expected) = try (imported.logits(values(in: "image")), values(in: "logits"))
        let largest = try #require(expected.map(\.magnitude).max())
        try #require(largest > 0.01, "the logits are too small to compare")
        return maximumDifference(found, expected) / largest
    }
}

extension Python {
    /// Whether the packages to export torchvision networks are installed.
    static let exportsTorchvision = has("torch", "torchvision", "onnxscript", "onnxruntime")
}

extension ImportedModel {
    /// Returns the logits for a normalized image, before the softmax that the import added.
    func logits(_ image: [Float]) throws -> [Float] {
        let network = model.network
        try #require(network.nodes.last?.layer is Softmax)
        let withoutSoftmax = try Network(name: network.name, input: network.input, nodes: network.nodes.dropLast())
        let plan = try ExecutionPlan(
            withoutSoftmax, parameters: model.parameters,
            options: ExecutionPlan.Options(batchSize: 1, mode: .prediction))
        try #require(plan.input.count == image.count)
        _ = plan.input.update(fromContentsOf: image)
        plan.forward(count: 1)
        return Array(plan.output.prefix(network.output.channels))
    }
}
