internal import ImprintCore

/// Random words: wordmarks beside logos, and text as a hard negative.
struct Lettering {
    /// Every glyph in several stroke widths.
    private let fonts: [[Figure]]

    /// The shared instance; all compositors use the same letters.
    static let standard = Lettering()

    private init() {
        fonts = [0.1, 0.15, 0.2].flatMap { halfWidth in
            [0.75, 0.95].map { narrowness in
                let pen = Pen(halfWidth: Float(halfWidth), narrowness: Float(narrowness))
                return Glyph.allCases.map { Figure($0.shapes(pen)) }
            }
        }
    }

    /// Returns a word of random letters, with a height of 2 and its centre at the origin.
    func word(letters: ClosedRange<Int>, tone: Int, _ random: inout RandomStream) -> [Element] {
        let font = random.element(of: fonts)
        let spacing = random.uniform(in: 0.15...0.5)
        let count = letters.lowerBound + random.index(below: letters.count)
        var elements: [Element] = []
        var end: Float = 0
        for _ in 0..<count {
            let figure = random.element(of: font)
            let left = figure.hull.map(\.x).min() ?? 0
            let right = figure.hull.map(\.x).max() ?? 0
            elements.append(Element(figure: figure, tone: tone, offset: Point(end - left, 0)))
            end += right - left + spacing
        }
        return elements.map { $0.moved(by: Point(-(end - spacing) / 2, 0)) }
    }

    /// Returns a random letter.
    func letter(_ random: inout RandomStream) -> Figure { random.element(of: random.element(of: fonts)) }

    /// Returns one to three words, one below the other.
    func words(tone: Int, _ random: inout RandomStream) -> [Element] {
        let rows = 1 + random.index(below: 3)
        let letters = rows == 1 ? 2...6 : 3...6
        return (0..<rows).flatMap { row in
            word(letters: letters, tone: tone, &random).map { $0.moved(by: Point(0, Float(row) * 2.7)) }
        }
    }

    /// Returns a word beside a logo of radius 1: to the right, to the left, below or above.
    func wordmark(tone: Int, _ random: inout RandomStream) -> [Element] {
        let height = random.uniform(in: 0.14...0.45)
        let word = word(letters: 3...9, tone: tone, &random).map {
            $0.moved(by: .zero, scaled: Point(height, height))
        }
        let right = word.flatMap(\.corners).map(\.x).max() ?? 0
        let gap = random.uniform(in: 0.15...0.5)
        let side: Point =
            switch random.index(below: 5) {
            case 0, 1: Point(1 + gap + right, random.uniform(in: -0.4...0.4))
            case 2: Point(-1 - gap - right, random.uniform(in: -0.4...0.4))
            case 3: Point(random.uniform(in: -0.5...0.5), 1 + gap + height)
            default: Point(random.uniform(in: -0.5...0.5), -1 - gap - height)
            }
        return word.map { $0.moved(by: side) }
    }
}
