internal import Foundation
internal import ImprintCore
internal import ImprintModel
internal import ImprintNetwork

/// The parameters of a model's head, and the calibration that turns its outputs into logits of labels.
struct HeadParameters {
    /// The weights, [channels, outputs].
    var weight: [Float]
    /// The biases, [outputs]; zeros if the head has none.
    var bias: [Float]
    /// Whether the head has biases.
    let hasBias: Bool
    /// The calibration slope of each output, which multiplies the maximum over all positions.
    let slopes: [Float]
    /// The calibration offset of each output, which is added to the product.
    let offsets: [Float]
    /// Whether the model has one more label, for images without any logo; its logit is 0.
    let hasNone: Bool

    var outputs: Int { bias.count }
    var channels: Int { weight.count / max(outputs, 1) }
}

/// An objective that trains a change to a model's head on cached features.
///
/// With Δ as the change to the columns of the trained labels, and z(Δ) as the logits of a sample, it minimizes Σ wᵢ · loss(z(Δ), targetᵢ) +
/// penalty / 2 · Σ (σ_c · Δ_c)² · C, where σ_c is the standard deviation of channel c, and C the number of channels. The penalty therefore
/// depends on the change in the logits, not on the scale of the features. `PersonalizationSample.Target` defines the losses. AdamW takes
/// full-batch steps with a cosine schedule.
final class HeadObjective: TrainingObjective {
    /// The number of steps.
    static let steps = 200
    /// The approximate change in a logit in the first step.
    private static let logitStep: Float = 0.1

    private let head: HeadParameters
    /// The examples, followed by the rehearsal samples.
    private let samples: [PersonalizationSample]
    private let exampleCount: Int
    private let trained: [Int]
    private let newCount: Int
    private let penalty: Float
    /// The number of positions per sample.
    private let positions: Int
    /// The logits of the unchanged head at each position, [samples, positions, outputs].
    private let baseLogits: [Float]
    /// The confidences of the unchanged model (the teacher) for each sample, [samples, labels].
    private var teacher: [Float]
    let plan: ExecutionPlan
    private let standardization: Standardization
    /// The mean L1 norm of a standardized row.
    private let meanNorm: Float
    private var onStep: ((PersonalizationProgress.Step) -> Void)?

    /// - Parameters:
    ///   - head: The unchanged head.
    ///   - examples: The user's examples; all samples have the same number of positions.
    ///   - rehearsal: The samples to replay, which prevent catastrophic forgetting.
    ///   - trained: The outputs whose columns change, in ascending order.
    ///   - newCount: The number of new labels, which are the last outputs.
    ///   - penalty: The weight of the penalty.
    init(
        _ head: HeadParameters, _ examples: [PersonalizationSample], rehearsal: [PersonalizationSample], trained: [Int],
        newCount: Int,
        penalty: Float
    ) throws {
        let channels = head.channels
        let samples = examples + rehearsal
        self.head = head
        self.samples = samples
        exampleCount = examples.count
        self.trained = trained
        self.newCount = newCount
        self.penalty = penalty
        positions = samples[0].features.count / channels
        let rows = samples.count * positions
        let network = try Network(
            name: "change", input: TensorShape(height: 1, width: 1, channels: channels),
            nodes: [
                Network.Node(
                    name: "change", layer: Dense(outputChannels: trained.count, hasBias: head.hasBias),
                    inputs: [Network.inputName])
            ])
        plan = try ExecutionPlan(
            network, parameters: Parameters(ParameterLayout(network)),
            options: ExecutionPlan.Options(batchSize: rows, mode: .training))
        for (index, sample) in samples.enumerated() {
            _ = plan.input[(index * sample.features.count)...].update(fromContentsOf: sample.features)
        }
        baseLogits = try head.logits(of: plan.input, rows: rows)
        standardization = Standardization(
            UnsafeBufferPointer(plan.input), channels: channels, isCentred: head.hasBias)
        standardization.apply(to: plan.input)
        let sum = plan.input.reduce(0.0) { $0 + Double(abs($1)) }
        meanNorm = max(Float(sum / Double(rows)), 1e-12)
        var scratch = Scratch(head)
        teacher = []
        for index in samples.indices {
            evaluate(index, nil, &scratch)
            softmax(&scratch.logits, ofFirst: scratch.logits.count - newCount)
            teacher += scratch.logits
        }
    }

    /// The trained change to the head.
    struct Change {
        /// The change to the trained columns, [channels, trained].
        let weight: [Float]
        /// The change to the trained biases, [trained].
        let bias: [Float]
    }

