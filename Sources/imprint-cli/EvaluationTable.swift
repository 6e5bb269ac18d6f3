internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintModel
internal import ImprintTraining

/// Formats an evaluation as text of at most 80 columns, apart from file names.
struct EvaluationTable {
    private let evaluation: Evaluation
    private let table: LabelTable

    init(_ evaluation: Evaluation) {
        self.evaluation = evaluation
        table = LabelTable(evaluation.labels)
    }

    /// The summary, the metrics of each label and the confusion matrix.
    var text: String { [summary, labelTable, confusion].joined(separator: "\n\n") }

    private var summary: String {
        let interval = evaluation.accuracyInterval
        var lines = [
            "accuracy \(Terminal.percent(evaluation.accuracy)) on \(counted(evaluation.results.count, "photo")) "
                + "(95 % confidence interval \(Terminal.percent(interval.lowerBound)) to \(Terminal.percent(interval.upperBound)))",
            "balanced accuracy \(Terminal.percent(evaluation.balancedAccuracy)), "
                + "macro F1 \(Terminal.percent(evaluation.macroAverages.f1))",
            String(format: "log loss %.4f, ", evaluation.logLoss)
                + "expected calibration error (ECE) \(Terminal.percent(evaluation.calibrationError))",
        ]
        if evaluation.labels.count > 5 {
            lines[1] += ", top-5 accuracy \(Terminal.percent(evaluation.topAccuracy(5)))"
        }
        if let auc = evaluation.auc { lines[1] += String(format: ", AUC %.4f", auc) }
        return lines.joined(separator: "\n")
    }

    private var labelTable: String {
        let (area, share) = (LabelTable.decimal, LabelTable.share)
        return table.text(
            ["precision", "recall", "F1", "AUC", "AP", "count"],
            evaluation.perLabel.map { label in
                [
                    share(label.precision), share(label.recall), share(label.f1), area(label.auc),
                    area(label.averagePrecision), "\(label.count)",
                ]
            })
    }

    /// The confusion matrix or, if it is too wide, the most frequent confusions.
    private var confusion: String {
        let matrix = evaluation.confusion
        let columns = table.names.map { cut($0, to: 12) }
        let digits = String(evaluation.results.count).count
        let width = max(columns.map(\.count).max() ?? 0, digits) + 2
        guard table.nameWidth + columns.count * width <= 80 else { return confusedPairs(matrix) }
        let header = table.row("", columns, width: width)
        let rows = zip(table.names, matrix).map { name, row in table.row(name, row.map { "\($0)" }, width: width) }
        return (["confusion matrix: rows are true labels, columns are predicted labels", header] + rows)
            .joined(separator: "\n")
    }

    private func confusedPairs(_ matrix: [[Int]]) -> String {
        var pairs: [(count: Int, label: Int, predicted: Int)] = []
        for (label, row) in matrix.enumerated() {
            for (predicted, count) in row.enumerated() where label != predicted && count > 0 {
                pairs.append((count, label, predicted))
            }
        }
        pairs.sort { ($1.count, $0.label, $0.predicted) < ($0.count, $1.label, $1.predicted) }
        guard !pairs.isEmpty else { return "confusions: none" }
        let lines = pairs.prefix(10).map { pair in
            right("\(pair.count)", 6) + "  \(table.names[pair.label]), predicted as \(table.names[pair.predicted])"
        }
        return (["most frequent confusions (--json prints the whole matrix)"] + lines).joined(separator: "\n")
    }

    /// Returns the worst mistakes, the most confident first.
    func worstMistakes(_ count: Int) -> String {
        let mistakes = evaluation.worstMistakes(count)
        guard !mistakes.isEmpty else { return "worst mistakes: none" }
        let lines = mistakes.map { mistake in
            table.row(
                table.names[mistake.predicted], [Terminal.percent(mistake.confidences[mistake.predicted])], width: 10)
                + "  \(visible(mistake.url.path(percentEncoded: false)))"
        }
        return (["worst mistakes: predicted label, confidence, photo"] + lines).joined(separator: "\n")
    }
}

func cut(_ text: String, to length: Int) -> String {
    text.count > length ? text.prefix(length - 1) + "…" : text
}

func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(width - text.count, 0)) + text
}
