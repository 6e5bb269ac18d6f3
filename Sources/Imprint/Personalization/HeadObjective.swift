internal import Foundation
internal import ImprintCore
internal import ImprintModel
internal import ImprintNetwork

/// The head of a model, and what its outputs mean.
struct HeadParameters {
    /// Its weights, [channels, outputs].
    var weight: [Float]
    /// Its biases, [outputs]; zeros if it has none.
    var bias: [Float]
    /// Whether biases may change.
    let hasBias: Bool
    /// Of each output, what the highest of all places is multiplied by, and what is added then.
    let slopes: [Float]
    let offsets: [Float]
    /// Whether there is one more label, for images that show none of the others; its logit is 0.
    let hasNone: Bool

    var outputs: Int { bias.count }
    var channels: Int { weight.count / max(outputs, 1) }
}

/// Trains an addition to the head of a model, over features that do not change.
///
/// With Δ the change of the columns of some labels, and z(Δ) the logits of a sample, it minimizes
/// Σ wᵢ · loss(z(Δ), targetᵢ) + penalty / 2 · Σ (σ_c · Δ_c)² · C, where σ_c is the standard deviation of channel c of C, so that the penalty
/// depends on the change of logits, whatever the scale of the features. `PersonalizationSample.Target` has the losses. AdamW takes full-batch steps
/// with a cosine schedule.
final class HeadObjective: TrainingObjective {
    /// The number of steps.
    static let steps = 200
    /// The approximate change of a logit in the first step.
    private static let logitStep: Float = 0.1

    private let head: HeadParameters
    private let samples: [PersonalizationSample]
    /// How many of the first samples are what was shown.
    private let shownCount: Int
    private let trained: [Int]
    private let newCount: Int
    private let penalty: Float
    private let places: Int
    /// The logits of each place without a change, [samples, places, outputs].
    private let fixed: [Float]
    /// What each sample was judged before, [samples, labels].
    private var before: [Float]
    let plan: ExecutionPlan
    private let scale: Scale
    /// The mean sum of the magnitudes of a row.
    private let meanSum: Float
    private var onStep: ((PersonalizationProgress.Step) -> Void)?

    /// - Parameters:
    ///   - shown: What was shown, with the same number of places each.
    ///   - rehearsal: What keeps it from forgetting, likewise.
    ///   - trained: The outputs whose columns change, in order.
    ///   - newCount: How many of the last outputs are of new labels.
    init(
        _ head: HeadParameters, _ shown: [PersonalizationSample], rehearsal: [PersonalizationSample], trained: [Int],
        newCount: Int,
        penalty: Float
    ) throws {
        let channels = head.channels
        let samples = shown + rehearsal
        self.head = head
        self.samples = samples
        shownCount = shown.count
        self.trained = trained
        self.newCount = newCount
        self.penalty = penalty
        places = samples[0].features.count / channels
        let rows = samples.count * places
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
        for (place, sample) in samples.enumerated() {
            _ = plan.input[(place * sample.features.count)...].update(fromContentsOf: sample.features)
        }
        fixed = try head.logits(of: plan.input, rows: rows)
        scale = Scale(plan.input, rows: rows, channels: channels, isCentred: head.hasBias)
        scale.apply(to: plan.input)
        let sum = plan.input.reduce(0.0) { $0 + Double(abs($1)) }
        meanSum = max(Float(sum / Double(rows)), 1e-12)
        var scratch = Scratch(head)
        before = []
        for place in samples.indices {
            evaluate(place, nil, &scratch)
            softmax(&scratch.logits, ofFirst: scratch.logits.count - newCount)
            before += scratch.logits
        }
    }

    /// How channels of features become alike: x ← (x − mean) / deviation, so that a step changes rare ones as much as others.
    private struct Scale {
        var means: [Float]
        var divisors: [Float]

        init(_ rows: UnsafeMutableBufferPointer<Float>, rows count: Int, channels: Int, isCentred: Bool) {
            var (sums, squares) = ([Double](repeating: 0, count: channels), [Double](repeating: 0, count: channels))
            for place in 0..<(count * channels) {
                let value = Double(rows[place])
                sums[place % channels] += value
                squares[place % channels] += value * value
            }
            let number = Double(count)
            means = sums.map { isCentred ? Float($0 / number) : 0 }
            let variances = zip(sums, squares).map { max($1 / number - ($0 / number) * ($0 / number), 0) }
            // What hardly ever differs must not become large.
            let floor = 0.01 * variances.reduce(0, +) / Double(channels) + 1e-12
            divisors = variances.map { Float(($0 + floor).squareRoot()) }
        }

