public import Foundation
public import Imprint
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
    public let thresholds: [Double]
    /// The result of each readable image, in the order of the source.
    public let results: [Result]
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
        let rankings = labels.indices.map { Self.ranking(results, $0) }
        let thresholds = thresholds ?? rankings.map { $0.threshold ?? 0.5 }
        precondition(thresholds.count == labels.count, "\(labels.count) labels, but \(thresholds.count) thresholds")
        self.labels = labels
        self.thresholds = thresholds
        self.results = results
        self.skipped = skipped
        func quotient(_ count: Int, _ total: Int) -> Double? { total > 0 ? Double(count) / Double(total) : nil }
        var (hits, predictions, positives) = (0, 0, 0)
        var metrics: [Evaluation.LabelMetrics] = []
        for (label, ranking) in rankings.enumerated() {
            // The last step that reaches the threshold has the counts of all predictions that do.
            let step = ranking.steps.last { Double($0.threshold) >= thresholds[label] }
            let hitCount = step?.truePositives ?? 0
            let predictionCount = hitCount + (step?.falsePositives ?? 0)
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
        let defined = metrics.compactMap(\.f1)
        macroF1 = defined.isEmpty ? 0 : defined.reduce(0, +) / Double(defined.count)
    }

    /// The mean average precision (mAP): the mean of the average precisions of the labels that images have, or nil if no image has a label.
    ///
    /// The average precision of a label is the area under its precision–recall curve as a sum of steps, Σ (Rₙ − Rₙ₋₁) · Pₙ, with the precision Pₙ
    /// and the recall Rₙ at each distinct confidence, in descending order.
    public var meanAveragePrecision: Double? { Self.mean(perLabel.compactMap(\.averagePrecision)) }

    /// The 95 % confidence interval of `meanAveragePrecision` by the percentile bootstrap, or nil if no image has a label.
    ///
    /// It has the 2.5th and the 97.5th percentile, interpolated linearly, of 1,000 samples of as many images with replacement, from a fixed seed
    /// (Efron, "Bootstrap methods", 1979). It treats the images as independent.
    public func meanAveragePrecisionInterval() -> ClosedRange<Double>? {
        guard let meanAveragePrecision else { return nil }
        let orders = labels.indices.map { BootstrapOrder(results, label: $0) }
        let samples = GroupBootstrap.samples(groupCount: results.count) { weights in
            Self.mean(orders.compactMap { $0.averagePrecision(weights) })
        }
        return GroupBootstrap.interval(samples, meanAveragePrecision)
    }

    private static func mean(_ values: [Double]) -> Double? {
        values.isEmpty ? nil : values.reduce(0, +) / Double(values.count)
    }

    static func ranking(_ results: [Result], _ label: Int) -> Ranking {
        Ranking(results.map { ($0.confidences[label], $0.labels.contains(label)) })
    }
}

/// The images by descending confidence in one label, for bootstrap samples in which images have weights.
private struct BootstrapOrder {
    private let images: [(index: Int, isPositive: Bool, endsStep: Bool)]

    init(_ results: [MultiLabelEvaluation.Result], label: Int) {
        let order = results.indices.sorted { results[$0].confidences[label] > results[$1].confidences[label] }
        images = order.indices.map { position in
            let confidence = results[order[position]].confidences[label]
            let isLast =
                position + 1 == order.count || results[order[position + 1]].confidences[label] != confidence
            return (order[position], results[order[position]].labels.contains(label), isLast)
        }
    }

    func averagePrecision(_ weights: [Int]) -> Double? {
        var (hits, hitsBefore, total, sum) = (0, 0, 0, 0.0)
        for image in images {
            total += weights[image.index]
            if image.isPositive { hits += weights[image.index] }
            guard image.endsStep, hits > hitsBefore else { continue }
            sum += Double(hits - hitsBefore) * Double(hits) / Double(total)
            hitsBefore = hits
        }
        return hits > 0 ? sum / Double(hits) : nil
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
    /// The thresholds are those of the model's training record; a label without one has the threshold 0.5. The source may lack labels of the model,
    /// but must not have other labels. Unreadable images are skipped and listed.
    /// - Parameters:
    ///   - photos: The images: a folder (`ImageFolder`), a list (`LabelList`), or images in memory (`InMemorySource`).
    ///   - threads: The number of threads; the results do not depend on it.
    ///   - onProgress: Called from time to time with the number of finished images.
    /// - Throws: `ImprintError.labelMismatch` for a label that the model does not have, `ImageError` if more than half of the images, or all of a
    ///   label, cannot be read, `ImprintError.nonFiniteOutput` if an output of the model is not finite.
    public func evaluateMultiLabel(
        on photos: some TrainingSource, threads: Int = 1, onProgress: (Int) -> Void = { _ in }
    ) throws -> MultiLabelEvaluation {
        let (predictions, skipped) = try predictions(on: photos, threads: threads, onProgress: onProgress)
        let results = predictions.map {
            MultiLabelEvaluation.Result(url: $0.photo.url, labels: $0.photo.labels, confidences: $0.confidences)
        }
        let known = model.training?.thresholds
        return MultiLabelEvaluation(
            labels: labels, thresholds: labels.map { known?[$0] ?? 0.5 }, results: results, skipped: skipped)
    }
}
