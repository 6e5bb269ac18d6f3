internal import ImprintCore

/// Returns a label, or another untrusted name, for display: with escaped control and invisible characters, and truncated to 80 characters.
func shown(_ name: String) -> String { TextTable.cut(visibleName(name), to: 80) }

/// Returns untrusted names for display, separated by commas.
func shown(_ names: [String]) -> String { names.map { shown($0) }.joined(separator: ", ") }

extension TextTable {
    /// Returns untrusted names for display, separated by commas; of more than twelve names, the first ten and the number of the others.
    static func list(_ names: [String]) -> String {
        names.count > 12 ? shown(Array(names.prefix(10))) + ", … and \(names.count - 10) more" : shown(names)
    }
}

/// Returns a line of JSON in which characters that control the terminal are escaped, as in `\u001b`; the decoded strings stay the same.
func visibleJSON(_ line: String) -> String {
    guard line.unicodeScalars.contains(where: controlsTerminal) else { return line }
    return line.unicodeScalars.map { scalar in
        guard controlsTerminal(scalar) else { return String(scalar) }
        let code = String(scalar.value, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - code.count) + code
    }.joined()
}

/// Formats a number of photos with their labels, as in "60 photos of 2 labels (cat, dog)".
/// - Parameter logos: The labels of a detector's logos, whose photos without a logo also have a label; nil for a classifier.
func photoSummary(_ count: Int, _ labels: [String], logos: [String]?) -> String {
    let known = labels.filter { logos?.contains($0) ?? true }
    return "\(counted(count, "photo")) of \(counted(known.count, "label")) (\(TextTable.list(known)))"
        + (known.count < labels.count ? " and without a logo" : "")
}
