internal import ImprintCore
internal import ImprintImages

/// The random description of one composite: the background, the view of the logo, its inks, and the camera.
///
/// The same code makes positives and hard negatives, so that only the logo distinguishes them. Edges, blur, noise and artefacts
/// affect the whole scene (Dwibedi, Misra and Hebert, "Cut, Paste and Learn", ICCV 2017).
struct Scene {
    let location: Composite.Location
    /// The corners of the convex hull of the logo, in pixels.
    let outline: [Point]
    let inks: Inks
    private let effects: SceneEffects
    private let ground: Canvas
    private let view: View
    private let logo: Design
    private let wordmark: [Element]
    private let fillStyle: FillStyle
    private let plate: (plate: Plate, color: Color)?
    private let halo: (width: Float, color: Color)?
    private let surface: PrintSurface
    private let occluder: Occluder?
    /// The camera; nil for an image without blur, noise and compression.
    private let camera: Camera?

    /// Creates a random scene with `logo`, whose tones are those of `artwork`.
    init(
        _ logo: Design, of artwork: Artwork, _ configuration: Compositor.Configuration, _ backdrops: Backdrops,
        _ random: inout RandomStream
    ) {
        let effects = artwork.effects
        self.effects = effects
        self.logo = logo
        ground = backdrops.canvas(&random)

        let hull = logo.hull.isEmpty ? Design(DrawnLogo(fitting: [[.disc(center: .zero, radius: 1)]])).hull : logo.hull
        let (view, middle, span) = Self.view(of: hull, in: Float(backdrops.size), configuration, effects, &random)
        self.view = view
        outline = hull.map(view.pixel)
        location = Composite.Location(x: middle.x, y: middle.y, span: span)

        let mainTone = logo.mainTone
        let hasWordmark = random.chance(0.5) && effects.contains(.words)
        wordmark = hasWordmark ? Lettering.standard.wordmark(tone: mainTone, &random) : []

        let chosen: Inks.Style =
            random.chance(configuration.originalShare) ? .original : random.chance(0.65) ? .mono : .recolored
        let style = artwork.keepsOriginalColors || !effects.contains(.inks) ? .original : chosen
        let behind = ground.average(around: middle, radius: span / 2)
        let hasPlate = random.chance(0.35) && effects.contains(.plates)
        plate = hasPlate ? Self.plate(for: logo, wordmark, artwork, style, &random) : nil
        // On a busy background, the logo needs more contrast or a halo to be visible.
        let groundStandardDeviation = plate == nil ? behind.standardDeviation : 0
        inks = Inks(
            artwork, mainTone: mainTone, style: style, on: plate?.color ?? behind.color,
            contrast: 0.3 + min(groundStandardDeviation, 0.25), &random)
        let hasHalo = random.chance(groundStandardDeviation > 0.18 ? 0.5 : 0.12) && effects.contains(.halos)
        halo =
            hasHalo
            ? (
                random.uniform(in: 0.06...0.2),
                .contrasting(with: inks.main, by: 0.35, saturation: random.uniform(in: 0...0.4), &random)
            ) : nil
        fillStyle = Self.fillStyle(artwork, &random)
        let randomSurface = PrintSurface(isOnPlate: plate != nil, &random)
        surface = effects.contains(.surface) ? randomSurface : PrintSurface()
        let hasOccluder = random.chance(0.1) && effects.contains(.occluders)
        occluder = hasOccluder ? Occluder(location, &random) : nil
        camera = effects.contains(.camera) ? Camera(span: span, &random) : nil
    }

    /// Returns a random view in which the logo fits into the image.
    /// - Parameters:
    ///   - hull: The corners of the convex hull of the logo.
    ///   - size: The side of the image in pixels.
    /// - Returns: The view, and the centre and the diameter of the logo in pixels.
    private static func view(
        of hull: [Point], in size: Float, _ configuration: Compositor.Configuration, _ effects: SceneEffects,
        _ random: inout RandomStream
    ) -> (view: View, middle: Point, span: Float) {
        let span = random.logUniform(in: configuration.span) * size
        let isRotated = random.chance(configuration.rotatedShare) && effects.contains(.rotation)
        let rotation = isRotated ? random.uniform(in: -180...180) : random.normal() * 12
        // A tilt of 38.7° shortens to 0.78; small tilts are most frequent.
        let largestTilt: Float = effects.contains(.tilt) ? 38.7 : 0
        let tilt = largestTilt * random.uniform() * random.uniform().squareRoot()
        let axis = random.direction()
        func view(scale: Float, center: Point) -> View {
            View(center: center, scale: scale, rotationDegrees: rotation, axis: axis, tiltDegrees: tilt)
        }
        // A trial view at the origin gives the diameter at a scale of 1.
        let trial = Circle(enclosing: hull.map(view(scale: 1, center: .zero).pixel))
        let scale = span / 2 / trial.radius
        let room = span / 2...size - span / 2
        let middle = Point(random.uniform(in: room), random.uniform(in: room))
        return (view(scale: scale, center: middle - trial.center * scale), middle, span)
    }

