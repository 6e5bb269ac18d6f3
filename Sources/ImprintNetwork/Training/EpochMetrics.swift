/// The metrics of one round of training: an epoch of a classifier, or a phase of a detector.
public struct EpochMetrics: Codable, Hashable, Sendable {
    /// The number of the round, from 1.
    public var epoch: Int
    /// The mean training loss over the round, each step measured before its update.
    public var loss: Float
    /// The training accuracy over the round, 0…1.
    ///
    /// For a multi-label classifier, accuracies are the share of correct decisions about all labels of all photos, at a threshold of 0.5.
    public var accuracy: Float
    /// The mean loss on the validation set; nil without a validation set.
    public var validationLoss: Float?
    /// The accuracy on the validation set, 0…1; nil without a validation set.
    public var validationAccuracy: Float?
    /// The mean average precision of a detector on the validation set (mAP@.5:.95), 0…1; nil without boxes in the validation set.
    public var validationAveragePrecision: Float?
    /// The learning rate of the last step.
    public var learningRate: Float

    /// Creates the metrics of a round.
    public init(
        epoch: Int, loss: Float, accuracy: Float, validationLoss: Float? = nil, validationAccuracy: Float? = nil,
        validationAveragePrecision: Float? = nil, learningRate: Float
    ) {
        self.epoch = epoch
        self.loss = loss
        self.accuracy = accuracy
        self.validationLoss = validationLoss
        self.validationAccuracy = validationAccuracy
        self.validationAveragePrecision = validationAveragePrecision
        self.learningRate = learningRate
    }

    /// Returns whether the validation result is better than that of another round.
    ///
    /// The mean average precision decides if both rounds have different ones; otherwise, the loss decides.
    /// - Returns: nil if a round has no validation result.
    package func isBetter(than other: EpochMetrics) -> Bool? {
        if let own = validationAveragePrecision, let other = other.validationAveragePrecision, own != other {
            return own > other
        }
        guard let own = validationLoss, let other = other.validationLoss else { return nil }
        return own < other
    }

    /// Returns whether the validation accuracy is not below that of the initial parameters.
    /// - Parameter startAccuracy: The accuracy of the initial parameters; nil if they do not count.
    package func isAsAccurate(asStart startAccuracy: Float?) -> Bool {
        guard let startAccuracy, let validationAccuracy else { return true }
        return !(validationAccuracy < startAccuracy)
    }
}
