internal import Foundation
internal import ImprintCore
internal import ImprintModel
internal import ImprintNetwork

/// An objective that trains the head and low-rank adapters (LoRA) of the last blocks before it, on cached features.
///
/// Replaying features of the base model's training photos prevents catastrophic forgetting. These features are inputs of the head, so only
/// the rank of the adapters and weight decay constrain the blocks before it. AdamW takes `steps` steps over batches of views.
final class AdapterObjective: TrainingObjective {
    /// The number of steps.
    static let steps = 150
    /// The maximum number of views per step.
    private static let batchSize = 16
    private static let learningRate: Float = 0.003
    private static let weightDecay: Float = 0.01

    private let samples: [PersonalizationSample]
    private let rehearsal: [PersonalizationSample]
    private let adapters: [Network.Adapter]
    /// The plan of the last blocks and the head, with adapters.
    let plan: ExecutionPlan
    /// The plan of only the head, with an adapter; nil without rehearsal.
    private let headPlan: ExecutionPlan?
    /// The confidences of the initial model (the teacher) for the rehearsal samples, [samples, labels].
    private let teacher: [Float]
    private let newCount: Int
    private var stream = RandomStream(seed: 0, "personalization")
    private var order: [Int] = []
    private var onStep: ((PersonalizationProgress.Step) -> Void)?

    /// - Parameters:
    ///   - tail: The last blocks and the head, without a softmax.
    ///   - parameters: The initial parameters.
    ///   - rank: The rank of the adapters.
    ///   - samples: Views of the examples: inputs of `tail`.
    ///   - rehearsal: Samples to replay: inputs of the head.
    ///   - newCount: The number of new labels, which are the last outputs.
    init(
        _ tail: Network, parameters: Parameters, rank: Int, samples: [PersonalizationSample],
        rehearsal: [PersonalizationSample],
        newCount: Int
    ) throws {
        self.samples = samples
        self.rehearsal = rehearsal
        self.newCount = newCount
        func plan(_ network: Network, batchSize: Int) throws -> (plan: ExecutionPlan, adapters: [Network.Adapter]) {
            let adapted = try network.withAdapters(rank: rank)
            let adaptedParameters = try Parameters(adapted.network, seed: 0)
            adaptedParameters.load(from: parameters)
            for name in adapted.adapters.flatMap(\.zeroInitialized) {
                for entry in adaptedParameters.layout.entries where entry.node == name {
                    adaptedParameters.withValues(of: entry) { $0.update(repeating: 0) }
                }
            }
            let options = ExecutionPlan.Options(batchSize: batchSize, mode: .training, frozen: adapted.frozen)
            return (
                try ExecutionPlan(adapted.network, parameters: adaptedParameters, options: options), adapted.adapters
            )
        }
        (self.plan, adapters) = try plan(tail, batchSize: min(Self.batchSize, samples.count))
        let head = rehearsal.isEmpty ? nil : try tail.splitAtHead()?.head ?? tail
        headPlan = try head.map { try plan($0, batchSize: rehearsal.count).plan }
        if let headPlan {
            for (row, sample) in rehearsal.enumerated() {
                _ = headPlan.input[(row * sample.features.count)...].update(fromContentsOf: sample.features)
            }
            headPlan.forward(count: rehearsal.count)
            teacher = rehearsal.indices.flatMap { row in
                var logits = headPlan.logits(row)
                softmax(&logits, ofFirst: logits.count - newCount)
                return logits
            }
        } else {
            teacher = []
        }
    }

    /// The trained change to the model.
    struct Change {
        /// The change to the head's weights, [channels, outputs].
        var weight: [Float] = []
        /// The change to the head's biases, [outputs].
        var bias: [Float] = []
        /// The low-rank adapters of the other layers.
        var adapters: [Personalization.LowRankAdapter] = []
    }

    /// Trains the adapters.
    /// - Parameters:
    ///   - shouldStop: A closure called before each step; if it returns true, training stops and keeps the steps so far.
    ///   - onStep: A closure that receives the progress at every tenth step, measured on the batch of that step.
    func run(
        shouldStop: () throws -> Bool, onStep: ((PersonalizationProgress.Step) -> Void)? = nil
    ) throws -> Change {
        self.onStep = onStep
        var options = TrainingLoop.Options(
            rounds: .phases([
                .init(
                    steps: Self.steps, learningRate: Self.learningRate,
                    schedule: LearningRateSchedule(.cosine(final: 0), warmUpSteps: 10))
            ]), optimizer: .adamW(AdamW.Options(weightDecay: Self.weightDecay)))
        options.keepsBest = false
        if try !shouldStop() { _ = try TrainingLoop(self, options: options).run(shouldStop: shouldStop) }
        return change()
    }

