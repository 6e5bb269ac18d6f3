import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// The memory that importing a large valid model takes.
@Suite struct ImportMemoryTests {
    /// Returns a model with 8 million parameters, most of them in eight equal layers.
    private func model() throws -> ModelFile {
        var net = NetworkBuilder(name: "large", input: TensorShape(height: 2, width: 2, channels: 3))
        net.add(Convolution(outputChannels: 1024, kernelSize: 1))
        for _ in 0..<8 { net.add(Convolution(outputChannels: 1024, kernelSize: 1)) }
        net.add(GlobalAveragePool())
        net.add(Dense(outputChannels: 2))
        net.add(Softmax())
        let network = try net.network()
        let parameters = try Parameters(ParameterLayout(network))
        parameters.withValues { $0.update(repeating: 0.5) }
        return ModelFile(
            network: network, parameters: parameters, labels: ["a", "b"],
            preprocessing: Preprocessing(width: 2, height: 2, channels: 3))
    }

    @Test(
        "An import needs at most 2.5 times the weights as 32-bit values, for any precision in the file",
        arguments: [Safetensors.Precision.float32, .float16])
    func twice(precision: Safetensors.Precision) throws {
        let model = try model()
        let bytes = model.parameters.layout.count * MemoryLayout<Float>.stride
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model")
            try model.writeONNX(to: url, options: ONNXOptions(precision: precision))
            let onnx = ImportTrial(url)
            try model.writeCoreML(to: url, options: CoreMLOptions(precision: precision))
            let coreML = ImportTrial(url)
            for (name, trial) in [("ONNX", onnx), ("Core ML", coreML)] {
                #expect(trial.error == nil)
                // There is never a third copy of all weights.
                if let peak = trial.peak { #expect(2 * peak < 5 * bytes, "\(name): \(peak) of \(bytes)") }
            }
        }
    }
}
