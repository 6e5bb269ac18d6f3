public import Foundation
public import Imprint
internal import ImprintCore
public import ImprintImages
public import ImprintModel

/// The evaluation of a multi-label classifier on labelled images.
///
/// Metrics are 0…1. Undefined values, such as the recall of a label without images, are nil. Each metric equals that of scikit-learn's function of
/// the same name on the indicator matrix of the labels.
public struct MultiLabelEvaluation: Sendable {
    /// The prediction for one image.
    public struct Result: Hashable, Sendable {
        /// The file.
        public let url: URL
        /// The indices of the true labels in `labels`.
        public let labels: [Int]
        /// The confidence of every label, 0…1, in the order of `labels` of the evaluation.
        public let confidences: [Float]

        /// Creates a result.
        public init(url: URL, labels: [Int], confidences: [Float]) {
            self.url = url
            self.labels = labels
            self.confidences = confidences
        }
    }

    /// The labels, in the order of the classifier's outputs.
    public let labels: [String]
    /// The minimum confidence of each label for an image to count as having it, in the order of `labels`.
    ///
    /// It is empty for the pooled results of several models, because each model has different thresholds.
    public let thresholds: [Double]
    /// The result of each readable image, in the order of the source.
    public let results: [Result]
    /// The indices of the labels that each result is predicted to have, because their confidences reach the thresholds, in the order of `results`.
    public let predicted: [[Int]]
    /// The images that could not be read.
    public let skipped: [SkippedImage]
    /// The metrics of each label at its threshold, in the order of `labels`.
    public let perLabel: [Evaluation.LabelMetrics]
    /// The share of the decisions, one for each image and label, that are correct; 0 if there are no images.
    public let accuracy: Double
    /// The F1 of all decisions together; 0 if no image has a label and none is predicted.
    public let microF1: Double
    /// The mean F1 of the labels that an image has or is predicted to have; 0 if there are no such labels.
    public let macroF1: Double

    /// Creates an evaluation.
    /// - Parameters:
    ///   - labels: The labels, in the order of the classifier's outputs.
    ///   - thresholds: The threshold of each label, or nil for those with the highest F1 on these results, and 0.5 for a label without images.
    ///   - results: The result of each readable image.
    ///   - skipped: The images that could not be read.
    public init(labels: [String], thresholds: [Double]? = nil, results: [Result], skipped: [SkippedImage]) {
        let thresholds = thresholds ?? labels.indices.map { Self.ranking(results, $0).threshold ?? 0.5 }
        precondition(thresholds.count == labels.count, "\(labels.count) labels, but \(thresholds.count) thresholds")
        let predicted = results.map { result in
            labels.indices.filter { Double(result.confidences[$0]) >= thresholds[$0] }
        }
        self.init(labels, thresholds, results, predicted, skipped)
    }

    /// Pools the results of several models with the same labels; the predicted labels keep the thresholds of each model.
    init(pooling evaluations: [MultiLabelEvaluation], labels: [String], skipped: [SkippedImage]) {
        self.init(labels, [], evaluations.flatMap(\.results), evaluations.flatMap(\.predicted), skipped)
    }

    private init(
        _ labels: [String], _ thresholds: [Double], _ results: [Result], _ predicted: [[Int]],
        _ skipped: [SkippedImage]
    ) {
        self.labels = labels
        self.thresholds = thresholds
        self.results = results
        self.predicted = predicted
        self.skipped = skipped
        func quotient(_ count: Int, _ total: Int) -> Double? { total > 0 ? Double(count) / Double(total) : nil }
        var hitCounts = labels.map { _ in 0 }
        var predictionCounts = hitCounts
        for (result, labels) in zip(results, predicted) {
            for label in labels {
                predictionCounts[label] += 1
                if result.labels.contains(label) { hitCounts[label] += 1 }
            }
        }
        var (hits, predictions, positives) = (0, 0, 0)
        var metrics: [Evaluation.LabelMetrics] = []
        for (label, (hitCount, predictionCount)) in zip(hitCounts, predictionCounts).enumerated() {
            let ranking = Self.ranking(results, label)
            hits += hitCount
            predictions += predictionCount
            positives += ranking.positives
            metrics.append(
                Evaluation.LabelMetrics(
                    label: labels[label], precision: quotient(hitCount, predictionCount),
                    recall: quotient(hitCount, ranking.positives),
                    f1: quotient(2 * hitCount, predictionCount + ranking.positives), auc: ranking.auc,
                    averagePrecision: ranking.averagePrecision, count: ranking.positives))
        }
        perLabel = metrics
        let wrong = predictions - hits + positives - hits
        accuracy = quotient(results.count * labels.count - wrong, results.count * labels.count) ?? 0
        microF1 = quotient(2 * hits, predictions + positives) ?? 0
        macroF1 = metrics.compactMap(\.f1).mean ?? 0
    }

    /// The mean average precision (mAP): the mean of the average precisions of the labels that images have, or nil if no image has a label.
    ///
    /// The average precision of a label is the area under its precision–recall curve as a sum of steps, Σ (Rₙ − Rₙ₋₁) · Pₙ. Pₙ and Rₙ are
    /// the precision and the recall at each distinct confidence, in descending order.
    public var meanAveragePrecision: Double? { perLabel.compactMap(\.averagePrecision).mean }

