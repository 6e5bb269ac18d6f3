import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport

@testable import ImprintInterop
@testable import ImprintModel

/// Returns values in −1…1 that depend on `name`, and that float16 cannot represent exactly.
func sampleValues(_ count: Int, _ name: String) -> [Float] {
    var stream = RandomStream(seed: 21, name)
    return (0..<count).map { _ in stream.uniform(in: -1...1) }
}

/// Returns a small classifier with a convolution, a dense layer and a head.
func tunableModel(
    channels: Int = 5, labels: [String] = ["cat", "dog", "é 😀"], hasBias: Bool = true,
    precision: Safetensors.Precision = .float32
) throws -> ModelFile {
    var builder = NetworkBuilder(name: "tunable", input: TensorShape(height: 5, width: 4, channels: 3))
    builder.add(
        Convolution(outputChannels: 4, kernelSize: Size2D(height: 2, width: 3), stride: 2, hasBias: hasBias),
        named: "conv")
    builder.add(BatchNormalization(), named: "norm")
    builder.add(GlobalAveragePool(), named: "mean")
    builder.add(Dense(outputChannels: channels, hasBias: hasBias), named: "middle")
    builder.add(ReLU(), named: "relu")
    builder.add(Dense(outputChannels: labels.count, hasBias: hasBias), named: "head")
    builder.add(Softmax(), named: "softmax")
    let network = try builder.network()
    let parameters = try Parameters(network, seed: 3)
    for entry in parameters.layout.entries { parameters[entry.name] = sampleValues(entry.parameter.count, entry.name) }
    return ModelFile(
        network: network, parameters: parameters, labels: labels, preprocessing: Preprocessing(width: 4, height: 5),
        storagePrecision: precision)
}

/// Returns a detector of two logos, whose head is a 1x1 convolution.
func detectorModel() throws -> ModelFile {
    let network = try Network.logoDetector(logos: 2)
    return ModelFile(
        network: network, parameters: try Parameters(network, seed: 2), labels: ["leaf", "crest", "other"],
        preprocessing: Preprocessing(width: 96, height: 96),
        detector: DetectorHead(
            levels: [96], stride: 16, span: 44, logos: [.init(label: "crest"), .init(label: "leaf")]))
}

extension Personalization.Column {
    /// Returns a column with values that depend on its label.
    static func sample(_ label: String, _ channels: Int, hasBias: Bool = true) -> Self {
        Self(
            label: label, weights: sampleValues(channels, label),
            bias: hasBias ? sampleValues(1, "bias of \(label)")[0] : 0)
    }
}

extension Personalization.LowRankAdapter {
    /// Returns an adapter with values that depend on the name of the parameter.
    static func sample(_ parameter: String, rows: Int, columns: Int, rank: Int) -> Self {
        Self(
            parameter: parameter, left: sampleValues(rows * rank, "left \(parameter)"),
            right: sampleValues(rank * columns, "right \(parameter)"), rank: rank)
    }
}

/// Returns a personalization of `tunableModel()` with columns, adapters and an added label.
func samplePersonalization(of model: ModelFile) throws -> Personalization {
    Personalization(
        baseDigest: try model.identity, addedLabels: ["\"new\""],
        columns: [.sample("dog", 5), .sample("\"new\"", 5)],
        adapters: [
            .sample("conv.weight", rows: 18, columns: 4, rank: 2),
            .sample("middle.weight", rows: 4, columns: 5, rank: 1),
        ],
        record: .init(examples: ["\"new\"": 5, "dog": 2], corrections: ["cat": 1]))
}

/// Calls `body` with the file of a personalization after replacing metadata (nil removes an entry) and changing tensors.
///
/// The digests match the changed content.
func withChanged<Result>(
    _ personalization: Personalization, metadata changes: [String: String?] = [:],
    tensors change: (inout [Safetensors.Tensor]) -> Void = { _ in }, _ body: (URL) throws -> Result
) throws -> Result {
    try withTemporaryFolder { folder in
        let url = folder.appending(path: "me.imprint")
        try personalization.write(to: url)
        let file = try Safetensors.File(contentsOf: url)
        var tensors = try file.header.tensors.map {
            Safetensors.Tensor(name: $0.name, shape: $0.shape, values: try file.values(of: $0))
        }
        change(&tensors)
        try Safetensors.write(tensors, as: .float16, to: url) { digest in
            var metadata = file.header.metadata
            metadata["imprint.digest"] = digest
            for (key, value) in changes where key != "imprint.textDigest" { metadata[key] = value }
            metadata["imprint.textDigest"] = textDigest(of: metadata)
            if let value = changes["imprint.textDigest"] { metadata["imprint.textDigest"] = value }
            return metadata
        }
        return try body(url)
    }
}
