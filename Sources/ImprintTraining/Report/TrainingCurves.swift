internal import Foundation
package import ImprintModel
package import ImprintNetwork

/// What was measured after each epoch, as charts; for pages about a run that is over, or under way.
package enum TrainingCurves {
    /// The epoch with the lowest validation loss; nil if nothing is validated on.
    package static func bestEpoch(_ history: [EpochMetrics]) -> EpochMetrics? {
        history.filter { $0.validationLoss?.isFinite ?? false }
            .min { $0.validationLoss ?? .infinity < $1.validationLoss ?? .infinity }
    }

    /// The charts of loss, accuracy and learning rate; nothing before the first epoch is done.
    /// - Parameter kept: The epoch that the model is of, if there is one already; else the best up to now is marked.
    package static func html(_ history: [EpochMetrics], kept: EpochMetrics? = nil) -> String {
        guard let last = history.last else { return "" }
        let losses = [
            Series(kind: .training, history) { $0.loss }, Series(kind: .validation, history) { $0.validationLoss },
        ]
        let accuracies = [
            Series(kind: .training, history) { $0.accuracy },
            Series(kind: .validation, history) { $0.validationAccuracy },
        ]
        let rates = [Series(kind: .rate, history) { $0.learningRate }]
        let best = kept ?? bestEpoch(history)
        let validates = last.validationLoss != nil
        return """
            <div class="charts">
            \(chart("Loss", losses, history.count, .amounts(upTo: greatest(losses)), best))
            \(chart("Accuracy", accuracies, history.count, .shares(from: least(accuracies)), best))
            \(chart("Learning rate", rates, history.count, .amounts(upTo: greatest(rates), ticks: 3), nil, height: 130))
            <div class="note">
            \(summary(history, kept: kept, validates: validates))
            </div>
            </div>
            """
    }

    private static func summary(_ history: [EpochMetrics], kept: EpochMetrics?, validates: Bool) -> String {
        var lines: [String] = []
        let best = bestEpoch(history)
        if let loss = (kept ?? best)?.validationLoss, let epoch = (kept ?? best)?.epoch {
            let number = compact(Double(loss), digits: 3)
            let what = kept == nil ? "has" : "is kept, with"
            lines.append(
                epoch == best?.epoch
                    ? "<strong>Epoch \(epoch)</strong> of \(history.count) \(what) the lowest validation loss, \(number)."
                    : "<strong>Epoch \(epoch)</strong> of \(history.count) is kept, with a validation loss of \(number); losses before "
                        + "were measured on other photos.")
        }
        lines.append(
            validates
                ? "Where the curve of validation turns up while that of training still falls, the network learns its photos by heart."
                : "There is no validation set, so these curves do not show the accuracy on new photos; the last epoch is kept."
        )
        return lines.map { "<p>\($0)</p>" }.joined(separator: "\n")
    }

    private static func greatest(_ series: [Series]) -> Double { series.flatMap(\.points).map(\.value).max() ?? 1 }
    private static func least(_ series: [Series]) -> Double { series.flatMap(\.points).map(\.value).min() ?? 0 }

    /// One number of each epoch.
    private struct Series {
        enum Kind: String { case training, validation, rate }

        let kind: Kind
        let points: [(epoch: Int, value: Double)]

        /// Numbers that are not finite have no place in a chart.
        init(kind: Kind, _ history: [EpochMetrics], _ value: (EpochMetrics) -> Float?) {
            self.kind = kind
            points = history.compactMap { epoch in
                value(epoch).flatMap { $0.isFinite ? (epoch.epoch, Double($0)) : nil }
            }
        }
    }

    private static func chart(
        _ title: String, _ series: [Series], _ epochs: Int, _ axis: Plot.Axis, _ best: EpochMetrics?,
        height: Double = 220
    ) -> String {
        let series = series.filter { !$0.points.isEmpty }
        let plot = Plot(height: height, x: .epochs(epochs), y: axis)
        let radius = epochs > 200 ? 0.9 : epochs > 60 ? 1.5 : 2.6
        let lines = series.map { series in
            let dots = series.points.map { point in
                let value = axis.isShare ? percent(point.value) : compact(point.value, digits: 4)
                return plot.dot(
                    (Double(point.epoch), point.value), radius: radius,
                    title: "\(series.kind == .rate ? title : series.kind.rawValue), epoch \(point.epoch): \(value)")
            }
            return "<g class=\"\(series.kind)\">\(plot.line(series.points.map { (Double($0.epoch), $0.value) }))"
                + dots.joined() + "</g>"
        }
        let legend =
            series.first?.kind == .rate
            ? "" : series.map { "<span class=\"key \($0.kind)\">\($0.kind)</span>" }.joined(separator: " ")
        let ends = series.compactMap { series in
            series.points.last.map {
                "\(series.kind == .rate ? "" : "\(series.kind) ")\(axis.isShare ? percent($0.value) : compact($0.value, digits: 3))"
            }
        }
        return """
            <figure class="chart \(title.lowercased().replacing(" ", with: "-"))">
            <figcaption><strong>\(title)</strong> \(legend)</figcaption>
            \(plot.svg(
                label: "\(title) over \(counted(epochs, "epoch")); at the end \(ends.joined(separator: ", "))",
                (best.map { mark($0.epoch, of: epochs, plot) } ?? "") + lines.joined()))
            </figure>
            """
    }

    /// A dashed line at an epoch, with its number where there is room: losses fall, accuracies rise.
    private static func mark(_ epoch: Int, of epochs: Int, _ plot: Plot) -> String {
        let place = plot.column(Double(epoch))
        let floor = plot.row(plot.y.range.lowerBound)
        let isLate = Double(epoch) > Double(epochs) / 2
        let height = plot.y.isShare ? "\(floor)\" dy=\"-6" : "19"
        return "<line class=\"best\" x1=\"\(place)\" x2=\"\(place)\" y1=\"10\" y2=\"\(floor)\"/>"
            + "<text class=\"tick \(isLate ? "end" : "")\" x=\"\(place)\" dx=\"\(isLate ? -5 : 5)\" y=\"\(height)\">best: \(epoch)</text>"
    }
}
