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

    @Test(
        "Names for display show invisible characters, except those that change the look of others",
        arguments: [
            ("ring", "ring"), ("ri\u{200B}ng", "ri\\u{200B}ng"), ("\u{FEFF}犬", "\\u{FEFF}犬"),
            ("ring\u{200D}", "ring\\u{200D}"), ("犬\u{200C}", "犬\\u{200C}"), ("a\u{FE0F}", "a\\u{FE0F}"),
            ("\u{1B}é\u{AD}", "\\u{1B}é\\u{AD}"), ("👨\u{200D}💻", "👨\u{200D}💻"),
            ("❤\u{FE0F}\u{200D}🔥", "❤\u{FE0F}\u{200D}🔥"), ("1\u{FE0F}\u{20E3}", "1\u{FE0F}\u{20E3}"),
            ("می\u{200C}خواهم", "می\u{200C}خواهم"), ("葛\u{E0100}城", "葛\u{E0100}城"),
            ("ന്\u{200D}", "ന്\u{200D}"), ("cat\u{E0020}", "cat\\u{E0020}"), ("犬\u{E0041}", "犬\\u{E0041}"),
            ("🏴\u{E0067}\u{E007F}", "🏴\u{E0067}\u{E007F}"),
        ])
    func names(name: String, expected: String) {
        #expect(Array(visibleName(name).utf8) == Array(expected.utf8))
    }

    @Test(
        "Only white space is trimmed, not invisible characters",
        arguments: [
            ("", ""), (" \r\n\u{A0}", ""), ("\u{3000}a b\t\u{85}", "a b"),
            (" \u{200B}a\u{FEFF}\n", "\u{200B}a\u{FEFF}"),
            ("a\u{200D} ", "a\u{200D}"), (" \u{301}a", "\u{301}a"),
        ])
    func trimming(text: String, expected: String) {
        #expect(Array(text.trimmingWhiteSpace().utf8) == Array(expected.utf8))
    }

    @Test("Names in a list look different") func visibleLists() {
        #expect(visibleNames(["x", "x\u{200B}", "y\u{FEFF}"]) == ["x", "x\\u{200B}", "y\\u{FEFF}"])
        #expect(visibleNames(["a b", "a\u{A0}b"]) == ["a b", "a\\u{A0}b"])
    }

    @Test("The time for many invisible characters is proportional to their number", .timeLimit(.minutes(1)))
    func longName() {
        let count = 200_000
        let name = "a" + String(repeating: "\u{200B}", count: count)
        #expect(visibleName(name).utf8.count == 1 + 8 * count)
    }

    @Test(
        "A text of white space and invisible characters is blank",
        arguments: [
            ("", true), (" ", true), ("\u{200B}\u{FEFF}", true), ("\u{3000}\t", true), ("a\u{200B}", false),
            ("-", false),
        ])
    func blank(text: String, expected: Bool) {
        #expect(isBlank(text) == expected)
    }
}
