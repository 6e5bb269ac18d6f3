internal import ImprintCore

/// The colours of a drawn image: two background colours, a plate, and inks with enough contrast.
struct Palette {
    /// The two colours of the background pattern.
    let ground: (Color, Color)
    /// The colour of a plate behind the logo.
    let plate: Color
    /// The colours of the parts of the logo; a part has the colour at its index, modulo the count.
    let inks: [Color]

    /// The minimum difference between the luminances of the logo and the colour directly behind it.
    static let contrast: Float = 0.4
    /// The difference between the luminances of the two background colours.
    private static let spread: ClosedRange<Float> = 0.1...0.3

    /// Creates random colours; the inks are darker (or lighter) than the plate if there is one, else than the background.
    init(hasPlate: Bool, hasLightInk: Bool, inkCount: Int, _ random: inout RandomStream) {
        // All luminances are chosen for dark ink, and inverted for light ink.
        func luminance(_ dark: Float) -> Float { hasLightInk ? 1 - dark : dark }
        let reach = random.uniform(in: Self.spread)
        let darkest = random.uniform(in: Self.contrast...(1 - reach))
        // Vivid backgrounds are rare; the product of two uniform values favours small values.
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

    /// Returns a colour of exactly the given luminance (0…1) and a random hue; saturation 0 gives grey.
    static func random(luminance: Float, saturation: Float, _ random: inout RandomStream) -> Self {
        let hue = Self(random.uniform(), random.uniform(), random.uniform())
        // Subtracting the smallest component gives the maximum saturation of a hue.
        let vivid = (hue - hue.min()).withLuminance(luminance)
        return vivid * saturation + Self(repeating: luminance) * (1 - saturation)
    }

    /// Returns the colour scaled towards black, or mixed with white, to the given luminance.
    func withLuminance(_ target: Float) -> Self {
        let current = luminance
        guard current > 0 else { return Self(repeating: target) }
        if target <= current { return self * (target / current) }
        let brightest = self / Swift.max(self.max(), 1e-3)
        let maximum = brightest.luminance
        if target <= maximum { return brightest * (target / maximum) }
        return brightest + (1 - brightest) * ((target - maximum) / (1 - maximum))
    }
}
