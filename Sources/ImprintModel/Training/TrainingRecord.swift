public import ImprintNetwork

/// How the numbers in a model file came about: what is needed to repeat the training and to judge its result.
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

    /// The hyperparameters of the run.
    public var hyperparameters: Hyperparameters
    /// The SHA-256 digest of the names and sizes of the data set's images, in hexadecimal; see `ImageFolder.digest`.
    public var dataDigest: String?
    /// The peak learning rate of a classifier, if a range test found it.
    public var foundLearningRate: Float?
    /// The number of training photos of each label.
    public var trainingImages: [String: Int]
    /// The number of validation photos of each label.
    public var validationImages: [String: Int]
    /// The weight of each label in the loss, if they differ.
    public var labelWeights: [String: Float]?
    /// The trainable layers of the base model; nil if training started from scratch, and in older files.
    public var trains: FineTuning.Trains?
    /// What was measured after each epoch.
    public var history: [EpochMetrics]
    /// The epoch (from 1) that the parameters are of; `nil` in older files, if it is the last one.
    public var keptEpoch: Int?
    /// The precision–recall curve of each label that some validation image bears, by rising thresholds, as measured on these
    /// images with the finished model.
    public var precisionRecall: [String: [PrecisionRecallPoint]]
    /// The least confidence from which on each of these labels is best believed, 0…1; nil if it was not measured.
    ///
    /// It is that of the highest F1 on the validation images.
    public var thresholds: [String: Double]?
    /// How the confidences were made honest; nil if they were left as they are.
    public var calibration: Calibration?

    /// The hyperparameters of a trainer.
    public enum Hyperparameters: Codable, Hashable, Sendable {
        case classifier(ClassifierHyperparameters)
        case detector(DetectorHyperparameters)
    }

    /// Makes a record.
    public init(
        _ hyperparameters: Hyperparameters, foundLearningRate: Float? = nil, dataDigest: String? = nil,
        trainingImages: [String: Int] = [:],
        validationImages: [String: Int] = [:], labelWeights: [String: Float]? = nil, trains: FineTuning.Trains? = nil,
        history: [EpochMetrics] = [], keptEpoch: Int? = nil, precisionRecall: [String: [PrecisionRecallPoint]] = [:],
        thresholds: [String: Double]? = nil, calibration: Calibration? = nil
    ) {
        self.hyperparameters = hyperparameters
        self.foundLearningRate = foundLearningRate
        self.dataDigest = dataDigest
        self.trainingImages = trainingImages
        self.validationImages = validationImages
        self.labelWeights = labelWeights
        self.trains = trains
        self.history = history
        self.keptEpoch = keptEpoch
        self.precisionRecall = precisionRecall
        self.thresholds = thresholds
        self.calibration = calibration
    }
}

extension TrainingRecord {
    /// What was measured after the epoch that the parameters are of.
    public var kept: EpochMetrics? {
        keptEpoch.flatMap { epoch in history.first { $0.epoch == epoch } } ?? history.last
    }

    /// The accuracy after that epoch, on the validation images or, if there are none, on the training images.
    public var accuracy: Float? { kept.map { $0.validationAccuracy ?? $0.accuracy } }
}
