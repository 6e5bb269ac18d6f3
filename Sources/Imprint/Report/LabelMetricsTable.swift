internal import ImprintFormats

/// How each label fared: a table, and the curves of precision against recall.
enum LabelMetricsTable {
    /// How many curves are shown at most.
    static let curveLimit = 12

    /// The table of precision, recall, F1 and count, and the means over the labels.
    static func html(_ metrics: [Evaluation.LabelMetrics]) -> String {
        guard !metrics.isEmpty else { return "" }
        let rows = metrics.map { metric in
            row(
                isolated(metric.label), metric.precision, metric.recall,
                ReportMeasures.f1(metric.precision, metric.recall), count: metric.count)
        }
        func mean(_ values: [Double?]) -> Double? {
            let known = values.compactMap { $0 }
            return known.isEmpty ? nil : known.reduce(0, +) / Double(known.count)
        }
        let means = row(
            "mean of the labels", mean(metrics.map(\.precision)), mean(metrics.map(\.recall)),
            mean(metrics.map { ReportMeasures.f1($0.precision, $0.recall) }),
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
            + "\n<p class=\"more\">Precision: of the photos given the label, how many bear it. Recall: of those that bear it, how "
            + "many were given it. F1: their harmonic mean.</p>"
    }

    private static func row(_ name: String, _ values: Double?..., count: Int) -> String {
        let cells = values.map { "<td>\(percent($0))</td>" }
        return "<tr><th scope=\"row\">\(name)</th>\(cells.joined())<td>\(grouped(count))</td></tr>"
    }

    /// The curves of precision against recall, each with the threshold of the highest F1; of many labels, the worst.
    static func curves(_ curves: [String: [TrainingRecord.PrecisionRecallPoint]], labels: [String]) -> String {
        let known = labels.filter { !(curves[$0] ?? []).isEmpty }
        guard !known.isEmpty else { return "" }
        func quality(_ label: String) -> Double {
            ReportMeasures.bestPoint(curves[label] ?? []).flatMap { ReportMeasures.f1($0.precision, $0.recall) } ?? 0
        }
        let worst = known.enumerated().map { ($0.offset, quality($0.element)) }
            .sorted { ($0.1, $0.0) < ($1.1, $1.0) }.prefix(curveLimit).map(\.0).sorted()
        let figures = worst.map { chart(known[$0], curves[known[$0]] ?? []) }
        let note =
            known.count > curveLimit
            ? "<p class=\"more\">The \(curveLimit) labels of \(known.count) with the lowest F1.</p>" : ""
        return """
            <h3>Precision against recall</h3>
            <p class="advice">A higher threshold of confidence makes hits rarer and surer. The ring is the threshold with the \
            highest F1.</p>
            <div class="multiples">
            \(figures.joined(separator: "\n"))
            </div>
            \(note)
            """
    }

    private static func chart(_ label: String, _ curve: [TrainingRecord.PrecisionRecallPoint]) -> String {
        let plot = Plot(
            width: 260, height: 210, x: .shares(name: "recall", step: 0.25), y: .shares(name: "precision", step: 0.25))
        let best = ReportMeasures.bestPoint(curve)
        let ring = best.map { point in
            "<g class=\"chosen\">"
                + plot.dot(
                    (point.recall, point.precision), radius: 5,
                    title: "threshold \(compact(point.threshold, digits: 3)): precision \(percent(point.precision)), "
                        + "recall \(percent(point.recall))") + "</g>"
        }
        let words = best.map {
            "threshold \(compact($0.threshold, digits: 2)): precision \(wholePercent($0.precision)), recall \(wholePercent($0.recall))"
        }
        return """
            <figure class="chart">
            <figcaption><strong>\(isolated(label))</strong></figcaption>
            \(plot.svg(
                label: "Precision against recall of \(label); \(words ?? "no threshold")",
                "<g class=\"validation\">\(plot.line(curve.map { ($0.recall, $0.precision) }))</g>" + (ring ?? "")))
            <p class="caption">\(words ?? "")</p>
            </figure>
            """
    }
}
