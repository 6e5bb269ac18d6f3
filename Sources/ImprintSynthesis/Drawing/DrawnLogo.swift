internal import ImprintCore

/// A logo of shapes inside the circle of radius 1 around the origin, in parts that may differ in colour.
struct DrawnLogo: Equatable {
    /// The parts, each of which is the union of its shapes.
    let parts: [[DrawnShape]]

    /// Creates a logo, and moves and scales `parts` to fit the circle of radius 1 around the origin.
    init(fitting parts: [[DrawnShape]]) {
        let bounds = parts.joined().map(\.bounds)
        guard let first = bounds.first else {
            self.parts = []
            return
        }
        var low = first.center
        var high = first.center
        for (center, radius) in bounds {
            low = Point(min(low.x, center.x - radius), min(low.y, center.y - radius))
            high = Point(max(high.x, center.x + radius), max(high.y, center.y + radius))
        }
        let middle = (low + high) / 2
        let reach = bounds.map { ($0.center - middle).length + $0.radius }.max() ?? 1
        self.parts = parts.map { $0.map { $0.moved(by: -middle, scaled: 1 / reach) } }
    }
}

/// The kinds of logo in a recipe.
package enum LogoKind: String, Codable, Sendable, CaseIterable {
    /// Two discs: a large one, and above it to the left or right, close to it, one of about half the radius.
    case twoCircles
    /// One disc.
    case oneDisc
    /// Two discs of nearly the same size.
    case equalDiscs
    /// Like `twoCircles`, but the small disc is tiny.
    case tinyDot
    /// Like `twoCircles`, but the small disc is below the large one.
    case smallBelow
    /// Like `twoCircles`, but the discs are far apart.
    case farApart
    /// Two discs; the small one is mostly inside the large one.
    case overlapping
    /// As `twoCircles`, with a third disc.
    case threeDiscs
    /// Two ellipses arranged as in `twoCircles`, or one ellipse.
    case ovals
    /// Two squares arranged as in `twoCircles`.
    case squares
    /// Two triangles arranged as in `twoCircles`.
    case triangles
    /// A ring, empty or with a dot inside.
    case ring
    /// A letter, digit or sign of strokes and arcs.
    case glyph
    /// No logo: only the background.
    case nothing
    /// As `twoCircles`, with wider ranges of ratio and gap, as in hand-drawn logos and on real objects.
    case looseTwoCircles
    /// Two discs that touch or overlap.
    case touching
    /// Like `twoCircles`, but one of them is an ellipse.
    case oneOval
    /// Two discs; one is slightly larger.
    case similarDiscs
    /// Like `twoCircles`, but the size of the small disc is between `twoCircles` and `tinyDot`.
    case smallDot
    /// Like `twoCircles`, but with a gap of about the radius of the large disc.
    case apart
    /// Three to eight discs of about the same size in one or two rows.
    case rowOfDiscs
    /// One to five random shapes and glyphs.
    case invented
}

extension LogoKind {
    /// Returns a random logo of this kind.
    ///
    /// The kinds from `oneDisc` to `glyph` differ clearly from `twoCircles` and its mirror image, also after a rotation by up to 20°.
    /// Pairs of discs avoid one of its ranges by a wide margin: ratios of 1.75…2.25, gaps of 0.16…0.4, or angles of 38°…54°.
    func logo(_ random: inout RandomStream) -> DrawnLogo {
        switch self {
        case .twoCircles:
            return Pair(&random).discs
        case .oneDisc:
            return DrawnLogo(fitting: [[.disc(center: .zero, radius: 1)]])
        case .equalDiscs:
            var pair = Pair(&random)
            pair.ratio = random.uniform(in: 1...1.12)
            pair.gap = random.uniform(in: 0.16...1)
            pair.degrees = random.uniform(in: 0...180)
            return pair.discs
        case .tinyDot:
            var pair = Pair(&random)
            pair.ratio = random.uniform(in: 4...5.5)
            return pair.discs
        case .smallBelow:
            var pair = Pair(&random)
            pair.degrees = random.uniform(in: -145 ... -35)
            return pair.discs
        case .farApart:
            var pair = Pair(&random)
            pair.gap = random.uniform(in: 1.2...2)
            return pair.discs
        case .overlapping:
            var pair = Pair(&random)
            // The centres are at most 0.7 of the large radius apart.
            pair.gap = random.uniform(in: 0...0.7) - 1 - 1 / pair.ratio
            return pair.discs
        case .threeDiscs:
            return Self.threeDiscs(&random)
        case .ovals:
            let aspect = random.uniform(in: 0.42...0.58)
            let direction = random.direction()
            let pair = Pair(&random)
            let isSingle = random.chance(0.3)
            let ovals = pair.arranged { .ellipse(center: $0, radii: Point($1, $1 * aspect), direction: direction) }
            return DrawnLogo(fitting: isSingle ? [ovals[0]] : ovals)
        case .squares:
            // The squares have the same area as the discs that they replace.
            let halfSide = Float.pi.squareRoot() / 2
            let direction = Point.direction(degrees: random.uniform(in: -45...45))
            return DrawnLogo(
                fitting: Pair(&random).arranged {
                    .box(
                        center: $0, halfSides: Point($1, $1) * halfSide, direction: direction, rounding: 0)
                })
        case .triangles:
            let direction = random.direction()
            return DrawnLogo(
                fitting: Pair(&random).arranged {
                    .triangle(center: $0, inradius: $1 * 0.7, direction: direction)
                })
        case .ring:
            let hole = random.uniform(in: 0.35...0.65)
            let ring = DrawnShape.ring(center: .zero, radius: (1 + hole) / 2, halfWidth: (1 - hole) / 2)
            let dot = DrawnShape.disc(center: .zero, radius: hole * random.uniform(in: 0.35...0.6))
            return DrawnLogo(fitting: random.chance(0.4) ? [[ring], [dot]] : [[ring]])
        case .glyph:
            return DrawnLogo(fitting: [Glyph.random(&random)])
        case .nothing:
            return DrawnLogo(fitting: [])
        case .looseTwoCircles:
            var pair = Pair(&random)
            pair.ratio = random.uniform(in: 1.6...2.3)
            pair.gap = random.uniform(in: 0.1...0.42)
            return pair.discs
        case .touching:
            var pair = Pair(&random)
            pair.ratio = random.uniform(in: 1.4...2.6)
            pair.gap = -random.uniform(in: 0...0.6)
            return pair.discs
        case .oneOval:
            return Self.oneOval(&random)
        case .similarDiscs:
            var pair = Pair(&random)
            pair.ratio = random.uniform(in: 1.05...1.35)
            pair.gap = random.uniform(in: 0.05...0.6)
            return pair.discs
        case .smallDot:
            var pair = Pair(&random)
            pair.ratio = random.uniform(in: 2.9...4)
            pair.gap = random.uniform(in: 0.1...0.6)
            return pair.discs
        case .apart:
            var pair = Pair(&random)
            pair.ratio = random.uniform(in: 1.4...3)
            pair.gap = random.uniform(in: 0.75...1.3)
            return pair.discs
        case .rowOfDiscs:
            return Self.rowOfDiscs(&random)
        case .invented:
            return .invented(&random)
        }
    }

