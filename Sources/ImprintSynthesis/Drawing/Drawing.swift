internal import ImprintCore
internal import ImprintImages

/// The random description of one image of a drawn data set, from which `render()` computes the pixels.
struct Drawing {
    let kind: LogoKind
    let logo: DrawnLogo
    private let size: Int
    private let view: View
    private let palette: Palette
    private let background: Background
    private let fillStyle: FillStyle
    private let plate: Plate?
    private let light: Light
    private let blur: Float
    private let noise: Float
    private var noiseStream: RandomStream

    /// Creates the description of image `index` of label `label`, which depends only on these, the seed and the recipe.
    ///
    /// Only the logo depends on the label. Everything else has the same distribution for all labels, so that only the logo
    /// distinguishes them.
    init(_ recipe: DrawingRecipe, label: Int, index: Int, seed: UInt64) {
        var random = RandomStream(seed: seed, "draw", label, index)
        let ranges = recipe.ranges
        let shares = recipe.shares

        // The diameter of the logo, as a fraction of the side of the image.
        let span = random.uniform(in: ranges.span)
        let room = 1 - span
        let offset = Point(random.uniform(in: -1...1), random.uniform(in: -1...1)) * room / 2
        size = recipe.size
        let side = Float(size)
        view = View(
            center: (offset + 0.5) * side, scale: span * side / 2,
            rotationDegrees: random.uniform(in: ranges.rotationDegrees), axis: random.direction(),
            tiltDegrees: random.uniform(in: ranges.tiltDegrees))

        let hasPlate = random.chance(shares.plate)
        palette = Palette(
            hasPlate: hasPlate, hasLightInk: random.chance(shares.lightInk),
            inkCount: random.chance(shares.twoColors) ? 2 : 1, &random)
        background = Background(isBusy: random.chance(shares.busyBackground), colors: palette.ground, &random)
        plate = hasPlate ? Plate(&random) : nil
        fillStyle = Self.fillStyle(shares, &random)
        light = Light(&random)
        blur = random.uniform(in: ranges.blur) * side
        noise = random.uniform(in: ranges.noise)

        let choice = recipe.labels[label].logos.choice(&random)
        kind = choice.kind
        logo = choice.logo(&random)
        noiseStream = random
    }

    private static func fillStyle(_ shares: DrawingRecipe.Shares, _ random: inout RandomStream) -> FillStyle {
        let choice = random.uniform()
        let width = random.uniform(in: 0.08...0.14)
        let pattern: FillStyle.Pattern
        if choice < shares.outlined {
            pattern = .outlined(width: width)
        } else if choice < shares.outlined + shares.hatched {
            pattern = .hatched(
                width: width * 0.7, direction: random.direction(), period: random.uniform(in: 0.13...0.2))
        } else if choice < shares.outlined + shares.hatched + shares.worn {
            pattern = .worn(grain: random.uniform(in: 0.08...0.2), threshold: random.uniform(in: 0.58...0.72))
        } else {
            pattern = .filled
        }
        let wobble = random.chance(shares.handDrawn) ? random.uniform(in: 0.02...0.055) : 0
        return FillStyle(
            pattern: pattern, wobble: wobble, opacity: random.uniform(in: 0.85...1), noise: ValueNoise(&random))
    }

    /// Renders the image.
    func render() -> RasterImage {
        var canvas = Canvas(size: size)
        background.paint(on: &canvas)
        plate?.paint(palette.plate, through: view, on: &canvas)
        for (index, part) in logo.parts.enumerated() {
            let ink = palette.inks[index % palette.inks.count]
            canvas.paint(ink, opacity: fillStyle.opacity, through: view) { fillStyle.distance(from: $0, to: part) }
        }
        light.apply(to: &canvas)
        canvas.blur(sigma: blur)
        var random = noiseStream
        return canvas.image(noise: noise, &random)
    }
}

/// A plate behind the logo, such as a sheet of paper, a label or a badge, with a soft shadow.
struct Plate {
    let shape: DrawnShape
    private let shadowOffset: Point
    private let shadowSoftness: Float

    /// Creates a plate of the given shape with a random shadow.
    init(_ shape: DrawnShape, _ random: inout RandomStream) {
        self.shape = shape
        shadowOffset = random.direction() * random.uniform(in: 0...0.12)
        shadowSoftness = random.uniform(in: 0.05...0.3)
    }

    /// Creates a plate of a random shape around a logo of radius 1.
    init(_ random: inout RandomStream) {
        let reach = random.uniform(in: 1.12...1.5)
        let shape: DrawnShape
        switch random.index(below: 3) {
        case 0:
            shape = .disc(center: .zero, radius: reach)
        case 1:
            shape = .box(
                center: .zero, halfSides: Point(reach, reach), direction: Point(1, 0), rounding: reach * 0.25)
        default:
            // A sheet or a card, on which the logo may be off-centre.
            let margin = Point(random.uniform(in: 0...1.5), random.uniform(in: 0...1.5))
            let side = Point(random.sign(), random.sign())
            shape = .box(
                center: margin * side, halfSides: Point(reach, reach) + margin, direction: Point(1, 0), rounding: 0.02)
        }
        self.init(shape, &random)
    }

    func paint(_ color: Color, through view: View, on canvas: inout Canvas) {
        paintShadow(through: view, on: &canvas)
        canvas.paint(color, through: view) { shape.distance(to: $0) }
    }

    func paintShadow(through view: View, on canvas: inout Canvas) {
        canvas.paint(.zero, opacity: 0.35, softness: shadowSoftness, through: view) {
            shape.distance(to: $0 - shadowOffset)
        }
    }
}

/// Uneven light over the whole image: a gradient, darker corners and a soft highlight.
struct Light {
    private let slope: Point
    private let falloff: Float
    private let highlight: Point
    private let glare: Float
    private let tint: Color

    init(_ random: inout RandomStream) {
        slope = random.direction() * random.uniform(in: 0...0.25)
        falloff = random.uniform(in: 0...0.15)
        highlight = Point(random.uniform(in: -1...1), random.uniform(in: -1...1))
        glare = random.chance(0.3) ? random.uniform(in: 0...0.25) : 0
        tint = Color(random.uniform(in: 0.9...1.08), random.uniform(in: 0.94...1.04), random.uniform(in: 0.9...1.08))
    }

    /// Applies the light to a canvas.
    func apply(to canvas: inout Canvas) {
        canvas.update { color, position in
            let away = position - highlight
            let brightness = 0.95 + position.dot(slope) - falloff * position.dot(position) / 2
            let shine = glare / (1 + 6 * away.dot(away))
            return color * tint * brightness + shine
        }
    }
}
