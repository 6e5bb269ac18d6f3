/// One figure of a mark: shapes, or the part of a picture.
struct Figure: Equatable {
    /// What it consists of, where that is few shapes.
    private let shapes: [DrawnShape]
    /// The distance to it otherwise.
    private let field: DistanceField?
    /// What is seen of it in its own colours, if it is the part of a picture.
    let picture: Pyramid?
    /// The corners of its convex hull.
    let hull: [Point]

    /// The part of a picture.
    init(_ field: DistanceField, picture: Pyramid, hull: [Point]) {
        shapes = []
        self.field = field
        self.picture = picture
        self.hull = hull
    }

    /// The union of shapes; of many of them, such as the strokes of a letter, the distance is sampled once.
    init(_ shapes: [DrawnShape]) {
        self.shapes = shapes
        field = shapes.count > 4 ? DistanceField(shapes) : nil
        picture = nil
        hull = convexHull(of: shapes.flatMap(\.outline))
    }

    @inline(__always) func distance(to point: Point) -> Float {
        if let field { field.distance(to: point) } else { ImprintSynthesis.distance(from: point, to: shapes) }
    }
}

/// A figure in its place.
struct Element: Equatable {
    let figure: Figure
    /// Which of the colours of the artwork it has.
    var tone: Int
    /// A point *p* of the figure appears at `offset` + `scale` · *p*; a negative scale mirrors.
    var offset = Point.zero
    var scale = Point(1, 1)

    var corners: [Point] { figure.hull.map { offset + scale * $0 } }

    /// By how much distances grow in its place, on average of both directions.
    var enlargement: Float { abs(scale.x * scale.y).squareRoot() }

    /// The signed distance from a point of the mark, exact where both scales are the same.
    @inline(__always) func distance(to point: Point) -> Float {
        figure.distance(to: (point - offset) / scale) * enlargement
    }

    /// Moved by `offset` and then scaled about the origin.
    func moved(by shift: Point, scaled factor: Point = Point(1, 1)) -> Element {
        var element = self
        element.offset = (offset + shift) * factor
        element.scale = scale * factor
        return element
    }
}

/// A mark to be drawn: figures that a circle of radius 1 around the origin holds.
struct Design: Equatable {
    var elements: [Element]

    static let nothing = Design(elements: [])

    /// The figures as they are.
    init(elements: [Element]) { self.elements = elements }

    /// The figures, moved and scaled so that the circle just holds them.
    init(fitting elements: [Element]) {
        let circle = Circle(holding: convexHull(of: elements.flatMap(\.corners)))
        guard circle.radius > 0 else {
            self.elements = elements
            return
        }
        let scale = Point(repeating: 1 / circle.radius)
        self.elements = elements.map { $0.moved(by: -circle.center, scaled: scale) }
    }

    /// A drawn mark, each part with a tone of its own.
    init(_ mark: Mark) {
        self.init(fitting: mark.parts.enumerated().map { Element(figure: Figure($1), tone: $0) })
    }

    /// The corners of the convex hull of all figures.
    var hull: [Point] { convexHull(of: elements.flatMap(\.corners)) }

    /// The same, mirrored left to right.
    var mirrored: Design { Design(elements: elements.map { $0.moved(by: .zero, scaled: Point(-1, 1)) }) }
}

extension DrawnShape {
    /// Points whose convex hull is that of the shape, to within half a percent.
    fileprivate var outline: [Point] {
        switch self {
        case .box(let center, let halfSides, let direction, let rounding) where rounding == 0:
            return [Point(1, 1), Point(1, -1), Point(-1, 1), Point(-1, -1)].map {
                center + (halfSides * $0).turned(by: direction)
            }
        case .triangle(let center, let inradius, let direction):
            return [Point(-2, 0), Point(1, 1.732_050_8), Point(1, -1.732_050_8)].map {
                center + ($0 * inradius).turned(by: direction)
            }
        case .segment(let from, let to, let halfWidth):
            return [from, to].flatMap { around($0, Point(halfWidth, halfWidth)) }
        case .ellipse(let center, let radii, let direction):
            return around(.zero, radii).map { center + $0.turned(by: direction) }
        case .box(let center, let halfSides, let direction, let rounding):
            let inner = halfSides - rounding
            return [Point(1, 1), Point(1, -1), Point(-1, 1), Point(-1, -1)].flatMap {
                around(center + (inner * $0).turned(by: direction), Point(rounding, rounding))
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
