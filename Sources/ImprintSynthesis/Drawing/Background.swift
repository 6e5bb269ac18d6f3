internal import ImprintCore

/// The drawn background of a logo: a pattern of two colours.
struct Background {
    /// The patterns, from plain to busy.
    enum Pattern: CaseIterable {
        case plain, gradient
        case stripes, checks, dots, blobs, cloth, stone, wood, bricks, clutter

        static let calm: [Pattern] = [.plain, .gradient]
        static let busy = allCases.filter { !calm.contains($0) }
    }

    let pattern: Pattern
    private let colors: (Color, Color)
    /// The rotation of the pattern, as a unit vector.
    private let direction: Point
    private let offset: Point
    /// The number of repetitions across the frame.
    private let frequency: Float
    /// The steepness of the transition between the two colours.
    private let sharpness: Float
    /// A random parameter of some patterns, such as the width of stripes.
    private let balance: Float
    private let noise: ValueNoise
    private let clutter: [(shape: [DrawnShape], color: Color)]

    /// Creates a random background.
    init(isBusy: Bool, colors: (Color, Color), _ random: inout RandomStream) {
        self.colors = colors
        pattern = random.element(of: isBusy ? Pattern.busy : Pattern.calm)
        direction = random.direction()
        offset = Point(random.uniform(in: 0...8), random.uniform(in: 0...8))
        frequency = random.uniform(in: 1.2...5)
        sharpness = random.uniform(in: 3...14)
        balance = random.uniform(in: 0.25...0.75)
        noise = ValueNoise(&random)
        clutter = pattern == .clutter ? Self.clutter(colors, &random) : []
    }

    /// Fills the canvas with the pattern.
    func paint(on canvas: inout Canvas) {
        let noise = noise
        let frequency = frequency
        switch pattern {
        case .plain:
            mix(on: &canvas) { 0.15 * noise.fractal(at: $0 * 2) }
        case .gradient:
            mix(on: &canvas) { ($0 - offset).x * 0.4 + 0.5 }
        case .stripes:
            mix(on: &canvas) { step(balance / 2 - abs(($0.x * frequency).fraction - 0.5), sharpness) }
        case .checks:
            mix(on: &canvas) {
                let x = abs(($0.x * frequency / 2).fraction - 0.5) - 0.25
                let y = abs(($0.y * frequency / 2).fraction - 0.5) - 0.25
                return step(x * y * 4, sharpness * 6)
            }
        case .dots:
            // Many small dots, which cannot be confused with a logo.
            mix(on: &canvas) {
                let cell = Point(($0.x * frequency * 3).fraction - 0.5, ($0.y * frequency * 3).fraction - 0.5)
                return step(0.15 + balance * 0.2 - cell.length, sharpness)
            }
        case .blobs:
            mix(on: &canvas) { step(noise.value(at: $0 * frequency) - balance, sharpness) }
        case .cloth:
            mix(on: &canvas) {
                let fine = $0 * frequency * 8
                return 0.5 * noise.value(at: Point(fine.x, fine.y / 8)) + 0.5
                    * noise.value(at: Point(fine.x / 8, fine.y))
            }
        case .stone:
            mix(on: &canvas) { (noise.fractal(at: $0 * frequency * 2) - 0.5) * 1.8 + 0.5 }
        case .wood:
            mix(on: &canvas) {
                let plank = ($0.y * frequency / 2).floor
                let grain = noise.fractal(at: Point($0.x * 1.2 + Float(plank) * 5, $0.y * 14))
                let gap = abs(($0.y * frequency / 2).fraction - 0.5)
                return gap > 0.47 ? 1 : grain * 0.7 + 0.3 * noise.value(at: Point(Float(plank), 0))
            }
        case .bricks:
            mix(on: &canvas) {
                let y = $0.y * frequency * 1.3
                let x = $0.x * frequency * 0.6 + (y.floor & 1 == 0 ? 0 : 0.5)
                let joint = max(abs(y.fraction - 0.5), abs(x.fraction - 0.5) * 2 - 0.5) - 0.42
                let tone = noise.value(at: Point(Float(x.floor), Float(y.floor))) * 0.35
                return step(joint, sharpness) * 0.8 + tone + 0.15 * noise.fractal(at: $0 * 12)
            }
        case .clutter:
            mix(on: &canvas) { 0.3 * noise.fractal(at: $0) + 0.2 }
            let view = View(center: Point(repeating: Float(canvas.size) / 2), scale: Float(canvas.size) / 2)
            for (shapes, color) in clutter {
                canvas.paint(color, through: view) { distance(from: $0, to: shapes) }
            }
        }
    }

    /// Mixes the two colours in every pixel, with the given share (clamped to 0…1) of the second.
    @inline(__always) private func mix(on canvas: inout Canvas, _ share: (Point) -> Float) {
        let (first, second) = colors
        let direction = direction
        let offset = offset
        canvas.update { _, position in
            first + (second - first) * share(position.rotatedBack(by: direction) + offset).clampedToUnit
        }
    }

    /// Returns random boxes, triangles and strokes; discs are excluded because they could look like a part of a logo.
    private static func clutter(
        _ colors: (Color, Color), _ random: inout RandomStream
    ) -> [(shape: [DrawnShape], color: Color)] {
        (0..<(6 + random.index(below: 16))).map { _ in
            let center = Point(random.uniform(in: -1.1...1.1), random.uniform(in: -1.1...1.1))
            let size = random.uniform(in: 0.06...0.5)
            let direction = random.direction()
            let shape: DrawnShape =
                switch random.index(below: 3) {
                case 0:
                    .box(
                        center: center, halfSides: Point(size, size * random.uniform(in: 0.2...1)),
                        direction: direction, rounding: 0)
                case 1: .triangle(center: center, inradius: size / 2, direction: direction)
                default:
                    .segment(
                        from: center, to: center + direction * size * 2, halfWidth: random.uniform(in: 0.01...0.05))
                }
            return ([shape], colors.0 + (colors.1 - colors.0) * random.uniform())
        }
    }
}

/// Returns a ramp with the given slope that is ½ at 0, clamped to 0…1.
@inline(__always) private func step(_ value: Float, _ sharpness: Float) -> Float {
    (0.5 + value * sharpness).clampedToUnit
}
