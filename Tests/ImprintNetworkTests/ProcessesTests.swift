import ImprintCore
import ImprintNetwork
import TestSupport
import Testing

/// A custom layer that drops whole images in training (stochastic depth): y = mask · x / (1 − `rate`), with mask = 0 with probability `rate`.
private struct DropPath: Layer {
    static let kind = "test.dropPath"
    let rate: Float

    func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape { inputs[0] }
    var backwardReads: BackwardReads { [] }

    func forward(_ context: LayerContext, batch: Int) {
        scale(context.input.values, to: context.output.values, context, batch)
    }

    func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        scale(context.outputGradient, to: dx, context, batch)
    }

    private func scale(
        _ source: UnsafeMutablePointer<Float>, to target: UnsafeMutablePointer<Float>, _ context: LayerContext,
        _ batch: Int
    ) {
        let count = context.output.shape.count
        context.worker.forEachChunk(batch) { image in
            var random = context.randomNumbers("drop path", image: image)
            let mask: Float = random.uniform() < rate ? 0 : 1
            let factor = context.training ? mask / (1 - rate) : 1
            for index in (image * count)..<((image + 1) * count) { target[index] = factor * source[index] }
        }
    }
}

/// Passes that several processes divide.
@Suite struct ProcessesTests {
    /// The results of some training steps, and of a pass for prediction.
    private struct Run: Sendable {
        var outputs: [Float] = []
        var gradients: [Float] = []
        var parameters: [Float] = []
        var predictions: [Float] = []
    }

