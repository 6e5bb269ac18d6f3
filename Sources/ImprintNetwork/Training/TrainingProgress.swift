/// The progress of a training run; together with the tensors of `TrainingState`, the complete state between two steps.
public struct TrainingProgress: Codable, Hashable, Sendable {
    /// The sums of losses and correct samples over batches.
    public struct Sum: Codable, Hashable, Sendable {
        /// The sum of the losses of all samples.
        public package(set) var loss: Double = 0
        /// The number of correct samples, or of correct decisions.
        public package(set) var correct = 0
        /// The number of samples.
        public package(set) var count = 0
        /// The number of decisions, including the `correct` ones, or nil for one per sample.
        public package(set) var decisions: Int?

        package init() {}

        /// Adds a batch of `count` samples with a mean loss of `loss`.
        /// - Parameter decisions: The number of decisions, including the `correct` ones, or nil for one per sample.
        package mutating func add(loss: Float, correct: Int, count: Int, decisions: Int? = nil) {
            if let decisions { self.decisions = (self.decisions ?? 0) + decisions }
            self.loss += Double(loss) * Double(count)
            self.correct += correct
            self.count += count
        }

        /// The mean loss per sample.
        public var meanLoss: Float { count > 0 ? Float(loss / Double(count)) : 0 }
        /// The fraction of correct samples, or of correct decisions, 0…1.
        public var accuracy: Float { count > 0 ? Float(correct) / Float(max(decisions ?? count, 1)) : 0 }
    }

    /// The peak learning rate, from the hyperparameters or a range test.
    public package(set) var learningRate: Float
    /// The planned number of rounds (epochs or phases).
    public package(set) var plannedRounds: Int
    /// The index of the next batch in the current round.
    public package(set) var batch = 0
    /// The losses of the completed batches of the current round.
    public package(set) var sum = Sum()
    /// The number of training passes of the plan, which seeds its random streams.
    public package(set) var passes = 0
    /// The number of steps included in the EMA of the parameters.
    public package(set) var emaSteps = 0
    /// The metrics of each completed round.
    public package(set) var history: [EpochMetrics] = []
    /// The index in `history` of the best round; nil before the first round ends, and while the initial parameters are the best.
    ///
    /// This is the round with the best comparable validation result: the highest mean average precision, or the lowest loss if rounds have none or
    /// equal ones. Without a validation set, it is the last round. If the initial parameters were validated, only rounds that are at least as
    /// accurate count.
    public private(set) var best: Int?
    /// The validation accuracy of the initial parameters, 0…1; nil if they were not validated.
    ///
    /// The loop compares accuracies instead of losses, because a loss also depends on label smoothing. It ignores this accuracy
    /// after the images change.
    public private(set) var startAccuracy: Float?
    /// The validation loss of the best round on the readable validation photos, measured again after some became unreadable; nil if the
    /// loss in `history` is still comparable.
    package var bestLoss: Float?
    /// The mean average precision of the best round, measured again together with `bestLoss`; nil without boxes in the validation set.
    package var bestAveragePrecision: Float?
    /// Whether photos became unreadable, after which a resumed run validates the best round again; nil in older checkpoints.
    package var hasUnreadablePhotos: Bool?
    /// The first round (from 0) whose validation loss is comparable with the latest: the first after the images changed.
    package var firstComparable = 0
    /// The duration of the run.
    public package(set) var seconds: Double = 0
    /// The time spent in completed rounds.
    public package(set) var secondsInRounds: Double = 0
    /// The time spent in the current round.
    package var secondsInRound: Double = 0
    /// Whether a new run with the same hyperparameters and data gives the same result, because this run was not resumed with other images,
    /// another number of rounds, or a patience with which it would have ended earlier.
    public package(set) var isRepeatable = true
    /// Whether the run is finished and another run may replace its checkpoint.
    public package(set) var isFinished = false
    /// The number of rounds of a finished run without its time limit, at least `plannedRounds`; nil before the end, and in older checkpoints.
    package var roundsWithoutTimeLimit: Int?

    private enum CodingKeys: String, CodingKey {
        case learningRate
        // Version 1 named rounds epochs.
        case plannedRounds = "plannedEpochs"
        case batch, sum, passes
        case emaSteps = "averagedSteps"
        case history, best, startAccuracy, bestLoss, bestAveragePrecision
        case hasUnreadablePhotos = "hasLostPhotos"
        case firstComparable, seconds
        case secondsInRounds = "secondsInEpochs"
        case secondsInRound = "secondsInEpoch"
        case isRepeatable, isFinished
        case roundsWithoutTimeLimit = "epochsWithoutTimeLimit"
    }

    package init(learningRate: Float, plannedRounds: Int) {
        self.learningRate = learningRate
        self.plannedRounds = plannedRounds
    }

