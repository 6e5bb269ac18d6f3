package import Foundation
package import ImprintImages

/// The evaluation of photos, by the kind of the models that predicted them.
package enum FoldEvaluation: Sendable {
    /// The evaluation of models with one label per photo.
    case singleLabel(Evaluation)
    /// The evaluation of multi-label models.
    case multiLabel(MultiLabelEvaluation)
    /// The evaluation of detectors on annotated photos.
    case detection(DetectionEvaluation)

    /// A kind of model.
    enum Kind { case singleLabel, multiLabel, detection }

    package var singleLabel: Evaluation? {
        if case .singleLabel(let evaluation) = self { evaluation } else { nil }
    }

    package var multiLabel: MultiLabelEvaluation? {
        if case .multiLabel(let evaluation) = self { evaluation } else { nil }
    }

    package var detection: DetectionEvaluation? {
        if case .detection(let evaluation) = self { evaluation } else { nil }
    }

    /// The labels, in the order of the models' outputs.
    package var labels: [String] {
        switch self {
        case .singleLabel(let evaluation): evaluation.labels
        case .multiLabel(let evaluation): evaluation.labels
        case .detection(let evaluation): evaluation.metrics.labels
        }
    }

    /// The predictions for the readable photos: the indices of the true and of the predicted labels, and the confidences.
    ///
    /// A detector's confidence in a label is the confidence of its best detection, or 0.
    package var predictions: [(url: URL, labels: [Int], predicted: [Int], confidences: [Float])] {
        switch self {
        case .singleLabel(let evaluation):
            evaluation.results.map { ($0.url, [$0.label], [$0.predicted], $0.confidences) }
        case .multiLabel(let evaluation):
            zip(evaluation.results, evaluation.predicted).map { ($0.url, $0.labels, $1, $0.confidences) }
        case .detection(let evaluation): evaluation.predictions
        }
    }

    /// The number of predictions.
    package var imageCount: Int {
        switch self {
        case .singleLabel(let evaluation): evaluation.results.count
        case .multiLabel(let evaluation): evaluation.results.count
        case .detection(let evaluation): evaluation.metrics.photoCount
        }
    }

    /// The photos that could not be read.
    package var skipped: [SkippedImage] {
        switch self {
        case .singleLabel(let evaluation): evaluation.skipped
        case .multiLabel(let evaluation): evaluation.skipped
        case .detection(let evaluation): evaluation.skipped
        }
    }
}