    /// Returns a random plate behind the logo, and possibly its wordmark, and the colour of the plate.
    private static func plate(
        for logo: Design, _ wordmark: [Element], _ artwork: Artwork, _ style: Inks.Style, _ random: inout RandomStream
    ) -> (plate: Plate, color: Color) {
        let includesWordmark = !wordmark.isEmpty && random.chance(0.6)
        let plate =
            includesWordmark
            ? Plate(.sign(enclosing: logo.hull + wordmark.flatMap(\.corners), &random), &random) : Plate(&random)
        // Paper, card and stickers are mostly white or almost white.
        let isPale = random.chance(0.45)
        let luminance = isPale ? random.uniform(in: 0.85...1) : random.uniform()
        var color = Color.random(
            luminance: luminance, saturation: isPale ? random.uniform(in: 0...0.15) : random.uniform(), &random)
        let (tones, mainTone) = (artwork.tones, logo.mainTone)
        if style == .original, !tones.isEmpty, !tones[mainTone % tones.count].isVisible(on: color) {
            color = .contrasting(
                with: tones[mainTone % tones.count], by: 0.35, saturation: random.uniform(in: 0...0.5), &random)
        }
        return (plate, color)
    }

    private static func fillStyle(_ artwork: Artwork, _ random: inout RandomStream) -> FillStyle {
        let choice = random.uniform()
        let pattern: FillStyle.Pattern =
            if choice < 0.12 && artwork.effects.contains(.outlines) {
                .outlined(width: random.uniform(in: 0.05...0.14))
            } else if (0.12..<0.16).contains(choice) && artwork.effects.contains(.roughness) {
                .worn(grain: random.uniform(in: 0.08...0.2), threshold: random.uniform(in: 0.6...0.74))
            } else {
                .filled
            }
        let isWobbly = random.chance(0.12) && artwork.effects.contains(.roughness)
        let wobble = isWobbly ? random.uniform(in: 0.02...0.055) : 0
        let noise = ValueNoise(&random)
        return artwork.keepsOriginalColors
            ? FillStyle(noise: noise) : FillStyle(pattern: pattern, wobble: wobble, opacity: 1, noise: noise)
    }

    /// The number of pixels per unit of the design, before the tilt.
    var scale: Float { view.scale }

    /// Returns the position of a point of the design, in pixels.
    func position(of point: Point) -> Point { view.pixel(of: point) }

    /// Renders the scene without photographic effects.
    func render() throws(ImageError) -> RasterImage { try capture(painted()) }

    /// Renders the scene with photographic effects.
    /// - Parameters:
    ///   - effects: Effects of the material, the surface and the light.
    ///   - center: The point of the scene that the effects do not move, in pixels.
    ///   - radius: Half of the diameter of the visible part of the logo, in pixels.
    /// - Returns: The image, and a function that maps a position on the logo in the scene to its position in the image.
    func render(
        _ effects: SceneEffects, around center: Point, radius: Float, seed: UInt64
    ) throws(ImageError) -> (image: RasterImage, position: (Point) -> Point) {
        var random = RandomStream(seed: seed, "scene effects")
        var canvas = painted(material: effects.material(&random))
        let position = effects.apply(to: &canvas, around: center, radius: radius, &random)
        return (try capture(canvas), position)
    }

