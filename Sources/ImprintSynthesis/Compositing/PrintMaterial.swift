internal import ImprintCore

/// A material of a logo that is not ink: its edges, its structure or its light differ from those of a print.
struct PrintMaterial {
    /// The kind of the material.
    enum Kind: CaseIterable {
        /// Raised or engraved in the material of the ground, with or without ink.
        case relief
        /// Threads that run in one direction, with raised edges.
        case embroidery
        /// Polished metal that reflects its surroundings.
        case metal
        /// A light source, in front of a darker scene.
        case light
        /// Dots of a coarse print or of a screen.
        case raster
    }

    let kind: Kind
    /// The opacity of the ink, 0…1; a relief may have none.
    let inkOpacity: Float
    /// The direction of the light, of the threads or of the dots.
    private let direction: Point
    /// The strength of the effect, 0…1.
    private let strength: Float
    /// The width of slopes, of threads, of dots or of the glow, relative to its smallest value.
    private let width: Float
    private let tint: Color
    private let noise: ValueNoise

    /// Creates a random material.
    init(_ kind: Kind, _ random: inout RandomStream) {
        self.kind = kind
        inkOpacity = kind == .relief && random.chance(0.5) ? random.uniform(in: 0...0.3) : 1
        direction = random.direction()
        strength = random.uniform(in: 0.4...1)
        width = random.uniform(in: 1...2.5)
        tint = .random(
            luminance: random.uniform(in: 0.55...0.8), saturation: random.uniform() * random.uniform(), &random)
        noise = ValueNoise(&random)
    }

    /// Changes the scene where the logo is printed.
    /// - Parameters:
    ///   - logo: The printed logo.
    ///   - span: The diameter of the logo, in pixels.
    func apply(_ logo: PrintLayer, span: Float, to canvas: inout Canvas) {
        switch kind {
        case .relief: shade(logo, span, &canvas) { ground, _, slope, _ in ground * (1 + 1.6 * slope) }
        case .embroidery:
            shade(logo, span, &canvas) { ground, alpha, slope, point in
                let thread = noise.value(at: Point(point.dot(direction) / (1.2 * width), point.x / 40 + point.y / 37))
                return ground * (1 + 0.8 * slope + alpha * strength * (thread - 0.5) * 0.8)
            }
        case .metal:
            shade(logo, span, &canvas) { ground, alpha, slope, point in
                let position = point / (span * 0.2 * width)
                let reflection = noise.fractal(at: position + direction * slope * 6)
                let metal = tint * (0.25 + 1.3 * reflection) + slope
                return ground + (metal - ground) * (alpha * (0.5 + 0.5 * strength))
            }
        case .light: glow(logo, span, &canvas)
        case .raster:
            shade(logo, span, &canvas) { ground, alpha, _, point in
                let dots = point.rotated(by: direction) / (1.2 * width)
                let x = abs(dots.x.fraction - 0.5), y = abs(dots.y.fraction - 0.5)
                return ground * (1 + alpha * strength * (0.5 - 2 * max(x, y)) * 0.7)
            }
        }
    }

    /// Replaces every colour by a function of the colour, the coverage of the logo, its slope towards the light and the position in pixels.
    private func shade(
        _ logo: PrintLayer, _ span: Float, _ canvas: inout Canvas, _ change: (Color, Float, Float, Point) -> Color
    ) {
        let size = canvas.size
        var height = Canvas(size: size)
        height.update(logo.pixels) { _, pixel, _ in Color(repeating: pixel.w) }
        height.blur(sigma: min(0.5 + 0.008 * span * width, 3))
        let heights = height.pixels
        let half = Float(size) / 2
        let steepness = 1.2 * strength * width
        var index = 0
        canvas.update(logo.pixels) { ground, pixel, position in
            defer { index += 1 }
            let (row, column) = (index / size, index % size)
            let left = heights[column > 0 ? index - 1 : index].x,
                right = heights[column + 1 < size ? index + 1 : index].x
            let above = heights[row > 0 ? index - size : index].x,
                below = heights[row + 1 < size ? index + size : index].x
            let slope = Point(right - left, below - above).dot(direction) * steepness
            guard pixel.w > 0 || slope != 0 else { return ground }
            return change(ground, pixel.w, min(max(slope, -0.6), 0.6), (position + 1) * half)
        }
    }

    /// Darkens the scene and adds the light of the logo to its surroundings.
    private func glow(_ logo: PrintLayer, _ span: Float, _ canvas: inout Canvas) {
        var light = Canvas(size: canvas.size)
        light.update(logo.pixels) { _, pixel, _ in Color(pixel.x, pixel.y, pixel.z) }
        let source = light.pixels
        light.blur(sigma: min(1 + 0.02 * span * width, 8))
        let darkness = 1 - 0.7 * strength
        let glow = zip(source, light.pixels).map { ($0, $1) }
        canvas.update(glow) { ground, light, _ in ground * darkness + light.0 * 0.8 + light.1 * strength }
    }
}
