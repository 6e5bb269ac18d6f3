internal import ImprintCore

/// The colours of one drawing: two for what lies behind the mark, and inks that stand out against both.
struct Palette {
    /// The two colours that the background is made of.
    let ground: (Color, Color)
    /// The colour of a plate behind the mark.
    let plate: Color
    /// The colours of the parts of the mark; a part takes that of its index, further parts start over.
    let inks: [Color]

    /// By how much the luminance of a mark differs at least from what is directly behind it.
    static let contrast: Float = 0.4
    /// How far apart the luminances of the two colours of the ground are.
    private static let spread: ClosedRange<Float> = 0.1...0.3

    /// Chooses colours; the inks are darker (or lighter) than the plate if there is one, else than the background.
    init(hasPlate: Bool, hasLightInk: Bool, inkCount: Int, _ random: inout RandomStream) {
        // Everything is chosen for dark ink; light ink is the negative of that.
        func luminance(_ dark: Float) -> Float { hasLightInk ? 1 - dark : dark }
        let reach = random.uniform(in: Self.spread)
        let darkest = random.uniform(in: Self.contrast...(1 - reach))
        // Few things around us are vivid: the product of two numbers favours the small ones.
        let saturation = random.uniform() * random.uniform()
        let first = Color.random(luminance: luminance(darkest), saturation: saturation, &random)
        let second =
            random.chance(0.5)
            ? Color.random(luminance: luminance(darkest + reach), saturation: saturation, &random)
            : first.withLuminance(luminance(darkest + reach))
        ground = random.chance(0.5) ? (first, second) : (second, first)

        let plateLuminance = random.uniform(in: Self.contrast...1)
        plate = .random(luminance: luminance(plateLuminance), saturation: random.uniform(in: 0...0.6), &random)

        let behind = hasPlate ? plateLuminance : darkest
        inks = (0..<inkCount).map { _ in
            let dark = random.uniform(in: 0...(behind - Self.contrast))
            return .random(luminance: luminance(dark), saturation: random.uniform(), &random)
        }
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