    /// The index of the current round, from 0, which is the number of completed rounds.
    public var round: Int { history.count }

    /// Records the metrics of a completed round.
    /// - Returns: Whether it is the best round so far.
    package mutating func finishRound(_ metrics: EpochMetrics) -> Bool {
        history.append(metrics)
        batch = 0
        sum = Sum()
        secondsInRounds += secondsInRound
        secondsInRound = 0
        let isBest: Bool
        if !metrics.isAsAccurate(asStart: comparableStartAccuracy) {
            isBest = false
        } else if let best, best >= firstComparable {
            var kept = history[best]
            if let bestLoss {
                (kept.validationLoss, kept.validationAveragePrecision) = (bestLoss, bestAveragePrecision)
            }
            isBest = metrics.isBetter(than: kept) ?? true
        } else {
            isBest = true
        }
        if isBest { (best, bestLoss, bestAveragePrecision) = (round - 1, nil, nil) }
        return isBest
    }

    /// Records the validation result of the initial parameters, which are the best parameters until a round is at least as accurate.
    package mutating func recordStart(_ validation: ValidationLoss) { startAccuracy = validation.accuracy }

    /// The validation accuracy of the initial parameters that a round must reach to be the best; nil if they do not count.
    package var comparableStartAccuracy: Float? { firstComparable == 0 ? startAccuracy : nil }

    /// Records a repeated validation of the best parameters.
    package mutating func recordBest(_ validation: ValidationLoss?) {
        if best == nil {
            startAccuracy = validation?.accuracy ?? startAccuracy
        } else {
            (bestLoss, bestAveragePrecision) = (validation?.loss, validation?.averagePrecision)
        }
    }

    /// Whether there are best parameters.
    package var hasBest: Bool { best != nil || startAccuracy != nil }

    /// Whether the best parameters were trained on other images than the current ones, because no round is complete since the images changed.
    package var bestPrecedesChange: Bool { firstComparable > 0 && round == firstComparable }

    /// Records that a photo became unreadable, after which the run is not reproducible.
    package mutating func recordUnreadablePhoto() {
        hasUnreadablePhotos = true
        isRepeatable = false
    }

    /// Restarts the round with other images, after which earlier losses are not comparable.
    package mutating func changeImages() {
        restartRound()
        firstComparable = round
        (bestLoss, bestAveragePrecision) = (nil, nil)
        if round == 0 { startAccuracy = nil }
        isRepeatable = false
    }

    /// Discards the completed batches of the current round.
    package mutating func restartRound() {
        batch = 0
        sum = Sum()
        secondsInRound = 0
    }

    /// The number of comparable rounds since the best one, or since the start if the initial parameters are the best.
    public var roundsSinceBest: Int { hasBest ? round - max(best.map { $0 + 1 } ?? 0, firstComparable) : 0 }

    /// Returns whether the last rounds bring no improvement, for early stopping.
    /// - Parameter firstRound: The first round (from 0) that counts.
    func hasStalled(for patience: Int, since firstRound: Int) -> Bool {
        min(roundsSinceBest, round - firstRound) >= patience
    }

    /// Returns whether early stopping with another patience would have ended the run before its last completed round.
    ///
    /// The validation losses of all rounds must be comparable.
    func hadStalled(for patience: Int, since firstRound: Int) -> Bool {
        var replayed = TrainingProgress(learningRate: learningRate, plannedRounds: plannedRounds)
        replayed.startAccuracy = startAccuracy
        return history.dropLast().contains { metrics in
            _ = replayed.finishRound(metrics)
            return replayed.hasStalled(for: patience, since: firstRound)
        }
    }

    /// A description of the first invalid value; nil if all values are valid.
    package var problem: String? {
        guard learningRate.isFinite && learningRate >= 0 else { return "a learning rate of \(learningRate)" }
        let counts = [
            plannedRounds, batch, passes, emaSteps, sum.count, sum.correct, sum.decisions ?? 0, firstComparable,
            roundsWithoutTimeLimit ?? 0,
        ]
        guard counts.allSatisfy({ (0...1 << 48).contains($0) }) else { return "a count that is out of range" }
        guard history.map(\.epoch) == Array(1..<(history.count + 1)) else {
            return "epochs that are not consecutive"
        }
        guard (seconds + secondsInRounds + secondsInRound).isFinite else { return "a time that is not finite" }
        guard bestLoss?.isFinite ?? true else { return "a validation loss that is not finite" }
        let accuracies = [startAccuracy, bestAveragePrecision].compactMap { $0 }
        guard accuracies.allSatisfy({ (0...1).contains($0) }) else { return "an accuracy that is out of range" }
        guard best.map(history.indices.contains) ?? (history.isEmpty || startAccuracy != nil) else {
            return "a best epoch that is out of range"
        }
        return nil
    }
}
