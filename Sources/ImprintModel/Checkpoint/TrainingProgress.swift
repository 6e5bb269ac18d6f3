/// How far a training run has come: with the numbers of `Checkpoint`, all that goes from one step to the next.
package struct TrainingProgress: Codable, Hashable, Sendable {
    /// Losses and right answers, added up over batches of different sizes.
    package struct Sum: Codable, Hashable, Sendable {
        package var loss: Double = 0
        package var correct = 0
        package var count = 0

        package init() {}

        /// Adds a batch of `count` images with a mean loss of `loss`.
        package mutating func add(loss: Float, correct: Int, count: Int) {
            self.loss += Double(loss) * Double(count)
            self.correct += correct
            self.count += count
        }

        package var meanLoss: Float { count > 0 ? Float(loss / Double(count)) : 0 }
        package var accuracy: Float { count > 0 ? Float(correct) / Float(count) : 0 }
    }

    /// The highest learning rate: that of the settings, or the one that was found.
    package var learningRate: Float
    /// How many epochs there are to be.
    package var plannedEpochs: Int
    /// How many batches of the epoch after `history` are done, and what they came to.
    package var batch = 0
    package var sum = Sum()
    /// How often the training plan has run, which its random numbers follow from.
    package var passes = 0
    /// How many steps have gone into the average of the parameters.
    package var averagedSteps = 0
    /// What was measured after each epoch.
    package var history: [EpochMetrics] = []
    /// The place in `history` of the epoch that is kept: that with the least validation loss of those that compare, or the last one
    /// where nothing is validated on.
    package private(set) var best: Int?
    /// The validation loss of the best epoch on the photos that are left, measured again after validation photos vanished; nil if the loss in
    /// `history` still compares.
    package var bestLoss: Float?
    /// Whether photos vanished during the run, after which a resumed run measures the best epoch again; nil in older checkpoints.
    package var hasLostPhotos: Bool?
    /// The first epoch (from 0) whose validation loss can be compared with the latest: the first after images were added.
    package var firstComparable = 0
    /// How long the run has taken; how much of it went into whole epochs, and into the one after these.
    package var seconds: Double = 0
    package var secondsInEpochs: Double = 0
    package var secondsInEpoch: Double = 0
    /// Whether the settings alone lead here: the run did not go on with other images or another number of epochs.
    package var isRepeatable = true
    /// Whether the run has ended by itself, so that nothing is lost where another takes its place.
    package var isFinished = false

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
    package var epochsSinceBest: Int { best.map { history.count - max($0 + 1, firstComparable) } ?? 0 }

    /// What is impossible about the values; nil if nothing is.
    var problem: String? {
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
