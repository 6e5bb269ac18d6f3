package import Foundation
package import ImprintImages

/// The evaluation of a model on photos, by the kind of the model.
///
/// ```swift
/// let evaluation = try classifier.evaluate(on: ImageFolder(at: photos))
/// try Report(classifier, evaluation: .singleLabel(evaluation)).write(to: URL(filePath: "report.html"))
/// ```
public enum ModelEvaluation: Sendable {
    /// The evaluation of a classifier or a logo detector on photos with one label each.
    case singleLabel(Evaluation)
    /// The evaluation of a multi-label model.
    case multiLabel(MultiLabelEvaluation)
    /// The evaluation of a detector on annotated photos.
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
