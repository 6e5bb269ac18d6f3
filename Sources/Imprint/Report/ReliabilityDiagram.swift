/// Whether the model is right as often as it says: accuracy against confidence, in ten bins.
enum ReliabilityDiagram {
    /// The chart and what it says; nothing without images.
    static func html(_ results: [Evaluation.Result]) -> String {
        guard !results.isEmpty else { return "" }
        let bins = ReportMeasures.reliability(results)
        let error = ReportMeasures.calibrationError(bins)
        let filled = bins.filter { $0.count > 0 }
        let over = filled.reduce(0.0) { $0 + $1.confidence - Double($1.right) } / Double(results.count)
        let verdict =
            abs(over) < 0.02
            ? "On the whole, the model is about as sure as it is right."
            : over > 0
                ? "On the whole, the model is surer than it is right."
                : "On the whole, the model is right more often than it is sure."
        return """
            <div class="charts">
            <figure class="chart">
            <figcaption><strong>Accuracy by confidence</strong></figcaption>
            \(chart(bins))
            </figure>
            <div class="note">
            <p>Each dot gathers the photos of similar confidence, a larger one more of them; its line is the 95 % interval of \
            their accuracy. On the dashed line, of photos given 80 %, 80 % are right.</p>
            <p>\(verdict) The expected calibration error is <strong>\(percent(error))</strong>.</p>
            </div>
            </div>
            """
    }

    private static func chart(_ bins: [ReportMeasures.ReliabilityBin]) -> String {
        let plot = Plot(
            width: 360, height: 300, x: .shares(name: "confidence in the best label"), y: .shares(name: "accuracy"))
        let most = Double(bins.map(\.count).max() ?? 1)
        let dots = bins.filter { $0.count > 0 }.map { bin in
            let interval = ReportMeasures.wilsonInterval(hits: bin.right, of: bin.count)
            let column = plot.column(bin.meanConfidence)
            return "<line class=\"whisker\" x1=\"\(column)\" x2=\"\(column)\" y1=\"\(plot.row(interval.lowerBound))\" "
                + "y2=\"\(plot.row(interval.upperBound))\"/>"
                + plot.dot(
                    (bin.meanConfidence, bin.accuracy), radius: 3 + 6 * (Double(bin.count) / most).squareRoot(),
                    title: "\(counted(bin.count, "photo")) of \(percent(bin.range.lowerBound)) to "
                        + "\(percent(bin.range.upperBound)): \(percent(bin.accuracy)) right, confidence "
                        + "\(percent(bin.meanConfidence))")
        }
        let words = bins.filter { $0.count > 0 }.map {
            "\(wholePercent($0.meanConfidence)) confidence, \(wholePercent($0.accuracy)) right"
        }
        return plot.svg(
            label: "Accuracy by confidence: \(words.joined(separator: "; "))",
            plot.line([(0, 0), (1, 1)], "ideal") + "<g class=\"reliability\">\(dots.joined())</g>")
    }
}
