internal import ImprintCore
internal import ImprintImages

/// What a print takes on from what it is on: grain, bulge and gloss.
struct Finish {
    /// How much of itself the ink hides: 1 is all.
    let opacity: Float
    /// How much of the unevenness of the ground is seen in the print.
    private let texture: Float
    /// Across the bulge of what it is on, from one edge of the mark to the other.
    private let direction: Point
    private let bulge: Float
    private let slope: Float
    /// A bright streak.
    private let gloss: Float
    private let glossPlace: Float

    /// `isOnPlate`: what it is on is smooth, whatever is behind that.
    init(isOnPlate: Bool, _ random: inout RandomStream) {
        opacity = random.chance(0.7) ? random.uniform(in: 0.92...1) : random.uniform(in: 0.72...0.92)
        texture = random.uniform(in: 0...0.9) * random.uniform() * (isOnPlate ? 0.3 : 1)
        direction = random.direction()
        bulge = random.chance(0.35) ? random.uniform(in: 0...0.3) : 0
        slope = random.uniform(in: -0.18...0.18)
        gloss = random.chance(0.22) ? random.uniform(in: 0.05...0.5) : 0
        glossPlace = random.uniform(in: -1...1)
    }

    /// Lays the print on the ground, which shows where nothing is printed.
    func lay(_ print: PrintLayer, on canvas: inout Canvas, around place: Composite.Place) {
        let center = Point(place.x, place.y)
        let mean = max(canvas.average(around: center, radius: place.span / 2).color.luminance, 0.08)
        let unit = 2 / place.span
        let half = Float(canvas.size) / 2
        canvas.update(print.pixels) { ground, above, place in
            guard above.w > 0 else { return ground }
            let across = (((place + 1) * half - center) * unit).dot(direction)
            let near = min(max(across, -1.5), 1.5)
            let unevenness = min(max(ground.luminance / mean - 1, -0.7), 0.7)
            let away = (near - glossPlace) * 4
            let shade = (1 + texture * unevenness) * (1 + slope * near - bulge * near * near)
            let color = Color(above.x, above.y, above.z) * shade + above.w * gloss / (1 + away * away)
            return ground * (1 - above.w) + color
        }
    }
}

/// Something in front of the mark that hides a part of it, out of focus.
struct Occluder {
    private let shape: DrawnShape
    private let source: Point
    private let softness: Float
    private let brightness: Float

    init(_ place: Composite.Place, _ random: inout RandomStream) {
        let radius = place.span / 2
        let direction = random.direction()
        let center = Point(place.x, place.y)
        let reach = random.uniform(in: 0.4...0.9) * radius
        if random.chance(0.5) {
            // An edge from one side, which hides at most a quarter.
            let depth = radius * 1.8
            shape = .box(
                center: center + direction * (reach + depth), halfSides: Point(depth, depth * 2), direction: direction,
                rounding: depth * 0.3)
        } else {
            // A pole, a cable, a finger.
            let half = radius * random.uniform(in: 0.06...0.18)
            let along = Point(-direction.y, direction.x) * (radius * 4)
            let middle = center + direction * (reach * 0.8)
            shape = .segment(from: middle - along, to: middle + along, halfWidth: half)
        }
        source = Point(random.uniform(), random.uniform())
        softness = random.uniform(in: 1...4)
        brightness = random.uniform(in: 0.5...1.2)
    }

    /// Paints it in the colours of another part of the scene.
    func paint(on canvas: inout Canvas) {
        let size = Float(canvas.size)
        let color = canvas.average(around: source * size, radius: 4).color * brightness
        let frame = View(center: .zero, scale: 1)
        canvas.paint(color, softness: softness, through: frame) { shape.distance(to: $0) }
    }
}

/// What a camera makes of a scene: light, blur, noise and compression, of all of it alike.
struct Camera {
    private let light: Light
    private let blur: Float
    private let noise: Float
    private let noiseKey: UInt64
    private let quality: Int?

    /// A camera for something `span` pixels large: of a small mark, more blur would leave nothing.
    init(span: Float, _ random: inout RandomStream) {
        light = Light(&random)
        // Never quite sharp: a lens blurs edges over about a pixel. Now and then out of focus.
        let focus = random.uniform()
        blur = 0.35 + min((random.chance(0.12) ? 1.6 : 0.6) * focus * focus, 0.05 * span)
        noise = random.chance(0.6) ? 7 * random.uniform() * random.uniform() : 0
        noiseKey = random.next()
        quality = random.chance(0.75) ? 40 + random.index(below: 56) : nil
    }

    func picture(of scene: Canvas) throws(ImageError) -> RasterImage {
        var canvas = scene
        light.fall(on: &canvas)
        var image = canvas.image.blurred(standardDeviation: blur)
        if noise > 0 { image = image.noisy(standardDeviation: noise, key: noiseKey) }
        return if let quality { try image.compressed(quality: quality) } else { image }
    }
}
