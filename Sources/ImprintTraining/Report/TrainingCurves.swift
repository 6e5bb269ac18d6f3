internal import Foundation
package import ImprintModel
package import ImprintNetwork

/// The charts of loss, accuracy and learning rate after each epoch, for finished and running training.
package enum TrainingCurves {
    /// Returns the epoch with the best validation result; nil without a validation set.
    /// - Parameter startAccuracy: The accuracy of the fitted head, which the epoch must reach; nil if it does not count.
    package static func bestEpoch(
        _ history: some Sequence<EpochMetrics>, startAccuracy: Float? = nil
    ) -> EpochMetrics? {
        history.filter { ($0.validationLoss?.isFinite ?? false) && $0.isAsAccurate(asStart: startAccuracy) }
            .min { $0.isBetter(than: $1) ?? false }
    }

    /// Returns the charts; empty before the first epoch has finished.
    /// - Parameters:
    ///   - history: The metrics of each epoch.
    ///   - record: The record of the model; nil during training, when the charts highlight the best epoch so far.
    ///   - incomparable: During training, the number of epochs before the photos changed, which do not count for the best one so far.
    ///   - startAccuracy: During training, the accuracy of the fitted head, which the best epoch must reach; nil if it does not count.
    ///   - unit: "epoch", or "phase" for a detector.
    package static func html(
        _ history: [EpochMetrics], record: TrainingRecord? = nil, incomparable: Int = 0, startAccuracy: Float? = nil,
        unit: String
    ) -> String {
        guard let last = history.last else { return "" }
        let losses = [
            Series(kind: .training, history) { $0.loss }, Series(kind: .validation, history) { $0.validationLoss },
        ]
        let accuracies = [
            Series(kind: .training, history) { $0.accuracy },
            Series(kind: .validation, history) { $0.validationAccuracy },
        ]
        let rates = [Series(kind: .rate, history) { $0.learningRate }]
        let bestSoFar =
            record == nil
            ? bestEpoch(history.dropFirst(incomparable), startAccuracy: startAccuracy) : bestEpoch(history)
        let best = record?.keepsInitialParameters == true ? nil : record?.bestEpochMetrics ?? bestSoFar
        let validates = last.validationLoss != nil
        return """
            <div class="charts">
            \(chart("Loss", losses, history.count, unit, .amounts(upTo: maximum(losses)), best))
            \(chart("Accuracy", accuracies, history.count, unit, .percentages(from: minimum(accuracies)), best))
            \(chart("Learning rate", rates, history.count, unit, .amounts(upTo: maximum(rates), ticks: 3), nil, height: 130))
            <div class="note">
            \(summary(history, record, best: bestSoFar, startAccuracy: startAccuracy, unit, validates: validates))
            </div>
            </div>
            """
    }

    private static func summary(
        _ history: [EpochMetrics], _ record: TrainingRecord?, best: EpochMetrics?, startAccuracy: Float?,
        _ unit: String, validates: Bool
    ) -> String {
        var lines: [String] = []
        if record?.keepsInitialParameters == true {
            lines.append("The model is the fitted head, because every \(unit) was less accurate on the validation set.")
        } else if let shown = record?.bestEpochMetrics ?? best, let loss = shown.validationLoss {
            let precision = shown.validationAveragePrecision
            let name = precision == nil ? "validation loss" : "mAP@.5:.95"
            let bestName = precision == nil ? "lowest \(name)" : "highest \(name)"
            let value = compact(Double(precision ?? loss), digits: 3)
            let epochText = "<strong>\(unit) \(shown.epoch)</strong> of \(history.count)"
            if shown.epoch != best?.epoch {
                let reason =
                    record?.startAccuracy == nil
                    ? "Earlier \(unit)s had other validation photos."
                    : "Better \(unit)s had other validation photos, or were less accurate than the fitted head."
                lines.append(
                    "The model is from \(epochText), with \(precision == nil ? "a" : "an") \(name) of \(value). \(reason)"
                )
            } else if record != nil {
                lines.append("The model is from \(epochText), with the \(bestName), \(value).")
            } else {
                lines.append("The \(bestName) so far is \(value), in \(epochText).")
            }
        } else if validates, record == nil, startAccuracy != nil {
            lines.append("No \(unit) so far is as accurate on the validation set as the fitted head.")
        }
        lines.append(
            validates
                ? "The network overfits if the validation loss rises while the training loss still falls."
                : "There is no validation set, so the curves do not show the accuracy on new photos. The model is from the last \(unit)."
        )
        return lines.map { "<p>\($0)</p>" }.joined(separator: "\n")
    }

    private static func maximum(_ series: [Series]) -> Double { series.flatMap(\.points).map(\.value).max() ?? 1 }
    private static func minimum(_ series: [Series]) -> Double { series.flatMap(\.points).map(\.value).min() ?? 0 }

    /// A metric of each epoch.
    private struct Series {
        enum Kind: String { case training, validation, rate }

        let kind: Kind
        let points: [(epoch: Int, value: Double)]

        /// Creates a series without the values that are not finite.
        init(kind: Kind, _ history: [EpochMetrics], _ value: (EpochMetrics) -> Float?) {
            self.kind = kind
            points = history.compactMap { epoch in
                value(epoch).flatMap { $0.isFinite ? (epoch.epoch, Double($0)) : nil }
            }
        }
    }

    private static func chart(
        _ title: String, _ series: [Series], _ epochs: Int, _ unit: String, _ axis: Plot.Axis,
        _ best: EpochMetrics?, height: Double = 220
    ) -> String {
        let series = series.filter { !$0.points.isEmpty }
        let plot = Plot(height: height, x: .epochs(epochs, unit), y: axis)
        let radius = epochs > 200 ? 0.9 : epochs > 60 ? 1.5 : 2.6
        let lines = series.map { series in
            let dots = series.points.map { point in
                let value = axis.isPercentage ? percent(point.value) : compact(point.value, digits: 4)
                return plot.dot(
                    (Double(point.epoch), point.value), radius: radius,
                    title: "\(series.kind == .rate ? title : series.kind.rawValue), \(unit) \(point.epoch): \(value)")
            }
            return "<g class=\"\(series.kind)\">\(plot.line(series.points.map { (Double($0.epoch), $0.value) }))"
                + dots.joined() + "</g>"
        }
        let legend =
            series.first?.kind == .rate
            ? "" : series.map { "<span class=\"key \($0.kind)\">\($0.kind)</span>" }.joined(separator: " ")
        let ends = series.compactMap { series in
            series.points.last.map {
                "\(series.kind == .rate ? "" : "\(series.kind) ")\(axis.isPercentage ? percent($0.value) : compact($0.value, digits: 3))"
            }
        }
        return """
            <figure class="chart \(title.lowercased().replacing(" ", with: "-"))">
            <figcaption><strong>\(title)</strong> \(legend)</figcaption>
            \(plot.svg(
                label: "\(title) over \(groupedCount(epochs, unit)); at the end \(ends.joined(separator: ", "))",
                (best.map { highlight($0.epoch, of: epochs, plot) } ?? "") + lines.joined()))
            </figure>
            """
    }

    /// Returns a dashed line at an epoch with its number: at the top for losses, at the bottom for accuracies, so it does not hide the curve.
    private static func highlight(_ epoch: Int, of epochs: Int, _ plot: Plot) -> String {
        let column = plot.column(Double(epoch))
        let floor = plot.row(plot.y.range.lowerBound)
        let isLate = Double(epoch) > Double(epochs) / 2
        let height = plot.y.isPercentage ? "\(floor)\" dy=\"-6" : "19"
        return "<line class=\"best\" x1=\"\(column)\" x2=\"\(column)\" y1=\"10\" y2=\"\(floor)\"/>"
            + "<text class=\"tick \(isLate ? "end" : "")\" x=\"\(column)\" dx=\"\(isLate ? -5 : 5)\" y=\"\(height)\">best: \(epoch)</text>"
    }
}
