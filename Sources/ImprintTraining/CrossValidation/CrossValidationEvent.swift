public import ImprintCore
public import ImprintImages

/// An event of a cross-validation, in chronological order.
public enum CrossValidationEvent: Sendable, RunEvent {
    /// The run has compared `done` photos to find near-duplicates and bursts.
    case comparing(done: Int, of: Int)
    /// The run has split the photos into folds.
    case started(CrossValidationStart)
    /// An event of the training of a fold.
    case training(fold: Int, seed: UInt64, TrainingEvent)
    /// The run has evaluated the model of a fold on `done` photos.
    case evaluating(fold: Int, seed: UInt64, done: Int, of: Int)
    /// The model of a fold in the folder of finished folds cannot be read, for example because it is cut off, so the run trains the fold again.
    ///
    /// `reason` is a sentence that names the file.
    case damagedFold(fold: Int, seed: UInt64, reason: String)
    /// A fold is finished, or was read from the folder of finished folds.
    case fold(CrossValidationFold)
    /// A finished fold could not be written to the folder of finished folds. The run continues, and a later run trains the fold again.
    case foldNotSaved(fold: Int, seed: UInt64, FileError)
    /// The run has ended; this is the last event. If a later fold failed, the sequence then throws its error.
    case finished(CrossValidationResult)

    var isProgress: Bool {
        switch self {
        case .comparing, .evaluating: true
        case .training(_, _, let event): event.isProgress
        case .started, .damagedFold, .fold, .foldNotSaved, .finished: false
        }
    }
}

/// The properties of a cross-validation at its start.
public struct CrossValidationStart: Sendable {
    /// The labels, in the order of the photos' folder or list.
    public let labels: [String]
    /// The number of folds.
    public let foldCount: Int
    /// The seed of each repeat.
    public let seeds: [UInt64]
    /// The number of readable photos.
    public let imageCount: Int
    /// The number of groups that each stay in one fold; a photo without similar photos forms a group of its own.
    public let groupCount: Int
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
    package let result: ModelEvaluation
    /// The number of photos of the other folds, including those that training used for validation.
    public let trainingImages: Int
    /// The training time in seconds.
    public let seconds: Double
    /// Whether the result was read from the folder of finished folds instead of being computed in this run.
    public let wasRestored: Bool

    /// The evaluation on the photos of the fold, or nil for a multi-label model or a detector evaluated on boxes.
    ///
    /// Its `accuracyInterval` (Wilson) treats the photos as independent, so it is too narrow if the fold has large groups.
    public var evaluation: Evaluation? { result.singleLabel }
    /// The evaluation of a multi-label model on the photos of the fold, at the thresholds of this model, or nil for other models.
    public var multiLabelEvaluation: MultiLabelEvaluation? { result.multiLabel }
    /// The evaluation of a detector on the annotated photos of the fold, or nil for other models.
    public var detectionEvaluation: DetectionEvaluation? { result.detection }
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

    /// The metrics of the pooled predictions of models with one label per photo.
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
        public let foldStandardDeviation: Double?
        /// The standard deviation of the accuracy over the repeats, or nil for one repeat.
        public let seedStandardDeviation: Double?
    }

    /// The metrics of the pooled predictions of multi-label models.
    public struct MultiLabelMetrics: Sendable, Hashable {
        /// The mean average precision (mAP) over the confidences of all folds, or nil if no photo has a label.
        public let meanAveragePrecision: Estimate?
        /// The F1 over all decisions, which use the thresholds of the fold's model.
        public let microF1: Estimate
        /// The mean F1 of the labels that a photo has or is predicted to have.
        public let macroF1: Estimate
        /// The standard deviation of the mAP over all folds, or nil for one fold.
        public let foldStandardDeviation: Double?
        /// The standard deviation of the mAP over the repeats, or nil for one repeat.
        public let seedStandardDeviation: Double?
    }

    /// The metrics of the pooled detections of detectors on annotated photos.
    public struct DetectorMetrics: Sendable, Hashable {
        /// The mean average precision at IoU .5 over the detections of all folds, or nil without objects.
        public let meanAveragePrecision50: Estimate?
        /// The mean of the mean average precisions at IoU .50, .55 … .95, or nil without objects.
        public let meanAveragePrecision: Double?
        /// The share of the detections that are correct, at the thresholds of each fold's model; nil without detections.
        public let precision: Estimate?
        /// The share of the objects that were found, at the thresholds of each fold's model; nil without objects.
        public let recall: Estimate?
        /// The standard deviation of the mAP@.5 over all folds, or nil for one fold.
        public let foldStandardDeviation: Double?
        /// The standard deviation of the mAP@.5 over the repeats, or nil for one repeat.
        public let seedStandardDeviation: Double?
    }

    /// The finished folds, by repeat and number.
    public let folds: [CrossValidationFold]
    /// The predictions of all finished folds, pooled, with their metrics.
    package let pooled: PooledEvaluation
    /// The number of groups of photos in the finished folds.
    public let groups: Int
    /// Whether all folds are finished; false if the run was stopped, or if a fold failed.
    public let isComplete: Bool

    /// The predictions of all finished folds, pooled, or nil for multi-label models and for detectors evaluated on boxes.
    ///
    /// With several seeds, each photo occurs once per seed.
    public var evaluation: Evaluation? { pooled.evaluation.singleLabel }
    /// The predictions of multi-label models for all finished folds, pooled, or nil for other models.
    ///
    /// The predicted labels use the thresholds of each fold's model. With several seeds, each photo occurs once per seed.
    public var multiLabelEvaluation: MultiLabelEvaluation? { pooled.evaluation.multiLabel }
    /// The detections of detectors in annotated photos for all finished folds, pooled, or nil for other models.
    ///
    /// The operating point contains the sums of the counts at the thresholds of each fold's model. With several seeds, each photo occurs
    /// once per seed.
    public var detectionEvaluation: DetectionEvaluation? { pooled.evaluation.detection }
    /// The metrics of the pooled detections, or nil for other models and if no fold is finished.
    public var detectorMetrics: DetectorMetrics? {
        if case .detection(_, let metrics) = pooled { metrics } else { nil }
    }
    /// The metrics of the pooled predictions, or nil for multi-label models, for detectors evaluated on boxes, and if no fold is finished.
    public var metrics: Metrics? {
        if case .singleLabel(_, let metrics) = pooled { metrics } else { nil }
    }
    /// The metrics of the pooled predictions of multi-label models, or nil for other models and if no fold is finished.
    public var multiLabelMetrics: MultiLabelMetrics? {
        if case .multiLabel(_, let metrics) = pooled { metrics } else { nil }
    }
}
