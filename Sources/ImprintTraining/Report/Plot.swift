internal import Foundation
internal import ImprintModel

/// A rectangle with two axes, drawn as SVG; charts place their lines and points in it.
struct Plot {
    /// One direction of a plot.
    struct Axis {
        /// What it measures; empty where that is plain.
        var name = ""
        /// The values at its ends.
        let range: ClosedRange<Double>
        /// Where it has a line and a number.
        let ticks: [Double]
        /// Whether its numbers are shares, written as percentages.
        var isShare = false

        /// An axis from 0 to at least `greatest`.
        ///
        /// Where that is no amount that a chart could show, the axis ends at 1.
        static func amounts(upTo greatest: Double, name: String = "", ticks count: Int = 5) -> Axis {
            let greatest = greatest > 1e-30 && greatest.isFinite ? greatest : 1
            let step = niceStep(greatest / Double(count))
            let steps = (greatest / step - 1e-9).rounded(.up)
            return Axis(name: name, range: 0...(step * steps), ticks: (0...Int(steps)).map { step * Double($0) })
        }

        /// An axis of shares that ends at 1 and begins at 0, or where all shares are high, at a half or four fifths.
        static func shares(from least: Double = 0, name: String = "", step: Double? = nil) -> Axis {
            let start = least >= 0.8 ? 0.8 : least >= 0.5 ? 0.5 : 0
            let step = step ?? (start == 0 ? 0.2 : start == 0.5 ? 0.1 : 0.05)
            let count = Int(((1 - start) / step).rounded())
            return Axis(
                name: name, range: start...1, ticks: (0...count).map { start + step * Double($0) }, isShare: true)
        }

        /// An axis of the epochs from 1 to `count`.
        static func epochs(_ count: Int) -> Axis {
            guard count > 1 else { return Axis(name: "epoch", range: 0...2, ticks: [1]) }
            let step = max(Int(niceStep(Double(count) / 7)), 1)
            let multiples = Array(stride(from: step, through: count, by: step))
            return Axis(
                name: "epoch", range: 1...Double(count), ticks: ((step > 1 ? [1] : []) + multiples).map(Double.init))
        }

        /// The least of 1, 2, 5, 10, … (times any power of ten) that is at least `step`.
        static func niceStep(_ step: Double) -> Double {
            let power = pow(10, floor(log10(step)))
            let factor = step / power
            return power * (factor <= 1.000001 ? 1 : factor <= 2.000001 ? 2 : factor <= 5.000001 ? 5 : 10)
        }

        func text(_ value: Double) -> String {
            isShare ? String(format: "%.0f\u{a0}%%", value * 100) : compact(value, digits: 4)
        }

        /// How far along the axis a value is, 0…1.
        func share(_ value: Double) -> Double {
            let share = (value - range.lowerBound) / (range.upperBound - range.lowerBound)
            return share.isNaN ? 0 : min(max(share, 0), 1)
        }
    }

    /// The size in user units, which are pixels on a phone.
    var width = 360.0
    /// The height in the same units.
    var height = 220.0
    let x: Axis
    let y: Axis

    private var left: Double { y.name.isEmpty ? 46 : 60 }
    /// The last number of an axis of shares is wide.
    private var right: Double { x.isShare ? 20 : 14 }
    private let top = 10.0
    private var bottom: Double { x.name.isEmpty ? 24 : 38 }

    /// Makes a plot with two axes.
    init(width: Double = 360, height: Double = 220, x: Axis, y: Axis) {
        (self.width, self.height, self.x, self.y) = (width, height, x, y)
    }

    /// Where a value is along the width.
    func column(_ value: Double) -> String { Self.text(left + (width - left - right) * x.share(value)) }

    /// Where a value is along the height.
    func row(_ value: Double) -> String { Self.text(height - bottom - (height - top - bottom) * y.share(value)) }

    /// A line through points, of which those that fall on the one before are left out.
    func line(_ points: [(x: Double, y: Double)], _ style: String = "") -> String {
        var places: [String] = []
        for point in points {
            let place = "\(column(point.x)),\(row(point.y))"
            if places.last != place { places.append(place) }
        }
        return "<polyline class=\"line \(style)\" points=\"\(places.joined(separator: " "))\"/>"
    }

    /// A dot that says what it stands for when it is pointed at.
    func dot(_ point: (x: Double, y: Double), radius: Double, title: String) -> String {
        "<circle cx=\"\(column(point.x))\" cy=\"\(row(point.y))\" r=\"\(Self.text(radius))\">"
            + "<title>\(escaped(title))</title></circle>"
    }

    /// The picture: the axes, and `content` upon them.
    /// - Parameter label: What the picture shows, for those who cannot see it.
    func svg(label: String, _ content: String) -> String {
        "<svg viewBox=\"0 0 \(Self.text(width)) \(Self.text(height))\" role=\"img\" aria-label=\"\(escaped(label))\">"
            + axes + content + "</svg>"
    }

    private var axes: String {
        let floor = height - bottom
        let rows = y.ticks.map { value in
            let place = row(value)
            return "<line class=\"grid\" x1=\"\(Self.text(left))\" x2=\"\(Self.text(width - right))\" y1=\"\(place)\" "
                + "y2=\"\(place)\"/><text class=\"tick end\" x=\"\(Self.text(left - 7))\" y=\"\(place)\" dy=\".35em\">"
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
