public import Foundation
public import ImprintFormats

/// A page about a training run: its curves, its images and the settings that repeat it.
///
/// One HTML file that needs nothing else: no scripts, no fonts, no network. Light and dark follow the reader's system.
public struct Report: Sendable {
    /// The page.
    public let html: String

    /// Makes the page for a trained model.
    public init(_ weights: WeightsFile) {
        let title = "\(weights.network.name): \(weights.labels.joined(separator: ", "))"
        let record = weights.training
        let curves = record.map { record in
            let loss = Chart(
                title: "Loss",
                lines: [("training", record.history.map { $0.loss })]
                    + Self.line(record.history.map(\.validationLoss)), ceiling: nil)
            let accuracy = Chart(
                title: "Accuracy",
                lines: [("training", record.history.map { $0.accuracy })]
                    + Self.line(record.history.map(\.validationAccuracy)), ceiling: 1)
            return "<div class=\"charts\">\(loss.svg)\(accuracy.svg)</div>"
        }
        let page = Page(
            title: title,
            body: """
                \(record?.accuracy.map { "<p class=\"figure\">\(percent($0))<span> accuracy after the last epoch</span></p>" } ?? "")
                \(curves ?? "")
                \(Page.table("Images", Self.images(weights)))
                \(Page.table("Settings", Self.settings(weights)))
                """)
        html = page.html
    }

    /// Writes the page to a file.
    /// - Throws: `FileError` where it cannot be written.
    public func write(to url: URL) throws { try AtomicFile.write(Array(html.utf8), to: url) }

    private static func line(_ values: [Float?]) -> [(name: String, values: [Float])] {
        let known = values.compactMap { $0 }
        return known.count == values.count && !known.isEmpty ? [("validation", known)] : []
    }

    private static func images(_ weights: WeightsFile) -> [(String, String)] {
        guard let record = weights.training else { return [] }
        return weights.labels.map { label in
            let training = record.trainingImages[label] ?? 0
            let validation = record.validationImages[label] ?? 0
            return (label, "\(training) to train on, \(validation) to validate on")
        }
    }

    private static func settings(_ weights: WeightsFile) -> [(String, String)] {
        var rows = [
            ("network", "\(weights.network.name), \(weights.parameters.layout.trainableParameterCount) parameters"),
            ("input", "\(weights.network.input), \(weights.preprocessing.cropAndScale.rawValue)"),
        ]
        guard let record = weights.training else { return rows }
        rows += [
            ("epochs", "\(record.history.count) of \(record.epochs)"), ("batch size", "\(record.batchSize)"),
            ("learning rate", "\(record.optimizer.learningRate)"), ("momentum", "\(record.optimizer.momentum)"),
            ("weight decay", "\(record.optimizer.weightDecay)"), ("label smoothing", "\(record.labelSmoothing)"),
            ("augmentation", record.augmentations.isEmpty ? "none" : record.augmentations.joined(separator: ",")),
            ("seed", "\(record.seed)"), ("data set", record.dataDigest ?? "unknown"),
        ]
        if let base = weights.base { rows.append(("base", base)) }
        return rows
    }
}

/// Lines over the epochs, as SVG.
private struct Chart {
    let title: String
    let lines: [(name: String, values: [Float])]
    /// The top of the vertical axis; the largest value where `nil`.
    let ceiling: Float?

    private let width = 420.0
    private let height = 220.0
    private let left = 44.0
    private let bottom = 24.0
    private let top = 30.0

    var svg: String {
        let highest = Double(ceiling ?? max(lines.flatMap(\.values).max() ?? 1, 1e-6))
        let count = lines.map(\.values.count).max() ?? 0
        func x(_ epoch: Int) -> Double {
            left + (width - left - 8) * (count > 1 ? Double(epoch) / Double(count - 1) : 0.5)
        }
        func y(_ value: Double) -> Double { height - bottom - (height - bottom - top) * min(value / highest, 1) }
        var parts = ["<text x=\"\(left)\" y=\"14\" class=\"title\">\(title)</text>"]
        for step in 0...4 {
            let value = highest * Double(step) / 4
            let place = number(y(value))
            parts.append("<line x1=\"\(left)\" y1=\"\(place)\" x2=\"\(width - 8)\" y2=\"\(place)\" class=\"grid\"/>")
            parts.append(
                "<text x=\"\(left - 6)\" y=\"\(number(y(value) + 4))\" class=\"axis end\">\(number(value))</text>")
        }
        for epoch in Set([0, count / 2, max(count - 1, 0)]).sorted() {
            parts.append(
                "<text x=\"\(number(x(epoch)))\" y=\"\(height - 6)\" class=\"axis middle\">\(epoch + 1)</text>")
        }
        for (place, line) in lines.enumerated() {
            let points = line.values.enumerated().map { "\(number(x($0))),\(number(y(Double($1))))" }
            parts.append("<polyline points=\"\(points.joined(separator: " "))\" class=\"line\(place)\"/>")
            parts += points.map { point in
                let ends = point.split(separator: ",")
                return "<circle cx=\"\(ends[0])\" cy=\"\(ends[1])\" r=\"2.5\" class=\"dot\(place)\"/>"
            }
            parts.append(
                "<text x=\"\(width - 8 - Double(lines.count - 1 - place) * 76)\" y=\"14\" class=\"axis end name\(place)\">"
                    + "\(line.name)</text>")
        }
        return "<svg viewBox=\"0 0 \(number(width)) \(number(height))\" role=\"img\" aria-label=\"\(title) by epoch\">"
            + parts.joined() + "</svg>"
    }
}

private func number(_ value: Double) -> String { String(format: "%.2f", value) }

private func percent(_ share: Float) -> String { String(format: "%.1f %%", share * 100) }
