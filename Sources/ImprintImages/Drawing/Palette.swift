internal import ImprintCore

/// The colours of one drawing: two for what lies behind the mark, and inks that stand out against both.
struct Palette {
    /// The two colours that the background is made of; their luminances are at most `spread` apart.
    let ground: (Color, Color)
    /// The colour of a plate behind the mark.
    let plate: Color
    /// The colours of the parts of the mark; a part takes that of its index, further parts start over.
    let inks: [Color]

    /// By how much the luminance of a mark differs at least from what is directly behind it.
    static let contrast: Float = 0.27
    private static let spread: Float = 0.3

    /// Chooses colours; the inks stand out against the plate if there is one, else against the background.
    init(hasPlate: Bool, inkCount: Int, _ random: inout RandomStream) {
        let middle = random.uniform()
        let reach = random.uniform(in: 0.12...Self.spread) / 2
        let darkest = (middle - reach).clampedToUnit
        let lightest = (middle + reach).clampedToUnit
        // Few things around us are vivid: the product of two numbers favours the small ones.
        let saturation = random.uniform() * random.uniform()
        let first = Color.random(luminance: darkest, saturation: saturation, &random)
        let second =
            random.chance(0.5)
            ? Color.random(luminance: lightest, saturation: saturation, &random)
            : first.withLuminance(lightest)
        ground = random.chance(0.5) ? (first, second) : (second, first)

        let plateLuminance = Self.luminance(apartFrom: darkest...lightest, by: 0.12, &random)
        plate = .random(luminance: plateLuminance, saturation: random.uniform(in: 0...0.6), &random)

        let behind = hasPlate ? plateLuminance...plateLuminance : darkest...lightest
        inks = (0..<inkCount).map { _ in
            let luminance = Self.luminance(apartFrom: behind, by: Self.contrast, &random)
            return .random(luminance: luminance, saturation: random.uniform(in: 0...1), &random)
        }
    }

    /// A random luminance, uniform over those that are at least `distance` from every one in `range`.
    private static func luminance(
        apartFrom range: ClosedRange<Float>, by distance: Float, _ random: inout RandomStream
    ) -> Float {
        let below = max(range.lowerBound - distance, 0)
        let above = max(1 - range.upperBound - distance, 0)
        let position = random.uniform() * (below + above)
        return position < below ? position : 1 - (position - below)
    }
}

extension SIMD3<Float> {
    @inline(__always) var luminance: Float { 0.299 * x + 0.587 * y + 0.114 * z }

    /// A colour of exactly the given luminance (0…1) and of random hue; saturation 0 gives grey.
    static func random(luminance: Float, saturation: Float, _ random: inout RandomStream) -> Self {
        let hue = Self(random.uniform(), random.uniform(), random.uniform())
        // Without its smallest component a random colour is as vivid as its hue allows.
        let vivid = (hue - hue.min()).withLuminance(luminance)
        return vivid * saturation + Self(repeating: luminance) * (1 - saturation)
    }

    /// The colour scaled towards black or mixed with white so that it has the given luminance.
    func withLuminance(_ wanted: Float) -> Self {
        let own = luminance
        guard own > 0 else { return Self(repeating: wanted) }
        if wanted <= own { return self * (wanted / own) }
        let brightest = self / Swift.max(self.max(), 1e-3)
        let reached = brightest.luminance
        if wanted <= reached { return brightest * (wanted / reached) }
        return brightest + (1 - brightest) * ((wanted - reached) / (1 - reached))
    }
}
