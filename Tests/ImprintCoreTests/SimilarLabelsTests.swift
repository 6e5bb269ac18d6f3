import ImprintCore
import Testing

@Suite("Similar labels") struct SimilarLabelsTests {
    @Test(
        "Labels that differ only in case, spaces, hyphens, underscores or Unicode form are a group, in the order of the labels"
    )
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

    @Test(
        "Separators between words do not distinguish labels in warnings, but those between digits and at the ends do",
        arguments: [
            (["TwoCircles", "Two Circles", "two_circles", "Two-Circles"], true), (["a b", "ab"], true),
            (["class 1", "class_1", "Class1"], true), (["1-2", "1 2"], true), (["1-2", "12"], false),
            (["A", "A-"], false),
            (["_a", "a"], false), (["-", "_"], false),
        ] as [([String], Bool)])
    func separators(labels: [String], areSimilar: Bool) {
        #expect(similarLabels(in: labels) == (areSimilar ? [labels] : []))
        // Errors compare the separators.
        #expect(areSimilar == false || similarLabel(to: labels[0], in: Array(labels.dropFirst())) == nil)
    }

    @Test(
        "Labels with two neighbouring letters in another order are a pair, unless they are short or numbered",
        arguments: [
            (["chair", "table", "chiar"], [["chair", "chiar"]]),
            (["Two-circles", "TwoCricles"], [["Two-circles", "TwoCricles"]]),
            (["no", "on"], []), (["tab", "tba"], []), (["class 12", "class 21"], []), (["chair", "Chair"], []),
            (["chair", "hcaïr"], []), (["form", "from"], [["form", "from"]]), (["boat", "goat", "boats"], []), ([], []),
        ] as [([String], [[String]])])
    func transposed(labels: [String], pairs: [[String]]) {
        #expect(transposedLabels(in: labels) == pairs)
    }

    @Test(
        "Only the characters that distinguish texts of the same look are escaped",
        arguments: [
            (["x", "x\u{200B}"], ["x", "x\\u{200B}"]), (["犬\u{FEFF}", "犬", "cat"], ["犬\\u{FEFF}", "犬", "cat"]),
            (["a b", "a\u{A0}b"], ["a b", "a\\u{A0}b"]),
            (["caf\u{E9}", "cafe\u{301}"], ["caf\\u{E9}", "cafe\\u{301}"]),
            (["Ring", "ring"], ["Ring", "ring"]), (["👨\u{200D}💻", "cat"], ["👨\u{200D}💻", "cat"]),
        ])
    func lookalikes(texts: [String], expected: [String]) {
        #expect(escapingLookalikes(texts) == expected)
    }