    private static func oneOval(_ random: inout RandomStream) -> DrawnLogo {
        var pair = Pair(&random)
        pair.gap = random.uniform(in: 0...0.45)
        let isLarge = random.chance(0.6)
        let aspect = random.uniform(in: 0.45...0.75)
        let direction = random.direction()
        return DrawnLogo(
            fitting: pair.arranged { center, radius in
                (radius == 1) == isLarge
                    ? .ellipse(center: center, radii: Point(radius, radius * aspect), direction: direction)
                    : .disc(center: center, radius: radius)
            })
    }

    private static func rowOfDiscs(_ random: inout RandomStream) -> DrawnLogo {
        let step = random.uniform(in: 2.2...3.4)
        let columns = 2 + random.index(below: 3)
        let rows = columns == 2 || random.chance(0.3) ? 2 : 1
        let direction = random.direction()
        let discs = (0..<(rows * columns)).map { index in
            let along = direction * (Float(index % columns) * step)
            let across = Point(-direction.y, direction.x) * (Float(index / columns) * step)
            return [DrawnShape.disc(center: along + across, radius: random.uniform(in: 0.9...1.1))]
        }
        return DrawnLogo(fitting: discs)
    }

    private static func threeDiscs(_ random: inout RandomStream) -> DrawnLogo {
        let pair = Pair(&random)
        let radius = random.uniform(in: 0.45...0.9)
        let gap = random.uniform(in: Pair.gaps)
        let center: Point
        if random.chance(0.25) {
            // The third disc continues the line through the other two, beyond the small one.
            center = pair.smallCenter + .direction(degrees: pair.degrees) * (1 / pair.ratio + gap + radius)
        } else {
            let degrees =
                random.chance(0.5)
                ? 180 - pair.degrees + random.uniform(in: -8...8) : random.uniform(in: -150 ... -30)
            center = .direction(degrees: degrees) * (1 + gap + radius)
        }
        return DrawnLogo(
            fitting: pair.arranged { .disc(center: $0, radius: $1) } + [[.disc(center: center, radius: radius)]])
    }
}

/// A large shape of radius 1 at the origin and a small one beside it, by default arranged as in `LogoKind.twoCircles`.
struct Pair {
    static let ratios: ClosedRange<Float> = 1.75...2.25
    static let gaps: ClosedRange<Float> = 0.16...0.4

    /// The ratio of the large radius to the small one.
    var ratio: Float
    /// The gap between the shapes, as a fraction of the large radius; negative if they overlap.
    var gap: Float
    /// The direction from the large shape to the small one: 0 is to the right, 90 is up.
    var degrees: Float

    /// Creates a random pair in the ranges of `LogoKind.twoCircles`.
    init(_ random: inout RandomStream) {
        ratio = random.uniform(in: Self.ratios)
        gap = random.uniform(in: Self.gaps)
        degrees = random.uniform(in: 38...54)
        if random.chance(0.5) { degrees = 180 - degrees }
    }

    var smallCenter: Point { .direction(degrees: degrees) * (1 + gap + 1 / ratio) }

    /// Returns two parts of one shape each, which `shape` creates from centre and radius.
    func arranged(_ shape: (_ center: Point, _ radius: Float) -> DrawnShape) -> [[DrawnShape]] {
        [[shape(.zero, 1)], [shape(smallCenter, 1 / ratio)]]
    }

    var discs: DrawnLogo { DrawnLogo(fitting: arranged { .disc(center: $0, radius: $1) }) }
}
