import Foundation

@testable import ImprintNetwork

/// A custom training objective: fits y = 3x − 1 by least squares.
final class LineFit: TrainingObjective {
    let plan: ExecutionPlan
    private let stepsPerRound: Int
    /// Validation losses that are reported instead of the computed ones.
    var scripted: [Float] = []
    /// Validation accuracies that are reported instead of 0.
    var scriptedAccuracies: [Float] = []

    init(stepsPerRound: Int = 8) throws {
        self.stepsPerRound = stepsPerRound
        var builder = NetworkBuilder(name: "line", input: TensorShape(channels: 1))
        builder.add(Dense(outputChannels: 1), named: "line")
        let network = try builder.network()
        plan = try ExecutionPlan(
            network, parameters: Parameters(network, seed: 1), options: .init(batchSize: 4, mode: .training))
    }

    func trainingStep(round: Int, step: Int) -> StepLoss? {
        guard step < stepsPerRound else { return nil }
        var loss: Float = 0
        for sample in 0..<4 { plan.input[sample] = Float((step * 4 + sample) % 7) / 3 - 1 }
        plan.forward(count: 4)
        for sample in 0..<4 {
            let error = plan.output[sample] - (3 * plan.input[sample] - 1)
            plan.outputGradient[sample] = error / 2
            loss += error * error / 4
        }
        return StepLoss(loss: loss, count: 4)
    }

    func validate(_ parameters: Parameters) -> ValidationLoss? {
        let slope = (parameters["line.weight"]?[0] ?? 0) - 3
        let loss = scripted.isEmpty ? slope * slope : scripted.removeFirst()
        return ValidationLoss(
            loss: loss, accuracy: scriptedAccuracies.isEmpty ? 0 : scriptedAccuracies.removeFirst())
    }
}

/// A custom optimizer: sign descent with momentum.
final class SignDescent: Optimizer {
    private let momentum: UnsafeMutableBufferPointer<Float>
    /// The sum of the learning rates, a tensor of another size than the parameters.
    private let sum = UnsafeMutableBufferPointer<Float>.allocate(capacity: 1)
    private let factors: [String: Float]
    var stepCount = 0

    init(_ layout: ParameterLayout, factors: [String: Float] = [:]) {
        momentum = .allocate(capacity: layout.trainableCount)
        self.factors = factors
        momentum.initialize(repeating: 0)
        sum.initialize(repeating: 0)
    }

    deinit {
        momentum.deallocate()
        sum.deallocate()
    }

    var state: [(name: String, values: UnsafeMutableBufferPointer<Float>)] { [("momentum", momentum), ("sum", sum)] }

    func step(_ plan: ExecutionPlan, learningRate: Float) {
        stepCount += 1
        sum[0] += learningRate
        plan.updateParameters { values, gradients in
            for entry in plan.parameters.layout.entries {
                for index in entry.range {
                    momentum[index] = 0.9 * momentum[index] + gradients[index]
                    let sign: Float = momentum[index] > 0 ? 1 : -1
                    values[index] -= learningRate * (factors[entry.node] ?? 1) * sign / (1 + 0.1 * sum[0])
                }
            }
        }
    }
}

/// A checkpoint policy that keeps the last state in memory, as JSON.
final class MemoryCheckpoints: CheckpointPolicy {
    private var data: Data?
    let isDue = true
    func save(_ state: () throws -> TrainingState) { data = try? JSONEncoder().encode(state()) }
    func last() throws -> TrainingState? {
        try data.map { try JSONDecoder().decode(TrainingState.self, from: $0) }
    }
}