    func trainingStep(round: Int, step: Int) -> StepLoss? {
        var batch: [Int] = []
        while batch.count < plan.options.batchSize {
            if order.isEmpty { order = stream.permutation(of: samples.count) }
            batch.append(order.removeLast())
        }
        let total = batch.reduce(Float(0)) { $0 + samples[$1].weight }
        for (row, index) in batch.enumerated() {
            let features = samples[index].features
            _ = plan.input[(row * features.count)...].update(fromContentsOf: features)
        }
        plan.forward(count: batch.count)
        for (row, index) in batch.enumerated() {
            plan.setGradient(
                of: row, samples[index], teacher: [], newCount: newCount, weight: samples[index].weight / total)
        }
        if let onStep, step % 10 == 9,
            let progress = PersonalizationProgress.Step(step + 1, of: Self.steps, scores: scores(batch))
        {
            onStep(progress)
        }
        replay()
        // As in `HeadObjective`, the loss is not computed: the loop checks the parameters at the end.
        return StepLoss(loss: 0, count: batch.count)
    }

    /// Computes the loss and correctness of each view of a batch.
    private func scores(_ batch: [Int]) -> [(loss: Float, isCorrect: Bool)] {
        batch.enumerated().compactMap { row, index in
            var confidences = plan.logits(row)
            softmax(&confidences)
            return samples[index].target.score(confidences)
        }
    }

    /// Returns the parameters of the head's adapter, which both plans have.
    private func sharedEntries(of headPlan: ExecutionPlan) -> [ParameterLayout.Entry] {
        headPlan.parameters.layout.entries.filter { entry in
            adapters.contains { if case .fullRank(_, entry.node) = $0 { true } else { false } }
        }
    }

    /// Runs the head over the replayed features, with its current parameters.
    private func replay() {
        guard let headPlan else { return }
        for entry in sharedEntries(of: headPlan) { headPlan.parameters[entry.name] = plan.parameters[entry.name] }
        headPlan.forward(count: rehearsal.count)
        for (row, sample) in rehearsal.enumerated() {
            let labels = teacher.count / rehearsal.count
            headPlan.setGradient(
                of: row, sample, teacher: teacher[(row * labels)..<((row + 1) * labels)], newCount: newCount,
                weight: sample.weight)
        }
    }

    var auxiliaryPasses: [AuxiliaryPass] {
        headPlan.map { [AuxiliaryPass(plan: $0, count: rehearsal.count)] } ?? []
    }

    /// Adds the gradients of the head over the replayed features.
    func addGradients() {
        guard let headPlan else { return }
        for entry in sharedEntries(of: headPlan) {
            guard let target = plan.parameters.layout[entry.name] else { continue }
            for index in 0..<entry.parameter.count {
                plan.parameterGradients[target.offset + index] += headPlan.parameterGradients[entry.offset + index]
            }
        }
    }

    private func change() -> Change {
        var change = Change()
        for adapter in adapters {
            switch adapter {
            case .fullRank(_, let name):
                change.weight = plan.parameters["\(name).weight"] ?? []
                change.bias = plan.parameters["\(name).bias"] ?? []
            case .lowRank(let node, let left, let right):
                guard let first = plan.parameters["\(left).weight"], let second = plan.parameters["\(right).weight"],
                    let rank = plan.parameters.layout["\(left).weight"]?.parameter.shape.last
                else { continue }
                change.adapters.append(
                    Personalization.LowRankAdapter(parameter: "\(node).weight", left: first, right: second, rank: rank))
            }
        }
        return change
    }
}

extension Network.Adapter {
    /// The nodes whose parameters start at 0, so that the adapted network initially equals the original one.
    fileprivate var zeroInitialized: [String] {
        switch self {
        case .fullRank(_, let change): [change]
        case .lowRank(_, _, let right): [right]
        }
    }
}

extension ExecutionPlan {
    /// Returns the logits of a row of the batch.
    fileprivate func logits(_ row: Int) -> [Float] {
        let labels = network.output.channels
        return Array(output[(row * labels)..<((row + 1) * labels)])
    }

    /// Writes the gradient of the loss of the sample in a row of the batch.
    fileprivate func setGradient(
        of row: Int, _ sample: PersonalizationSample, teacher: ArraySlice<Float>, newCount: Int, weight: Float
    ) {
        var gradient = logits(row)
        sample.target.differentiate(&gradient, teacher: teacher, newCount: newCount)
        for (label, value) in gradient.enumerated() { outputGradient[row * gradient.count + label] = weight * value }
    }
}