        func apply(to rows: UnsafeMutableBufferPointer<Float>) {
            for place in rows.indices {
                let channel = place % means.count
                rows[place] = (rows[place] - means[channel]) / divisors[channel]
            }
        }
    }

    /// What was found: the change of the trained columns, [channels, trained], and of their biases.
    struct Change {
        let weight: [Float]
        let bias: [Float]
    }

    /// Trains.
    /// - Parameters:
    ///   - shouldStop: Called before each step; if it returns true, the change is that of the steps before.
    ///   - onStep: Receives the progress at every tenth step and after the last.
    func run(
        shouldStop: () throws -> Bool, onStep: ((PersonalizationProgress.Step) -> Void)? = nil
    ) throws -> Change {
        self.onStep = onStep
        var options = TrainingLoop.Options(
            rounds: .phases([
                .init(
                    steps: Self.steps, learningRate: Self.logitStep / meanSum,
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
            plan.forward(count: samples.count * places)
            if let progress = progress(done) { onStep(progress) }
        }
        return change
    }

    func forward(round: Int, step: Int) -> StepLoss? {
        plan.forward(count: samples.count * places)
        if let onStep, step % 10 == 0, let progress = progress(step) { onStep(progress) }
        writeGradients()
        return StepLoss(loss: 0, count: samples.count * places)
    }

    /// The gradient of the penalty.
    func addGradients() {
        guard let entry = plan.parameters.layout["change.weight"] else { return }
        plan.parameters.withValues(of: entry) { weights in
            for (index, weight) in weights.enumerated() {
                plan.parameterGradients[entry.offset + index] += penalty * Float(head.channels) * weight
            }
        }
    }

    /// The loss and accuracy on the shown samples with the current change.
    private func progress(_ step: Int) -> PersonalizationProgress.Step? {
        var scratch = Scratch(head)
        let scores = (0..<shownCount).compactMap { place in
            evaluate(place, plan.output, &scratch)
            softmax(&scratch.logits)
            return samples[place].target.score(scratch.logits)
        }
        return PersonalizationProgress.Step(step, of: Self.steps, scores: scores)
    }

    /// What was found, for features as they are.
    private var change: Change {
        var weight = plan.parameters["change.weight"] ?? []
        var bias = plan.parameters["change.bias"] ?? trained.map { _ in 0 }
        for place in weight.indices {
            let channel = place / trained.count
            weight[place] /= scale.divisors[channel]
            bias[place % trained.count] -= weight[place] * scale.means[channel]
        }
        return Change(weight: weight, bias: bias)
    }

    /// What is computed of a sample, in memory that serves for the next one too.
    private struct Scratch {
        /// The logits; with that of none, if there is one.
        var logits: [Float]
        /// At which place each output is highest.
        var places: [Int]

        init(_ head: HeadParameters) {
            logits = [Float](repeating: 0, count: head.outputs + (head.hasNone ? 1 : 0))
            places = [Int](repeating: 0, count: head.outputs)
        }
    }

    /// The logits of a sample; with a change if there is one.
    private func evaluate(_ sample: Int, _ change: UnsafeMutableBufferPointer<Float>?, _ scratch: inout Scratch) {
        let outputs = head.outputs
        for label in scratch.logits.indices { scratch.logits[label] = label < outputs ? -.infinity : 0 }
        var column = 0
        for output in 0..<outputs {
            let isTrained = column < trained.count && trained[column] == output
            for place in 0..<places {
                let row = sample * places + place
                var value = fixed[row * outputs + output]
                if let change, isTrained { value += change[row * trained.count + column] }
                if value > scratch.logits[output] { (scratch.logits[output], scratch.places[output]) = (value, place) }
            }
            scratch.logits[output] = head.slopes[output] * scratch.logits[output] + head.offsets[output]
            if isTrained { column += 1 }
        }
    }

    /// The gradient of the loss by what the change adds to the logits of each place.
    private func writeGradients() {
        let gradient = plan.outputGradient
        gradient.update(repeating: 0)
        var scratch = Scratch(head)
        let labels = scratch.logits.count
        for (place, sample) in samples.enumerated() {
            evaluate(place, plan.output, &scratch)
            sample.target.differentiate(
                &scratch.logits, before: before[(place * labels)..<((place + 1) * labels)], newCount: newCount)
            for (column, output) in trained.enumerated() {
                let row = place * places + scratch.places[output]
                gradient[row * trained.count + column] = sample.weight * head.slopes[output] * scratch.logits[output]
            }
        }
    }
}

extension HeadParameters {
    /// The logits of rows of features without slopes, [rows, outputs].
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