    /// Renders the composite with the effects of its artwork.
    /// - Parameters:
    ///   - showsLogo: Whether the scene shows the logo, and not a hard negative.
    ///   - kind: A short description.
    ///   - seed: The random seed of the photographic effects.
    func composite(showsLogo: Bool, kind: String, seed: UInt64) throws(ImageError) -> Composite {
        guard !effects.isDisjoint(with: .photographic) else {
            return Composite(
                image: try render(), logo: showsLogo ? location : nil, subject: location, outline: outline, kind: kind)
        }
        let (image, position) = try render(
            effects, around: Point(location.x, location.y), radius: location.span / 2, seed: seed)
        // Strong perspective can move a part of the logo out of the frame.
        let frame = Point(repeating: Float(ground.size))
        let moved = outline.map { pointwiseMin(pointwiseMax(position($0), .zero), frame) }
        let circle = Circle(enclosing: moved)
        let subject = Composite.Location(x: circle.center.x, y: circle.center.y, span: 2 * circle.radius)
        return Composite(
            image: image, logo: showsLogo ? subject : nil, subject: subject, outline: moved, kind: kind)
    }

    private func capture(_ canvas: Canvas) throws(ImageError) -> RasterImage {
        if let camera { try camera.capture(canvas) } else { canvas.image }
    }

    /// Paints the scene without the effects of the camera.
    /// - Parameters:
    ///   - showsLogo: Whether to paint the logo; the rest of the scene is the same with and without it.
    ///   - material: The material of the logo; nil for ink.
    func painted(showsLogo: Bool = true, material: PrintMaterial? = nil) -> Canvas {
        let size = ground.size
        var canvas = ground
        var printLayer = PrintLayer(size: size)
        if let (plate, color) = plate {
            plate.paintShadow(through: view, on: &canvas)
            printLayer.paint(color, through: view, in: .all(size)) { plate.shape.distance(to: $0) }
        }
        let elements = logo.elements
        if let (width, color) = halo, !elements.isEmpty {
            let box = PixelBox(around: logo.hull, through: view, margin: width * view.scale + 2, size: size)
            printLayer.paint(color, through: view, in: box) { point in
                elements.reduce(Float.infinity) { min($0, $1.distance(to: point)) } - width
            }
        }
        for letter in wordmark {
            let box = PixelBox(around: letter.corners, through: view, margin: 2, size: size)
            printLayer.paint(inks.main, through: view, in: box) { letter.distance(to: $0) }
        }
        var layer = PrintLayer(size: size)
        if showsLogo && !elements.isEmpty {
            for element in elements { layer.paint(element, inks[element.tone], fillStyle, through: view) }
            let box = PixelBox(around: logo.hull, through: view, margin: fillStyle.wobble * view.scale + 3, size: size)
            printLayer.composite(layer, in: box, opacity: surface.opacity * (material?.inkOpacity ?? 1))
        }
        surface.composite(printLayer, on: &canvas, around: location)
        material?.apply(layer, span: location.span, to: &canvas)
        occluder?.paint(on: &canvas)
        return canvas
    }
}

extension Design {
    /// The tone of the element with the largest convex hull.
    var mainTone: Int {
        elements.max { polygonArea($0.corners) < polygonArea($1.corners) }?.tone ?? 0
    }
}

extension DrawnShape {
    /// Returns a rectangle, with sharp or rounded corners, that encloses all points.
    fileprivate static func sign(enclosing points: [Point], _ random: inout RandomStream) -> DrawnShape {
        var (low, high) = (Point(-1, -1), Point(1, 1))
        for point in points {
            low = Point(min(low.x, point.x), min(low.y, point.y))
            high = Point(max(high.x, point.x), max(high.y, point.y))
        }
        let margin = Point(random.uniform(in: 0.12...0.7), random.uniform(in: 0.12...0.7))
        let halfSides = (high - low) / 2 + margin
        return .box(
            center: (low + high) / 2, halfSides: halfSides, direction: Point(1, 0),
            rounding: min(halfSides.x, halfSides.y) * (random.chance(0.5) ? 0.03 : random.uniform(in: 0.1...1)))
    }
}

extension RandomStream {
    /// Returns a value whose logarithm is uniformly distributed in the range.
    ///
    /// It uses only square roots, which give the same result on every platform.
    mutating func logUniform(in range: ClosedRange<Float>) -> Float {
        let bits = next()
        var value = range.lowerBound
        var factor = range.upperBound / range.lowerBound
        for bit in 0..<20 {
            factor = factor.squareRoot()
            if bits >> bit & 1 == 1 { value *= factor }
        }
        return value
    }
}
