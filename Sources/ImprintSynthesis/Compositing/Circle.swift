/// A circle in the plane.
struct Circle: Equatable {
    var center: Point
    var radius: Float

    init(center: Point, radius: Float) {
        self.center = center
        self.radius = radius
    }

    /// Creates the smallest circle that encloses all points.
    ///
    /// This is Welzl's algorithm without the shuffle, because a convex hull has few points.
    init(enclosing points: [Point]) {
        self.init(center: points.first ?? .zero, radius: 0)
        for (i, a) in points.enumerated() where !encloses(a) {
            self = Circle(center: a, radius: 0)
            for (j, b) in points[..<i].enumerated() where !encloses(b) {
                self = Circle(through: a, b)
                for c in points[..<j] where !encloses(c) { self = Circle(through: a, b, c) }
            }
        }
    }

    private init(through a: Point, _ b: Point) {
        self.init(center: (a + b) / 2, radius: (a - b).length / 2)
    }

    private init(through a: Point, _ b: Point, _ c: Point) {
        let (u, v) = (b - a, c - a)
        let area = 2 * (u.x * v.y - u.y * v.x)
        // Of three points on a line, the circle through the two that are farthest apart encloses the third.
        guard abs(area) > 1e-12 else {
            let pairs = [Circle(through: a, b), Circle(through: a, c), Circle(through: b, c)]
            self = pairs.max { $0.radius < $1.radius } ?? Circle(through: a, b)
            return
        }
        let offset = Point(v.y * u.dot(u) - u.y * v.dot(v), u.x * v.dot(v) - v.x * u.dot(u)) / area
        self.init(center: a + offset, radius: offset.length)
    }

    private func encloses(_ point: Point) -> Bool { (point - center).length <= radius * 1.00001 + 1e-6 }
}

/// Returns the corners of the convex hull of `points`, in order (Andrew's monotone chain algorithm).
func convexHull(of points: [Point]) -> [Point] {
    let sorted = points.sorted { ($0.x, $0.y) < ($1.x, $1.y) }
    guard sorted.count > 3 else { return sorted }
    func chain(_ points: some Sequence<Point>) -> [Point] {
        var chain: [Point] = []
        for point in points {
            while chain.count >= 2 {
                let (a, b) = (chain[chain.count - 2], chain[chain.count - 1])
                if (b.x - a.x) * (point.y - a.y) - (b.y - a.y) * (point.x - a.x) > 0 { break }
                chain.removeLast()
            }
            chain.append(point)
        }
        return chain
    }
    return chain(sorted).dropLast() + chain(sorted.reversed()).dropLast()
}

/// Returns the area of a polygon with these corners, in order.
func polygonArea(_ corners: [Point]) -> Float {
    guard var before = corners.last else { return 0 }
    var sum: Float = 0
    for corner in corners {
        sum += before.x * corner.y - before.y * corner.x
        before = corner
    }
    return abs(sum) / 2
}
