import ImprintCore
import Testing

@testable import ImprintNetwork

/// Compares convolutions with packed weights and fused norm, sum and activation with the separate layers.
@Suite struct PrepackedConvolutionTests {
    struct Example: Sendable, CustomTestStringConvertible {
        let layer: Convolution
        let input: TensorShape
        let algorithm: Algorithm
        var isNormalized = true
        var hasShortcut = false
        var ceiling: Float?

        var testDescription: String {
            "\(input): \(layer)\(isNormalized ? " → norm" : "")\(hasShortcut ? " → sum" : "")"
                + (ceiling.map { " → at most \($0)" } ?? "")
        }

        init(_ layer: Convolution, over input: TensorShape, as algorithm: Algorithm) {
            self.layer = layer
            self.input = input
            self.algorithm = algorithm
        }

        /// Returns a network with one branch, "convolution", and if there is a sum, a second branch, "shortcut".
        func network() throws -> Network {
            var net = NetworkBuilder(name: testDescription, input: input)
            if hasShortcut { net.add(layer, named: "shortcut", to: [Network.inputName]) }
            net.add(layer, named: "convolution", to: [Network.inputName])
            if isNormalized { net.add(BatchNormalization(epsilon: 1e-3, usesRunningStatistics: true), named: "norm") }
            if hasShortcut { net.add(AddLayer(), to: [isNormalized ? "norm" : "convolution", "shortcut"]) }
            if ceiling == .infinity { net.add(ReLU()) }
            if ceiling == 6 { net.add(ReLU6()) }
            return try net.network()
        }

        /// The number of layers in the main branch.
        var operationLength: Int {
            1 + (isNormalized ? 1 : 0) + (hasShortcut ? 1 : 0) + (ceiling == nil ? 0 : 1)
        }
    }

    private static func shape(_ height: Int, _ width: Int, _ channels: Int) -> TensorShape {
        TensorShape(height: height, width: width, channels: channels)
    }

    static let examples: [Example] = {
        var examples: [Example] = []
        for hasBias in [true, false] {
            func layer(
                _ outputs: Int, _ kernel: Size2D, stride: Size2D = 1, padding: Padding = .same, groups: Int = 1
            ) -> Convolution {
                Convolution(
                    outputChannels: outputs, kernelSize: kernel, stride: stride, padding: padding, groups: groups,
                    hasBias: hasBias)
            }
            for example in [
                Example(layer(17, 3, groups: 17), over: shape(5, 7, 17), as: .direct),
                Example(layer(5, 5, stride: 2, groups: 5), over: shape(9, 8, 5), as: .direct),
                Example(layer(6, 3, groups: 2), over: shape(6, 5, 4), as: .im2col),
                Example(layer(19, 5, stride: 2), over: shape(9, 8, 3), as: .im2col),
                Example(layer(19, 1), over: shape(6, 5, 7), as: .matrixProduct),
                Example(layer(19, 3), over: shape(9, 6, 16), as: .winograd),
                // The norm scales the weights of several panels.
                Example(layer(130, 3, padding: .all(2)), over: shape(4, 3, 16), as: .winograd),
            ] {
                for isNormalized in [false, true] {
                    for hasShortcut in [false, true] {
                        for ceiling in [nil, 6, Float.infinity] {
                            var example = example
                            (example.isNormalized, example.hasShortcut) = (isNormalized, hasShortcut)
                            example.ceiling = ceiling
                            examples.append(example)
                        }
                    }
                }
            }
            // The threads divide the tiles.
            var large = Example(layer(170, 3), over: shape(5, 6, 176), as: .winograd)
            (large.hasShortcut, large.ceiling) = (true, .infinity)
            examples.append(large)
        }
        return examples
    }()

    /// Returns parameters whose norms scale the values over the whole range of an activation.
    private func scaledParameters(_ network: Network) throws -> Parameters {
        let parameters = try randomParameters(network, seed: 5)
        for entry in parameters.layout.entries where entry.parameter.name == "scale" {
            parameters[entry.name] = parameters[entry.name]?.enumerated().map { ($0 % 2 == 0 ? 3 : -3) * $1 }
        }
        return parameters
    }

    private func run(_ plan: ExecutionPlan, _ input: [Float]) -> [Float] {
        _ = plan.input.update(from: input)
        let count = input.count / plan.network.input.count
        plan.forward(count: count)
        return Array(plan.output[..<(count * plan.network.output.count)])
    }

    /// Returns the output of a plan that fuses no frozen layers, because it computes the input gradient.
    private func reference(
        _ network: Network, _ parameters: Parameters, _ input: [Float], frozen: Set<String> = []
    )
        throws -> [Float]
    {
        let plan = try ExecutionPlan(
            network, parameters: parameters.copy(),
            options: ExecutionPlan.Options(
                batchSize: input.count / network.input.count, mode: .training, frozen: frozen, inputGradient: true))
        #expect(!plan.steps.contains { $0.kernel is PrepackedConvolution })
        return run(plan, input)
    }

