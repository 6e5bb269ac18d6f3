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

    @Test("Names are sorted by their UTF-8 bytes") func order() {
        #expect(["b", "ä", "a", "Z", "z"].sorted(by: precedes) == ["Z", "a", "b", "z", "ä"])
    }
}
