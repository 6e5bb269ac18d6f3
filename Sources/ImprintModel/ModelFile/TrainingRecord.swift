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

    /// What every random number of the run was drawn from.
    public var seed: UInt64
    /// How often the training images were to be gone through; `history` tells how often they were.
    public var epochs: Int
    /// The images of one step.
    public var batchSize: Int
    /// The numbers of SGD.
    public var optimizer: SGD.Options
    /// The numbers of AdamW in the last phase, where it trained in place of SGD.
    public var adamW: AdamW.Options?
    /// The course of the learning rate.
    public var schedule: LearningRateSchedule
    /// How much of each target was spread over all labels.
    public var labelSmoothing: Float
    /// The augmentations, in words.
    public var augmentations: [String]
    /// The SHA-256 digest of the names and sizes of the data set's images, in hexadecimal; see `ImageFolder.digest`.
    public var dataDigest: String?
    /// The number of training images of each label.
    public var trainingImages: [String: Int]
    /// The number of validation images of each label.
    public var validationImages: [String: Int]
    /// The weight of each label in the loss, where they differ.
    public var labelWeights: [String: Float]?
    /// The decay of the exponential moving average that the parameters are; nil if they are those of the last step.
    public var averageDecay: Float?
    /// What of the base was trained; nil if training began from scratch, and in older files.
    public var trains: FineTuning.Trains?
    /// How its layers were, where more than the head was trained.
    public var fineTuning: FineTuning?
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

    /// Makes a record.
    public init(
        seed: UInt64, epochs: Int, batchSize: Int, optimizer: SGD.Options, adamW: AdamW.Options? = nil,
        schedule: LearningRateSchedule = LearningRateSchedule(),
        labelSmoothing: Float = 0,
        augmentations: [String] = [], dataDigest: String? = nil, trainingImages: [String: Int] = [:],
        validationImages: [String: Int] = [:], labelWeights: [String: Float]? = nil, averageDecay: Float? = nil,
        trains: FineTuning.Trains? = nil, fineTuning: FineTuning? = nil, history: [EpochMetrics] = [],
        keptEpoch: Int? = nil,
        precisionRecall: [String: [PrecisionRecallPoint]] = [:], thresholds: [String: Double]? = nil,
        calibration: Calibration? = nil
    ) {
        self.seed = seed
        self.epochs = epochs
        self.batchSize = batchSize
        self.optimizer = optimizer
        self.adamW = adamW
        self.schedule = schedule
        self.labelSmoothing = labelSmoothing
        self.augmentations = augmentations
        self.dataDigest = dataDigest
        self.trainingImages = trainingImages
        self.validationImages = validationImages
        self.labelWeights = labelWeights
        self.averageDecay = averageDecay
        self.trains = trains
        self.fineTuning = fineTuning
        self.history = history
        self.keptEpoch = keptEpoch
        self.precisionRecall = precisionRecall
        self.thresholds = thresholds
        self.calibration = calibration
    }
}

/// What one epoch came to.
public struct EpochMetrics: Codable, Hashable, Sendable {
    /// The epoch, from 1.
    public var epoch: Int
    /// The mean loss over the training images, as they were seen.
    public var loss: Float
    /// The share of the training images that were classified rightly, as they were seen.
    public var accuracy: Float
    /// The mean loss over the validation images; nil if there are none.
    public var validationLoss: Float?
    /// The share of the validation images that were classified rightly; nil if there are none.
    public var validationAccuracy: Float?
    /// The learning rate of the last step.
    public var learningRate: Float

    /// Makes the metrics of an epoch.
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

extension TrainingRecord {
    /// What was measured after the epoch that the parameters are of.
    public var kept: EpochMetrics? {
        keptEpoch.flatMap { epoch in history.first { $0.epoch == epoch } } ?? history.last
    }

    /// The accuracy after that epoch, on the validation images or, if there are none, on the training images.
    public var accuracy: Float? { kept.map { $0.validationAccuracy ?? $0.accuracy } }
}
