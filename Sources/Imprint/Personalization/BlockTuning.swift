internal import Foundation
internal import ImprintCore
internal import ImprintModel
internal import ImprintNetwork

/// Trains the head and, by factors of low rank, the last blocks before it, over what the layers before these make of a photo.
///
/// What keeps it from forgetting are the features of the base's photos, as the head reads them: the layers before it change only by what is
/// `PersonalizationConfiguration.rank` wide, and weights of the change decay. AdamW takes `steps` steps over batches of views.
final class BlockTuning {
    /// How many steps are taken.
    static let steps = 150
    /// How many views make a step.
    private static let batchSize = 16
    private static let learningRate: Float = 0.003
    private static let weightDecay: Float = 0.01

    private let samples: [TuningSample]
    private let rehearsal: [TuningSample]
    private let adapters: [Network.Adapter]
    /// The last blocks with the head, and the head alone; both with adapters.
    private let plan: ExecutionPlan
    private let headPlan: ExecutionPlan?
    /// What rehearsal samples were judged before, [samples, labels].
    private let before: [Float]
    private let newCount: Int

    /// - Parameters:
    ///   - part: The last blocks and the head, without a softmax.
    ///   - parameters: What they begin with.
    ///   - samples: Views, as what the layers before `part` make of them.
    ///   - rehearsal: Samples as the head reads them.
    ///   - newCount: How many of the last outputs are of new labels.
    init(
        _ part: Network, parameters: Parameters, rank: Int, samples: [TuningSample], rehearsal: [TuningSample],
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

    /// - Parameters:
    ///   - shouldStop: Asked before each step; if it says yes, the change is that of the steps before.
    ///   - onStep: Told of every tenth step, by the views of that step.
    func run(
        shouldStop: () throws -> Bool, onStep: ((PersonalizationProgress.Step) -> Void)? = nil
    ) throws -> Change {
        let optimizer = try AdamW(
            AdamW.Options(learningRate: Self.learningRate, weightDecay: Self.weightDecay), for: plan.parameters.layout)
        let schedule = LearningRateSchedule(.cosine(final: 0), warmUpSteps: 10)
        var stream = RandomStream(seed: 0, "personalization")
        var order: [Int] = []
        for step in 0..<Self.steps where try !shouldStop() {
            var batch: [Int] = []
            while batch.count < plan.options.batchSize {
                if order.isEmpty { order = stream.permutation(of: samples.count) }
                batch.append(order.removeLast())
            }
            pass(batch)
            if let onStep, step % 10 == 9,
                let progress = PersonalizationProgress.Step(step + 1, of: Self.steps, scores: scores(batch))
            {
                onStep(progress)
            }
            addRehearsal()
            optimizer.step(plan, factor: schedule.factor(at: step, of: Self.steps))
        }
        return change()
    }

    /// Forward and backward over some views.
    private func pass(_ batch: [Int]) {
        let total = batch.reduce(Float(0)) { $0 + samples[$1].weight }
        for (row, place) in batch.enumerated() {
            let features = samples[place].features
            _ = plan.input[(row * features.count)...].update(fromContentsOf: features)
        }
        plan.forward(count: batch.count)
        for (row, place) in batch.enumerated() {
            plan.setGradient(
                of: row, samples[place], before: [], newCount: newCount, weight: samples[place].weight / total)
        }
        plan.backward(count: batch.count)
    }

    /// What the views of a batch scored.
    private func scores(_ batch: [Int]) -> [(loss: Float, isRight: Bool)] {
        batch.enumerated().compactMap { row, place in
            var confidences = plan.logits(row)
            softmax(&confidences)
            return samples[place].target.score(confidences)
        }
    }

    /// Adds the gradient of the head's change by the features of the base's photos.
    private func addRehearsal() {
        guard let headPlan else { return }
        let shared = headPlan.parameters.layout.entries.filter { entry in
            adapters.contains { if case .whole(_, entry.node) = $0 { true } else { false } }
        }
        for entry in shared { headPlan.parameters[entry.name] = plan.parameters[entry.name] }
        headPlan.forward(count: rehearsal.count)
        for (row, sample) in rehearsal.enumerated() {
            let labels = before.count / rehearsal.count
            headPlan.setGradient(
                of: row, sample, before: before[(row * labels)..<((row + 1) * labels)], newCount: newCount,
                weight: sample.weight)
        }
        headPlan.backward(count: rehearsal.count)
        for entry in shared {
            guard let own = plan.parameters.layout[entry.name] else { continue }
            for place in 0..<entry.parameter.count {
                plan.parameterGradients[own.offset + place] += headPlan.parameterGradients[entry.offset + place]
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
        of row: Int, _ sample: TuningSample, before: ArraySlice<Float>, newCount: Int, weight: Float
    ) {
        var slope = logits(row)
        sample.target.differentiate(&slope, before: before, newCount: newCount)
        for (label, value) in slope.enumerated() { outputGradient[row * slope.count + label] = weight * value }
    }
}
