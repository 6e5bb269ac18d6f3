internal import Foundation
internal import ImprintCore
internal import ImprintModel
internal import ImprintNetwork

/// Trains the head and low-rank adapters (LoRA) of the last blocks before it, over the features that the layers before these compute.
///
/// Replayed features of the base model's photos, as the head reads them, prevent catastrophic forgetting: the layers before it change only by
/// adapters of `PersonalizationConfiguration.rank`, whose weights decay. AdamW takes `steps` steps over batches of views.
final class AdapterObjective: TrainingObjective {
    /// The number of steps.
    static let steps = 150
    /// The number of views of a step.
    private static let batchSize = 16
    private static let learningRate: Float = 0.003
    private static let weightDecay: Float = 0.01

    private let samples: [PersonalizationSample]
    private let rehearsal: [PersonalizationSample]
    private let adapters: [Network.Adapter]
    /// The last blocks with the head, and the head alone; both with adapters.
    let plan: ExecutionPlan
    private let headPlan: ExecutionPlan?
    /// What rehearsal samples were judged before, [samples, labels].
    private let before: [Float]
    private let newCount: Int
    private var stream = RandomStream(seed: 0, "personalization")
    private var order: [Int] = []
    private var onStep: ((PersonalizationProgress.Step) -> Void)?

    /// - Parameters:
    ///   - part: The last blocks and the head, without a softmax.
    ///   - parameters: What they begin with.
    ///   - samples: Views, as what the layers before `part` make of them.
    ///   - rehearsal: Samples as the head reads them.
    ///   - newCount: How many of the last outputs are of new labels.
    init(
        _ part: Network, parameters: Parameters, rank: Int, samples: [PersonalizationSample],
        rehearsal: [PersonalizationSample],
        newCount: Int
    ) throws {
        self.samples = samples
        self.rehearsal = rehearsal
        self.newCount = newCount
        func plan(_ network: Network, batchSize: Int) throws -> (plan: ExecutionPlan, adapters: [Network.Adapter]) {
            let adapted = try network.withAdapters(rank: rank)
            let numbers = try Parameters(adapted.network, seed: 0)
            numbers.load(from: parameters)
            for name in adapted.adapters.flatMap(\.addends) {
                for entry in numbers.layout.entries where entry.node == name {
                    numbers.withValues(of: entry) { $0.update(repeating: 0) }
                }
            }
            let options = ExecutionPlan.Options(batchSize: batchSize, mode: .training, frozen: adapted.frozen)
            return (try ExecutionPlan(adapted.network, parameters: numbers, options: options), adapted.adapters)
        }
        (self.plan, adapters) = try plan(part, batchSize: min(Self.batchSize, samples.count))
        let head = rehearsal.isEmpty ? nil : try part.splitAtHead()?.head ?? part
        headPlan = try head.map { try plan($0, batchSize: rehearsal.count).plan }
        if let headPlan {
            for (place, sample) in rehearsal.enumerated() {
                _ = headPlan.input[(place * sample.features.count)...].update(fromContentsOf: sample.features)
            }
            headPlan.forward(count: rehearsal.count)
            before = rehearsal.indices.flatMap { place in
                var logits = headPlan.logits(place)
                softmax(&logits, ofFirst: logits.count - newCount)
                return logits
            }
        } else {
            before = []
        }
    }

    /// What was found: the change of the head's weights [channels, outputs] and biases, and the factors of other layers.
    struct Change {
        var weight: [Float] = []
        var bias: [Float] = []
        var factors: [Personalization.Factors] = []
    }

    /// Trains.
    /// - Parameters:
    ///   - shouldStop: Called before each step; if it returns true, the change is that of the steps before.
    ///   - onStep: Receives the progress at every tenth step, on the views of that step.
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

    func forward(round: Int, step: Int) -> StepLoss? {
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
                of: row, samples[index], before: [], newCount: newCount, weight: samples[index].weight / total)
        }
        if let onStep, step % 10 == 9,
            let progress = PersonalizationProgress.Step(step + 1, of: Self.steps, scores: scores(batch))
        {
            onStep(progress)
        }
        replay()
        return StepLoss(loss: 0, count: batch.count)
    }

    /// What the views of a batch scored.
    private func scores(_ batch: [Int]) -> [(loss: Float, isRight: Bool)] {
        batch.enumerated().compactMap { row, place in
            var confidences = plan.logits(row)
            softmax(&confidences)
            return samples[place].target.score(confidences)
        }
    }

    /// The parameters of the head that both plans have.
    private func sharedEntries(of headPlan: ExecutionPlan) -> [ParameterLayout.Entry] {
        headPlan.parameters.layout.entries.filter { entry in
            adapters.contains { if case .whole(_, entry.node) = $0 { true } else { false } }
        }
    }

    /// Runs the head over the replayed features, with its current parameters.
    private func replay() {
        guard let headPlan else { return }
        for entry in sharedEntries(of: headPlan) { headPlan.parameters[entry.name] = plan.parameters[entry.name] }
        headPlan.forward(count: rehearsal.count)
        for (row, sample) in rehearsal.enumerated() {
            let labels = before.count / rehearsal.count
            headPlan.setGradient(
                of: row, sample, before: before[(row * labels)..<((row + 1) * labels)], newCount: newCount,
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
            guard let own = plan.parameters.layout[entry.name] else { continue }
            for index in 0..<entry.parameter.count {
                plan.parameterGradients[own.offset + index] += headPlan.parameterGradients[entry.offset + index]
            }
        }
    }

    private func change() -> Change {
        var change = Change()
        for adapter in adapters {
            switch adapter {
            case .whole(_, let name):
                change.weight = plan.parameters["\(name).weight"] ?? []
                change.bias = plan.parameters["\(name).bias"] ?? []
            case .factors(let node, let left, let right):
                guard let first = plan.parameters["\(left).weight"], let second = plan.parameters["\(right).weight"],
                    let rank = plan.parameters.layout["\(left).weight"]?.parameter.shape.last
                else { continue }
                change.factors.append(
                    Personalization.Factors(parameter: "\(node).weight", left: first, right: second, rank: rank))
            }
        }
        return change
    }
}

extension Network.Adapter {
    /// The nodes whose numbers begin at 0, so that nothing is added at first.
    fileprivate var addends: [String] {
        switch self {
        case .whole(_, let change): [change]
        case .factors(_, _, let right): [right]
        }
    }
}

extension ExecutionPlan {
    /// The result for the image at `row`.
    fileprivate func logits(_ row: Int) -> [Float] {
        let labels = network.output.channels
        return Array(output[(row * labels)..<((row + 1) * labels)])
    }

    /// Writes the gradient of a sample's loss, which is at `row`.
    fileprivate func setGradient(
        of row: Int, _ sample: PersonalizationSample, before: ArraySlice<Float>, newCount: Int, weight: Float
    ) {
        var slope = logits(row)
        sample.target.differentiate(&slope, before: before, newCount: newCount)
        for (label, value) in slope.enumerated() { outputGradient[row * slope.count + label] = weight * value }
    }
}
