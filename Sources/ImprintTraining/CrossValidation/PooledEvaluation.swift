internal import Foundation
internal import ImprintImages

/// The pooled predictions of the finished folds, with their metrics, which are nil if no fold is finished.
package enum PooledEvaluation: Sendable {
    /// The predictions of models with one label per photo.
    case singleLabel(Evaluation, CrossValidationResult.Metrics?)
    /// The predictions of multi-label models.
    case multiLabel(MultiLabelEvaluation, CrossValidationResult.MultiLabelMetrics?)
    /// The detections of detectors in annotated photos.
    case detection(DetectionEvaluation, CrossValidationResult.DetectorMetrics?)

    package var evaluation: ModelEvaluation {
        switch self {
        case .singleLabel(let evaluation, _): .singleLabel(evaluation)
        case .multiLabel(let evaluation, _): .multiLabel(evaluation)
        case .detection(let evaluation, _): .detection(evaluation)
        }
    }

    /// The standard deviations of the first metric over "folds" and "seeds".
    ///
    /// A standard deviation over fewer than two folds or seeds is omitted.
    package var deviations: [(over: String, value: Double)] {
        let (folds, seeds): (Double?, Double?) =
            switch self {
            case .singleLabel(_, let metrics): (metrics?.foldStandardDeviation, metrics?.seedStandardDeviation)
            case .multiLabel(_, let metrics): (metrics?.foldStandardDeviation, metrics?.seedStandardDeviation)
            case .detection(_, let metrics): (metrics?.foldStandardDeviation, metrics?.seedStandardDeviation)
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
        _ repeats: [[CrossValidationFold]], kind: ModelEvaluation.Kind, labels: [String], skipped: [SkippedImage],
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