    @Test("Fused convolutions agree with separate layers and do not depend on the thread count", arguments: examples)
    func formula(_ example: Example) throws {
        let network = try example.network()
        let parameters = try scaledParameters(network)
        let input = randomValues(2 * network.input.count, "input")
        func predict(_ workers: Int) throws -> [Float] {
            // The plan has space for one more image than the batch.
            let plan = try ExecutionPlan(
                network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 3, workers: Workers(workers))
            )
            let last = plan.steps[plan.steps.count - 1].operation
            #expect(last.kernel is PrepackedConvolution && last.algorithm == example.algorithm)
            #expect(last.nodeIndices.count == example.operationLength)
            #expect(plan.steps.count == (example.hasShortcut ? 2 : 1))
            plan.poison(keeping: [])
            return run(plan, input)
        }
        let result = try predict(1)
        expectClose(result, try reference(network, parameters, input), network.name, tolerance: 1e-4)
        expectBitwiseEqual(try predict(3), result, "three threads")
    }

    /// Examples for one image, also with products of more blocks than threads.
    static let single =
        examples.filter { $0.isNormalized && $0.ceiling != 6 } + [
            Example(Convolution(outputChannels: 80, kernelSize: 1), over: shape(64, 40, 9), as: .matrixProduct),
            Example(Convolution(outputChannels: 80, kernelSize: 5), over: shape(64, 44, 3), as: .im2col),
        ]

    @Test("Passes over one image before and after the weights are packed are bitwise identical", arguments: single)
    func delayedPacking(_ example: Example) throws {
        let network = try example.network()
        let parameters = try scaledParameters(network)
        let input = randomValues(network.input.count, "input")
        let reference = try reference(network, parameters, input)
        for workers in [1, 3] {
            let plan = try ExecutionPlan(
                network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 1, workers: Workers(workers))
            )
            let last = plan.steps[plan.steps.count - 1]
            #expect(last.operation.algorithm == example.algorithm)
            for _ in 0..<2 {
                plan.poison(keeping: [])
                let first = run(plan, input)
                #expect(!last.context.packingState.isDone)
                expectClose(first, reference, network.name, tolerance: 1e-4)
                for _ in 0..<2 {
                    plan.poison(keeping: [])
                    expectBitwiseEqual(run(plan, input), first, "\(workers) threads")
                    #expect(last.context.packingState.isDone)
                }
                // This changes no value, but the plan must assume a change.
                parameters.withValues { _ in }
            }
        }
    }

    // MARK: Parameters that change

    /// Returns a network with two convolution algorithms and every layer that can be fused.
    private func branches() throws -> Network {
        var net = NetworkBuilder(name: "branches", input: Self.shape(6, 5, 16))
        net.add(Convolution(outputChannels: 16, kernelSize: 1), named: "pointwise", to: [Network.inputName])
        net.add(Convolution(outputChannels: 16, kernelSize: 3, padding: .same, hasBias: false), named: "winograd")
        net.add(BatchNormalization(), named: "norm")
        net.add(AddLayer(), named: "sum", to: ["norm", "pointwise"])
        net.add(ReLU())
        net.add(GlobalAveragePool())
        net.add(Dense(outputChannels: 2), named: "head")
        return try net.network()
    }

    enum Change: String, CaseIterable {
        case none, subscriptSet, norm, withValues, draw, trainingStep, trainingForward
    }

    @Test("Every change to the parameters affects the next prediction", arguments: Change.allCases)
    func changes(_ change: Change) throws {
        let network = try branches()
        let parameters = try randomParameters(network, seed: 3)
        let input = randomValues(2 * network.input.count, "input")
        let plan = try ExecutionPlan(network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 2))
        let trainingPlan = try ExecutionPlan(
            network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 2, mode: .training))
        var before = run(plan, input)
        // Twice, to test a change after a change.
        for _ in 0..<2 {
            switch change {
            case .none: break
            case .subscriptSet:
                parameters["winograd.weight"] = parameters["winograd.weight"]?.map { 1.5 * $0 }
            case .norm: parameters["norm.runningMean"] = parameters["norm.runningMean"]?.map { $0 - 0.5 }
            case .withValues:
                try parameters.withValues(of: #require(parameters.layout["pointwise.bias"])) { $0[3] += 1 }
            case .draw:
                try parameters.draw(
                    #require(parameters.layout["winograd.weight"]),
                    seed: UInt64(parameters["head.bias"]?[0] == 0 ? 1 : 2))
                parameters["head.bias"] = [0, 0]
            case .trainingStep, .trainingForward:
                _ = run(trainingPlan, input)
                guard change == .trainingStep else { break }
                _ = run(plan, input)
                _ = trainingPlan.outputGradient.update(from: [1, -1, 1, -1])
                trainingPlan.backward(count: 2)
                try SGD(.init(), for: parameters.layout).step(trainingPlan, learningRate: 0.1)
            }
            let after = run(plan, input)
            #expect((after == before) == (change == .none))
            let fresh = try ExecutionPlan(network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 2))
            expectBitwiseEqual(run(fresh, input), after, "a new plan")
            before = after
        }
    }

    // MARK: Frozen layers of a plan for training

    /// Returns the parameter gradients of a backward pass with the output gradient `slopes`.
    private func gradients(_ plan: ExecutionPlan, _ slopes: [Float]) -> [Float] {
        plan.parameterGradients.update(repeating: 0)
        _ = plan.outputGradient.update(from: slopes)
        plan.backward(count: slopes.count / plan.network.output.count)
        return plan.trainableRanges.flatMap { Array(plan.parameterGradients[$0.range]) }
    }

    static let frozen: [Set<String>] = [
        // All layers except the head; only the branch without a norm; the convolutions without the norm.
        ["pointwise", "winograd", "norm"], ["pointwise"], ["pointwise", "winograd"],
    ]

    @Test(
        "Fused frozen layers agree with separate layers, also after their parameters change", arguments: frozen, [1, 3])
    func frozenStart(_ frozen: Set<String>, workers: Int) throws {
        let network = try branches()
        let parameters = try randomParameters(network, seed: 3)
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(batchSize: 3, mode: .training, workers: Workers(workers), frozen: frozen))
        #expect(plan.steps.contains { $0.kernel is PrepackedConvolution })
        let optimizer = try SGD(.init(weightDecay: 0.01), for: parameters.layout)
        let slopes = randomValues(3 * network.output.count, "slopes")
        for step in 0..<4 {
            if step == 3 {
                let before = parameters["pointwise.weight"]
                parameters["pointwise.weight"] = before?.map { -2 * $0 }
            }
            let input = randomValues(3 * network.input.count, "input \(step)")
            let unfused = try ExecutionPlan(
                network, parameters: parameters.copy(),
                options: ExecutionPlan.Options(batchSize: 3, mode: .training, frozen: frozen, inputGradient: true))
            plan.poison(keeping: [])
            expectClose(run(plan, input), run(unfused, input), "output of step \(step)", tolerance: 1e-4)
            expectBitwiseEqual(plan.input, input, "input")
            plan.poison(keeping: plan.readByBackward)
            expectClose(
                gradients(plan, slopes), gradients(unfused, slopes), "gradients of step \(step)", tolerance: 1e-4)
            for entry in parameters.layout.entries where entry.parameter.role == .statistic {
                expectClose(
                    try #require(parameters[entry.name]), try #require(unfused.parameters[entry.name]), entry.name)
            }
            optimizer.step(plan, learningRate: 0.1)
        }
    }

    @Test("Training steps of a plan do not pack the weights of its frozen layers again")
    func packedOnce() throws {
        let network = try branches()
        let parameters = try randomParameters(network, seed: 3)
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(batchSize: 1, mode: .training, frozen: ["pointwise", "winograd", "norm"]))
        let optimizer = try SGD(.init(), for: parameters.layout)
        let step = try #require(plan.steps.firstIndex { $0.name.hasPrefix("winograd") })
        func features() -> [Float] {
            _ = run(plan, randomValues(network.input.count, "input"))
            _ = gradients(plan, [1, -1])
            optimizer.step(plan, learningRate: 0.1)
            let output = plan.steps[step].context.transformedWeights.assumingMemoryBound(to: Float.self)
            return Array(UnsafeBufferPointer(start: output, count: 16))
        }
        let before = features()
        // The plan does not detect this write to the buffer.
        let shift = try #require(parameters.layout["norm.shift"])
        parameters.buffer[shift.offset] += 1
        #expect(features() == before)
        // The plan detects this change.
        parameters["head.bias"] = [0, 0]
        #expect(features()[0] > before[0] + 0.9)
    }

    @Test("Frozen parameters that are set between forward pass and step affect the next pass")
    func setBeforeStep() throws {
        let network = try branches()
        let parameters = try randomParameters(network, seed: 3)
        let frozen: Set = ["pointwise", "winograd", "norm"]
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(batchSize: 1, mode: .training, frozen: frozen))
        let input = randomValues(network.input.count, "input")
        _ = run(plan, input)
        _ = gradients(plan, [1, -1])
        parameters["norm.shift"] = parameters["norm.shift"]?.map { $0 + 1 }
        try SGD(.init(), for: parameters.layout).step(plan, learningRate: 0.1)
        expectClose(
            run(plan, input), try reference(network, parameters, input, frozen: frozen), "output", tolerance: 1e-4)
    }

    @Test("Frozen convolutions stay within their scratch memory")
    func scratch() throws {
        // A full block of 1024 windows in the largest buffer, with the input after it.
        var net = NetworkBuilder(name: "stem", input: Self.shape(33, 33, 3))
        net.add(Convolution(outputChannels: 16, kernelSize: 3, stride: 2), named: "stem")
        net.add(ReLU())
        net.add(GlobalAveragePool())
        net.add(Dense(outputChannels: 2), named: "head")
        let network = try net.network()
        let parameters = try randomParameters(network, seed: 1)
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(batchSize: 4, mode: .training, frozen: ["stem"]))
        let input = randomValues(plan.input.count, "input")
        expectClose(run(plan, input), try reference(network, parameters, input), "output")
        expectBitwiseEqual(plan.input, input, "input")
    }
}
