/// Returns an untrusted text for display: on one line, with escaped characters that would control the terminal.
///
/// Control characters, line separators and bidirectional controls are escaped, as in "\u{1B}".
/// - Parameter keepsLines: Whether newlines are kept.
package func visible(_ text: String, keepsLines: Bool = false) -> String {
    guard text.unicodeScalars.contains(where: controlsTerminal) else { return text }
    return text.unicodeScalars.map { scalar in
        guard controlsTerminal(scalar), !(keepsLines && scalar == "\n") else { return String(scalar) }
        return "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    }.joined()
}

/// Returns whether a character can control a terminal: C0, C1, DEL, line separators and bidirectional controls.
package func controlsTerminal(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
    if scalar.properties.isBidiControl { return true }
    return switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    default: false
    }
}
