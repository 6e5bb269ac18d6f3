/// Returns an untrusted text for display: on one line, with escaped characters that would control the terminal.
///
/// Control characters, line separators and bidirectional controls are escaped, as in "\u{1B}".
/// - Parameter keepsLines: Whether newlines are kept.
package func visible(_ text: String, keepsLines: Bool = false) -> String {
    guard text.unicodeScalars.contains(where: controlsTerminal) else { return text }
    return text.replacingScalars { scalar in
        guard controlsTerminal(scalar), !(keepsLines && scalar == "\n") else { return nil }
        return escaped(scalar)
    }
}

/// Returns an untrusted name for display: as `visible(_:keepsLines:)`, and with escaped invisible characters, as in "\u{200B}".
///
/// Joiners and variation selectors stay if they change the look of other characters, as in emoji and in Persian words.
package func visibleName(_ name: String) -> String {
    let scalars = Array(name.unicodeScalars)
    guard scalars.contains(where: { !$0.isASCII && $0.properties.isDefaultIgnorableCodePoint }) else {
        return visible(name)
    }
    var result = ""
    // The last visible character.
    var base: Unicode.Scalar?
    for (index, scalar) in scalars.enumerated() {
        let isInvisible = scalar.properties.isDefaultIgnorableCodePoint
        let next = index + 1 < scalars.count ? scalars[index + 1] : nil
        if controlsTerminal(scalar) || isInvisible && !changesLook(scalar, after: base, before: next) {
            result += escaped(scalar)
        } else {
            result.unicodeScalars.append(scalar)
        }
        if !isInvisible { base = scalar }
    }
    return result
}

/// Returns an untrusted name for display in quotation marks, as `visibleName(_:)`.
package func quotedName(_ name: String) -> String { "\"\(visibleName(name))\"" }

/// Returns whether an invisible character can change the look of its neighbours: a joiner between two characters that are not ASCII or after a
/// virama, a variation selector after such a character, a tag after an emoji, or the variation selector of a keycap.
/// - Parameters:
///   - base: The last visible character before it.
///   - next: The next character.
private func changesLook(_ scalar: Unicode.Scalar, after base: Unicode.Scalar?, before next: Unicode.Scalar?) -> Bool {
    guard let base else { return false }
    switch scalar.value {
    case 0x200C, 0x200D:
        let joins = next.map { !$0.isASCII && !$0.properties.isDefaultIgnorableCodePoint } ?? false
        return !base.isASCII && joins || base.properties.canonicalCombiningClass == .virama
    case 0x180B...0x180F, 0xFE00...0xFE0F, 0xE0100...0xE01EF: return !base.isASCII || next?.value == 0x20E3
    case 0xE0020...0xE007F: return hasTags(base)
    default: return false
    }
}

/// Returns whether tags (U+E0020 to U+E007F) after a character can change its look, as in the flag of Scotland: whether it is an emoji.
func hasTags(_ base: Unicode.Scalar?) -> Bool { base?.properties.isEmojiPresentation ?? false }

/// Returns whether a text shows nothing: it is empty, or consists of white space and invisible characters, such as U+200B.
package func isBlank(_ text: String) -> Bool { text.unicodeScalars.allSatisfy { $0 == " " || look($0) != nil } }

/// Returns a blank text in quotation marks, in which its characters except the space are escaped, as in "\u{200B}".
package func quotedBlank(_ text: String) -> String {
    "\"\(text.replacingScalars { look($0) == nil ? nil : escaped($0) })\""
}

/// Returns texts in which the characters that distinguish them are escaped, as in "\u{200B}", if they look the same as another of the texts.
///
/// These are invisible characters and unusual white space. Equal strings of different scalars, such as the composed and the decomposed form of
/// "é", have all characters escaped that are not ASCII. The other texts stay the same.
package func escapingLookalikes(_ texts: [String]) -> [String] {
    let looks = texts.map { text in text.replacingScalars(look) }
    let lookalikes = Dictionary(zip(looks, repeatElement(1, count: texts.count)), uniquingKeysWith: +)
    let equals = Dictionary(zip(texts, repeatElement(1, count: texts.count)), uniquingKeysWith: +)
    return zip(texts, looks).map { text, textLook in
        guard lookalikes[textLook, default: 1] > 1 else { return text }
        let isEqual = equals[text, default: 1] > 1
        return text.replacingScalars { scalar in
            look(scalar) != nil || (isEqual && !scalar.isASCII) ? escaped(scalar) : nil
        }
    }
}

/// Returns untrusted names for display: as `visibleName(_:)`, and with the escapes of `escapingLookalikes(_:)`, so that different names look
/// different.
package func visibleNames(_ names: [String]) -> [String] { escapingLookalikes(names).map(visibleName) }

/// Returns texts in quotation marks, with the escapes of `escapingLookalikes(_:)`.
package func quotedLookalikes(_ texts: [String]) -> [String] {
    zip(texts, escapingLookalikes(texts)).map { text, escaped in
        text == escaped ? text.debugDescription : "\"\(escaped)\""
    }
}

/// Returns how an invisible character or white space looks: like nothing, or like a space; nil for other characters and the space.
private func look(_ scalar: Unicode.Scalar) -> String? {
    if scalar.properties.isDefaultIgnorableCodePoint { return "" }
    return scalar != " " && scalar.properties.isWhitespace ? " " : nil
}

private func escaped(_ scalar: Unicode.Scalar) -> String {
    "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
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

extension StringProtocol {
    /// Returns the text without white space at its ends.
    ///
    /// Unlike `trimmingCharacters(in: .whitespacesAndNewlines)`, it keeps U+200B, which is invisible, but not white space. So all invisible
    /// characters stay, and messages can show them.
    package func trimmingWhiteSpace() -> String {
        let scalars = String(self).unicodeScalars
        guard let first = scalars.firstIndex(where: { !$0.properties.isWhitespace }),
            let last = scalars.lastIndex(where: { !$0.properties.isWhitespace })
        else { return "" }
        return String(scalars[first...last])
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
