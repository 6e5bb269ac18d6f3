/// A text from a file or folder as people are shown it: on one line, and nothing in it acts on the terminal.
///
/// Control characters, line separators and controls of the writing direction stand as "\u{1B}".
/// - Parameter keepsLines: Whether a newline stays what it is, as in texts of this tool's own lines.
func visible(_ text: String, keepsLines: Bool = false) -> String {
    guard text.unicodeScalars.contains(where: actsOnTerminals) else { return text }
    return text.unicodeScalars.map { scalar in
        guard actsOnTerminals(scalar), !(keepsLines && scalar == "\n") else { return String(scalar) }
        return "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    }.joined()
}

/// A label, or another name from a file, as people are shown it: visible, and cut if it has more than 80 characters.
func shown(_ name: String) -> String { TextTable.cut(visible(name), to: 80) }

/// Names as people are shown them, with commas between.
func shown(_ names: [String]) -> String { names.map { shown($0) }.joined(separator: ", ") }

/// A line of JSON with `\u001b` in the place of each character that acts on terminals: these are in its strings alone, which stay the same.
func visibleJSON(_ line: String) -> String {
    guard line.unicodeScalars.contains(where: actsOnTerminals) else { return line }
    return line.unicodeScalars.map { scalar in
        guard actsOnTerminals(scalar) else { return String(scalar) }
        let code = String(scalar.value, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - code.count) + code
    }.joined()
}

/// Whether a terminal takes a character for a command: C0, C1, DEL, separators of lines, and what turns the writing direction.
private func actsOnTerminals(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
    if scalar.properties.isBidiControl { return true }
    return switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    default: false
    }
}
