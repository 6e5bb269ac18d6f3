/// The progress of a training run: with the tensors of `TrainingState`, everything that one step passes to the next.
public struct TrainingProgress: Codable, Hashable, Sendable {
    /// Losses and right answers, added up over batches of different sizes.
    public struct Sum: Codable, Hashable, Sendable {
        public package(set) var loss: Double = 0
        public package(set) var correct = 0
        public package(set) var count = 0

        package init() {}

        /// Adds a batch of `count` images with a mean loss of `loss`.
        package mutating func add(loss: Float, correct: Int, count: Int) {
            self.loss += Double(loss) * Double(count)
            self.correct += correct
            self.count += count
        }

        public var meanLoss: Float { count > 0 ? Float(loss / Double(count)) : 0 }
        public var accuracy: Float { count > 0 ? Float(correct) / Float(count) : 0 }
    }

    /// The highest learning rate: that of the settings, or the one that was found.
    public package(set) var learningRate: Float
    /// How many epochs there are to be.
    public package(set) var plannedEpochs: Int
    /// How many batches of the epoch after `history` are done, and what they came to.
    public package(set) var batch = 0
    public package(set) var sum = Sum()
    /// How often the training plan has run, which its random numbers follow from.
    public package(set) var passes = 0
    /// How many steps have gone into the average of the parameters.
    public package(set) var averagedSteps = 0
    /// What was measured after each epoch.
    public package(set) var history: [EpochMetrics] = []
    /// The place in `history` of the epoch that is kept: that with the least validation loss of those that compare, or the last one
    /// where nothing is validated on.
    public private(set) var best: Int?
    /// The validation loss of the best epoch on the photos that are left, measured again after validation photos vanished; nil if the loss in
    /// `history` still compares.
    public package(set) var bestLoss: Float?
    /// Whether photos vanished during the run, after which a resumed run measures the best epoch again; nil in older checkpoints.
    public package(set) var hasLostPhotos: Bool?
    /// The first epoch (from 0) whose validation loss can be compared with the latest: the first after images were added.
    public package(set) var firstComparable = 0
    /// How long the run has taken; how much of it went into whole epochs, and into the one after these.
    public package(set) var seconds: Double = 0
    public package(set) var secondsInEpochs: Double = 0
    public package(set) var secondsInEpoch: Double = 0
    /// Whether the settings alone lead here: the run did not go on with other images or another number of epochs.
    public package(set) var isRepeatable = true
    /// Whether the run has ended by itself, so that nothing is lost where another takes its place.
    public package(set) var isFinished = false

    package init(learningRate: Float, plannedEpochs: Int) {
        self.learningRate = learningRate
        self.plannedEpochs = plannedEpochs
    }

    /// Takes down an epoch that has ended.
    /// - Returns: Whether it is the best, so that its parameters are to be kept.
    package mutating func finishEpoch(_ metrics: EpochMetrics) -> Bool {
        history.append(metrics)
        batch = 0
        sum = Sum()
        secondsInEpochs += secondsInEpoch
        secondsInEpoch = 0
        let isBest: Bool
        if let best, best >= firstComparable, let least = bestLoss ?? history[best].validationLoss,
            let loss = metrics.validationLoss
        {
            isBest = loss < least
        } else {
            isBest = true
        }
        if isBest { (best, bestLoss) = (history.count - 1, nil) }
        return isBest
    }

    /// Notes that a photo vanished: no other run gives the same model.
    package mutating func losePhoto() {
        hasLostPhotos = true
        isRepeatable = false
    }

    /// Restarts the epoch with other images: earlier losses no longer compare.
    package mutating func changeImages() {
        restartEpoch()
        firstComparable = history.count
        bestLoss = nil
        isRepeatable = false
    }

    /// Discards the batches of the epoch in progress.
    package mutating func restartEpoch() {
        batch = 0
        sum = Sum()
        secondsInEpoch = 0
    }

    /// How many epochs that compare have passed without a lesser validation loss.
    public var epochsSinceBest: Int { best.map { history.count - max($0 + 1, firstComparable) } ?? 0 }

    /// What is impossible about the values; nil if nothing is.
    package var problem: String? {
        guard learningRate.isFinite && learningRate >= 0 else { return "a learning rate of \(learningRate)" }
        let counts = [plannedEpochs, batch, passes, averagedSteps, sum.count, sum.correct, firstComparable]
        guard counts.allSatisfy({ (0...1 << 48).contains($0) }) else { return "a count that cannot be" }
        guard history.map(\.epoch) == Array(1..<(history.count + 1)) else {
            return "epochs that do not follow each other"
        }
        guard (seconds + secondsInEpochs + secondsInEpoch).isFinite else { return "a time that is no number" }
        guard bestLoss?.isFinite ?? true else { return "a validation loss that is no number" }
        guard best.map(history.indices.contains) ?? history.isEmpty else { return "a best epoch that is none" }
        return nil
    }
}
