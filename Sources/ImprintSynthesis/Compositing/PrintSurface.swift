internal import ImprintCore
internal import ImprintImages

/// The surface that a scene is printed on, which gives the print texture, curvature and gloss.
struct PrintSurface {
    /// The opacity of the ink, 0…1.
    let opacity: Float
    /// The visibility of the ground's texture in the print, 0…1.
    private let texture: Float
    /// The direction of the shading, across the logo.
    private let direction: Point
    /// The darkening towards both edges of the logo, as on a bulging surface.
    private let bulge: Float
    /// The change of brightness from one edge to the other.
    private let slope: Float
    /// The brightness of a glossy streak.
    private let gloss: Float
    private let glossPosition: Float

    /// Creates a random surface.
    /// - Parameter isOnPlate: Whether the print is on a plate, which has less texture.
    init(isOnPlate: Bool, _ random: inout RandomStream) {
        opacity = random.chance(0.7) ? random.uniform(in: 0.92...1) : random.uniform(in: 0.72...0.92)
        texture = random.uniform(in: 0...0.9) * random.uniform() * (isOnPlate ? 0.3 : 1)
        direction = random.direction()
        bulge = random.chance(0.35) ? random.uniform(in: 0...0.3) : 0
        slope = random.uniform(in: -0.18...0.18)
        gloss = random.chance(0.22) ? random.uniform(in: 0.05...0.5) : 0
        glossPosition = random.uniform(in: -1...1)
    }

    /// Creates a flat and matt surface with opaque ink.
    init() {
        opacity = 1
        (texture, bulge, slope, gloss, glossPosition) = (0, 0, 0, 0, 0)
        direction = Point(1, 0)
    }

    /// Composites the print over the ground.
    func composite(_ printLayer: PrintLayer, on canvas: inout Canvas, around location: Composite.Location) {
        let center = Point(location.x, location.y)
        let mean = max(canvas.average(around: center, radius: location.span / 2).color.luminance, 0.08)
        let unit = 2 / location.span
        let half = Float(canvas.size) / 2
        canvas.update(printLayer.pixels) { ground, above, position in
            guard above.w > 0 else { return ground }
            let across = (((position + 1) * half - center) * unit).dot(direction)
            let clamped = min(max(across, -1.5), 1.5)
            let unevenness = min(max(ground.luminance / mean - 1, -0.7), 0.7)
            let away = (clamped - glossPosition) * 4
            let shade = (1 + texture * unevenness) * (1 + slope * clamped - bulge * clamped * clamped)
            let color = Color(above.x, above.y, above.z) * shade + above.w * gloss / (1 + away * away)
            return ground * (1 - above.w) + color
        }
    }
}

/// An object in front of the logo that hides a part of it and is out of focus.
struct Occluder {
    private let shape: DrawnShape
    /// The point of the scene, as a fraction of its sides, whose colour the object has.
    private let source: Point
    private let softness: Float
    private let brightness: Float

    /// Creates a random object in front of a logo.
    init(_ location: Composite.Location, _ random: inout RandomStream) {
        let radius = location.span / 2
        let direction = random.direction()
        let center = Point(location.x, location.y)
        let reach = random.uniform(in: 0.4...0.9) * radius
        if random.chance(0.5) {
            // A large object from one side that hides at most a quarter of the logo.
            let depth = radius * 1.8
            shape = .box(
                center: center + direction * (reach + depth), halfSides: Point(depth, depth * 2), direction: direction,
                rounding: depth * 0.3)
        } else {
            // A narrow object, such as a pole, a cable or a finger.
            let half = radius * random.uniform(in: 0.06...0.18)
            let along = Point(-direction.y, direction.x) * (radius * 4)
            let middle = center + direction * (reach * 0.8)
            shape = .segment(from: middle - along, to: middle + along, halfWidth: half)
        }
        source = Point(random.uniform(), random.uniform())
        softness = random.uniform(in: 1...4)
        brightness = random.uniform(in: 0.5...1.2)
    }

    /// Paints the object in the mean colour of another part of the scene.
    func paint(on canvas: inout Canvas) {
        let size = Float(canvas.size)
        let color = canvas.average(around: source * size, radius: 4).color * brightness
        let frame = View(center: .zero, scale: 1)
        canvas.paint(color, softness: softness, through: frame) { shape.distance(to: $0) }
    }
}

/// The camera that takes the image of a scene: light, blur, noise and compression affect the whole scene.
struct Camera {
    private let light: Light
    private let blur: Float
    private let noise: Float
    private let noiseKey: UInt64
    private let quality: Int?

    /// Creates a random camera.
    /// - Parameter span: The diameter of the logo, in pixels; a small logo gets less blur, which would erase it.
    init(span: Float, _ random: inout RandomStream) {
        light = Light(&random)
        // A lens blurs edges over about a pixel. Some images are out of focus.
        let focus = random.uniform()
        blur = 0.35 + min((random.chance(0.12) ? 1.6 : 0.6) * focus * focus, 0.05 * span)
        noise = random.chance(0.6) ? 7 * random.uniform() * random.uniform() : 0
        noiseKey = random.next()
        quality = random.chance(0.75) ? 40 + random.index(below: 56) : nil
    }

    /// Takes the image of a scene.
    /// - Throws: `ImageError.unencodable` if memory runs out.
    func capture(_ scene: Canvas) throws(ImageError) -> RasterImage {
        var canvas = scene
        light.apply(to: &canvas)
        var image = canvas.image.blurred(standardDeviation: blur)
        if noise > 0 { image = image.noisy(standardDeviation: noise, key: noiseKey) }
        return if let quality { try image.compressed(quality: quality) } else { image }
    }
}
