internal import Foundation
internal import ImprintModel

// Number formats of pages.

/// Formats a fraction as a percentage with one decimal.
func percent(_ fraction: Double) -> String { String(format: "%.1f\u{a0}%%", fraction * 100) }

/// Formats a fraction as a percentage with one decimal, or nil as a dash.
func percent(_ fraction: Double?) -> String { fraction.map { percent($0) } ?? "–" }

/// Formats a fraction as a whole percentage; only exactly 0 and 1 become 0 % and 100 %.
func wholePercent(_ fraction: Double) -> String {
    if fraction > 0 && fraction < 0.005 { return "<1\u{a0}%" }
    if fraction < 1 && fraction >= 0.995 { return ">99\u{a0}%" }
    return String(format: "%.0f\u{a0}%%", fraction * 100)
}

/// Formats a number with at most `digits` significant digits, without trailing zeros and without leading zeros of the exponent.
func compact(_ value: Double, digits: Int = 6) -> String {
    String(format: "%.\(digits)g", value).replacing("e-0", with: "e-").replacing("e+0", with: "e").replacing(
        "e+", with: "e")
}

/// Formats a count with a space between thousands.
func grouped(_ count: Int) -> String {
    var text = "\(abs(count))"
    var end = text.index(text.endIndex, offsetBy: -3, limitedBy: text.startIndex)
    while let index = end, index > text.startIndex {
        text.insert("\u{202f}", at: index)
        end = text.index(index, offsetBy: -3, limitedBy: text.startIndex)
    }
    return count < 0 ? "-" + text : text
}

/// Formats a count with a space between thousands, and its noun, such as "2 photos"; `counted(_:_:)` is for text.
func groupedCount(_ count: Int, _ noun: String) -> String { "\(grouped(count)) \(count == 1 ? noun : noun + "s")" }
