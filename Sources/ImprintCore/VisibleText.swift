/// Returns an untrusted text for display: on one line, with escaped characters that would control the terminal.
///
/// Control characters, line separators and bidirectional controls are escaped, as in "\u{1B}".
/// - Parameter keepsLines: Whether newlines are kept.
package func visible(_ text: String, keepsLines: Bool = false) -> String {
    guard text.unicodeScalars.contains(where: controlsTerminal) else { return text }
    return text.replacingScalars { scalar in
        guard controlsTerminal(scalar), !(keepsLines && scalar == "\n") else { return nil }
        return "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    }
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

extension String {
    /// Returns the text with some Unicode scalars replaced, for example to escape it.
    ///
    /// Unlike `replacing(_:with:)`, it also replaces a scalar that is part of a longer character: a quotation mark with an accent and "\r\n" are
    /// single characters.
    /// - Parameter replacement: Returns the text that replaces a scalar, or nil to keep the scalar.
    package func replacingScalars(_ replacement: (Unicode.Scalar) -> String?) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            if let text = replacement(scalar) {
                scalars.append(contentsOf: text.unicodeScalars)
            } else {
                scalars.append(scalar)
            }
        }
        return String(scalars)
    }
}
