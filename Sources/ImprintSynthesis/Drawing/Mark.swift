internal import ImprintCore

/// The parts of a mark, around the origin and within distance 1 of it; parts may differ in colour.
struct Mark: Equatable {
    /// Each part is the union of its shapes.
    let parts: [[DrawnShape]]

    /// Moves and scales `parts` so that a circle of radius 1 around the origin just holds them.
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

/// A kind of mark that a label of a recipe may show.
package enum MarkKind: String, Codable, Sendable, CaseIterable {
    /// Two discs, the radius of one about twice that of the other; the small one is up and to either side, near.
    case twoCircles
    /// A disc alone.
    case oneDisc
    /// Two discs of nearly the same size.
    case equalDiscs
    /// A disc with a very small one, where the small one of two circles would be.
    case tinyDot
    /// Two discs as in two circles, but the small one hangs below.
    case smallBelow
    /// Two discs as in two circles, but far from each other.
    case farApart
    /// Two discs of which the small one lies mostly within the large one.
    case overlapping
    /// Two circles and a third disc.
    case threeDiscs
    /// Two ellipses arranged as two circles, or one ellipse.
    case ovals
    /// Two squares arranged as two circles.
    case squares
    /// Two triangles arranged as two circles.
    case triangles
    /// A disc with a hole, empty or with a dot in it.
    case ring
    /// A letter, digit or sign made of bows and strokes.
    case glyph
    /// Nothing: the background alone.
    case nothing
    /// Two circles as they are met on things and drawn by hand: with ratios and gaps beyond those of `twoCircles`.
    case looseTwoCircles
    /// Two circles that touch or overlap.
    case touching
    /// Two circles of which one is an ellipse.
    case oneOval
    /// Two discs of which one is a little larger.
    case similarDiscs
    /// A disc with a small one, between that of two circles and a tiny dot.
    case smallDot
    /// Two discs as in two circles, but a disc's width from each other.
    case apart
    /// Three to six discs of about the same size in a row, or in two.
    case rowOfDiscs
    /// One to five shapes and glyphs put together by chance.
    case invented
}

extension MarkKind {
    /// A random mark of this kind.
    ///
    /// No other kind can be taken for two circles, nor for their mirror image, before or after a turn by some 20°:
    /// ratios stay clear of 1.75…2.25, gaps of 0.16…0.4 and the placement of 38°…54° by wide margins.
    func mark(_ random: inout RandomStream) -> Mark {
        switch self {
        case .twoCircles:
            return Pair(&random).discs
        case .oneDisc:
            return Mark(fitting: [[.disc(center: .zero, radius: 1)]])
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
            let isAlone = random.chance(0.3)
            let ovals = pair.arranged { .ellipse(center: $0, radii: Point($1, $1 * aspect), direction: direction) }
            return Mark(fitting: isAlone ? [ovals[0]] : ovals)
        case .squares:
            // Of the area of the discs that they stand for.
            let halfSide = Float.pi.squareRoot() / 2
            let direction = Point.direction(degrees: random.uniform(in: -45...45))
            return Mark(
                fitting: Pair(&random).arranged {
                    .box(
                        center: $0, halfSides: Point($1, $1) * halfSide, direction: direction, rounding: 0)
                })
        case .triangles:
            let direction = random.direction()
            return Mark(
                fitting: Pair(&random).arranged {
                    .triangle(center: $0, inradius: $1 * 0.7, direction: direction)
                })
        case .ring:
            let hole = random.uniform(in: 0.35...0.65)
            let ring = DrawnShape.ring(center: .zero, radius: (1 + hole) / 2, halfWidth: (1 - hole) / 2)
            let dot = DrawnShape.disc(center: .zero, radius: hole * random.uniform(in: 0.35...0.6))
            return Mark(fitting: random.chance(0.4) ? [[ring], [dot]] : [[ring]])
        case .glyph:
            return Mark(fitting: [Glyph.random(&random)])
        case .nothing:
            return Mark(fitting: [])
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

    private static func oneOval(_ random: inout RandomStream) -> Mark {
        var pair = Pair(&random)
        pair.gap = random.uniform(in: 0...0.45)
        let isLarge = random.chance(0.6)
        let aspect = random.uniform(in: 0.45...0.75)
        let direction = random.direction()
        return Mark(
            fitting: pair.arranged { center, radius in
                (radius == 1) == isLarge
                    ? .ellipse(center: center, radii: Point(radius, radius * aspect), direction: direction)
                    : .disc(center: center, radius: radius)
            })
    }

    private static func rowOfDiscs(_ random: inout RandomStream) -> Mark {
        let step = random.uniform(in: 2.2...3.4)
        let columns = 2 + random.index(below: 3)
        let rows = columns == 2 || random.chance(0.3) ? 2 : 1
        let direction = random.direction()
        let discs = (0..<(rows * columns)).map { place in
            let along = direction * (Float(place % columns) * step)
            let across = Point(-direction.y, direction.x) * (Float(place / columns) * step)
            return [DrawnShape.disc(center: along + across, radius: random.uniform(in: 0.9...1.1))]
        }
        return Mark(fitting: discs)
    }

    private static func threeDiscs(_ random: inout RandomStream) -> Mark {
        let pair = Pair(&random)
        let radius = random.uniform(in: 0.45...0.9)
        let gap = random.uniform(in: Pair.gaps)
        let center: Point
        if random.chance(0.25) {
            // In line behind the small one.
            center = pair.smallCenter + .direction(degrees: pair.degrees) * (1 / pair.ratio + gap + radius)
        } else {
            let degrees =
                random.chance(0.5)
                ? 180 - pair.degrees + random.uniform(in: -8...8) : random.uniform(in: -150 ... -30)
            center = .direction(degrees: degrees) * (1 + gap + radius)
        }
        return Mark(
            fitting: pair.arranged { .disc(center: $0, radius: $1) } + [[.disc(center: center, radius: radius)]])
    }
}

/// A large figure of radius 1 at the origin and a small one beside it; by default as two circles have it.
struct Pair {
    static let ratios: ClosedRange<Float> = 1.75...2.25
    static let gaps: ClosedRange<Float> = 0.16...0.4

    /// The large radius over the small one.
    var ratio: Float
    /// The empty space between the two, as a fraction of the large radius.
    var gap: Float
    /// Where the small figure is, seen from the large one: 0 is to the right, 90 is up.
    var degrees: Float

    init(_ random: inout RandomStream) {
        ratio = random.uniform(in: Self.ratios)
        gap = random.uniform(in: Self.gaps)
        degrees = random.uniform(in: 38...54)
        if random.chance(0.5) { degrees = 180 - degrees }
    }

    var smallCenter: Point { .direction(degrees: degrees) * (1 + gap + 1 / ratio) }

    /// The two figures, made by `shape` from their centres and radii, as a part each.
    func arranged(_ shape: (_ center: Point, _ radius: Float) -> DrawnShape) -> [[DrawnShape]] {
        [[shape(.zero, 1)], [shape(smallCenter, 1 / ratio)]]
    }

    var discs: Mark { Mark(fitting: arranged { .disc(center: $0, radius: $1) }) }
}
