internal import Foundation
internal import ImprintModel

// Numbers as pages write them.

/// A share as a percentage with one decimal.
func percent(_ share: Double) -> String { String(format: "%.1f\u{a0}%%", share * 100) }

/// A share as a percentage with one decimal, a dash if there is none.
func percent(_ share: Double?) -> String { share.map { percent($0) } ?? "–" }

/// A share as a whole percentage; what is almost nothing or almost all does not become so.
func wholePercent(_ share: Double) -> String {
    if share > 0 && share < 0.005 { return "<1\u{a0}%" }
    if share < 1 && share >= 0.995 { return ">99\u{a0}%" }
    return String(format: "%.0f\u{a0}%%", share * 100)
}

/// A number with up to so many significant digits, without zeros at its end or before its exponent.
func compact(_ value: Double, digits: Int = 6) -> String {
    String(format: "%.\(digits)g", value).replacing("e-0", with: "e-").replacing("e+0", with: "e").replacing(
        "e+", with: "e")
}

/// A count with a space between thousands.
func grouped(_ count: Int) -> String {
    var text = "\(abs(count))"
    var end = text.index(text.endIndex, offsetBy: -3, limitedBy: text.startIndex)
    while let place = end, place > text.startIndex {
        text.insert("\u{202f}", at: place)
        end = text.index(place, offsetBy: -3, limitedBy: text.startIndex)
    }
    return count < 0 ? "-" + text : text
}

/// A count with its noun.
func counted(_ count: Int, _ noun: String) -> String { "\(grouped(count)) \(count == 1 ? noun : noun + "s")" }
