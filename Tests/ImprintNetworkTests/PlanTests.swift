import ImprintCore
import Testing

@testable import ImprintNetwork

/// Tests plans of whole networks: results are bitwise identical for any number of threads, buffers share memory safely, and
/// frozen layers do not change.
@Suite struct PlanTests {
    struct Example: Sendable {
        let name: String
        let inputSize: Int
        let width: Double

        func network() throws -> Network {
            try Network.named(name, labels: 3, inputSize: inputSize, width: width).logits()
        }
    }

    static let examples = [
        Example(name: "logonet", inputSize: 64, width: 1), Example(name: "mobilenet-v1", inputSize: 64, width: 0.25),
    ]
    static let everyNetwork = [
        Example(name: "lenet", inputSize: 28, width: 0.5), Example(name: "logonet", inputSize: 33, width: 0.25),
        Example(name: "mobilenet-v1", inputSize: 32, width: 0.25),
        Example(name: "resnet-50", inputSize: 32, width: 1 / 16),
    ]

    /// All results of a few training steps.
    struct Run {
        var outputs: [Float] = []
        var gradients: [Float] = []
        var inputGradients: [Float] = []
        var parameters: [Float] = []

        func expectBitwiseEqual(to other: Run, _ name: String, sourceLocation: SourceLocation = #_sourceLocation) {
            func expectEqual(_ part: KeyPath<Run, [Float]>, _ partName: String) {
                ImprintNetworkTests.expectBitwiseEqual(
                    self[keyPath: part], other[keyPath: part], "\(name): \(partName)", sourceLocation: sourceLocation)
            }
            expectEqual(\.outputs, "outputs")
            expectEqual(\.gradients, "gradients")
            expectEqual(\.inputGradients, "input gradients")
            expectEqual(\.parameters, "parameters")
        }
    }

