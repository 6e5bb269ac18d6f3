internal import ImprintModel

/// Whether the model is right as often as it says: accuracy against confidence, in bins.
enum ReliabilityDiagram {
    /// The chart and what it says; nothing without images.
    /// - Parameter calibration: How the confidences were calibrated, where they were.
    static func html(_ evaluation: Evaluation, calibration: Calibration?) -> String {
        guard !evaluation.results.isEmpty else { return "" }
        let dots = evaluation.reliability.compactMap(Dot.init)
        let over =
            dots.reduce(0.0) { $0 + Double($1.count) * ($1.confidence - $1.accuracy) }
            / Double(evaluation.results.count)
        let calibrated =
            calibration.map {
                " Confidences are calibrated: on \(counted($0.images, "photo")) to validate on, it was "
                    + "\(percent($0.errorBefore)) before and \(percent($0.errorAfter)) after."
            } ?? ""
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
            \(chart(dots))
            </figure>
            <div class="note">
            <p>Each dot gathers the photos of similar confidence, a larger one more of them; its line is the 95 % interval of \
            their accuracy. On the dashed line, of photos given 80 %, 80 % are right.</p>
            <p>\(verdict) The expected calibration error is <strong>\(percent(evaluation.calibrationError))</strong>.\(calibrated)</p>
            </div>
            </div>
            """
    }

    /// A bin that has images.
    private struct Dot {
        let range: ClosedRange<Double>
        let count: Int
        let confidence: Double
        let accuracy: Double

        init?(_ bin: Evaluation.ReliabilityBin) {
            guard let confidence = bin.meanConfidence, let accuracy = bin.accuracy else { return nil }
            range = bin.lowerBound...bin.upperBound
            (count, self.confidence, self.accuracy) = (bin.count, confidence, accuracy)
        }

        var interval: ClosedRange<Double> {
            Evaluation.interval(hits: Int((accuracy * Double(count)).rounded()), of: count)
        }
    }

    private static func chart(_ dots: [Dot]) -> String {
        let plot = Plot(
            width: 360, height: 300, x: .shares(name: "confidence in the best label"), y: .shares(name: "accuracy"))
        let most = Double(dots.map(\.count).max() ?? 1)
        let marks = dots.map { dot in
            let interval = dot.interval
            let column = plot.column(dot.confidence)
            return "<line class=\"whisker\" x1=\"\(column)\" x2=\"\(column)\" y1=\"\(plot.row(interval.lowerBound))\" "
                + "y2=\"\(plot.row(interval.upperBound))\"/>"
                + plot.dot(
                    (dot.confidence, dot.accuracy), radius: 3 + 6 * (Double(dot.count) / most).squareRoot(),
                    title: "\(counted(dot.count, "photo")) of \(percent(dot.range.lowerBound)) to "
                        + "\(percent(dot.range.upperBound)): \(percent(dot.accuracy)) right, confidence "
                        + "\(percent(dot.confidence))")
        }
        let words = dots.map { "\(wholePercent($0.confidence)) confidence, \(wholePercent($0.accuracy)) right" }
        return plot.svg(
            label: "Accuracy by confidence: \(words.joined(separator: "; "))",
            plot.line([(0, 0), (1, 1)], "ideal") + "<g class=\"reliability\">\(marks.joined())</g>")
    }
}
