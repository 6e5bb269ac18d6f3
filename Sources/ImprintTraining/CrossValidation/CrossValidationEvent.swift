public import ImprintImages

/// An event of a cross-validation, in chronological order.
public enum CrossValidationEvent: Sendable, RunEvent {
    /// Photos are compared to find near-duplicates and bursts; `done` of them are finished.
    case comparing(done: Int, of: Int)
    /// The photos are split into folds.
    case started(CrossValidationStart)
    /// An event of the training of a fold.
    case training(fold: Int, seed: UInt64, TrainingEvent)
    /// The model of a fold is evaluated; `done` of the photos are finished.
    case evaluating(fold: Int, seed: UInt64, done: Int, of: Int)
    /// A fold is finished, or was read from the folder of finished folds.
    case fold(CrossValidationFold)
    /// The run has ended; this is the last event.
    case finished(CrossValidationResult)

    var isProgress: Bool {
        switch self {
        case .comparing, .evaluating: true
        case .training(_, _, let event): event.isProgress
        case .started, .fold, .finished: false
        }
    }
}

/// The properties of a cross-validation at its start.
public struct CrossValidationStart: Sendable {
    /// The labels, in the order of the photos' folder or list.
    public let labels: [String]
    /// The number of folds.
    public let folds: Int
    /// The seed of each repeat.
    public let seeds: [UInt64]
    /// The number of readable photos.
    public let images: Int
    /// The number of groups that stay in one fold; a photo without similar photos is a separate group.
    public let groups: Int
    /// The photos that could not be read.
    public let skipped: [SkippedImage]
}

/// The evaluation of one fold by a model that was trained on the other folds.
public struct CrossValidationFold: Sendable {
    /// The number of the fold, from 1.
    public let number: Int
    /// The seed of the repeat.
    public let seed: UInt64
    /// The evaluation on the photos of the fold.
    ///
    /// Its `accuracyInterval` (Wilson) treats the photos as independent, so it is too narrow if the fold has large groups.
    public let evaluation: Evaluation
    /// The number of photos of the other folds, including those that training used for validation.
    public let trainingImages: Int
    /// The training time in seconds.
    public let seconds: Double
    /// Whether the fold was read from the folder of finished folds.
    public let isKept: Bool
}

/// The result of a cross-validation.
public struct CrossValidationResult: Sendable {
    /// A metric with its 95 % confidence interval: a bootstrap over groups of photos, with 1,000 resamples.
    public struct Estimate: Sendable, Hashable {
        /// The value for the pooled predictions of all folds, as the mean over the repeats.
        public let value: Double
        /// The 2.5th and the 97.5th percentile over the resamples.
        public let interval: ClosedRange<Double>
    }

    /// The metrics of the pooled predictions.
    public struct Metrics: Sendable, Hashable {
        /// The fraction of correctly classified photos.
        public let accuracy: Estimate
        /// The mean of −log of the confidence of the true label.
        public let logLoss: Estimate
        /// The expected calibration error (ECE) over 15 bins.
        public let calibrationError: Estimate
        /// The area under the ROC curve, or nil unless there are two labels with photos.
        public let auc: Estimate?
        /// The standard deviation of the accuracy over all folds, or nil for one fold.
        public let foldDeviation: Double?
        /// The standard deviation over the repeats of their accuracy, or nil for one repeat.
        public let seedDeviation: Double?
    }

    /// The finished folds, by repeat and number.
    public let folds: [CrossValidationFold]
    /// The predictions of all finished folds, pooled; with several seeds, each photo occurs once for each of them.
    public let evaluation: Evaluation
    /// The metrics of the pooled predictions, or nil if no fold is finished.
    public let metrics: Metrics?
    /// The number of groups of photos.
    public let groups: Int
    /// Whether all folds are finished, so the run was not stopped.
    public let isComplete: Bool
}