    @Test("A plan that needs too much memory is an error with the required size", arguments: [true, false])
    func outOfMemory(training: Bool) throws {
        var builder = NetworkBuilder(name: "large", input: TensorShape(height: 20_000, width: 20_000, channels: 1))
        builder.add(GlobalAveragePool())
        builder.add(Dense(outputChannels: 2))
        let network = try builder.network()
        let options = ExecutionPlan.Options(batchSize: 60_000, mode: training ? .training : .prediction)
        let error = #expect(throws: NetworkError.self) {
            try ExecutionPlan(network, parameters: Parameters(network, seed: 0), options: options)
        }
        guard case .outOfMemory(let bytes) = error else {
            Issue.record("unexpected: \(String(describing: error))")
            return
        }
        #expect(bytes >= 60_000 * 20_000 * 20_000 * 4)
    }

    /// Trains with `images` images for `steps` steps; if `isPoisoned`, the arena is filled with NaN before.
    private func train(
        _ network: Network, images: Int, steps: Int = 3, _ options: ExecutionPlan.Options, isPoisoned: Bool = false
    ) throws -> Run {
        let parameters = try Parameters(network, seed: 9)
        let plan = try ExecutionPlan(network, parameters: parameters, options: options)
        if isPoisoned { plan.poison(keeping: []) }
        let optimizer = try SGD(
            .init(weightDecay: 1e-4, gradientClipping: 1), for: parameters.layout)
        var run = Run()
        for step in 0..<steps {
            _ = plan.input.update(from: randomValues(images * network.input.count, "images \(step)"))
            plan.forward(count: images)
            let logits = UnsafeMutableBufferPointer(rebasing: plan.output[..<(images * network.output.count)])
            run.outputs += logits
            _ = SoftmaxCrossEntropy()(
                logits: logits, targets: (0..<images).map { ($0 + step) % 3 },
                gradient: UnsafeMutableBufferPointer(rebasing: plan.outputGradient[..<logits.count]))
            plan.backward(count: images)
            for (range, _) in plan.trainableRanges { run.gradients += plan.parameterGradients[range] }
            if let gradient = plan.inputGradient {
                run.inputGradients += gradient[..<(images * network.input.count)]
            }
            optimizer.step(plan, learningRate: 0.05)
        }
        run.parameters = Array(parameters.buffer)
        return run
    }

    private func predict(
        _ network: Network, _ parameters: Parameters, _ input: [Float], batchSize: Int
    ) throws -> [Float] {
        let plan = try ExecutionPlan(
            network, parameters: parameters, options: ExecutionPlan.Options(batchSize: batchSize))
        plan.poison(keeping: [])
        _ = plan.input.update(from: input)
        let count = input.count / network.input.count
        plan.forward(count: count)
        return Array(plan.output[..<(count * network.output.count)])
    }

    @Test("Training is bitwise identical with 1, 2, 4 and 64 threads", arguments: examples)
    func threads(_ example: Example) throws {
        let network = try example.network()
        func run(_ workers: Int) throws -> Run {
            try train(
                network, images: 7,
                ExecutionPlan.Options(batchSize: 7, mode: .training, workers: Workers(workers), inputGradient: true))
        }
        let oneThread = try run(1)
        #expect(oneThread.gradients.contains { $0 != 0 })
        for workers in [2, 4, 64] {
            try run(workers).expectBitwiseEqual(to: oneThread, "\(workers) threads")
        }
    }

    @Test("Previous contents of the arena do not affect training", arguments: everyNetwork)
    func poisoned(_ example: Example) throws {
        let network = try example.network()
        let options = ExecutionPlan.Options(batchSize: 3, mode: .training, inputGradient: true)
        try train(network, images: 3, options, isPoisoned: true)
            .expectBitwiseEqual(to: train(network, images: 3, options), "arena filled with NaN")
    }

    @Test("Training with a partial batch is bitwise identical to a plan of that batch size", arguments: everyNetwork)
    func partialBatch(_ example: Example) throws {
        let network = try example.network()
        let full = try train(network, images: 3, ExecutionPlan.Options(batchSize: 3, mode: .training))
        let partial = try train(
            network, images: 3, ExecutionPlan.Options(batchSize: 5, mode: .training), isPoisoned: true)
        partial.expectBitwiseEqual(to: full, "a partial batch")
    }

    @Test("Parameter gradients do not depend on the option inputGradient", arguments: everyNetwork)
    func withoutInputGradient(_ example: Example) throws {
        let network = try example.network()
        let with = try train(
            network, images: 2, ExecutionPlan.Options(batchSize: 2, mode: .training, inputGradient: true))
        let without = try train(network, images: 2, ExecutionPlan.Options(batchSize: 2, mode: .training))
        expectBitwiseEqual(without.gradients, with.gradients, "gradients")
        #expect(!with.inputGradients.isEmpty && without.inputGradients.isEmpty)
    }

    @Test("The prediction for an image does not depend on the other images of the batch", arguments: everyNetwork)
    func prediction(_ example: Example) throws {
        let network = try example.network()
        let parameters = try randomParameters(network, seed: 4)
        let images = randomValues(5 * network.input.count, "images")
        let batch = try predict(network, parameters, images, batchSize: 5)
        for image in 0..<5 {
            let pixels = images[(image * network.input.count)..<((image + 1) * network.input.count)]
            let single = try predict(network, parameters, Array(pixels), batchSize: image % 2 == 0 ? 1 : 5)
            let labels = network.output.count
            expectClose(single, Array(batch[(image * labels)..<((image + 1) * labels)]), "image \(image)")
        }
    }

    @Test("Prediction needs less memory than the sum of all activations", arguments: everyNetwork)
    func arenaOfPrediction(_ example: Example) throws {
        let network = try example.network()
        func plan(_ mode: ExecutionPlan.Mode) throws -> ExecutionPlan {
            try ExecutionPlan(
                network, parameters: try Parameters(network, seed: 1),
                options: ExecutionPlan.Options(batchSize: 4, mode: mode))
        }
        let activations = network.shapes.reduce(network.input.count) { $0 + $1.count } * 4 * MemoryLayout<Float>.stride
        // The scratch memory of im2col is not proportional to the activations.
        let prediction = try plan(.prediction)
        let scratch = prediction.steps.map { step in
            step.kernel.memory(
                MemoryRequest(
                    inputs: step.context.inputs.map(\.shape), output: step.context.output.shape, batch: 4,
                    training: false, delaysPacking: false, workers: Workers(1),
                    algorithm: step.context.algorithm)
            ).scratch
        }
        #expect(prediction.arenaByteCount < activations * 3 / 4 + (scratch.max() ?? 0))
        #expect(try prediction.arenaByteCount < plan(.training).arenaByteCount)
    }

    @Test("Frozen layers keep their parameters and statistics, and the other layers change")
    func frozenLayers() throws {
        let network = try Network.named("logonet", labels: 3, inputSize: 33, width: 0.25).logits()
        let frozen: Set = ["conv1", "norm1", "conv3", "norm3", "norm4"]
        let parameters = try Parameters(network, seed: 9)
        let before = try parameters.copy()
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(batchSize: 3, mode: .training, frozen: frozen))
        let optimizer = try SGD(.init(weightDecay: 0.1), for: parameters.layout)
        for step in 0..<2 {
            _ = plan.input.update(from: randomValues(plan.input.count, "images \(step)"))
            plan.forward(count: 3)
            _ = SoftmaxCrossEntropy()(logits: plan.output, targets: [0, 1, 2], gradient: plan.outputGradient)
            plan.parameterGradients.update(repeating: .infinity)
            plan.backward(count: 3)
            optimizer.step(plan, learningRate: 0.05)
        }
        for entry in parameters.layout.entries {
            let isSame = parameters[entry.name] == before[entry.name]
            #expect(isSame == frozen.contains(entry.node), "\(entry.name)")
            #expect(parameters[entry.name]?.allSatisfy(\.isFinite) == true, "\(entry.name)")
        }
    }

    @Test("A training plan whose layers are all frozen is an error")
    func everythingFrozen() throws {
        let network = try Network.named("lenet", labels: 2)
        let options = ExecutionPlan.Options(batchSize: 1, mode: .training, frozen: Set(network.nodes.map(\.name)))
        #expect(throws: NetworkError.self) {
            try ExecutionPlan(network, parameters: try Parameters(network, seed: 1), options: options)
        }
    }

    @Test("Dropout draws a new mask for each step and image, depends only on the seed, and is inactive in prediction")
    func dropout() throws {
        let network = try Network(
            name: "dropout", input: TensorShape(channels: 400),
            nodes: [Network.Node(name: "dropout", layer: Dropout(rate: 0.25), inputs: [Network.inputName])])
        func outputs(_ mode: ExecutionPlan.Mode, seed: UInt64) throws -> [[Float]] {
            let plan = try ExecutionPlan(
                network, parameters: try Parameters(network, seed: 1),
                options: ExecutionPlan.Options(batchSize: 2, mode: mode, inputGradient: true, seed: seed))
            plan.input.update(repeating: 3)
            return (0..<2).flatMap { _ in
                plan.forward(count: 2)
                return [Array(plan.output[..<400]), Array(plan.output[400...])]
            }
        }
        let masks = try outputs(.training, seed: 1)
        #expect(Set(masks).count == 4)
        #expect(Set(masks.joined()) == [0, 4])
        let dropped = masks.joined().count { $0 == 0 }
        #expect((300...500).contains(dropped), "\(dropped) of 1600 elements were dropped")
        #expect(try outputs(.training, seed: 1) == masks)
        #expect(try outputs(.training, seed: 2) != masks)
        #expect(try Set(outputs(.prediction, seed: 1).joined()) == [3])
    }
}
