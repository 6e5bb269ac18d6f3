internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintTraining

extension EvaluateCommand {
    /// Evaluates a detector on photos with bounding boxes.
    func runDetector(_ detector: ImageClassifier, _ annotationPath: String) throws {
        let annotations = try BoxAnnotations(
            contentsOf: URL(filePath: annotationPath), photos: data.map { URL(filePath: $0) })
        for warning in annotations.warnings { Terminal.warn("Note: \(warning)") }
        var bar = ProgressBar()
        defer { bar.clear() }
        let evaluation = try detector.evaluate(on: annotations, threads: common.threadCount) { done in
            bar.draw("evaluating", done: done, of: annotations.photos.count)
        }
        bar.clear()
        for image in evaluation.skipped { Terminal.note("Skipped: \(image.reason)") }
        guard common.json else {
            let table = DetectionTable(evaluation)
            return try Terminal.show(table.text + (images ? "\n\n" + table.worstMistakes(10) : ""))
        }
        if images {
            for prediction in evaluation.metrics.predictions {
                try Terminal.emit(
                    DetectionImageLine(file: prediction.photo.url.displayPath, detections: prediction.detections))
            }
        }
        try Terminal.emit(DetectionEvaluationLine(evaluation))
    }
}

/// Formats the evaluation of a detector as text of at most 80 columns, apart from file names.
struct DetectionTable {
    let text: String
    private let evaluation: DetectionEvaluation

    init(_ evaluation: DetectionEvaluation) {
        self.evaluation = evaluation
        let metrics = evaluation.metrics
        let point = evaluation.operatingPoint
        func value(_ value: Double?) -> String { value.map { String(format: "%.4f", $0) } ?? "–" }
        func share(_ value: Double?) -> String { value.map { Terminal.percent($0) } ?? "–" }
        let interval = metrics.meanAveragePrecision50Interval().map {
            " (95 % confidence interval \(value($0.lowerBound)) to \(value($0.upperBound)))"
        }
        let falsePositives = point.falsePositivesPerEmptyPhoto.map {
            String(format: ", %.3f false positives per photo without objects", $0)
        }
        let summary = [
            "mAP@.5 \(value(metrics.meanAveragePrecision50))\(interval ?? "")",
            "mAP@.5:.95 \(value(metrics.meanAveragePrecision)), mAP@.75 \(value(metrics.meanAveragePrecision75)), "
                + "AR@100 \(value(metrics.averageRecall100))",
            "\(metrics.objectCount) objects in \(metrics.photoCount) photos, \(metrics.emptyPhotos.count) without objects",
            "at the model's thresholds: precision \(share(point.total.precision)), recall \(share(point.total.recall))"
                + (falsePositives ?? ""),
        ]
        let names = metrics.labels.map { cut(visible($0), to: 20) }
        let width = max(names.map(\.count).max() ?? 0, "label".count)
        func row(_ name: String, _ cells: [String]) -> String {
            right(name, width) + cells.map { right($0, 10) }.joined()
        }
        let rows = metrics.perLabel.indices.map { index in
            let (label, counts) = (metrics.perLabel[index], point.perLabel[index])
            return row(
                names[index],
                [
                    value(label.averagePrecision50), value(label.averagePrecision), share(counts.precision),
                    share(counts.recall), "\(label.objectCount)",
                ])
        }
        let header = row("label", ["AP@.5", "AP@.5:.95", "precision", "recall", "objects"])
        text = (summary + [""] + [header] + rows).joined(separator: "\n")
    }

    /// Returns the objects that were not found and the most confident false positives.
    func worstMistakes(_ count: Int) -> String {
        let missed = evaluation.metrics.missedObjects(thresholds: evaluation.thresholds, limit: count).map {
            "  missed: \(visible($0.photo.url.displayPath)): \(shown($0.object.label)) at \(boxText($0.object.box))"
        }
        let wrong = evaluation.metrics.falsePositives(thresholds: evaluation.thresholds, limit: count).map {
            "  wrong: \(visible($0.photo.url.displayPath)): \(shown($0.detection.label)) "
                + "\(Terminal.percent($0.detection.confidence)) at \(boxText($0.detection.box))"
        }
        return missed.isEmpty && wrong.isEmpty
            ? "mistakes: none" : (["worst mistakes"] + missed + wrong).joined(separator: "\n")
    }
}

private struct DetectionImageLine: Encodable {
    let event = "image"
    let file: String
    let detections: [DetectedObject]
}

private struct DetectionEvaluationLine: Encodable {
    @NullIfMissing var meanAveragePrecision: Double?
    @NullIfMissing var meanAveragePrecision50: Double?
    @NullIfMissing var meanAveragePrecision75: Double?
    @NullIfMissing var meanAveragePrecision50Interval: [Double]?
    @NullIfMissing var averageRecall1: Double?
    @NullIfMissing var averageRecall10: Double?
    @NullIfMissing var averageRecall100: Double?
    /// At the model's thresholds, with boxes that overlap by an IoU of at least .5.
    @NullIfMissing var precision: Double?
    @NullIfMissing var recall: Double?
    /// `null` if every photo shows an object.
    @NullIfMissing var falsePositivesPerEmptyPhoto: Double?
    let images: Int
    let objects: Int
    let labels: [String]
    let thresholds: [Double]
    let perLabel: [DetectionMetrics.LabelMetrics]
    let skipped: [SkippedLine]

    init(_ evaluation: DetectionEvaluation) {
        let (metrics, point) = (evaluation.metrics, evaluation.operatingPoint)
        meanAveragePrecision = metrics.meanAveragePrecision
        meanAveragePrecision50 = metrics.meanAveragePrecision50
        meanAveragePrecision75 = metrics.meanAveragePrecision75
        meanAveragePrecision50Interval = metrics.meanAveragePrecision50Interval().map {
            [$0.lowerBound, $0.upperBound]
        }
        averageRecall1 = metrics.averageRecall1
        averageRecall10 = metrics.averageRecall10
        averageRecall100 = metrics.averageRecall100
        precision = point.total.precision
        recall = point.total.recall
        falsePositivesPerEmptyPhoto = point.falsePositivesPerEmptyPhoto
        images = metrics.photoCount
        objects = metrics.objectCount
        labels = metrics.labels
        thresholds = evaluation.thresholds
        perLabel = metrics.perLabel
        skipped = evaluation.skipped.map(SkippedLine.init)
    }
}
