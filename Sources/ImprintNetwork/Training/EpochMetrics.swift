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
    /// The learning rate of the last step.
    public var learningRate: Float

    /// Creates the metrics of a round.
    public init(
        epoch: Int, loss: Float, accuracy: Float, validationLoss: Float? = nil, validationAccuracy: Float? = nil,
        learningRate: Float
    ) {
        self.epoch = epoch
        self.loss = loss
        self.accuracy = accuracy
        self.validationLoss = validationLoss
        self.validationAccuracy = validationAccuracy
        self.learningRate = learningRate
    }
}