    /// Trains the change.
    /// - Parameters:
    ///   - shouldStop: A closure called before each step; if it returns true, training stops and keeps the steps so far.
    ///   - onStep: A closure that receives the progress at every tenth step and after the last.
    func run(
        shouldStop: () throws -> Bool, onStep: ((PersonalizationProgress.Step) -> Void)? = nil
    ) throws -> Change {
        self.onStep = onStep
        var options = TrainingLoop.Options(
            rounds: .phases([
                .init(
                    steps: Self.steps, learningRate: Self.logitStep / meanNorm,
                    schedule: LearningRateSchedule(.cosine(final: 0), warmUpSteps: 10))
            ]), optimizer: .adamW(AdamW.Options(weightDecay: 0)))
        options.keepsBest = false
        var done = 0
        if try !shouldStop() {
            _ = try TrainingLoop(self, options: options).run(shouldStop: shouldStop) { event in
                if case .step = event { done += 1 }
            }
        }
        if let onStep {
            plan.forward(count: samples.count * positions)
            if let progress = progress(done) { onStep(progress) }
        }
        return change
    }

    func trainingStep(round: Int, step: Int) -> StepLoss? {
        plan.forward(count: samples.count * positions)
        if let onStep, step % 10 == 0, let progress = progress(step) { onStep(progress) }
        writeGradients()
        // The gradient does not need the loss, which takes a logarithm per sample and label. The loop would only check that the loss is
        // finite, and it checks the parameters at the end.
        return StepLoss(loss: 0, count: samples.count * positions)
    }

    /// Adds the gradient of the penalty.
    func addGradients() {
        guard let entry = plan.parameters.layout["change.weight"] else { return }
        plan.parameters.withValues(of: entry) { weights in
            for (index, weight) in weights.enumerated() {
                plan.parameterGradients[entry.offset + index] += penalty * Float(head.channels) * weight
            }
        }
    }

    /// Computes the loss and accuracy on the examples with the current change.
    private func progress(_ step: Int) -> PersonalizationProgress.Step? {
        var scratch = Scratch(head)
        let scores = (0..<exampleCount).compactMap { index in
            evaluate(index, plan.output, &scratch)
            softmax(&scratch.logits)
            return samples[index].target.score(scratch.logits)
        }
        return PersonalizationProgress.Step(step, of: Self.steps, scores: scores)
    }

    /// The current change, converted for features that are not standardized.
    private var change: Change {
        var weight = plan.parameters["change.weight"] ?? []
        var bias = plan.parameters["change.bias"] ?? trained.map { _ in 0 }
        standardization.absorb(into: &weight, bias: &bias)
        return Change(weight: weight, bias: bias)
    }

    /// The result of evaluating one sample; its memory is reused for the next sample.
    private struct Scratch {
        /// The logits of all labels, including the label of images without a logo if there is one.
        var logits: [Float]
        /// The position of the maximum of each output.
        var positions: [Int]

        init(_ head: HeadParameters) {
            logits = [Float](repeating: 0, count: head.outputs + (head.hasNone ? 1 : 0))
            positions = [Int](repeating: 0, count: head.outputs)
        }
    }

    /// Computes the logits of a sample, with a change in the logits at each position if there is one.
    private func evaluate(_ sample: Int, _ change: UnsafeMutableBufferPointer<Float>?, _ scratch: inout Scratch) {
        let outputs = head.outputs
        for label in scratch.logits.indices { scratch.logits[label] = label < outputs ? -.infinity : 0 }
        var column = 0
        for output in 0..<outputs {
            let isTrained = column < trained.count && trained[column] == output
            for position in 0..<positions {
                let row = sample * positions + position
                var value = baseLogits[row * outputs + output]
                if let change, isTrained { value += change[row * trained.count + column] }
                if value > scratch.logits[output] {
                    (scratch.logits[output], scratch.positions[output]) = (value, position)
                }
            }
            scratch.logits[output] = head.slopes[output] * scratch.logits[output] + head.offsets[output]
            if isTrained { column += 1 }
        }
    }

    /// Writes the gradient of the loss with respect to the change in the logits at each position.
    private func writeGradients() {
        let gradient = plan.outputGradient
        gradient.update(repeating: 0)
        var scratch = Scratch(head)
        let labels = scratch.logits.count
        for (index, sample) in samples.enumerated() {
            evaluate(index, plan.output, &scratch)
            sample.target.differentiate(
                &scratch.logits, teacher: teacher[(index * labels)..<((index + 1) * labels)], newCount: newCount)
            for (column, output) in trained.enumerated() {
                let row = index * positions + scratch.positions[output]
                gradient[row * trained.count + column] = sample.weight * head.slopes[output] * scratch.logits[output]
            }
        }
    }
}

extension HeadParameters {
    /// Computes the logits of rows of features, without slopes and offsets, [rows, outputs].
    func logits(of features: UnsafeMutableBufferPointer<Float>, rows: Int) throws -> [Float] {
        let network = try Network(
            name: "head", input: TensorShape(height: 1, width: 1, channels: channels),
            nodes: [Network.Node(name: "head", layer: Dense(outputChannels: outputs), inputs: [Network.inputName])])
        let parameters = try Parameters(ParameterLayout(network))
        parameters["head.weight"] = weight
        parameters["head.bias"] = bias
        let plan = try ExecutionPlan(network, parameters: parameters, options: ExecutionPlan.Options(batchSize: rows))
        _ = plan.input.update(fromContentsOf: features[..<(rows * channels)])
        plan.forward(count: rows)
        return Array(plan.output)
    }
}
