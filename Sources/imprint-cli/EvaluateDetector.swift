internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintTraining

extension EvaluateCommand {
    /// Evaluates a detector on photos with bounding boxes.
    func runDetector(_ detector: ImageClassifier, _ annotationPath: String) throws {
        try requireDetector(detector, model, otherwise: "evaluate the model on labelled photos")
        let annotations = try BoxAnnotations(
            contentsOf: URL(filePath: annotationPath), photos: data.map { URL(filePath: $0) }, part: .test,
            threads: common.threadCount)
        annotations.printWarnings(.photoFolder)
        var bar = ProgressBar()
        defer { bar.clear() }
        let evaluation = try detector.evaluate(on: annotations, threads: common.threadCount) { done in
            bar.draw("evaluating", done: done, of: annotations.photos.count)
        }
        bar.clear()
        for image in evaluation.skipped { Terminal.warn("Skipped: \(image.reason)") }
        try show(evaluation, of: detector)
        try writeReport(of: .detection(evaluation), detector)
    }

    private func show(_ evaluation: DetectionEvaluation, of detector: ImageClassifier) throws {
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
        try Terminal.emit(MergedLine(DetectionEvaluationLine(evaluation), PrecisionLine(detector)))
    }
}

/// Formats the evaluation of a detector as text of at most 80 columns, apart from file names.
struct DetectionTable {
    let text: String
    private let evaluation: DetectionEvaluation

    init(_ evaluation: DetectionEvaluation) {
        self.evaluation = evaluation
        let (metrics, point) = (evaluation.metrics, evaluation.operatingPoint)
        let (area, share) = (LabelTable.decimal, LabelTable.share)
        let interval = metrics.meanAveragePrecision50Interval().map {
            " (95 % confidence interval \(area($0.lowerBound)) to \(area($0.upperBound)))"
        }
        let falsePositives = point.falsePositivesPerEmptyPhoto.map {
            String(format: "%.3f false positives per photo without objects", $0)
        }
        let summary =
            [
                "mAP@.5 \(area(metrics.meanAveragePrecision50))\(interval ?? "")",
                "mAP@.5:.95 \(area(metrics.meanAveragePrecision)), mAP@.75 \(area(metrics.meanAveragePrecision75)), "
                    + "AR@100 \(area(metrics.averageRecall100))",
                "\(counted(metrics.objectCount, "object")) in \(counted(metrics.photoCount, "photo")), "
                    + "\(metrics.emptyPhotoIndices.count) without objects",
                "at the model's thresholds: precision \(share(point.total.precision)), recall \(share(point.total.recall))",
            ] + [falsePositives].compactMap { $0 }
        let rows = zip(metrics.perLabel, point.perLabel).map { label, counts in
            [
                area(label.averagePrecision50), area(label.averagePrecision), share(counts.precision),
                share(counts.recall), "\(label.objectCount)",
            ]
        }
        let table = LabelTable(metrics.labels).text(["AP@.5", "AP@.5:.95", "precision", "recall", "objects"], rows)
        text = (summary + ["", table]).joined(separator: "\n")
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

/// The metrics of a label: `DetectionMetrics.LabelMetrics`, and the metrics at its threshold.
struct DetectionLabelLine: Encodable {
    let metrics: DetectionMetrics.LabelMetrics
    let counts: DetectionMetrics.Counts

    private enum CodingKeys: String, CodingKey {
        case precision, recall, truePositives, falsePositives, falseNegatives
    }

    static func lines(_ evaluation: DetectionEvaluation) -> [DetectionLabelLine] {
        zip(evaluation.metrics.perLabel, evaluation.operatingPoint.perLabel).map {
            DetectionLabelLine(metrics: $0, counts: $1)
        }
    }

    func encode(to encoder: any Encoder) throws {
        try metrics.encode(to: encoder)
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(counts.precision, forKey: .precision)
        try values.encode(counts.recall, forKey: .recall)
        try values.encode(counts.truePositives, forKey: .truePositives)
        try values.encode(counts.falsePositives, forKey: .falsePositives)
        try values.encode(counts.falseNegatives, forKey: .falseNegatives)
    }
}

/// The evaluation of a detector as JSON.
struct DetectionEvaluationLine: Encodable {
    @NullIfMissing var meanAveragePrecision: Double?
    @NullIfMissing var meanAveragePrecision50: Double?
    @NullIfMissing var meanAveragePrecision75: Double?
    @NullIfMissing var meanAveragePrecision50Interval: [Double]?
    @NullIfMissing var averageRecall1: Double?
    @NullIfMissing var averageRecall10: Double?
    @NullIfMissing var averageRecall100: Double?
    /// At the model's thresholds, with boxes that overlap with an IoU of at least .5.
    @NullIfMissing var precision: Double?
    @NullIfMissing var recall: Double?
    /// `null` if every photo shows an object.
    @NullIfMissing var falsePositivesPerEmptyPhoto: Double?
    let images: Int
    let objects: Int
    let labels: [String]
    let thresholds: [Double]
    let truePositives: Int
    let falsePositives: Int
    let falseNegatives: Int
    let perLabel: [DetectionLabelLine]
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
        truePositives = point.total.truePositives
        falsePositives = point.total.falsePositives
        falseNegatives = point.total.falseNegatives
        perLabel = DetectionLabelLine.lines(evaluation)
        skipped = evaluation.skipped.map(SkippedLine.init)
    }
}
