import Foundation
import ImprintNetwork

// The examples of the DocC catalog of ImprintNetwork, word for word; DocumentedExampleTests compares them with the pages.

private func networkLandingPage() throws {
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/ImprintNetwork.md begins
    let network = try Network.mobileNetV2(labels: 10)
    let plan = try ExecutionPlan(
        network, parameters: Parameters(network, seed: 1), options: ExecutionPlan.Options(batchSize: 1))
    for index in plan.input.indices { plan.input[index] = 0.5 }
    plan.forward(count: 1)
    print(plan.output.count)
    // Example ends
}

func networkSummary() throws -> String {
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/ImprintNetwork.md begins
    let network = try Network.lenet(labels: 10)
    print(network.summary())
    // Example ends
    return network.summary().description
}

func meanActivations() throws -> [String: Float] {
    let network = try Network.lenet(labels: 2)
    let plan = try ExecutionPlan(
        network, parameters: Parameters(network, seed: 1), options: ExecutionPlan.Options(batchSize: 1))
    for index in plan.input.indices { plan.input[index] = 0.5 }
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/ImprintNetwork.md begins
    var means: [String: Float] = [:]
    plan.observer = { node, values, shape in
        means[node] = values.reduce(0, +) / Float(values.count)
    }
    plan.forward(count: 1)
    // Example ends
    return means
}

private enum CustomTypes {
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/AddALayer.md begins
    struct Scale: Layer {
        static let kind = "example.scale"
        let factor: Float

        func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
            guard inputs.count == 1 else {
                throw .inputCount(layer: "Scale", expected: "one input", found: inputs.count)
            }
            guard factor.isFinite else {
                throw .invalidProperty(
                    layer: "Scale", property: "factor", found: "\(factor)", expected: "a finite number")
            }
            return inputs[0]
        }

        var backwardReads: BackwardReads { [] }
        var inPlace: InPlace { .overwriting }

        func forward(_ context: LayerContext, batch: Int) {
            let (x, y) = (context.input.values, context.output.values)
            context.parallelFor(batch * context.output.shape.count) { range in
                for index in range { y[index] = factor * x[index] }
            }
        }

        func backward(_ context: LayerContext, batch: Int) {
            guard let dx = context.input.gradient else { return }
            let dy = context.outputGradient
            context.parallelFor(batch * context.output.shape.count) { range in
                for index in range { dx[index] = factor * dy[index] }
            }
        }
    }
    // Example ends

    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/TrainWithAnObjective.md begins
    final class LeastSquares: TrainingObjective {
        let plan: ExecutionPlan
        private let samples: [(input: [Float], target: Float)]

        init(_ network: Network, samples: [(input: [Float], target: Float)]) throws {
            self.samples = samples
            plan = try ExecutionPlan(
                network, parameters: Parameters(network, seed: 1),
                options: ExecutionPlan.Options(batchSize: 1, mode: .training))
        }

        func trainingStep(round: Int, step: Int) -> StepLoss? {
            guard step < samples.count else { return nil }
            for (index, value) in samples[step].input.enumerated() { plan.input[index] = value }
            plan.forward(count: 1)
            let error = plan.output[0] - samples[step].target
            plan.outputGradient[0] = 2 * error
            return StepLoss(loss: error * error, count: 1)
        }
    }
    // Example ends

    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/TrainWithAnObjective.md begins
    final class Adagrad: Optimizer {
        private let sums: UnsafeMutableBufferPointer<Float>
        var stepCount = 0

        init(_ layout: ParameterLayout) {
            sums = .allocate(capacity: layout.trainableCount)
            sums.initialize(repeating: 0)
        }

        deinit { sums.deallocate() }

        var state: [(name: String, values: UnsafeMutableBufferPointer<Float>)] { [("sums", sums)] }

        func step(_ plan: ExecutionPlan, learningRate: Float) {
            stepCount += 1
            plan.updateParameters { values, gradients in
                for (range, _) in plan.trainableRanges {
                    for index in range {
                        sums[index] += gradients[index] * gradients[index]
                        values[index] -= learningRate * gradients[index] / (sums[index].squareRoot() + 1e-8)
                    }
                }
            }
        }
    }
    // Example ends
}

private typealias Scale = CustomTypes.Scale
private typealias LeastSquares = CustomTypes.LeastSquares
private typealias Adagrad = CustomTypes.Adagrad

// Not called: tests of ImprintNetwork check that they know all registered layers.
private func registration() {
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/AddALayer.md begins
    LayerRegistry.register(Scale.self)
    // Example ends
}

func scaledOutput() throws -> [Float] {
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/AddALayer.md begins
    var builder = NetworkBuilder(name: "scaled", input: TensorShape(height: 2, width: 2, channels: 3))
    builder.add(Scale(factor: 0.5))
    builder.add(Flatten())
    let network = try builder.network()
    let plan = try ExecutionPlan(
        network, parameters: Parameters(network, seed: 1), options: ExecutionPlan.Options(batchSize: 1))
    for index in plan.input.indices { plan.input[index] = Float(index) }
    plan.forward(count: 1)
    print(Array(plan.output))
    // Example ends
    return Array(plan.output)
}

func fittedWeights(samples: [(input: [Float], target: Float)]) throws -> [Float] {
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/TrainWithAnObjective.md begins
    var builder = NetworkBuilder(name: "line", input: TensorShape(height: 1, width: 1, channels: 2))
    builder.add(Dense(outputChannels: 1), named: "line")
    let objective = try LeastSquares(builder.network(), samples: samples)
    let rounds = TrainingLoop.Rounds.epochs(.init(count: 50, steps: samples.count, learningRate: 0.05))
    let loop = try TrainingLoop(
        objective, options: TrainingLoop.Options(rounds: rounds, optimizer: .sgd(SGD.Options(momentum: 0.9))))
    _ = try loop.run(onEvent: { event in
        if case .round(let epoch, _) = event { print(epoch.epoch, epoch.loss) }
    })
    print(loop.parameters["line.weight"] ?? [])
    // Example ends
    return loop.parameters["line.weight"] ?? []
}

func weightsOfAdagrad(samples: [(input: [Float], target: Float)]) throws -> [Float] {
    var builder = NetworkBuilder(name: "line", input: TensorShape(height: 1, width: 1, channels: 2))
    builder.add(Dense(outputChannels: 1), named: "line")
    let objective = try LeastSquares(builder.network(), samples: samples)
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/TrainWithAnObjective.md begins
    let loop = try TrainingLoop(
        objective,
        options: TrainingLoop.Options(
            rounds: .epochs(.init(count: 200, steps: samples.count, learningRate: 1)),
            optimizer: .custom { layout, _ in Adagrad(layout) }))
    _ = try loop.run()
    // Example ends
    return loop.parameters["line.weight"] ?? []
}
