internal import Foundation
internal import ImprintCore

/// A table with a row for each label: the label, truncated if it is long, and right-aligned cells.
struct LabelTable {
    /// The labels as the table shows them.
    let names: [String]
    /// The width of the first column.
    let nameWidth: Int

    init(_ labels: [String]) {
        names = labels.map { cut(visibleName($0), to: 20) }
        nameWidth = max(names.map(\.count).max() ?? 0, "label".count)
    }

    /// Formats the table, with at most 80 columns for up to six cells.
    /// - Parameters:
    ///   - header: The names of the columns after the label.
    ///   - cells: The cells of each label.
    func text(_ header: [String], _ cells: [[String]]) -> String {
        (zip(["label"] + names, [header] + cells).map { row($0, $1, width: 10) }).joined(separator: "\n")
    }

    /// Formats a row with cells of a minimum width.
    func row(_ name: String, _ cells: [String], width: Int) -> String {
        right(name, nameWidth) + cells.map { right($0, width) }.joined()
    }

    /// Formats a fraction as a percentage, or nil as a dash.
    static func share(_ value: Double?) -> String { value.map { Terminal.percent($0) } ?? "–" }

    /// Formats a value with four decimals, or nil as a dash.
    static func decimal(_ value: Double?) -> String { value.map { String(format: "%.4f", $0) } ?? "–" }
}