    @Test("An unknown label with an invisible character does not look the same as the similar label") func invisible() {
        #expect(quoted("x\u{200B}", similarTo: ["y", "x"]) == "\"x\\u{200B}\" (similar to \"x\")")
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
            ("Othre", ["Circles", "Other"], " (similar to \"Other\")"), ("Ohter", ["Other"], " (similar to \"Other\")"),
            ("Circels", ["Other", "Circles"], " (similar to \"Circles\")"), ("Otehrs", ["Ohtesr"], ""),
            ("dusk", ["dark", "bright"], ""), ("ab", ["A-B"], " (similar to \"A-B\")"),
            ("a", ["b"], ""), ("", ["b", ""], ""), ("cat", ["Cat", "cat"], ""), ("", [], ""),
        ] as [(String, [String], String)])
    func note(unknown: String, known: [String], expected: String) {
        #expect(quoted(unknown, similarTo: known) == unknown.debugDescription + expected)
    }

    @Test(
        "Flags are different labels, and compatibility forms are similar only if labels may look different",
        arguments: [
            ("🇩🇪", "🇫🇷", false, false), ("🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}", "🏴", false, false),
            (
                "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
                "🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}", false, false
            ),
            ("👨\u{200D}💻", "👨💻", true, false), ("m²", "M2", true, false), ("①", "1", true, false),
            ("cat\u{E0020}", "cat", true, true), ("犬\u{E0041}", "犬", true, true), ("cat\u{E0001}", "cat", true, true),
            ("ring ", "Ring", true, true), ("ri\u{200B}ng", "ring", true, true),
        ])
    func look(first: String, second: String, isSimilar: Bool, looksEqual: Bool) {
        #expect(similarLabels(in: [first, second]) == (isSimilar ? [[first, second]] : []))
        #expect(similarLabel(to: first, in: [second]) == (isSimilar ? second : nil))
        #expect(similarLabel(to: first, in: [second], looksEqual: true) == (looksEqual ? second : nil))
    }

    @Test(
        "The nearest label has few different letters, but the same digits",
        arguments: [
            ("hedgehg", "hedgehog"), ("Hedgehogs", "hedgehog"), ("class 2", nil), ("clas 1", "class 1"),
            ("HEDGEHOG", nil),
            ("fox", nil), ("horse", nil),
        ] as [(String, String?)])
    func nearest(label: String, expected: String?) {
        #expect(LabelSearch(["cat", "fax", "hedgehog", "class 1"]).nearest(to: label) == expected)
    }

    /// Returns the edit distance by its definition.
    private func plainDistance(_ first: ArraySlice<Character>, _ second: ArraySlice<Character>) -> Int {
        guard let a = first.last, let b = second.last else { return max(first.count, second.count) }
        if a == b { return plainDistance(first.dropLast(), second.dropLast()) }
        let edits = [
            plainDistance(first.dropLast(), second), plainDistance(first, second.dropLast()),
            plainDistance(first.dropLast(), second.dropLast()),
        ]
        let isTransposed =
            first.count > 1 && second.count > 1 && a == second.dropLast().last && b == first.dropLast().last
        let transposed = isTransposed ? [plainDistance(first.dropLast(2), second.dropLast(2))] : []
        return 1 + ((edits + transposed).min() ?? 0)
    }

    @Test("A limited edit distance is the distance, or nil above the limit") func limitedDistance() {
        var stream = RandomStream(seed: 1, "words")
        for _ in 0..<300 {
            var words: [[Character]] = [[], []]
            for index in 0..<2 {
                for _ in 0..<stream.index(below: 7) { words[index].append(["a", "b", "c"][stream.index(below: 3)]) }
            }
            let distance = plainDistance(words[0][...], words[1][...])
            for limit in 0...7 {
                let found = editDistance(words[0], words[1], limit: limit)
                #expect(found == (distance <= limit ? distance : nil), "\(words) \(limit)")
            }
            #expect(editDistance(String(words[0]), String(words[1])) == distance)
        }
    }

    @Test("Thousands of labels are searched, also for many unknown labels") func manyLabels() {
        let labels = (0..<20_000).map { index in
            let letters = (0..<12).map { position in
                let code = 97 + (index >> position) % 23
                return String(UnicodeScalar(UInt8(code)))
            }
            return letters.joined() + "x"
        }
        let search = LabelSearch(labels)
        var comparisons = 0
        let unknown = stride(from: 0, to: labels.count, by: 1000).map { String(labels[$0].dropLast()) + "y" }
        for label in unknown {
            let nearest = search.nearest(to: label, comparisons: &comparisons)
            #expect(nearest != nil)
        }
        // A whole table of distances has 13 x 13 comparisons for each label.
        #expect(comparisons < 20 * labels.count * unknown.count)
        #expect(similarLabels(in: labels).isEmpty)
    }

    @Test("A very long label is compared only for similarity") func longLabel() {
        let label = String(repeating: "ab", count: 50_000)
        #expect(!LabelSearch([label]).quoted(label + "c").contains("(similar to"))
        #expect(LabelSearch([label]).quoted(label + " ").contains("(similar to"))
    }

    @Test("A label that differs only in separators is similar, not near", arguments: ["two_circles", "Two Circles"])
    func separators(known: String) {
        #expect(LabelSearch([known]).nearest(to: "TwoCircles") == nil)
        #expect(quoted("TwoCircles", similarTo: [known]) == "\"TwoCircles\" (similar to \(known.debugDescription))")
    }
}
