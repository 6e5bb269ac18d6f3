import ImprintCore
import Testing

@testable import ImprintNetwork

/// Fine-tuning of quantized networks.
@Suite struct FineTuningTests {
    private static let shape = TensorShape(height: 12, width: 12, channels: 3)

    /// A network with a stem, a depthwise convolution, a shortcut, a pool and a head.
    private static func network() throws -> Network {
        var net = NetworkBuilder(name: "small", input: shape)
        func normalized(_ convolution: Convolution, _ name: String, activates: Bool = true) {
            net.add(convolution, named: name)
            net.add(BatchNormalization(), named: "\(name).norm")
            if activates { net.add(ReLU6(), named: "\(name).relu") }
        }
        normalized(Convolution(outputChannels: 16, kernelSize: 3, stride: 2, padding: .same, hasBias: false), "stem")
        normalized(
            Convolution(outputChannels: 16, kernelSize: 3, padding: .same, groups: 16, hasBias: false), "depthwise")
        normalized(Convolution(outputChannels: 16, kernelSize: 1, hasBias: false), "project", activates: false)
        net.add(AddLayer(), named: "sum", to: ["project.norm", "stem.relu"])
        net.add(MaxPool(kernelSize: 2), named: "pool")
        normalized(Convolution(outputChannels: 24, kernelSize: 1, hasBias: true), "expand")
        net.add(GlobalAveragePool(), named: "mean")
        net.add(Dense(outputChannels: 10), named: "head")
        return try net.network()
    }

    private static func pixels(_ index: Int) -> [Float] { randomValues(shape.count, "image \(index)") }

    private static func images(_ indices: Range<Int>) -> [Quantizer.Image] {
        indices.map { index in
            Quantizer.Image(shape: shape) { values in _ = values.update(from: pixels(index)) }
        }
    }

    private static var samples: [Quantizer.Sample] {
        (0..<48).map { index in { _, values in _ = values.update(from: pixels(index)) } }
    }

    /// A quantizer and quantized parameters with only some integers per weight, so that the error is large.
    private static func quantized(threads: Int = 1) throws -> (Quantizer, Parameters) {
        let network = try network()
        let quantizer = Quantizer(network, parameters: try randomParameters(network, seed: 3), threads: threads)
        let parameters = try quantizer.quantize(for: images(0..<48))
        var quantization = try #require(parameters.quantization)
        for (name, weights) in quantization.weights {
            quantization.weights[name]?.scales = weights.scales.map { $0 * 12 }
            let entry = try #require(parameters.layout["\(name).weight"])
            parameters.withValues(of: entry) { quantization.weights[name]?.round($0) }
        }
        parameters.quantization = quantization
        return (quantizer, parameters)
    }

    private static func fineTuned(
        threads: Int = 1, learningRate: Float = 0.02, steps: Int = 60
    ) throws -> (before: QuantizationError, after: QuantizationError, parameters: Parameters) {
        let (quantizer, parameters) = try quantized(threads: threads)
        let measured = images(48..<64)
        let result = try quantizer.fineTuned(
            parameters, on: samples, measuring: measured,
            options: Quantizer.FineTuning(steps: steps, batchSize: 8, learningRate: learningRate))
        return (
            try quantizer.error(of: parameters, on: measured), try quantizer.error(of: result, on: measured), result
        )
    }

    @Test("Fine-tuning reduces the quantization error on other images") func reducesError() throws {
        let (before, after, parameters) = try Self.fineTuned()
        #expect(after.relativeError < 0.8 * before.relativeError)
        #expect(parameters.quantization != nil)
    }

    @Test("Fine-tuned weights are integer multiples of their steps") func integerMultiples() throws {
        let parameters = try Self.fineTuned(steps: 10).parameters
        let quantization = try #require(parameters.quantization)
        for (name, weights) in quantization.weights {
            let entry = try #require(parameters.layout["\(name).weight"])
            let before = try #require(parameters[entry.name])
            var after = before
            after.withUnsafeMutableBufferPointer { weights.round($0) }
            #expect(after == before)
        }
    }

    @Test("The result is bitwise equal for any number of threads") func threads() throws {
        let results = try [1, 2].map { try Self.fineTuned(threads: $0, steps: 20).parameters.withValues { Array($0) } }
        expectBitwiseEqual(results[0], results[1], "parameters")
    }

    @Test("Fine-tuning that increases the error does not change the parameters") func increasedError() throws {
        let (before, after, parameters) = try Self.fineTuned(learningRate: 1000, steps: 10)
        #expect(after == before)
        let (_, unchanged) = try Self.quantized()
        expectBitwiseEqual(
            parameters.withValues { Array($0) }, unchanged.withValues { Array($0) }, "parameters")
    }

    @Test("The network for training computes nearly the same outputs as int8") func trainingNetwork() throws {
        let (quantizer, parameters) = try Self.quantized()
        let network = quantizer.network
        let rounding = try network.roundingActivations(
            of: QuantizedOperations.roundedOutputs(
                of: quantizer.operations(), in: network, try #require(parameters.quantization)))
        #expect(rounding.nodes.count { $0.layer is RoundedActivation } == 5)
        let outputs = try [(network, Precision.int8), (rounding, .float32)].map { network, precision in
            var options = ExecutionPlan.Options(batchSize: 1)
            options.precision = precision
            let plan = try ExecutionPlan(network, parameters: parameters, options: options)
            _ = plan.input.update(from: Self.pixels(100))
            plan.forward(count: 1)
            return Array(plan.output)
        }
        // Sums in float32 can round an activation to its other neighbour.
        for (value, expected) in zip(outputs[1], outputs[0]) { #expect(abs(value - expected) < 0.02) }
    }

    @Test("Rounded activations pass gradients only inside their range") func activationGradients() throws {
        let layer = RoundedActivation(Quantization.Activation(scales: [0.5, 0.1], zeroPoints: [0, 100]))
        let network = try Network(
            name: "rounding", input: TensorShape(height: 1, width: 3, channels: 2),
            nodes: [Network.Node(name: "rounded", layer: layer, inputs: [Network.inputName])])
        let plan = try ExecutionPlan(
            network, parameters: try Parameters(network, seed: 1),
            options: ExecutionPlan.Options(batchSize: 1, mode: .training, inputGradient: true))
        // The ranges are 0…127.5 and −10…15.5.
        _ = plan.input.update(from: [-0.1, -10.2, 1.3, 0.26, 128, 15.4])
        plan.forward(count: 1)
        for (value, expected) in zip(plan.output, [0, -10, 1.5, 0.3, 127.5, 15.4] as [Float]) {
            #expect(abs(value - expected) < 1e-5)
        }
        _ = plan.outputGradient.update(from: [1, 2, 3, 4, 5, 6])
        plan.backward(count: 1)
        #expect(Array(try #require(plan.inputGradient)) == [0, 0, 3, 4, 0, 6])
    }
}