/// The pooled predictions of the finished folds, with their metrics, which are nil if no fold is finished.
package enum PooledEvaluation: Sendable {
    /// The predictions of models with one label per photo.
    case singleLabel(Evaluation, CrossValidationResult.Metrics?)
    /// The predictions of multi-label models.
    case multiLabel(MultiLabelEvaluation, CrossValidationResult.MultiLabelMetrics?)
    /// The detections of detectors in annotated photos.
    case detection(DetectionEvaluation, CrossValidationResult.DetectorMetrics?)

    package var evaluation: FoldEvaluation {
        switch self {
        case .singleLabel(let evaluation, _): .singleLabel(evaluation)
        case .multiLabel(let evaluation, _): .multiLabel(evaluation)
        case .detection(let evaluation, _): .detection(evaluation)
        }
    }

    /// The standard deviations of the first metric over "folds" and "seeds", without those that need more of them.
    package var deviations: [(over: String, value: Double)] {
        let (folds, seeds): (Double?, Double?) =
            switch self {
            case .singleLabel(_, let metrics): (metrics?.foldDeviation, metrics?.seedDeviation)
            case .multiLabel(_, let metrics): (metrics?.foldDeviation, metrics?.seedDeviation)
            case .detection(_, let metrics): (metrics?.foldDeviation, metrics?.seedDeviation)
            }
        var deviations: [(over: String, value: Double)] = []
        if let folds { deviations.append((over: "folds", value: folds)) }
        if let seeds { deviations.append((over: "seeds", value: seeds)) }
        return deviations
    }

    /// - Parameters:
    ///   - repeats: The finished folds of each repeat that has any.
    ///   - labels: The labels of the models.
    ///   - skipped: The photos that could not be read.
    ///   - group: A closure that returns the group of a photo.
    init(
        _ repeats: [[CrossValidationFold]], kind: FoldEvaluation.Kind, labels: [String], skipped: [SkippedImage],
        group: (URL) -> Int
    ) {
        // Only groups with predictions are resampled; there are others if the run was stopped.
        var present: [Int: Int] = [:]
        func position(_ url: URL) -> Int {
            let group = group(url)
            let position = present[group] ?? present.count
            present[group] = position
            return position
        }
        switch kind {
        case .multiLabel:
            let folds = repeats.map { $0.compactMap(\.multiLabelEvaluation) }
            let pooled = folds.map { MultiLabelEvaluation(pooling: $0, labels: labels, skipped: []) }
            let predictions = pooled.map { evaluation in
                GroupedMultiLabelPredictions(evaluation, groups: evaluation.results.map { position($0.url) })
            }
            self = .multiLabel(
                MultiLabelEvaluation(pooling: pooled, labels: labels, skipped: skipped),
                CrossValidationResult.MultiLabelMetrics(
                    predictions, groupCount: present.count,
                    foldValues: folds.joined().compactMap(\.meanAveragePrecision),
                    seedValues: pooled.compactMap(\.meanAveragePrecision)))
        case .detection:
            let folds = repeats.map { $0.compactMap(\.detectionEvaluation) }
            let pooled = folds.map { DetectionEvaluation(pooling: $0, labels: labels, skipped: []).metrics }
            let detections = zip(folds, pooled).map { folds, metrics in
                GroupedDetections(
                    folds, pooled: metrics, groups: metrics.predictions.map { position($0.photo.url) })
            }
            self = .detection(
                DetectionEvaluation(pooling: Array(folds.joined()), labels: labels, skipped: skipped),
                CrossValidationResult.DetectorMetrics(
                    detections, pooled: pooled, groupCount: present.count,
                    foldValues: folds.joined().compactMap(\.metrics.meanAveragePrecision50)))
        case .singleLabel:
            let folds = repeats.map { $0.compactMap(\.evaluation) }
            let pooled = folds.map { Evaluation(labels: labels, results: $0.flatMap(\.results), skipped: []) }
            let predictions = pooled.map { evaluation in
                GroupedPredictions(
                    evaluation.results, groups: evaluation.results.map { position($0.url) }, labels: labels)
            }
            self = .singleLabel(
                Evaluation(labels: labels, results: pooled.flatMap(\.results), skipped: skipped),
                CrossValidationResult.Metrics(
                    predictions, groupCount: present.count, foldAccuracies: folds.joined().map(\.accuracy),
                    seedAccuracies: pooled.map(\.accuracy)))
        }
    }
}

extension DetectionEvaluation {
    /// For each photo, the labels of its objects, the labels that a detection predicts, and the highest confidence in each label.
    ///
    /// Crowds do not count as objects. A detection predicts its label if it reaches the threshold of the label. Pooled evaluations do not
    /// have thresholds, so their predicted labels are empty.
    fileprivate var predictions: [(url: URL, labels: [Int], predicted: [Int], confidences: [Float])] {
        let labels = metrics.labels
        return metrics.predictions.map { photo, detections in
            let shown = Set(photo.objects.lazy.filter { !$0.isCrowd }.map(\.label))
            var confidences = [String: Float]()
            for detection in detections {
                confidences[detection.label] = max(confidences[detection.label] ?? 0, detection.confidence)
            }
            let best = labels.map { confidences[$0] ?? 0 }
            return (
                photo.url, labels.indices.filter { shown.contains(labels[$0]) },
                thresholds.indices.filter { confidences[labels[$0]] != nil && Double(best[$0]) >= thresholds[$0] }, best
            )
        }
    }
}
