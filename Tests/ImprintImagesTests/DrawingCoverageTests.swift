import Foundation
import ImprintCore
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Returns the area that a shape with this distance function covers on a canvas, in pixels.
private func area(size: Int, through view: View, _ distance: (Point) -> Float) -> Float {
    var canvas = Canvas(size: size)
    canvas.paint(Color(1, 1, 1), through: view, distance: distance)
    return canvas.pixels.reduce(0) { $0 + $1.x }
}

@Suite("Coverage of drawn shapes") struct DrawingCoverageTests {
    @Test(
        "A disc covers πr² within 1 %, at any position",
        arguments: [Float(3), 7.3, 21.5], [Point(32, 32), Point(31.3, 32.8)])
    func discArea(radius: Float, center: Point) {
        let disc = DrawnShape.disc(center: .zero, radius: 1)
        let covered = area(size: 64, through: View(center: center, scale: radius)) { disc.distance(to: $0) }
        #expect(abs(covered / (.pi * radius * radius) - 1) < 0.01)
    }

    @Test(
        "Every shape covers its area within 2 %",
        arguments: [
            (DrawnShape.ring(center: .zero, radius: 0.7, halfWidth: 0.2), Float.pi * (0.81 - 0.25)),
            (.ellipse(center: .zero, radii: Point(0.9, 0.4), direction: Point(0.6, 0.8)), Float.pi * 0.36),
            (.box(center: Point(0.1, 0), halfSides: Point(0.6, 0.4), direction: Point(0.8, 0.6), rounding: 0), 0.96),
            (.box(center: .zero, halfSides: Point(0.5, 0.5), direction: Point(1, 0), rounding: 0.5), Float.pi * 0.25),
            (.triangle(center: .zero, inradius: 0.4, direction: Point(0, 1)), 0.16 * 5.196),
            (.segment(from: Point(-0.5, 0), to: Point(0.5, 0.2), halfWidth: 0.2), 0.4 * 1.0198 + Float.pi * 0.04),
        ])
    func shapeArea(shape: DrawnShape, expected: Float) {
        let scale: Float = 28
        let view = View(center: Point(32, 32), scale: scale, rotationDegrees: 33)
        let covered = area(size: 64, through: view) { shape.distance(to: $0) } / (scale * scale)
        #expect(abs(covered / expected - 1) < 0.02)
        #expect(shape.distance(to: shape.bounds.center + Point(0, shape.bounds.radius + 0.5)) > 0)
    }

    @Test("An outline covers the band inside the edge")
    func outlineArea() {
        var random = RandomStream(seed: 1, "outline")
        let fillStyle = FillStyle(pattern: .outlined(width: 0.2), wobble: 0, opacity: 1, noise: ValueNoise(&random))
        let shapes = [DrawnShape.disc(center: .zero, radius: 1)]
        let covered = area(size: 64, through: View(center: Point(32, 32), scale: 28)) {
            fillStyle.distance(from: $0, to: shapes)
        }
        #expect(abs(covered / (.pi * 28 * 28 * (1 - 0.64)) - 1) < 0.02)
    }

    @Test("A hand-drawn outline deviates by at most its wobble")
    func wobbleIsBounded() {
        var random = RandomStream(seed: 2, "wobble")
        let fillStyle = FillStyle(pattern: .filled, wobble: 0.05, opacity: 1, noise: ValueNoise(&random))
        let shapes = [DrawnShape.disc(center: .zero, radius: 1)]
        let differences = (0..<360).map { degrees in
            abs(fillStyle.distance(from: .direction(degrees: Float(degrees)), to: shapes))
        }
        #expect(differences.allSatisfy { $0 <= 0.0501 })
        #expect(differences.contains { $0 > 0.01 })
    }

    @Test("A tilt shortens a shape across its axis and enlarges the near half", arguments: [Float(0), 15, 30])
    func tilt(degrees: Float) {
        let disc = DrawnShape.disc(center: .zero, radius: 1)
        let view = View(center: Point(32, 32), scale: 20, axis: Point(1, 0), tiltDegrees: degrees)
        let covered = area(size: 64, through: view) { disc.distance(to: $0) }
        #expect(abs(covered / (.pi * 400 * cos(degrees * .pi / 180)) - 1) < 0.08)
        let (right, _) = view.artwork(at: Point(52, 32))
        #expect(abs(right.x - 1) < 1e-4 && abs(right.y) < 1e-4)
        let (below, _) = view.artwork(at: Point(32, 52))
        let (above, _) = view.artwork(at: Point(32, 12))
        #expect(degrees == 0 ? abs(below.y + above.y) < 1e-4 : abs(below.y) > 1 && abs(below.y) != abs(above.y))
    }

    @Test("Directions are cosine and sine, with y upwards", arguments: (-8...8).map { Float($0) * 45 })
    func directions(degrees: Float) {
        let direction = Point.direction(degrees: degrees)
        #expect(abs(direction.x - cos(degrees * .pi / 180)) < 1e-4)
        #expect(abs(direction.y + sin(degrees * .pi / 180)) < 1e-4)
    }

    @Test("A blur preserves the sum, and its variance is sigma squared", arguments: [Float(0), 0.4, 1, 2.3])
    func blur(sigma: Float) {
        var canvas = Canvas(size: 33)
        canvas.update { _, point in abs(point.x) < 0.01 && abs(point.y) < 0.01 ? Color(1, 1, 1) : .zero }
        canvas.blur(sigma: sigma)
        var total: Float = 0
        var variance: Float = 0
        for (index, pixel) in canvas.pixels.enumerated() {
            let offset = Float(index % 33 - 16)
            total += pixel.x
            variance += pixel.x * offset * offset
        }
        #expect(abs(total - 1) < 1e-4)
        #expect(abs(variance - sigma * sigma) < 0.01)
    }

    @Test("Noise has the requested standard deviation")
    func noise() {
        var canvas = Canvas(size: 64)
        canvas.update { _, _ in Color(0.5, 0.5, 0.5) }
        var random = RandomStream(seed: 6, "noise")
        let samples = canvas.image(noise: 0.1, &random).samples.map { Float($0) / 255 - 0.5 }
        let standardDeviation = (samples.reduce(0) { $0 + $1 * $1 } / Float(samples.count)).squareRoot()
        #expect(abs(standardDeviation - 0.1) < 0.003)
    }

    @Test("A contact sheet arranges images row by row, 4 pixels apart")
    func contactSheet() {
        let images = [UInt8(10), 20, 30].map { RasterImage(width: 2, height: 3, channels: 1, filledWith: $0) }
        let sheet = ContactSheet.make(images, columns: 2)
        #expect(sheet.width == 16 && sheet.height == 18 && sheet.channels == 3)
        func sample(_ x: Int, _ y: Int) -> UInt8 { sheet.samples[(y * sheet.width + x) * 3] }
        #expect(sample(4, 4) == 10 && sample(10, 4) == 20 && sample(4, 11) == 30)
        #expect(sample(3, 4) == 128 && sample(6, 4) == 128 && sample(10, 11) == 128)
    }
}
