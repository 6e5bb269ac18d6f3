internal import Foundation
internal import ImprintModel

/// A chart with two axes, drawn as SVG.
struct Plot {
    /// An axis of a plot.
    struct Axis {
        /// The name of the quantity; empty if it needs none.
        var name = ""
        /// The values at the ends.
        let range: ClosedRange<Double>
        /// The values with a grid line and a label.
        let ticks: [Double]
        /// Whether the values are fractions, formatted as percentages.
        var isPercentage = false

        /// Returns an axis from 0 to at least `maximum`, or to 1 if `maximum` is not positive and finite.
        static func amounts(upTo maximum: Double, ticks count: Int = 5) -> Axis {
            let maximum = maximum > 1e-30 && maximum.isFinite ? maximum : 1
            let step = niceStep(maximum / Double(count))
            let steps = (maximum / step - 1e-9).rounded(.up)
            return Axis(range: 0...(step * steps), ticks: (0...Int(steps)).map { step * Double($0) })
        }

        /// Returns an axis of percentages that ends at 1, and begins at 0, 0.5 or 0.8, but not above `minimum`.
        static func percentages(from minimum: Double = 0, name: String = "", step: Double? = nil) -> Axis {
            let start = minimum >= 0.8 ? 0.8 : minimum >= 0.5 ? 0.5 : 0
            let step = step ?? (start == 0 ? 0.2 : start == 0.5 ? 0.1 : 0.05)
            let count = Int(((1 - start) / step).rounded())
            return Axis(
                name: name, range: start...1, ticks: (0...count).map { start + step * Double($0) }, isPercentage: true)
        }

        /// Returns an axis of the epochs from 1 to `count`, or of the phases of a detector.
        static func epochs(_ count: Int, _ unit: String) -> Axis {
            guard count > 1 else { return Axis(name: unit, range: 0...2, ticks: [1]) }
            let step = max(Int(niceStep(Double(count) / 7)), 1)
            let multiples = Array(stride(from: step, through: count, by: step))
            return Axis(
                name: unit, range: 1...Double(count), ticks: ((step > 1 ? [1] : []) + multiples).map(Double.init))
        }

        /// Returns the smallest of 1, 2, 5, 10, … (times any power of ten) that is at least `step`.
        static func niceStep(_ step: Double) -> Double {
            let power = pow(10, floor(log10(step)))
            let factor = step / power
            return power * (factor <= 1.000001 ? 1 : factor <= 2.000001 ? 2 : factor <= 5.000001 ? 5 : 10)
        }

        func text(_ value: Double) -> String {
            isPercentage ? String(format: "%.0f\u{a0}%%", value * 100) : compact(value, digits: 4)
        }

        /// Returns the position of a value along the axis, 0…1.
        func position(_ value: Double) -> Double {
            let position = (value - range.lowerBound) / (range.upperBound - range.lowerBound)
            return position.isNaN ? 0 : min(max(position, 0), 1)
        }
    }

    /// The width in user units, which are pixels on a phone.
    var width = 360.0
    /// The height in the same units.
    var height = 220.0
    let x: Axis
    let y: Axis

    private var left: Double { y.name.isEmpty ? 46 : 60 }
    /// The right margin; the last label of a percentage axis is wide.
    private var right: Double { x.isPercentage ? 20 : 14 }
    private let top = 10.0
    private var bottom: Double { x.name.isEmpty ? 24 : 38 }

    /// Creates a plot with two axes.
    init(width: Double = 360, height: Double = 220, x: Axis, y: Axis) {
        (self.width, self.height, self.x, self.y) = (width, height, x, y)
    }

    /// Returns the horizontal coordinate of a value.
    func column(_ value: Double) -> String { Self.text(left + (width - left - right) * x.position(value)) }

    /// Returns the vertical coordinate of a value.
    func row(_ value: Double) -> String { Self.text(height - bottom - (height - top - bottom) * y.position(value)) }

    /// Returns a line through points; consecutive points with equal coordinates become one.
    func line(_ points: [(x: Double, y: Double)], _ style: String = "") -> String {
        var coordinates: [String] = []
        for point in points {
            let coordinate = "\(column(point.x)),\(row(point.y))"
            if coordinates.last != coordinate { coordinates.append(coordinate) }
        }
        return "<polyline class=\"line \(style)\" points=\"\(coordinates.joined(separator: " "))\"/>"
    }

    /// Returns a dot with a tooltip.
    func dot(_ point: (x: Double, y: Double), radius: Double, title: String) -> String {
        "<circle cx=\"\(column(point.x))\" cy=\"\(row(point.y))\" r=\"\(Self.text(radius))\">"
            + "<title>\(escaped(title))</title></circle>"
    }

    /// Returns the chart: the axes, and `content` on top of them.
    /// - Parameter label: The description of the chart for screen readers.
    func svg(label: String, _ content: String) -> String {
        "<svg viewBox=\"0 0 \(Self.text(width)) \(Self.text(height))\" role=\"img\" aria-label=\"\(escaped(label))\">"
            + axes + content + "</svg>"
    }

    private var axes: String {
        let floor = height - bottom
        let rows = y.ticks.map { value in
            let row = row(value)
            return "<line class=\"grid\" x1=\"\(Self.text(left))\" x2=\"\(Self.text(width - right))\" y1=\"\(row)\" "
                + "y2=\"\(row)\"/><text class=\"tick end\" x=\"\(Self.text(left - 7))\" y=\"\(row)\" dy=\".35em\">"
                + "\(y.text(value))</text>"
        }
        let columns = x.ticks.map { value in
            "<text class=\"tick middle\" x=\"\(column(value))\" y=\"\(Self.text(floor + 15))\">\(x.text(value))</text>"
        }
        let middle = Self.text((left + width - right) / 2)
        let name =
            x.name.isEmpty
            ? "" : "<text class=\"tick middle\" x=\"\(middle)\" y=\"\(Self.text(height - 5))\">\(x.name)</text>"
        let side =
            y.name.isEmpty
            ? ""
            : "<text class=\"tick middle\" transform=\"translate(9 \(Self.text((top + floor) / 2))) rotate(-90)\">\(y.name)</text>"
        return rows.joined() + columns.joined() + name + side
    }

    static func text(_ value: Double) -> String {
        value == value.rounded() ? String(format: "%.0f", value) : String(format: "%.1f", value)
    }
}
