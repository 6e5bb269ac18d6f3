/// The metrics of one epoch of training.
public struct EpochMetrics: Codable, Hashable, Sendable {
    /// The number of the epoch, from 1.
    public var epoch: Int
    /// The mean training loss over the epoch, each step measured before its update.
    public var loss: Float
    /// The training accuracy over the epoch, 0…1.
    public var accuracy: Float
    /// The mean loss on the validation set; nil without a validation set.
    public var validationLoss: Float?
    /// The accuracy on the validation set, 0…1; nil without a validation set.
    public var validationAccuracy: Float?
    /// The learning rate of the last step.
    public var learningRate: Float

    /// Creates the metrics of an epoch.
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