    /// The 95 % confidence interval of `meanAveragePrecision` by the percentile bootstrap.
    ///
    /// It is nil if no image has a label, and for more than 4,000,000 decisions (images times labels), because each resample takes all of them.
    /// Its ends are the 2.5th and the 97.5th percentile, interpolated linearly, over 1,000 resamples of the images with replacement, with a
    /// fixed seed (Efron, "Bootstrap methods", 1979). It treats the images as independent.
    public func meanAveragePrecisionInterval() -> ClosedRange<Double>? {
        meanAveragePrecisionInterval(maximumDecisions: 4_000_000)
    }

    /// Returns the interval, or nil for more than the given number of decisions.
    package func meanAveragePrecisionInterval(maximumDecisions: Int) -> ClosedRange<Double>? {
        guard results.count * labels.count <= maximumDecisions, let meanAveragePrecision else { return nil }
        let predictions = GroupedMultiLabelPredictions(self, groups: Array(results.indices))
        let samples = GroupBootstrap.samples(groupCount: results.count) { weights in
            predictions.metrics(weights: weights)?.meanAveragePrecision
        }
        return GroupBootstrap.interval(samples, meanAveragePrecision)
    }

    static func ranking(_ results: [Result], _ label: Int) -> Ranking {
        Ranking(results.map { ($0.confidences[label], $0.labels.contains(label)) })
    }
}

extension MultiLabelEvaluation {
    /// The precision–recall curve of every label that has images, as a training record stores it.
    public var precisionRecall: [String: [TrainingRecord.PrecisionRecallPoint]] {
        Dictionary(
            uniqueKeysWithValues: labels.enumerated().compactMap { index, label in
                Self.ranking(results, index).storedCurve.map { (label, $0) }
            })
    }

    /// The threshold of every label, by its name.
    public var thresholdsByLabel: [String: Double] { Dictionary(uniqueKeysWithValues: zip(labels, thresholds)) }
}

extension ImageClassifier {
    /// Classifies every image of a source with a multi-label model, and compares the predictions with the labels.
    ///
    /// The thresholds come from the model's training record; a label without one has the threshold 0.5. The source does not need to contain
    /// all labels of the model, but must not contain others. The evaluation skips unreadable images, and lists them.
    /// - Parameters:
    ///   - photos: The images: a folder (`ImageFolder`), a list (`LabelList`), or images in memory (`InMemorySource`).
    ///   - threads: The number of threads, at least 1; the results do not depend on it.
    ///   - onProgress: Called from time to time with the number of finished images.
    /// - Throws: `ImageError.invalidSource` if the labels or the photos of the source are inconsistent, `ImprintError.labelMismatch` for a label
    ///   that the model does not have, `ImprintError.wrongKindOfModel` for a model that predicts one label per photo, `ImageError` if more than
    ///   half of the images, or all of a label, cannot be read, `ImprintError.nonFiniteOutput` if an output of the model is not finite.
    public func evaluateMultiLabel(
        on photos: some TrainingSource, threads: Int = 1, onProgress: (Int) -> Void = { _ in }
    ) throws -> MultiLabelEvaluation {
        try evaluateMultiLabel(on: photos, threads: threads, onProgress: onProgress, checkCancellation: {})
    }

    /// Evaluates the multi-label model on a thread of its own, as the function without `async`.
    ///
    /// If the task is cancelled, the evaluation ends after the current images, and throws `CancellationError`.
    /// - Parameters:
    ///   - photos: The images: a folder (`ImageFolder`), a list (`LabelList`), or images in memory (`InMemorySource`).
    ///   - threads: The number of threads, at least 1; the results do not depend on it.
    ///   - onProgress: Called from time to time with the number of finished images, on the thread of the evaluation.
    /// - Throws: The errors of the function without `async`, and `CancellationError`.
    public func evaluateMultiLabel(
        on photos: some TrainingSource, threads: Int = 1, onProgress: @escaping @Sendable (Int) -> Void = { _ in }
    ) async throws -> MultiLabelEvaluation {
        try await onCancellableThread { [self] checkCancellation in
            try evaluateMultiLabel(
                on: photos, threads: threads, onProgress: onProgress, checkCancellation: checkCancellation)
        }
    }

    /// Evaluates the model, as the public function.
    /// - Parameter checkCancellation: Called before each image, from any thread; throws if the evaluation should end.
    func evaluateMultiLabel(
        on photos: some TrainingSource, threads: Int, onProgress: (Int) -> Void,
        checkCancellation: @Sendable () throws -> Void
    ) throws -> MultiLabelEvaluation {
        try photos.checkLabelsAndIdentifiers()
        if confidencesSumToOne {
            throw ImprintError.wrongKindOfModel(
                network: model.network.name, found: "a model that predicts one label per photo",
                expected: "a multi-label model")
        }
        let (predictions, skipped) = try predictions(
            on: photos, threads: threads, onProgress: onProgress, checkCancellation: checkCancellation)
        let results = predictions.map {
            MultiLabelEvaluation.Result(url: $0.photo.url, labels: $0.photo.labels, confidences: $0.confidences)
        }
        let known = model.training?.thresholds
        return MultiLabelEvaluation(
            labels: labels, thresholds: labels.map { known?[$0] ?? 0.5 }, results: results, skipped: skipped)
    }
}
