/// A plane shape, defined by its signed distance function (SDF): negative inside, 0 on the outline, positive outside.
///
/// The signed distance provides all that drawing needs: the inside (fill), the distance to the outline (antialiasing, stroke), and
/// the effect of a perturbed outline (a hand-drawn look). The formulas are from Quilez, "2D distance functions".
enum DrawnShape: Equatable {
    case disc(center: Point, radius: Float)
    /// The band of the given half width around a circle.
    case ring(center: Point, radius: Float, halfWidth: Float)
    /// An ellipse; `direction` is the direction of its first radius.
    case ellipse(center: Point, radii: Point, direction: Point)
    /// A rectangle; `direction` is the direction of its first side, and `rounding` is the radius of its corners.
    case box(center: Point, halfSides: Point, direction: Point, rounding: Float)
    /// An equilateral triangle; `direction` points from the centre to the middle of a side.
    case triangle(center: Point, inradius: Float, direction: Point)
    /// A stroke with round ends.
    case segment(from: Point, to: Point, halfWidth: Float)

    /// Returns the signed distance from `point` to the outline.
    ///
    /// It is exact, except for ellipses (first order at the outline) and outside the corners of triangles.
    @inline(__always) func distance(to point: Point) -> Float {
        switch self {
        case .disc(let center, let radius):
            return (point - center).length - radius
        case .ring(let center, let radius, let halfWidth):
            return abs((point - center).length - radius) - halfWidth
        case .ellipse(let center, let radii, let direction):
            let scaled = (point - center).rotatedBack(by: direction) / radii
            let steepness = (scaled / radii).length
            guard steepness > 0 else { return -min(radii.x, radii.y) }
            return scaled.length * (scaled.length - 1) / steepness
        case .box(let center, let halfSides, let direction, let rounding):
            let local = (point - center).rotatedBack(by: direction)
            let overX = abs(local.x) - halfSides.x + rounding
            let overY = abs(local.y) - halfSides.y + rounding
            return Point(max(overX, 0), max(overY, 0)).length + min(max(overX, overY), 0) - rounding
        case .triangle(let center, let inradius, let direction):
            let local = (point - center).rotatedBack(by: direction)
            let halfRootOfThree: Float = 0.866_025_4
            return max(local.x, halfRootOfThree * abs(local.y) - local.x / 2) - inradius
        case .segment(let from, let to, let halfWidth):
            let along = to - from
            let position = ((point - from).dot(along) / along.dot(along)).clampedToUnit
            return (point - from - along * position).length - halfWidth
        }
    }

    /// A circle that encloses the shape.
    var bounds: (center: Point, radius: Float) {
        switch self {
        case .disc(let center, let radius): (center, radius)
        case .ring(let center, let radius, let halfWidth): (center, radius + halfWidth)
        case .ellipse(let center, let radii, _): (center, max(radii.x, radii.y))
        case .box(let center, let halfSides, _, let rounding):
            (center, halfSides.length - rounding * (Float(2).squareRoot() - 1))
        case .triangle(let center, let inradius, _): (center, 2 * inradius)
        case .segment(let from, let to, let halfWidth): ((from + to) / 2, (to - from).length / 2 + halfWidth)
        }
    }

    /// Returns the shape moved by `offset`, then scaled about the origin by `scale`.
    func moved(by offset: Point, scaled scale: Float) -> DrawnShape {
        switch self {
        case .disc(let center, let radius):
            .disc(center: (center + offset) * scale, radius: radius * scale)
        case .ring(let center, let radius, let halfWidth):
            .ring(center: (center + offset) * scale, radius: radius * scale, halfWidth: halfWidth * scale)
        case .ellipse(let center, let radii, let direction):
            .ellipse(center: (center + offset) * scale, radii: radii * scale, direction: direction)
        case .box(let center, let halfSides, let direction, let rounding):
            .box(
                center: (center + offset) * scale, halfSides: halfSides * scale, direction: direction,
                rounding: rounding * scale)
        case .triangle(let center, let inradius, let direction):
            .triangle(center: (center + offset) * scale, inradius: inradius * scale, direction: direction)
        case .segment(let from, let to, let halfWidth):
            .segment(from: (from + offset) * scale, to: (to + offset) * scale, halfWidth: halfWidth * scale)
        }
    }
}

/// Returns the signed distance from `point` to the union of `shapes`.
@inline(__always) func distance(from point: Point, to shapes: [DrawnShape]) -> Float {
    var nearest = Float.infinity
    for shape in shapes { nearest = min(nearest, shape.distance(to: point)) }
    return nearest
}
