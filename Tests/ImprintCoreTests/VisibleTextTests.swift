import ImprintCore
import Testing

@Suite struct VisibleTextTests {
    @Test(
        "Scalars within longer characters are replaced",
        arguments: [
            ("\"a\"", "''a''"), ("\"\u{301}", "''\u{301}"), ("\r\n\"", "\r;''"), ("e\u{301}", "e\u{301}"), ("", ""),
        ])
    func replacedScalars(text: String, expected: String) {
        let replaced = text.replacingScalars { $0 == "\"" ? "''" : $0 == "\n" ? ";" : nil }
        #expect(Array(replaced.utf8) == Array(expected.utf8))
    }

    @Test(
        "Characters that control the terminal are escaped, also within longer characters",
        arguments: [
            ("a\u{1B}[2J", "a\\u{1B}[2J"), ("a\r\nb", "a\\u{D}\\u{A}b"), ("\u{202E}x", "\\u{202E}x"),
            ("é\u{301}", "é\u{301}"),
        ])
    func visibleText(text: String, expected: String) {
        #expect(Array(visible(text).utf8) == Array(expected.utf8))
        let withLines = visible(text, keepsLines: true)
        #expect(Array(withLines.utf8) == Array(expected.replacing("\\u{A}", with: "\n").utf8))
    }
}
