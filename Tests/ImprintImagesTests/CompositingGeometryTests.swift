import ImprintCore
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite struct CompositingGeometryTests {
    @Test("The smallest enclosing circle contains all points, and no smaller circle through two or three of them does")
    func circle() {
        for index in 0..<20 {
            var random = RandomStream(seed: 1, "circle", index)
            let points = (0..<(2 + index)).map { _ in Point(random.uniform(in: -3...3), random.uniform(in: -1...1)) }
            let circle = Circle(enclosing: points)
            let hull = convexHull(of: points)
            #expect(points.allSatisfy { ($0 - circle.center).length <= circle.radius + 1e-4 })
            #expect(abs(Circle(enclosing: hull).radius - circle.radius) < 1e-4)
            // The points on the circle are not all on one side; otherwise a smaller circle would contain them.
            let touching = points.filter { ($0 - circle.center).length > circle.radius - 1e-3 }
            for degrees in stride(from: Float(0), to: 360, by: 10) {
                let direction = Point.direction(degrees: degrees)
                #expect(touching.contains { ($0 - circle.center).dot(direction) >= -0.01 })
            }
        }
        let line = Circle(enclosing: [Point(0, 0), Point(1, 1), Point(4, 4)])
        #expect(abs(line.radius - 8 * Float(0.5).squareRoot() / 2) < 1e-4)
        #expect(Circle(enclosing: [Point(2, 3)]) == Circle(center: Point(2, 3), radius: 0))
    }

    @Test("A convex hull has only the corners, and the right area")
    func hull() {
        let square = [Point(0, 0), Point(2, 0), Point(2, 2), Point(0, 2)]
        let hull = convexHull(of: square + [Point(1, 1), Point(1, 0), Point(2, 1)])
        #expect(Set(hull) == Set(square))
        #expect(polygonArea(hull) == 4)
        #expect(polygonArea([]) == 0)
    }

    @Test("A distance field agrees with its shapes and mask")
    func field() {
        let disc = DrawnShape.disc(center: Point(0.1, -0.2), radius: 0.7)
        let shapes = DistanceField([disc])
        let mask = (0..<(100 * 120)).map { index in
            let position = Point(Float(index % 100), Float(index / 100))
            let point: Point = position * 0.02 - 1
            return disc.distance(to: point) < 0
        }
        let pixels = DistanceField(mask: mask, width: 100, origin: Point(-1, -1), step: 0.02)
        for index in 0..<200 {
            var random = RandomStream(seed: 1, "field", index)
            let point = Point(random.uniform(in: -1...0.9), random.uniform(in: -1...0.9))
            let distance = disc.distance(to: point)
            #expect(abs(pixels.distance(to: point) - distance) < 0.02)
            if distance < 0.1 && distance > -0.6 { #expect(abs(shapes.distance(to: point) - distance) < 0.01) }
        }
    }

    @Test("Mapping a point to a view and back gives the same point")
    func view() {
        for index in 0..<50 {
            var random = RandomStream(seed: 1, "view", index)
            let view = View(
                center: Point(random.uniform(in: 0...200), 80), scale: random.uniform(in: 5...90),
                rotationDegrees: random.uniform(in: -180...180), axis: random.direction(),
                tiltDegrees: random.uniform(in: 0...40))
            let point = Point(random.uniform(in: -1.5...1.5), random.uniform(in: -1.5...1.5))
            #expect((view.artwork(at: view.pixel(of: point)).point - point).length < 1e-3)
        }
    }

    @Test("logUniform returns values whose logarithms are uniform over the range")
    func logUniform() {
        var random = RandomStream(seed: 1, "log")
        let values = (0..<2000).map { _ in random.logUniform(in: 0.04...0.64) }
        #expect(values.allSatisfy { (0.04...0.64).contains($0) })
        for (bound, share) in [(Float(0.08), 0.25), (0.16, 0.5), (0.32, 0.75)] {
            #expect(abs(Double(values.count { $0 < bound }) / 2000 - share) < 0.05)
        }
    }
}
