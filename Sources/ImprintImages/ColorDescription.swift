/// The colour space of a file's samples, as the file describes it.
enum ColorDescription: Hashable, Sendable {
    /// An embedded ICC profile.
    case profile([UInt8])
    /// Code points of ITU-T H.273, as in HEIC (nclx) and PNG (cICP).
    case codePoints(primaries: Int, transfer: Int)
    /// A gamma and chromaticities; nil means the sRGB curve and the sRGB chromaticities.
    case gamma(Double?, Chromaticities?)
    /// A description that cannot be used, with the reason.
    case unusable(String)
}

/// The chromaticities of white and the three primaries, as CIE 1931 x and y.
struct Chromaticities: Hashable, Sendable {
    let white, red, green, blue: Point

    struct Point: Hashable, Sendable {
        let x, y: Double
    }

    init(white: (Double, Double), red: (Double, Double), green: (Double, Double), blue: (Double, Double)) {
        self.white = Point(x: white.0, y: white.1)
        self.red = Point(x: red.0, y: red.1)
        self.green = Point(x: green.0, y: green.1)
        self.blue = Point(x: blue.0, y: blue.1)
    }

    private static let d65 = (0.3127, 0.3290)
    static let sRGB = Chromaticities(white: d65, red: (0.64, 0.33), green: (0.30, 0.60), blue: (0.15, 0.06))

    /// The chromaticities by code point, for the primaries that photos use (ITU-T H.273, table 2).
    static let ofCodePoints: [Int: Chromaticities] = [
        1: sRGB,
        2: sRGB,  // unspecified
        5: Chromaticities(white: d65, red: (0.64, 0.33), green: (0.29, 0.60), blue: (0.15, 0.06)),
        6: Chromaticities(white: d65, red: (0.630, 0.340), green: (0.310, 0.595), blue: (0.155, 0.070)),
        9: Chromaticities(white: d65, red: (0.708, 0.292), green: (0.170, 0.797), blue: (0.131, 0.046)),
        12: Chromaticities(white: d65, red: (0.680, 0.320), green: (0.265, 0.690), blue: (0.150, 0.060)),
    ]

    /// Whether the points span a colour gamut; values from a file may not.
    var isSound: Bool {
        let points = [white, red, green, blue]
        let area = (green.x - red.x) * (blue.y - red.y) - (blue.x - red.x) * (green.y - red.y)
        return points.allSatisfy { (0...1).contains($0.x) && (0.001...1).contains($0.y) } && abs(area) > 0.001
    }
}

/// The kind of samples in a file.
enum ColorModel: Hashable, Sendable {
    /// One channel, decoded as three equal channels.
    case grey
    case rgb
    /// Four channels; 0 means no ink.
    case cmyk
}
