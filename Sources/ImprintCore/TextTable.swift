internal import Foundation

/// Formatting of tables and values as text.
package enum TextTable {
    /// Returns rows with aligned columns: the first `leading` columns are left-aligned, the others right-aligned.
    package static func aligned(_ rows: [[String]], leading: Int) -> String {
        guard let first = rows.first else { return "" }
        let widths = first.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            row.enumerated().map { column, text in
                let space = String(repeating: " ", count: widths[column] - text.count)
                guard column < leading else { return space + text }
                return column == row.count - 1 ? text : text + space
            }.joined(separator: "  ")
        }.joined(separator: "\n")
    }

    /// Formats a number, or returns a dash for 0.
    package static func orDash(_ number: Int, _ text: (Int) -> String) -> String { number == 0 ? "–" : text(number) }

    /// Formats multiplications as GFLOP; each multiplication with its addition counts as two operations.
    package static func gigaflops(_ multiplications: Int) -> String {
        number(2e-9 * Double(multiplications), digits: 3)
    }

    /// Formats multiplications as MFLOP.
    package static func megaflops(_ multiplications: Int) -> String {
        number(2e-6 * Double(multiplications), digits: 2)
    }

    private static func number(_ number: Double, digits: Int) -> String {
        let smallest = pow(10, -Double(digits))
        let shown = 0 < number && number < smallest ? smallest : number
        return (shown == number ? "" : "<") + String(format: "%.\(digits)f", shown)
    }

    /// Formats a size as "12 B", "3.4 kB" or "5.6 MB".
    package static func bytes(_ count: Int) -> String {
        switch count {
        case ..<1000: "\(count) B"
        case ..<1_000_000: String(format: "%.1f kB", Double(count) / 1e3)
        default: String(format: "%.1f MB", Double(count) / 1e6)
        }
    }

    /// Truncates a text to at most `length` characters by omitting its middle.
    package static func cut(_ text: String, to length: Int) -> String {
        guard text.count > length else { return text }
        let end = (length - 1) * 5 / 6
        return text.prefix(length - 1 - end) + "…" + text.suffix(end)
    }
}
