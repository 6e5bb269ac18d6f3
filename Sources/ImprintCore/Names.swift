/// Whether a string precedes another in the order of Unicode scalars, which does not depend on the locale.
package func precedes(_ first: String, _ second: String) -> Bool {
    first.utf8.lexicographicallyPrecedes(second.utf8)
}

/// Whether a text is a URL with a scheme, such as https://example.org/photo.jpg.
package func isURL(_ text: String) -> Bool {
    let scheme = text.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }
    return scheme.first?.isLetter == true && text.dropFirst(scheme.count).hasPrefix("://")
}

extension String {
    /// Creates a text from a buffer that a C function filled: the UTF-8 before the first 0.
    package init(buffer: [CChar]) {
        self = buffer.withUnsafeBytes { bytes in String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

/// Returns a file name or path that may not be UTF-8 as text: all bytes except printable ASCII as `\xE9`, and a backslash as `\x5C`.
package func escapedName(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { byte in
        if (0x20..<0x7F).contains(byte), byte != UInt8(ascii: "\\") { return String(UnicodeScalar(byte)) }
        return (byte < 0x10 ? "\\x0" : "\\x") + String(byte, radix: 16, uppercase: true)
    }.joined()
}