    struct Example: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let network: Network
    }

    private static func example(
        _ name: String, _ size: Int, _ channels: Int, _ add: (inout NetworkBuilder) -> Void
    ) -> Example {
        var builder = NetworkBuilder(
            name: name, input: TensorShape(height: size, width: size, channels: channels))
        add(&builder)
        do {
            return Example(testDescription: name, network: try builder.network())
        } catch {
            preconditionFailure("\(name): \(error)")
        }
    }

    private static func convolution(
        _ channels: Int, kernel: Int = 3, stride: Int = 1, groups: Int = 1, bias: Bool = false
    ) -> Convolution {
        Convolution(
            outputChannels: channels, kernelSize: Size2D(integerLiteral: kernel),
            stride: Size2D(integerLiteral: stride),
            padding: .same, groups: groups, hasBias: bias)
    }

    static let examples = [
        example("batch normalization after each kind of convolution", 13, 3) {
            $0.add(convolution(20))
            $0.add(BatchNormalization())
            $0.add(ReLU())
            $0.add(convolution(32, stride: 2))
            $0.add(BatchNormalization())
            $0.add(ReLU())
            $0.add(convolution(32))
            $0.add(BatchNormalization())
            $0.add(convolution(32, groups: 32))
            $0.add(BatchNormalization())
            $0.add(convolution(48, kernel: 1))
            $0.add(BatchNormalization())
            $0.add(ReLU())
            $0.add(GlobalAveragePool())
            $0.add(Dense(outputChannels: 5))
        },
        example("many weights", 7, 64) {
            $0.add(convolution(192))
            $0.add(BatchNormalization())
            $0.add(convolution(192))
            $0.add(BatchNormalization())
            $0.add(convolution(320, kernel: 1))
            $0.add(BatchNormalization())
            $0.add(convolution(256, stride: 2, bias: true))
            $0.add(ReLU())
            $0.add(Flatten())
            $0.add(Dense(outputChannels: 300))
            $0.add(ReLU())
            $0.add(Dense(outputChannels: 3))
        },
        // OpenBLAS computes single columns, and small matrices, in groups of rows.
        example("few outputs", 13, 5) {
            $0.add(convolution(20, bias: true))
            $0.add(ReLU())
            $0.add(convolution(100))
            $0.add(ReLU())
            $0.add(convolution(12, kernel: 1, bias: true))
            $0.add(convolution(3, kernel: 1, bias: true))
            $0.add(GlobalAveragePool())
        },
        example("large image", 70, 3) {
            $0.add(convolution(24, bias: true))
            $0.add(BatchNormalization())
            $0.add(ReLU())
            $0.add(MaxPool(kernelSize: 2))
            $0.add(convolution(40))
            $0.add(BatchNormalization())
            $0.add(GlobalAveragePool())
            $0.add(Dense(outputChannels: 4))
        },
        example("custom layer with random numbers", 9, 4) {
            $0.add(convolution(12))
            $0.add(DropPath(rate: 0.4))
            $0.add(convolution(8))
            $0.add(DropPath(rate: 0.2))
            $0.add(GlobalAveragePool())
            $0.add(Dense(outputChannels: 3))
        },
        example("dropout, other activations and normalizations", 9, 4) {
            $0.add(convolution(12, groups: 4, bias: true))
            $0.add(PReLU())
            $0.add(BatchNormalization())
            $0.add(ReLU())
            $0.add(MaxPool(kernelSize: 2))
            $0.add(LayerNormalization())
            $0.add(Dropout(rate: 0.3))
            $0.add(TransposedConvolution(outputChannels: 6, kernelSize: 3, stride: 2))
            $0.add(GELU())
            $0.add(GlobalAveragePool())
            $0.add(Dense(outputChannels: 4))
        },
    ]

    private static func run(_ network: Network, batch: Int, _ precision: Precision, workers: Workers) throws -> Run {
        let parameters = try Parameters(network, seed: 3)
        func plan(_ mode: ExecutionPlan.Mode) throws -> ExecutionPlan {
            var options = ExecutionPlan.Options(batchSize: batch, mode: mode, workers: workers)
            options.precision = precision
            return try ExecutionPlan(network, parameters: parameters, options: options)
        }
        let training = try plan(.training)
        let input = repeatedValues(batch * network.input.count, "input")
        let target = repeatedValues(batch * network.output.count, "target")
        var run = Run()
        // The last batch of an epoch may be small.
        for count in [batch, batch, max(batch / 5, 1)] {
            // A process needs only the images of its part.
            let part = workers.processes?.part(of: count) ?? BatchPart(wholeBatch: count)
            training.input.update(repeating: .nan)
            let own = part.images(of: part.index, times: network.input.count)
            _ = training.input[own].update(fromContentsOf: input[own])
            training.forward(count: count)
            let outputs = Array(training.output[..<(count * network.output.count)])
            run.outputs += outputs
            for (index, output) in outputs.enumerated() {
                training.outputGradient[index] = (output - target[index]) / Float(count)
            }
            training.backward(count: count)
            run.gradients += training.parameterGradients
            parameters.withValues { values in
                for (index, gradient) in training.parameterGradients.enumerated() { values[index] -= 0.01 * gradient }
            }
        }
        run.parameters = parameters.withValues { Array($0) }
        let prediction = try plan(.prediction)
        _ = prediction.input.update(fromContentsOf: input)
        prediction.forward(count: batch)
        run.predictions = Array(prediction.output)
        return run
    }

    @Test(
        "Outputs, gradients and parameters are bitwise equal for any number of processes and threads",
        arguments: examples, [(32, Precision.float32), (37, .float32), (37, .bfloat16)])
    func equal(_ example: Example, pass: (batch: Int, precision: Precision)) async throws {
        let (batch, precision) = pass
        let expected = try Self.run(example.network, batch: batch, precision, workers: Workers(1))
        #expect(expected.outputs.allSatisfy { $0.isFinite })
        for (count, threads) in [(2, 1), (4, 1), (8, 1), (2, 3)] {
            let runs = try await inProcesses(count) { group in
                try Self.run(example.network, batch: batch, precision, workers: Workers(threads, processes: group))
            }
            for (rank, run) in runs.enumerated() {
                let name = "process \(rank) of \(count) with \(threads) threads"
                expectBitwiseEqual(run.outputs, expected.outputs, "\(name): outputs")
                expectBitwiseEqual(run.gradients, expected.gradients, "\(name): gradients")
                expectBitwiseEqual(run.parameters, expected.parameters, "\(name): parameters")
                expectBitwiseEqual(run.predictions, expected.predictions, "\(name): predictions")
            }
        }
    }
}
