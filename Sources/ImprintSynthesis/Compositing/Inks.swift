internal import ImprintCore

/// The ink of each tone of a logo in a composite.
struct Inks {
    enum Ink: Equatable {
        /// The original colours of the artwork image; the associated value is the colour of the tone.
        case original(Color)
        /// A single colour.
        case flat(Color)
        /// No ink: the background remains visible.
        case blank

        /// The colour; nil for `blank`.
        var color: Color? {
            switch self {
            case .original(let color), .flat(let color): color
            case .blank: nil
            }
        }
    }

    /// The colouring of a logo.
    enum Style: String {
        /// The original colours.
        case original = "own colours"
        /// A single ink.
        case mono = "one ink"
        /// Random colours, different for tones that differ in the artwork.
        case recolored = "other colours"
    }

    let style: Style
    private let inks: [Ink]
    /// The colour of the main tone.
    let main: Color

    subscript(tone: Int) -> Ink { inks[tone % inks.count] }

    /// Creates random inks that are visible on the background.
    ///
    /// - Parameters:
    ///   - artwork: The artwork of the logo.
    ///   - mainTone: The tone of the largest part of the logo.
    ///   - style: The preferred style; another style is used if the logo would not be visible in it.
    ///   - ground: The mean colour directly behind the logo.
    ///   - contrast: The minimum difference between the luminances of ink and ground.
    init(
        _ artwork: Artwork, mainTone: Int, style: Style, on ground: Color, contrast: Float,
        _ random: inout RandomStream
    ) {
        let tones = artwork.tones
        let saturation = random.uniform()
        func ink(on other: Color) -> Color {
            .contrasting(with: other, by: contrast, saturation: saturation, &random)
        }
        if style == .original, !tones.isEmpty,
            artwork.keepsOriginalColors
                || tones[mainTone % tones.count].isVisible(on: ground, contrast: contrast * 0.75)
        {
            self.style = .original
            inks = tones.map { .original($0) }
            main = tones[mainTone % tones.count]
            return
        }
        guard !tones.isEmpty else {
            // All parts of a recipe's logo must be visible, in one ink or two.
            self.style = style == .recolored ? .recolored : .mono
            let first = ink(on: ground)
            inks = style == .recolored ? [.flat(first), .flat(ink(on: ground))] : [.flat(first)]
            main = first
            return
        }
        let sets = artwork.inkedTones
        if style != .recolored, !sets.isEmpty {
            self.style = .mono
            // The set with the main tone is preferred.
            let preferred = sets.first { $0.contains(mainTone) }
            let inked = random.chance(0.65) ? preferred ?? sets[0] : random.element(of: sets)
            let color = ink(on: ground)
            inks = tones.indices.map { inked.contains($0) ? .flat(color) : .blank }
            main = color
            return
        }
        self.style = .recolored
        let first = ink(on: ground)
        var colors = [Int: Color]()
        colors[mainTone] = first
        let areTogether = sets.count == 1 && sets[0].count == tones.count
        for tone in tones.indices where tone != mainTone {
            // Separate parts must be visible on the ground. Adjacent tones that differ in the logo must differ here too.
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
    /// Whether the colour is visible on another one: its luminance or the whole colour differs enough.
    func isVisible(on other: Self, contrast: Float = 0.22) -> Bool {
        abs(luminance - other.luminance) > contrast || ((self - other) * (self - other)).sum() > 6 * contrast * contrast
    }

    /// Returns a random colour whose luminance differs by at least 0.25 from those of all others.
    ///
    /// If 12 attempts fail, it returns the colour with the largest difference.
    fileprivate static func apart(from others: [Self], _ random: inout RandomStream) -> Self {
        var best = Self.zero
        var largestDifference: Float = -1
        for _ in 0..<12 where largestDifference < 0.25 {
            let (luminance, saturation) = (random.uniform(), random.uniform())
            let color = Self.random(luminance: luminance, saturation: saturation, &random)
            let difference = others.reduce(1) { Swift.min($0, abs($1.luminance - color.luminance)) }
            if difference > largestDifference { (best, largestDifference) = (color, difference) }
        }
        return best
    }

    /// Returns a random colour whose luminance differs by at least `contrast` from that of another one, if possible.
    static func contrasting(
        with other: Self, by contrast: Float, saturation: Float, _ random: inout RandomStream
    ) -> Self {
        let otherLuminance = other.luminance
        let (dark, light) = (
            Swift.max(otherLuminance - contrast, 0), Swift.max(1 - contrast - otherLuminance, 0)
        )
        let offset = random.uniform() * (dark + light)
        let luminance: Float =
            dark + light == 0
            ? (otherLuminance > 0.5 ? 0 : 1)
            : offset < dark ? offset : otherLuminance + contrast + offset - dark
        return .random(luminance: luminance, saturation: saturation, &random)
    }
}
