import ImprintCore
import Testing

@Suite("Similar labels") struct SimilarLabelsTests {
    @Test("Labels that differ only in case, spaces or Unicode form are a group, in the order of the labels")
    func groups() {
        let labels = [
            "Ring", "rings", "ring ", "\u{FF32}\u{FF29}\u{FF2E}\u{FF27}", "caf\u{E9}", "cafe\u{301}", "Straße",
            "STRASSE", "left  arrow",
            "Left\u{A0}arrow", "ri\u{200B}ng",
        ]
        #expect(
            similarLabels(in: labels) == [
                ["Ring", "ring ", "\u{FF32}\u{FF29}\u{FF2E}\u{FF27}", "ri\u{200B}ng"], ["Straße", "STRASSE"],
                ["left  arrow", "Left\u{A0}arrow"],
            ])
        #expect(similarLabels(in: []) == [] && similarLabels(in: ["cat", "cats", "cut"]) == [])
    }

    @Test("A label is not similar to itself, nor to a label of canonically equivalent characters")
    func equalLabels() {
        #expect(similarLabels(in: ["cat", "cat", "caf\u{E9}", "cafe\u{301}"]) == [])
        #expect(similarLabel(to: "cafe\u{301}", in: ["caf\u{E9}"]) == nil)
        #expect(similarLabel(to: "Cat", in: ["CAT", "cat", "Cat"]) == nil)
        #expect(similarLabel(to: "Cat", in: ["dog", "CAT", "cat"]) == "CAT")
    }

    @Test(
        "An error suggests a similar label, or else one with few different characters",
        arguments: [
            ("Cat", ["cats", "cat"], " (similar to \"cat\")"), ("bloat", ["Float", "boat"], " (similar to \"Float\")"),
            ("headphone", ["Headphones, wired", "Head phones"], " (similar to \"Head phones\")"),
            ("dusk", ["dark", "bright"], ""),
            ("a", ["b"], ""), ("", ["b", ""], ""), ("cat", ["Cat", "cat"], ""), ("", [], ""),
        ] as [(String, [String], String)])
    func note(unknown: String, known: [String], expected: String) {
        #expect(similarityNote(for: unknown, known: known) == expected)
    }

    @Test("A very long label is compared only for similarity") func longLabel() {
        let label = String(repeating: "ab", count: 50_000)
        #expect(similarityNote(for: label + "c", known: [label]) == "")
        #expect(similarityNote(for: label + " ", known: [label]).hasPrefix(" (similar to"))
    }
}
