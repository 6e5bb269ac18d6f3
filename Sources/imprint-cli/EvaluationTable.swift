internal import Foundation
internal import Imprint
internal import ImprintModel
internal import ImprintTraining

/// Formats an evaluation as text of at most 80 columns, apart from file names.
struct EvaluationTable {
    private let evaluation: Evaluation
    /// The labels, truncated if they are long.
    private let names: [String]
    private let nameWidth: Int

    init(_ evaluation: Evaluation) {
        self.evaluation = evaluation
        names = evaluation.labels.map { cut(visible($0), to: 20) }
        nameWidth = max(names.map(\.count).max() ?? 0, "label".count)
    }

    /// The summary, the metrics of each label and the confusion matrix.
    var text: String { [summary, labelTable, confusion].joined(separator: "\n\n") }

    private var summary: String {
        let interval = evaluation.accuracyInterval
        var lines = [
            "accuracy \(Terminal.percent(evaluation.accuracy)) on \(evaluation.results.count) images "
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
        func share(_ value: Double?) -> String { value.map { Terminal.percent($0) } ?? "–" }
        func area(_ value: Double?) -> String { value.map { String(format: "%.4f", $0) } ?? "–" }
        func row(_ name: String, _ cells: [String]) -> String {
            right(name, nameWidth) + cells.map { right($0, 10) }.joined()
        }
        let header = row("label", ["precision", "recall", "F1", "AUC", "AP", "count"])
        let rows = zip(names, evaluation.perLabel).map { name, label in
            row(
                name,
                [
                    share(label.precision), share(label.recall), share(label.f1), area(label.auc),
                    area(label.averagePrecision), "\(label.count)",
                ])
        }
        return ([header] + rows).joined(separator: "\n")
    }

    /// The confusion matrix or, if it is too wide, the most frequent confusions.
    private var confusion: String {
        let matrix = evaluation.confusion
        let columns = names.map { cut($0, to: 12) }
        let digits = String(evaluation.results.count).count
        let width = max(columns.map(\.count).max() ?? 0, digits) + 2
        guard nameWidth + columns.count * width <= 80 else { return confusedPairs(matrix) }
        let header = right("", nameWidth) + columns.map { right($0, width) }.joined()
        let rows = zip(names, matrix).map { name, row in
            right(name, nameWidth) + row.map { right("\($0)", width) }.joined()
        }
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
            right("\(pair.count)", 6) + "  \(names[pair.label]), predicted as \(names[pair.predicted])"
        }
        return (["most frequent confusions (--json prints the whole matrix)"] + lines).joined(separator: "\n")
    }

    /// Returns the worst mistakes, the most confident first.
    func worstMistakes(_ count: Int) -> String {
        let mistakes = evaluation.worstMistakes(count)
        guard !mistakes.isEmpty else { return "worst mistakes: none" }
        let lines = mistakes.map { mistake in
            right(names[mistake.predicted], nameWidth)
                + right(Terminal.percent(mistake.confidences[mistake.predicted]), 10)
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
