import ImprintCore
import Testing

@Suite struct NamesTests {
    @Test(
        "Time spans are formatted as m:ss or h:mm:ss",
        arguments: [
            (0, "0:00"), (7.6, "0:08"), (65, "1:05"), (3599.4, "59:59"), (3600, "1:00:00"), (86_461, "24:01:01"),
            (-5, "0:00"), (.infinity, "277777:46:40"),
        ] as [(Double, String)])
    func clock(seconds: Double, text: String) { #expect(clockTime(seconds) == text) }

    @Test(
        "A count has its noun in the singular only for 1", arguments: [(0, "0 bytes"), (1, "1 byte"), (2, "2 bytes")])
    func counts(count: Int, text: String) { #expect(counted(count, "byte") == text) }

    @Test(
        "Progress has the maximum unless it is exceeded",
        arguments: [(3, 20, "3 of 20 epochs"), (0, 1, "0 of 1 epoch"), (2, 2, "2 of 2 epochs"), (5, 2, "5 epochs")])
    func progress(done: Int, maximum: Int, text: String) {
        #expect(progressText(done, of: maximum, "epoch") == text)
    }

    @Test(
        "A name that is not UTF-8 is shown with all bytes but printable ASCII, and with backslashes, as hexadecimal",
        arguments: [
            ([0x63, 0xE9, 0x2E, 0x67], "c\\xE9.g"), ([0x5C, 0x78], "\\x5Cx"),
            ([0x0A, 0x20, 0x7E, 0x7F], "\\x0A ~\\x7F"), ([], ""),
        ] as [([UInt8], String)])
    func escaped(name: [UInt8], text: String) { #expect(escapedName(name) == text) }

    @Test(
        "The text in a buffer of a C function ends at its first zero",
        arguments: [("h\u{E9}\0rest", "h\u{E9}"), ("whole", "whole"), ("\0", ""), ("", "")])
    func buffers(content: String, text: String) {
        #expect(String(buffer: content.utf8.map { CChar(truncatingIfNeeded: $0) }) == text)
    }

    @Test("Names are sorted by their UTF-8 bytes") func order() {
        #expect(["b", "ä", "a", "Z", "z"].sorted(by: precedes) == ["Z", "a", "b", "z", "ä"])
    }
}
