internal import ImprintCore

/// The colours that a mark is printed in, tone by tone.
struct Inks {
    enum Ink: Equatable {
        /// The picture's own colours, or that of the tone if there is no picture.
        case own(Color)
        case flat(Color)
        /// Left blank, so that what is behind shows.
        case blank

        /// Its colour, if it has one.
        var color: Color? {
            switch self {
            case .own(let color), .flat(let color): color
            case .blank: nil
            }
        }
    }

    /// How a mark is coloured.
    enum Style: String {
        case own = "own colours"
        case mono = "one ink"
        case colors = "other colours"
    }

    let style: Style
    private let inks: [Ink]
    /// The colour that most of the mark has.
    let main: Color

    subscript(tone: Int) -> Ink { inks[tone % inks.count] }

    /// Chooses inks that can be seen.
    ///
    /// - Parameters:
    ///   - artwork: Whose tones the mark has.
    ///   - mainTone: The tone of the largest part of it.
    ///   - style: What is wanted; another one is taken where that could not be seen.
    ///   - ground: The colour directly behind the mark, on average.
    ///   - contrast: By how much the luminances of ink and ground differ at least.
    init(
        _ artwork: Artwork, mainTone: Int, style: Style, on ground: Color, contrast: Float,
        _ random: inout RandomStream
    ) {
        let tones = artwork.tones
        let saturation = random.uniform()
        func ink(on other: Color) -> Color {
            .contrasting(with: other, by: contrast, saturation: saturation, &random)
        }
        if style == .own, !tones.isEmpty,
            artwork.keepsOwnColors || tones[mainTone % tones.count].isVisible(on: ground, contrast: contrast * 0.75)
        {
            self.style = .own
            inks = tones.map { .own($0) }
            main = tones[mainTone % tones.count]
            return
        }
        guard !tones.isEmpty else {
            // A recipe's parts are all to be seen, whatever their colours.
            self.style = style == .colors ? .colors : .mono
            let first = ink(on: ground)
            inks = style == .colors ? [.flat(first), .flat(ink(on: ground))] : [.flat(first)]
            main = first
            return
        }
        let sets = artwork.inkedTones
        if style != .colors, !sets.isEmpty {
            self.style = .mono
            // Rather that with most of the mark in it.
            let preferred = sets.first { $0.contains(mainTone) }
            let inked = random.chance(0.65) ? preferred ?? sets[0] : random.element(of: sets)
            let color = ink(on: ground)
            inks = tones.indices.map { inked.contains($0) ? .flat(color) : .blank }
            main = color
            return
        }
        self.style = .colors
        let first = ink(on: ground)
        var colors = [Int: Color]()
        colors[mainTone] = first
        let areTogether = sets.count == 1 && sets[0].count == tones.count
        for tone in tones.indices where tone != mainTone {
            // Parts that stand alone must be seen against the ground; tones that the logo tells apart stay apart.
            colors[tone] =
                areTogether
                ? ink(on: ground)
                : .apart(
                    from: colors.compactMap { abs(tones[$0].luminance - tones[tone].luminance) > 0.12 ? $1 : nil },
                    &random)
        }
        inks = tones.indices.map { .flat(colors[$0] ?? first) }
        main = first
    }
}

extension SIMD3<Float> {
    /// Whether it stands out against another colour, by luminance or else clearly by hue.
    func isVisible(on other: Self, contrast: Float = 0.22) -> Bool {
        abs(luminance - other.luminance) > contrast || ((self - other) * (self - other)).sum() > 6 * contrast * contrast
    }

    /// A random colour whose luminance differs clearly from those of all others, or of several tried the one that does most.
    fileprivate static func apart(from others: [Self], _ random: inout RandomStream) -> Self {
        var best = Self.zero
        var greatest: Float = -1
        for _ in 0..<12 where greatest < 0.25 {
            let (luminance, saturation) = (random.uniform(), random.uniform())
            let color = Self.random(luminance: luminance, saturation: saturation, &random)
            let nearest = others.reduce(1) { Swift.min($0, abs($1.luminance - color.luminance)) }
            if nearest > greatest { (best, greatest) = (color, nearest) }
        }
        return best
    }

    /// A random colour whose luminance differs by `contrast` from that of another one, or by as much as can be.
    static func contrasting(
        with other: Self, by contrast: Float, saturation: Float, _ random: inout RandomStream
    ) -> Self {
        let own = other.luminance
        let (dark, light) = (Swift.max(own - contrast, 0), Swift.max(1 - contrast - own, 0))
        let place = random.uniform() * (dark + light)
        let luminance: Float =
            dark + light == 0 ? (own > 0.5 ? 0 : 1) : place < dark ? place : own + contrast + place - dark
        return .random(luminance: luminance, saturation: saturation, &random)
    }
}
