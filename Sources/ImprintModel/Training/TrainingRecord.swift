internal import ImprintCore
public import ImprintNetwork

/// The provenance of a model's parameters: the information needed to repeat the training and to assess its result.
///
/// It contains no dates or paths, so the same training gives a bitwise identical file.
public struct TrainingRecord: Codable, Hashable, Sendable {
    /// One point of a precision–recall curve.
    public struct PrecisionRecallPoint: Codable, Hashable, Sendable {
        /// The minimum confidence of a positive prediction, 0…1.
        public var threshold: Double
        /// The share of positive predictions that are correct, 0…1.
        public var precision: Double
        /// The share of images with the label that are predicted as positive, 0…1.
        public var recall: Double

        /// Creates a point.
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
    public var classWeights: [String: Float]?
    /// The trainable layers of the base model; nil if training started from scratch, and in older files.
    public var trainableLayers: FineTuning.TrainableLayers?
    /// The metrics of each epoch.
    public var history: [EpochMetrics]
    /// The epoch (from 1) whose parameters the model contains; in older files, nil means the last epoch.
    ///
    /// It is 0 if no epoch of fine-tuning was as accurate as the fitted head that it started from.
    public var keptEpoch: Int?
    /// The validation accuracy of the fitted head before the first epoch of fine-tuning, 0…1; nil if it was not measured.
    public var startAccuracy: Float?
    /// The precision–recall curve of each label in the validation set, by increasing thresholds, measured with the finished model.
    public var precisionRecall: [String: [PrecisionRecallPoint]]
    /// The confidence threshold of each of these labels, 0…1; nil if it was not measured.
    ///
    /// It is the threshold with the highest F1 score on the validation set. A multi-label model has a threshold for every label: 0.5 if no
    /// validation photo has the label.
    public var thresholds: [String: Double]?
    /// The calibration of the confidences; nil if they are not calibrated.
    public var calibration: Calibration?
    /// The digest of the model that this record describes; nil if that is the model with the record.
    ///
    /// Merging and personalizing change the parameters of a model after its training, so its metrics are not those of the new model.
    public var trainedModel: String?

    /// The hyperparameters of a trainer.
    public enum Hyperparameters: Codable, Hashable, Sendable {
        case classifier(ClassifierHyperparameters)
        case detector(DetectorHyperparameters)
    }

    /// Creates a record.
    public init(
        _ hyperparameters: Hyperparameters, foundLearningRate: Float? = nil, dataDigest: String? = nil,
        trainingImages: [String: Int] = [:], validationImages: [String: Int] = [:],
        classWeights: [String: Float]? = nil, trainableLayers: FineTuning.TrainableLayers? = nil,
        history: [EpochMetrics] = [], keptEpoch: Int? = nil, startAccuracy: Float? = nil,
        precisionRecall: [String: [PrecisionRecallPoint]] = [:], thresholds: [String: Double]? = nil,
        calibration: Calibration? = nil, trainedModel: String? = nil
    ) {
        self.hyperparameters = hyperparameters
        self.foundLearningRate = foundLearningRate
        self.dataDigest = dataDigest
        self.trainingImages = trainingImages
        self.validationImages = validationImages
        self.classWeights = classWeights
        self.trainableLayers = trainableLayers
        self.history = history
        self.keptEpoch = keptEpoch
        self.startAccuracy = startAccuracy
        self.precisionRecall = precisionRecall
        self.thresholds = thresholds
        self.calibration = calibration
        self.trainedModel = trainedModel
    }
}

extension TrainingRecord {
    /// The largest number of photos of a label, so that sums over all labels of a file do not overflow.
    private static let maximumCount = Int(Int32.max)

    /// A description of the first value that is out of range; nil if all are valid.
    ///
    /// It checks the numbers of photos, the accuracies, the thresholds, the precision–recall curves and the temperature.
    var problem: String? {
        for (name, counts) in [("trainingImages", trainingImages), ("validationImages", validationImages)] {
            if let count = counts.values.first(where: { !(0...Self.maximumCount).contains($0) }) {
                return "\(name) has the count \(count), expected 0 to \(Self.maximumCount)"
            }
        }
        let fractions = history.flatMap {
            [$0.accuracy, $0.validationAccuracy, $0.validationAveragePrecision].compactMap { $0 }
        }
        // A diverged training run can have values that are not finite.
        if let value = (fractions + [startAccuracy].compactMap { $0 }).first(where: {
            $0.isFinite && !(0...1).contains($0)
        }) {
            return "found the accuracy \(messageText(value)), expected 0 to 1"
        }
        if let (label, threshold) = thresholds?.first(where: { !(0...1).contains($0.value) }) {
            return "the threshold of \(label.debugDescription) is \(messageText(threshold)), expected 0 to 1"
        }
        let points = precisionRecall.values.joined()
        if let point = points.first(where: { point in
            [point.threshold, point.precision, point.recall].contains { !(0...1).contains($0) }
        }) {
            let values = [point.threshold, point.precision, point.recall].map { messageText($0) }
            return "a precision–recall curve has the point (\(values.joined(separator: ", "))), "
                + "expected values from 0 to 1"
        }
        if let temperature = calibration?.temperature, !(temperature > 0 && temperature.isFinite) {
            return "the temperature of the calibration is \(messageText(temperature)), expected more than 0 and finite"
        }
        return nil
    }

    /// The state of the run, by which a later state of the same run recognizes its files: the number of epochs and a digest.
    ///
    /// The digest is the SHA-256 of the metrics of the epochs, and of the hyperparameters without those that may change when a run is resumed,
    /// such as the number of epochs. It does not contain the data digest, because the photos may change, too; runs with other photos have
    /// other metrics.
    package var runState: String { runState(afterEpochs: history.count) }

    private func runState(afterEpochs count: Int) -> String {
        // Encoding these values cannot fail.
        let settings = (try? json(hyperparameters.withoutResumable)) ?? ""
        let epochs = (try? json(Array(history.prefix(count)))) ?? ""
        return "\(count) \(SHA256.hexadecimal(of: Array("\(settings)\n\(epochs)".utf8)))"
    }

    /// Whether this is the record of the run that had the state `earlier` (`runState`), after the same or more epochs.
    package func continues(runState earlier: String) -> Bool {
        guard let count = earlier.split(separator: " ").first.flatMap({ Int($0) }), 0 < count, count <= history.count
        else { return false }
        return runState(afterEpochs: count) == earlier
    }

    /// The unit of progress in messages.
    package var unit: String {
        switch hyperparameters {
        case .classifier: progressUnit(isDetector: false)
        case .detector: progressUnit(isDetector: true)
        }
    }

    /// Whether the model is the frozen base model with the fitted head, because fine-tuning was less accurate.
    public var keepsInitialParameters: Bool { keptEpoch == 0 }

    /// The metrics of the epoch whose parameters the model has; nil if the parameters are from before the first epoch.
    public var bestEpochMetrics: EpochMetrics? {
        keepsInitialParameters
            ? nil : keptEpoch.flatMap { epoch in history.first { $0.epoch == epoch } } ?? history.last
    }

    /// The accuracy of the model's parameters, on the validation set if there is one, otherwise on the training set.
    public var accuracy: Float? {
        keepsInitialParameters ? startAccuracy : bestEpochMetrics.map { $0.validationAccuracy ?? $0.accuracy }
    }
}
