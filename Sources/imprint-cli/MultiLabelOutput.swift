internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

extension EvaluateCommand {
    /// Evaluates a multi-label model.
    func runMultiLabel(_ classifier: ImageClassifier, _ photos: any TrainingSource) throws {
        var bar = ProgressBar()
        defer { bar.clear() }
        let evaluation = try classifier.evaluateMultiLabel(on: photos, threads: common.threadCount) { done in
            bar.draw("evaluating", done: done, of: photos.items.count)
        }
        bar.clear()
        for image in evaluation.skipped { Terminal.warn("Skipped: \(image.reason)") }
        try show(evaluation, of: classifier)
        try writeReport(of: .multiLabel(evaluation), classifier)
    }

    private func show(_ evaluation: MultiLabelEvaluation, of classifier: ImageClassifier) throws {
        guard common.json else {
            let table = MultiLabelTable(evaluation)
            return try Terminal.show(table.text + (images ? "\n\n" + table.worstMistakes(10) : ""))
        }
        if images {
            for index in evaluation.results.indices { try Terminal.emit(MultiLabelImageLine(evaluation, index)) }
        }
        try Terminal.emit(MergedLine(MultiLabelEvaluationLine(evaluation), PrecisionLine(classifier)))
    }
}

/// Formats the evaluation of a multi-label model as text of at most 80 columns.
struct MultiLabelTable {
    let text: String
    private let evaluation: MultiLabelEvaluation

    init(_ evaluation: MultiLabelEvaluation) {
        self.evaluation = evaluation
        let (area, share) = (LabelTable.decimal, LabelTable.share)
        let interval = evaluation.meanAveragePrecisionInterval().map {
            " (95 % confidence interval \(area($0.lowerBound)) to \(area($0.upperBound)))"
        }
        let summary = [
            "mean average precision (mAP) \(area(evaluation.meanAveragePrecision)) on \(counted(evaluation.results.count, "photo"))"
                + (interval ?? ""),
            "micro F1 \(Terminal.percent(evaluation.microF1)), macro F1 \(Terminal.percent(evaluation.macroF1)), "
                + "correct label decisions \(Terminal.percent(evaluation.accuracy))",
        ]
        let rows = zip(evaluation.perLabel, evaluation.thresholds).map { label, threshold in
            [
                String(format: "%.3f", threshold), share(label.precision), share(label.recall), share(label.f1),
                area(label.averagePrecision), "\(label.count)",
            ]
        }
        let table = LabelTable(evaluation.labels).text(
            ["threshold", "precision", "recall", "F1", "AP", "count"], rows)
        text = (summary + ["", table]).joined(separator: "\n")
    }

    /// Returns the photos with the most wrong label decisions, and these labels.
    func worstMistakes(_ count: Int) -> String {
        let mistakes = evaluation.results.enumerated().compactMap { index, result in
            let (labels, predicted) = (Set(result.labels), Set(evaluation.predicted[index]))
            let (missed, extra) = (labels.subtracting(predicted), predicted.subtracting(labels))
            return missed.isEmpty && extra.isEmpty ? nil : (index: index, missed: missed, extra: extra)
        }.sorted { first, second in
            let (left, right) = (first.missed.count + first.extra.count, second.missed.count + second.extra.count)
            return left == right ? first.index < second.index : left > right
        }
        guard !mistakes.isEmpty else { return "worst mistakes: none" }
        func names(_ labels: Set<Int>) -> String { shown(labels.sorted().map { evaluation.labels[$0] }) }
        let lines = mistakes.prefix(count).map { mistake in
            let parts =
                (mistake.missed.isEmpty ? [] : ["missed \(names(mistake.missed))"])
                + (mistake.extra.isEmpty ? [] : ["wrongly predicted \(names(mistake.extra))"])
            let file = evaluation.results[mistake.index].url.path(percentEncoded: false)
            return right("\(mistake.missed.count + mistake.extra.count)", 6)
                + "  \(visible(file)): \(parts.joined(separator: "; "))"
        }
        return (["worst mistakes: wrong label decisions, photo, labels"] + lines).joined(separator: "\n")
    }
}

private struct MultiLabelImageLine: Encodable {
    let event = "image"
    let file: String
    let labels: [String]
    let predicted: [String]
    let correct: Bool
    let classifications: [Classification]

    private enum CodingKeys: String, CodingKey {
        case event, file, labels, predicted, correct
        case classifications = "observations"
    }

    /// - Parameter index: The index of the result.
    init(_ evaluation: MultiLabelEvaluation, _ index: Int) {
        let result = evaluation.results[index]
        file = result.url.path(percentEncoded: false)
        labels = result.labels.map { evaluation.labels[$0] }
        predicted = evaluation.predicted[index].map { evaluation.labels[$0] }
        correct = labels == predicted
        classifications = zip(evaluation.labels, result.confidences)
            .map { Classification(label: $0, confidence: $1) }.sorted { $0.confidence > $1.confidence }
    }
}

/// The metrics of a multi-label model as JSON.
struct MultiLabelEvaluationLine: Encodable {
    /// `null` if no image has a label.
    @NullIfMissing var meanAveragePrecision: Double?
    /// `null` if no image has a label.
    @NullIfMissing var meanAveragePrecisionInterval: [Double]?
    let microF1: Double
    let macroF1: Double
    let accuracy: Double
    let images: Int
    let labels: [String]
    let thresholds: [Double]
    let perLabel: [Evaluation.LabelMetrics]
    let skipped: [SkippedLine]

    init(_ evaluation: MultiLabelEvaluation) {
        meanAveragePrecision = evaluation.meanAveragePrecision
        meanAveragePrecisionInterval = evaluation.meanAveragePrecisionInterval().map { [$0.lowerBound, $0.upperBound] }
        microF1 = evaluation.microF1
        macroF1 = evaluation.macroF1
        accuracy = evaluation.accuracy
        images = evaluation.results.count
        labels = evaluation.labels
        thresholds = evaluation.thresholds
        perLabel = evaluation.perLabel
        skipped = evaluation.skipped.map(SkippedLine.init)
    }
}
