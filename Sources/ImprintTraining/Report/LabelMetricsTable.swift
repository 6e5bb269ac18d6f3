internal import ImprintModel
internal import ImprintSynthesis

/// The metrics of each label: a table, and precision–recall curves.
enum LabelMetricsTable {
    /// The maximum number of curves.
    static let curveLimit = 12

    /// Returns the table of precision, recall, F1 and count, with the macro averages.
    static func html(_ evaluation: Evaluation) -> String {
        let metrics = evaluation.perLabel
        guard !metrics.isEmpty else { return "" }
        let rows = metrics.map { metric in
            row(
                isolated(metric.label), metric.precision, metric.recall, metric.f1, count: metric.count)
        }
        let averages = evaluation.macroAverages
        let means = row(
            "macro average", averages.precision, averages.recall, averages.f1,
            count: metrics.reduce(0) { $0 + $1.count })
        let table = """
            <table class="numbers">
            <thead><tr><th scope="col">label</th><th scope="col">precision</th><th scope="col">recall</th>\
            <th scope="col">F1</th><th scope="col">photos</th></tr></thead>
            <tbody>
            \(rows.joined(separator: "\n"))
            </tbody>
            <tfoot>\(means)</tfoot>
            </table>
            """
        return Page.scrollBox("Results by label", table)
            + "\n<p class=\"more\">Precision: the fraction of the photos classified as the label that have it. Recall: the fraction of "
            + "the photos with the label that were classified as it. F1: the harmonic mean of both.</p>"
    }

    /// Returns the table of a multi-label model: threshold, precision, recall, F1, average precision and count.
    ///
    /// Pooled results of several models do not have a column of thresholds.
    static func html(_ evaluation: MultiLabelEvaluation) -> String {
        let thresholds = evaluation.thresholds
        let rows = evaluation.perLabel.enumerated().map { index, metric in
            "<tr><th scope=\"row\">\(isolated(metric.label))</th>"
                + (thresholds.isEmpty ? "" : "<td>\(compact(thresholds[index], digits: 3))</td>")
                + [metric.precision, metric.recall, metric.f1, metric.averagePrecision].map {
                    "<td>\(percent($0))</td>"
                }
                .joined() + "<td>\(grouped(metric.count))</td></tr>"
        }
        let heads =
            (["label"] + (thresholds.isEmpty ? [] : ["threshold"]) + ["precision", "recall", "F1", "AP", "photos"])
            .map { "<th scope=\"col\">\($0)</th>" }
        let table = """
            <table class="numbers">
            <thead><tr>\(heads.joined())</tr></thead>
            <tbody>
            \(rows.joined(separator: "\n"))
            </tbody>
            </table>
            """
        return Page.scrollBox("Results by label", table)
            + "\n<p class=\"more\">Micro F1 \(percent(evaluation.microF1)), macro F1 \(percent(evaluation.macroF1)). Precision, recall and F1 "
            + "use the threshold of the label\(thresholds.isEmpty ? " in each model" : ""). AP: average precision, the area under the "
            + "precision–recall curve.</p>"
    }

    private static func row(_ name: String, _ values: Double?..., count: Int) -> String {
        let cells = values.map { "<td>\(percent($0))</td>" }
        return "<tr><th scope=\"row\">\(name)</th>\(cells.joined())<td>\(grouped(count))</td></tr>"
    }

    /// Returns the precision–recall curves, each with the threshold of the label; for many labels, only the curves with the lowest F1.
    /// - Parameter threshold: The description of the thresholds; nil without any.
    static func curves(
        _ curves: [String: [TrainingRecord.PrecisionRecallPoint]], thresholds: [String: Double], labels: [String],
        threshold: String? = "the threshold with the highest F1"
    ) -> String {
        let figures = labels.compactMap { label in
            Figure(label: label, curve: curves[label] ?? [], threshold: thresholds[label])
        }
        guard !figures.isEmpty else { return "" }
        let worst = figures.enumerated().sorted { ($0.element.f1, $0.offset) < ($1.element.f1, $1.offset) }
            .prefix(curveLimit).map(\.offset).sorted()
        let note =
            figures.count > curveLimit
            ? "<p class=\"more\">The \(curveLimit) labels of \(figures.count) with the lowest F1.</p>" : ""
        return """
            <h3>Precision–recall curves</h3>
            <p class="advice">A higher confidence threshold lowers the recall and usually raises the precision. \
            \(threshold.map { "The ring is \($0)." } ?? "")</p>
            <div class="multiples">
            \(worst.map { figures[$0].html }.joined(separator: "\n"))
            </div>
            \(note)
            """
    }

    /// The curve of one label.
    private struct Figure {
        let label: String
        let curve: [TrainingRecord.PrecisionRecallPoint]
        let threshold: Double?
        /// The point of the threshold: the one with the lowest confidence that reaches it.
        let chosen: TrainingRecord.PrecisionRecallPoint?

        init?(label: String, curve: [TrainingRecord.PrecisionRecallPoint], threshold: Double?) {
            guard !curve.isEmpty else { return nil }
            (self.label, self.curve, self.threshold) = (label, curve, threshold)
            chosen = threshold.flatMap { minimum in
                curve.filter { $0.threshold >= minimum }.min { $0.threshold < $1.threshold }
            }
        }

        /// The F1 score at the threshold; without a threshold, the highest F1 score of the curve.
        var f1: Double {
            let points = threshold == nil ? curve : chosen.map { [$0] } ?? []
            return points.map { point in
                let sum = point.precision + point.recall
                return sum > 0 ? 2 * point.precision * point.recall / sum : 0
            }.max() ?? 0
        }

        var html: String {
            let plot = Plot(
                width: 260, height: 210, x: .percentages(name: "recall", step: 0.25),
                y: .percentages(name: "precision", step: 0.25))
            let ring = chosen.map { point in
                "<g class=\"chosen\">"
                    + plot.dot(
                        (point.recall, point.precision), radius: 5,
                        title:
                            "threshold \(compact(threshold ?? 0, digits: 3)): precision \(percent(point.precision)), "
                            + "recall \(percent(point.recall))") + "</g>"
            }
            let words = chosen.map {
                "threshold \(compact(threshold ?? 0, digits: 2)): precision \(wholePercent($0.precision)), "
                    + "recall \(wholePercent($0.recall))"
            }
            return """
                <figure class="chart">
                <figcaption><strong>\(isolated(label))</strong></figcaption>
                \(plot.svg(
                    label: "Precision–recall curve of \(label); \(words ?? "no threshold")",
                    "<g class=\"validation\">\(plot.line(curve.map { ($0.recall, $0.precision) }))</g>" + (ring ?? "")))
                <p class="caption">\(words ?? "")</p>
                </figure>
                """
        }
    }
}
