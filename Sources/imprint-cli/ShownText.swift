/// Returns an untrusted text for display: on one line, with escaped characters that would control the terminal.
///
/// Control characters, line separators and bidirectional controls are escaped, as in "\u{1B}".
/// - Parameter keepsLines: Whether newlines are kept.
func visible(_ text: String, keepsLines: Bool = false) -> String {
    guard text.unicodeScalars.contains(where: controlsTerminal) else { return text }
    return text.unicodeScalars.map { scalar in
        guard controlsTerminal(scalar), !(keepsLines && scalar == "\n") else { return String(scalar) }
        return "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    }.joined()
}

/// Returns a label, or another untrusted name, for display: escaped, and truncated to 80 characters.
func shown(_ name: String) -> String { TextTable.cut(visible(name), to: 80) }

/// Returns untrusted names for display, separated by commas.
func shown(_ names: [String]) -> String { names.map { shown($0) }.joined(separator: ", ") }

/// Returns a line of JSON in which characters that control the terminal are escaped, as in `\u001b`; the decoded strings stay the same.
func visibleJSON(_ line: String) -> String {
    guard line.unicodeScalars.contains(where: controlsTerminal) else { return line }
    return line.unicodeScalars.map { scalar in
        guard controlsTerminal(scalar) else { return String(scalar) }
        let code = String(scalar.value, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - code.count) + code
    }.joined()
}

/// Returns whether a character can control a terminal: C0, C1, DEL, line separators and bidirectional controls.
private func controlsTerminal(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
    if scalar.properties.isBidiControl { return true }
    return switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    default: false
    }
}
