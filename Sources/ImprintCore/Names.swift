/// Whether a string precedes another in the order of Unicode scalars, which does not depend on the locale.
package func precedes(_ first: String, _ second: String) -> Bool {
    first.utf8.lexicographicallyPrecedes(second.utf8)
}

/// Formats a count with its noun, such as "2 photos" and "1 byte".
package func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

/// Joins the items of a list with commas and "and", such as "a, b and c".
package func listed(_ items: [String]) -> String {
    guard let last = items.last, items.count > 1 else { return items.first ?? "" }
    return "\(items.dropLast().joined(separator: ", ")) and \(last)"
}

/// Formats the progress of a run, such as "3 of 20 epochs"; "5 epochs" if a resumed run has a smaller maximum than it had before.
package func progressText(_ done: Int, of maximum: Int, _ noun: String) -> String {
    done > maximum ? counted(done, noun) : "\(done) of \(counted(maximum, noun))"
}

/// The unit of progress of a training run in messages: a detector trains in phases.
package func progressUnit(isDetector: Bool) -> String { isDetector ? "phase" : "epoch" }

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

/// Formats a duration like a clock: "1:05" for 65 seconds, "2:00:00" for two hours.
package func clockTime(_ seconds: Double) -> String {
    let whole = Int(min(max(seconds, 0), 1e9).rounded())
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let (hours, minutes) = (whole / 3600, whole / 60 % 60)
    return hours > 0 ? "\(hours):\(two(minutes)):\(two(whole % 60))" : "\(minutes):\(two(whole % 60))"
}

/// Returns a file name or path that may not be UTF-8 as text: all bytes except printable ASCII as `\xE9`, and a backslash as `\x5C`.
package func escapedName(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { byte in
        if (0x20..<0x7F).contains(byte), byte != UInt8(ascii: "\\") { return String(UnicodeScalar(byte)) }
        return (byte < 0x10 ? "\\x0" : "\\x") + String(byte, radix: 16, uppercase: true)
    }.joined()
}
