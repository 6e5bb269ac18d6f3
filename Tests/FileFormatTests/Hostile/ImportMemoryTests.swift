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
            try model.writeONNX(to: url, options: ONNXOptions(storagePrecision: precision))
            let onnx = ImportTrial(url)
            try model.writeCoreML(to: url, options: CoreMLOptions(storagePrecision: precision))
            let coreML = ImportTrial(url)
            for (name, trial) in [("ONNX", onnx), ("Core ML", coreML)] {
                #expect(trial.error == nil)
                // There is never a third copy of all weights.
                if let peak = trial.peak { #expect(2 * peak < 5 * bytes, "\(name): \(peak) of \(bytes)") }
            }
        }
    }

    @Test(
        "Decompressing 8-bit weights of an ML program needs at most 3.5 times the weights as 32-bit values",
        arguments: [false, true])
    func compressed(hasBlocks: Bool) throws {
        let shape = [256, 3, 64, 64]
        let count = shape.reduce(1, *)
        var sample = ProgramSample()
        (sample.width, sample.height) = (64, 64)
        let codes = ProgramSample.Argument.stored(
            hasBlocks ? .int8 : .uint8, shape, at: sample.store(Array(repeating: 0, count: count)))
        if hasBlocks {
            let scales = ProgramSample.Argument.floats([256, 1, 1, 1], Array(repeating: 1, count: 256))
            sample.add(
                "constexpr_blockwise_shift_scale", ["data": codes, "scale": scales], readsLast: false, to: ["w"])
        } else {
            sample.add(
                "constexpr_affine_dequantize",
                ["quantized_data": codes, "scale": .float(1), "zero_point": .integer(0), "axis": .integer(0)],
                readsLast: false, to: ["w"])
        }
        sample.add("conv", ["x": .name("image"), "weight": .name("w")], readsLast: false)
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.mlmodel")
            try Data(sample.bytes).write(to: url)
            try Data(sample.weights).write(to: folder.appending(path: "weights"))
            let trial = ImportTrial(url)
            #expect(trial.error == nil)
            let bytes = count * MemoryLayout<Float>.stride
            if let peak = trial.peak { #expect(2 * peak < 7 * bytes, "\(peak) of \(bytes)") }
        }
    }
}
