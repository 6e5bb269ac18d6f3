internal import Foundation

/// Rows of texts as lines for people, and how numbers stand in them.
enum TextTable {
    /// Columns as wide as they have to be: the first ones, so many as `leading`, begin at one place, the others end at one.
    static func aligned(_ rows: [[String]], leading: Int) -> String {
        guard let first = rows.first else { return "" }
        let widths = first.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            row.enumerated().map { column, text in
                let space = String(repeating: " ", count: widths[column] - text.count)
                return column < leading ? text + space : space + text
            }.joined(separator: "  ")
        }.joined(separator: "\n")
    }

    /// The number as a text, or a dash for 0.
    static func orDash(_ number: Int, _ text: (Int) -> String) -> String { number == 0 ? "–" : text(number) }

    /// Thousand millions of operations: each multiplication with its addition is two.
    static func gigaflops(_ multiplications: Int) -> String { number(2e-9 * Double(multiplications), digits: 3) }

    /// Millions of operations.
    static func megaflops(_ multiplications: Int) -> String { number(2e-6 * Double(multiplications), digits: 2) }

    private static func number(_ number: Double, digits: Int) -> String {
        let least = pow(10, -Double(digits))
        let shown = 0 < number && number < least ? least : number
        return (shown == number ? "" : "<") + String(format: "%.\(digits)f", shown)
    }

    /// "12 B", "3.4 kB" or "5.6 MB".
    static func bytes(_ count: Int) -> String {
        switch count {
        case ..<1000: "\(count) B"
        case ..<1_000_000: String(format: "%.1f kB", Double(count) / 1e3)
        default: String(format: "%.1f MB", Double(count) / 1e6)
        }
    }

    /// A text of at most `length` characters: what is too long lacks its middle.
    static func cut(_ text: String, to length: Int) -> String {
        guard text.count > length else { return text }
        let end = (length - 1) * 5 / 6
        return text.prefix(length - 1 - end) + "…" + text.suffix(end)
    }

    /// Names as people are shown them, with commas between; of more than twelve the first ten, and how many more there are.
    static func list(_ names: [String]) -> String {
        names.count > 12 ? shown(Array(names.prefix(10))) + ", … and \(names.count - 10) more" : shown(names)
    }
}
