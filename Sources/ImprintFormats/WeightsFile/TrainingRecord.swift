public import ImprintNetwork

/// How the numbers in a weights file came about: what is needed to repeat the training and to judge its result.
///
/// It holds no date and no path, so the same training gives the same file, byte for byte.
public struct TrainingRecord: Codable, Hashable, Sendable {
    /// One point of a precision–recall curve.
    public struct PrecisionRecallPoint: Codable, Hashable, Sendable {
        /// The least confidence that counts as a hit, 0…1.
        public var threshold: Double
        /// The share of right ones among the hits, 0…1.
        public var precision: Double
        /// The share of hits among the right ones, 0…1.
        public var recall: Double

        /// Makes a point.
        public init(threshold: Double, precision: Double, recall: Double) {
            self.threshold = threshold
            self.precision = precision
            self.recall = recall
        }
    }

    /// What every random number of the run was drawn from.
    public var seed: UInt64
    /// How often the training images were gone through.
    public var epochs: Int
    /// The images of one step.
    public var batchSize: Int
    /// The numbers of the optimiser.
    public var optimizer: SGD.Options
    /// The course of the learning rate.
    public var schedule: Schedule
    /// The augmentations, in words.
    public var augmentations: [String]
    /// The SHA-256 digest of the data set, in hexadecimal.
    public var dataDigest: String?
    /// The number of training images of each label.
    public var trainingImages: [String: Int]
    /// The number of validation images of each label.
    public var validationImages: [String: Int]
    /// What was measured at the end, such as "validationAccuracy".
    public var metrics: [String: Double]
    /// The precision–recall curve of each label, on the validation images.
    public var precisionRecall: [String: [PrecisionRecallPoint]]

    /// Makes a record.
    public init(
        seed: UInt64, epochs: Int, batchSize: Int, optimizer: SGD.Options, schedule: Schedule = Schedule(),
        augmentations: [String] = [], dataDigest: String? = nil, trainingImages: [String: Int] = [:],
        validationImages: [String: Int] = [:], metrics: [String: Double] = [:],
        precisionRecall: [String: [PrecisionRecallPoint]] = [:]
    ) {
        self.seed = seed
        self.epochs = epochs
        self.batchSize = batchSize
        self.optimizer = optimizer
        self.schedule = schedule
        self.augmentations = augmentations
        self.dataDigest = dataDigest
        self.trainingImages = trainingImages
        self.validationImages = validationImages
        self.metrics = metrics
        self.precisionRecall = precisionRecall
    }
}
