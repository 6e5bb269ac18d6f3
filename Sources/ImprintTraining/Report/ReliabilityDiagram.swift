internal import ImprintModel

/// The reliability diagram: accuracy against confidence, in bins.
enum ReliabilityDiagram {
    /// Returns the chart and its explanation; empty without images.
    /// - Parameter calibration: The calibration of the confidences; nil if they are not calibrated.
    static func html(_ evaluation: Evaluation, calibration: Calibration?) -> String {
        guard !evaluation.results.isEmpty else { return "" }
        let dots = evaluation.reliability.compactMap(Dot.init)
        let overconfidence =
            dots.reduce(0.0) { $0 + Double($1.count) * ($1.confidence - $1.accuracy) }
            / Double(evaluation.results.count)
        let calibrated =
            calibration.map {
                " Calibration on \(groupedCount($0.images, "validation photo")) changed it from "
                    + "\(percent($0.errorBefore)) to \(percent($0.errorAfter))."
            } ?? ""
        let summary =
            abs(overconfidence) < 0.02
            ? "On average, the confidence matches the accuracy."
            : overconfidence > 0
                ? "On average, the model is overconfident." : "On average, the model is underconfident."
        return """
            <div class="charts">
            <figure class="chart">
            <figcaption><strong>Accuracy by confidence</strong></figcaption>
            \(chart(dots))
            </figure>
            <div class="note">
            <p>Each dot is a bin of photos with similar confidence; a larger dot has more photos. The vertical line is the 95 % \
            confidence interval of the accuracy. On the dashed line, the confidence equals the accuracy.</p>
            <p>\(summary) The expected calibration error (ECE) is <strong>\(percent(evaluation.calibrationError))</strong>.\(calibrated)</p>
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
            width: 360, height: 300, x: .percentages(name: "confidence of the predicted label"),
            y: .percentages(name: "accuracy"))
        let maximum = Double(dots.map(\.count).max() ?? 1)
        let elements = dots.map { dot in
            let interval = dot.interval
            let column = plot.column(dot.confidence)
            return "<line class=\"whisker\" x1=\"\(column)\" x2=\"\(column)\" y1=\"\(plot.row(interval.lowerBound))\" "
                + "y2=\"\(plot.row(interval.upperBound))\"/>"
                + plot.dot(
                    (dot.confidence, dot.accuracy), radius: 3 + 6 * (Double(dot.count) / maximum).squareRoot(),
                    title: "\(groupedCount(dot.count, "photo")) from \(percent(dot.range.lowerBound)) to "
                        + "\(percent(dot.range.upperBound)): accuracy \(percent(dot.accuracy)), mean confidence "
                        + "\(percent(dot.confidence))")
        }
        let words = dots.map { "confidence \(wholePercent($0.confidence)), accuracy \(wholePercent($0.accuracy))" }
        return plot.svg(
            label: "Accuracy by confidence: \(words.joined(separator: "; "))",
            plot.line([(0, 0), (1, 1)], "ideal") + "<g class=\"reliability\">\(elements.joined())</g>")
    }
}
