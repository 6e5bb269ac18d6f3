/// A figure of a logo: a union of shapes, or a part of the artwork image.
struct Figure: Equatable {
    /// The shapes, if the figure is a union of shapes.
    private let shapes: [DrawnShape]
    /// The sampled distance to the figure; nil if the figure has few shapes, whose distances are computed exactly.
    private let field: DistanceField?
    /// The colours of the figure; nil if it is a union of shapes.
    let mipmap: Mipmap?
    /// The corners of the convex hull.
    let hull: [Point]

    /// Creates a figure from a part of the artwork image.
    init(_ field: DistanceField, mipmap: Mipmap, hull: [Point]) {
        shapes = []
        self.field = field
        self.mipmap = mipmap
        self.hull = hull
    }

    /// Creates the union of shapes; samples the distance to many shapes, such as the strokes of a letter, only once.
    init(_ shapes: [DrawnShape]) {
        self.shapes = shapes
        field = shapes.count > 4 ? DistanceField(shapes) : nil
        mipmap = nil
        hull = convexHull(of: shapes.flatMap(\.outline))
    }

    /// Returns the signed distance from a point to the outline.
    @inline(__always) func distance(to point: Point) -> Float {
        if let field { field.distance(to: point) } else { ImprintSynthesis.distance(from: point, to: shapes) }
    }
}

/// A figure at a position and scale within a design.
struct Element: Equatable {
    let figure: Figure
    /// The index of its colour among the tones of the artwork.
    var tone: Int
    /// A point *p* of the figure appears at `offset` + `scale` · *p*; a negative scale mirrors.
    var offset = Point.zero
    var scale = Point(1, 1)

    var corners: [Point] { figure.hull.map { offset + scale * $0 } }

    /// The factor by which the scale changes distances: the geometric mean of both directions.
    var enlargement: Float { abs(scale.x * scale.y).squareRoot() }

    /// Returns the signed distance from a point of the design, which is exact if both scales are equal.
    @inline(__always) func distance(to point: Point) -> Float {
        figure.distance(to: (point - offset) / scale) * enlargement
    }

    /// Returns the element moved by `shift` and then scaled about the origin.
    func moved(by shift: Point, scaled factor: Point = Point(1, 1)) -> Element {
        var element = self
        element.offset = (offset + shift) * factor
        element.scale = scale * factor
        return element
    }
}

/// A logo or hard negative, ready to be drawn: figures inside the circle of radius 1 around the origin.
struct Design: Equatable {
    var elements: [Element]

    static let nothing = Design(elements: [])

    /// Creates a design from figures that already fit the circle.
    init(elements: [Element]) { self.elements = elements }

    /// Creates a design from figures, and moves and scales them to fit the circle exactly.
    init(fitting elements: [Element]) {
        let circle = Circle(enclosing: convexHull(of: elements.flatMap(\.corners)))
        guard circle.radius > 0 else {
            self.elements = elements
            return
        }
        let scale = Point(repeating: 1 / circle.radius)
        self.elements = elements.map { $0.moved(by: -circle.center, scaled: scale) }
    }

    /// Creates the design of a drawn logo; each part has a separate tone.
    init(_ logo: DrawnLogo) {
        self.init(fitting: logo.parts.enumerated().map { Element(figure: Figure($1), tone: $0) })
    }

    /// The corners of the convex hull of all figures.
    var hull: [Point] { convexHull(of: elements.flatMap(\.corners)) }

    /// The design mirrored left to right.
    var mirrored: Design { Design(elements: elements.map { $0.moved(by: .zero, scaled: Point(-1, 1)) }) }
}

extension DrawnShape {
    /// Points whose convex hull equals the hull of the shape to within half a percent.
    fileprivate var outline: [Point] {
        switch self {
        case .box(let center, let halfSides, let direction, let rounding) where rounding == 0:
            return [Point(1, 1), Point(1, -1), Point(-1, 1), Point(-1, -1)].map {
                center + (halfSides * $0).rotated(by: direction)
            }
        case .triangle(let center, let inradius, let direction):
            return [Point(-2, 0), Point(1, 1.732_050_8), Point(1, -1.732_050_8)].map {
                center + ($0 * inradius).rotated(by: direction)
            }
        case .segment(let from, let to, let halfWidth):
            return [from, to].flatMap { around($0, Point(halfWidth, halfWidth)) }
        case .ellipse(let center, let radii, let direction):
            return around(.zero, radii).map { center + $0.rotated(by: direction) }
        case .box(let center, let halfSides, let direction, let rounding):
            let inner = halfSides - rounding
            return [Point(1, 1), Point(1, -1), Point(-1, 1), Point(-1, -1)].flatMap {
                around(center + (inner * $0).rotated(by: direction), Point(rounding, rounding))
            }
        case .disc, .ring:
            return around(bounds.center, Point(bounds.radius, bounds.radius))
        }
    }

    private func around(_ center: Point, _ radii: Point) -> [Point] {
        Self.circle.map { center + radii * $0 }
    }

    private static let circle = (0..<32).map { Point.direction(degrees: Float($0) * 11.25) }
}
