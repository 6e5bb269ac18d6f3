internal import ImprintCore
package import ImprintImages

/// A part of a logo that is matched as a whole: the logo itself, a half, or another rectangle of it.
///
/// Photos often show only a part of a logo, or bend it. All parts are drawn with about the same area.
package struct ArtworkPart: Sendable {
    /// The width and height in the views of the part, in pixels.
    package let width: Float
    package let height: Float
    /// The size of the views without their border, in pixels: multiples of the cell.
    package let windowWidth: Int
    package let windowHeight: Int
    /// The rectangle, as fractions of the width and height of the logo.
    package let region: NormalizedRectangle
    /// The centre, in units of the design.
    fileprivate let center: Point
    /// The number of pixels per unit of the design.
    fileprivate let scale: Float

    /// The square root of the area of a part in its views, in pixels.
    private static let side: Float = 80
    /// The largest ratio of the sides for which the area is reached; longer parts become smaller.
    private static let longestRatio: Float = 3.2
    /// The smallest distance between a part and the border of its window, in pixels.
    private static let margin: Float = 4
    /// The minimum number of cells along a side of a window.
    private static let fewestCells = 3

    /// Creates the part in a rectangle of a design.
    fileprivate init(low: Point, high: Point, region: NormalizedRectangle, cell: Int) {
        self.region = region
        let size = high - low
        let ratio = max(size.x / size.y, size.y / size.x)
        let scale = Self.side * min(Self.longestRatio / ratio, 1).squareRoot() / (size.x * size.y).squareRoot()
        func window(_ length: Float) -> Int {
            max(Int(((length * scale + 2 * Self.margin) / Float(cell)).rounded(.up)), Self.fewestCells) * cell
        }
        (width, height) = (size.x * scale, size.y * scale)
        (windowWidth, windowHeight) = (window(size.x), window(size.y))
        center = (low + high) / 2
        self.scale = scale
    }
}

/// A logo that is drawn on plain backgrounds, to match it with photos without training.
package struct ArtworkViews: Sendable {
    /// The parts; the first one is the whole logo.
    package let parts: [ArtworkPart]
    private let artwork: Artwork
    private let design: Design
    private let seed: UInt64

    /// The number of views of a part.
    package static let count = 12

    /// A logo with at least this aspect ratio is wide (or tall), and is divided along its longer side only.
    private static let wideRatio: Float = 1.6
    /// A logo with at least this aspect ratio also has its thirds as parts.
    private static let thirdsRatio: Float = 2.6

    /// Creates the views of artwork.
    /// - Parameters:
    ///   - cell: The number of pixels that divides the sizes of the views.
    ///   - seed: The random seed of colours, tilts and scales.
    package init(_ artwork: Artwork, cell: Int, seed: UInt64) {
        self.artwork = artwork
        self.seed = seed
        var random = RandomStream(seed: seed, "artwork design")
        design = artwork.logo(&random)
        let corners = design.hull
        var (low, high) = (corners.first ?? Point(-1, -1), corners.first ?? Point(1, 1))
        for corner in corners {
            low = Point(min(low.x, corner.x), min(low.y, corner.y))
            high = Point(max(high.x, corner.x), max(high.y, corner.y))
        }
        let size = Point(max(high.x - low.x, 1e-3), max(high.y - low.y, 1e-3))
        parts = Self.fractions(ratio: size.x / size.y).map { x, y in
            ArtworkPart(
                low: low + size * Point(x.lowerBound, y.lowerBound),
                high: low + size * Point(x.upperBound, y.upperBound),
                region: NormalizedRectangle(
                    x: x.lowerBound, y: y.lowerBound, width: x.upperBound - x.lowerBound,
                    height: y.upperBound - y.lowerBound),
                cell: cell)
        }
    }

    /// Returns the parts of a logo as fractions of its width and height.
    private static func fractions(ratio: Float) -> [(x: ClosedRange<Float>, y: ClosedRange<Float>)] {
        let all: ClosedRange<Float> = 0...1
        if ratio < 1 { return fractions(ratio: 1 / ratio).map { ($0.y, $0.x) } }
        let (lower, upper): (ClosedRange<Float>, ClosedRange<Float>) = (0...0.62, 0.38...1)
        let parts: [(x: ClosedRange<Float>, y: ClosedRange<Float>)]
        if ratio >= thirdsRatio {
            parts = [0...0.5, 0.5...1, 0.25...0.75, 0...0.333, 0.333...0.667, 0.667...1].map { ($0, all) }
        } else if ratio >= wideRatio {
            parts = [0...0.5, 0.5...1, 0.25...0.75].map { ($0, all) }
        } else {
            parts = [(lower, all), (upper, all), (all, lower), (all, upper), (0.19...0.81, 0.19...0.81)]
        }
        return [(all, all)] + parts
    }

    /// Draws a view of a part on a plain background.
    /// - Parameters:
    ///   - index: The index of the view, 0..<`count`, which determines the rotation and the kind of recolouring; the rest is
    ///     random.
    ///   - border: The number of pixels around the window.
    /// - Returns: An image with 3 channels of the size of the part's window plus twice the border.
    package func view(of part: ArtworkPart, index: Int, border: Int) -> RasterImage {
        view(
            of: part, index: index, width: part.windowWidth + 2 * border, height: part.windowHeight + 2 * border,
            center: (Float(part.windowWidth) / 2 + Float(border), Float(part.windowHeight) / 2 + Float(border)))
    }

    /// Draws a view of a part on a plain background, with the centre of the part at a position of the image.
    package func view(
        of part: ArtworkPart, index: Int, width: Int, height: Int, center: (x: Float, y: Float)
    ) -> RasterImage {
        var random = RandomStream(seed: seed, "artwork view", index)
        let rotation = [Float(0), 6, -6, 12, 0, -12][index % 6]
        let tilt = index < 2 ? 0 : random.uniform(in: 0...25)
        let axis = random.direction()
        let scale = index < 2 ? 1 : random.uniform(in: 0.85...1)
        let size = max(width, height)
        let middle = Point(center.x, center.y)
        // The view rotates the logo about its origin, so that the centre of the part moves.
        func view(center: Point) -> View {
            View(
                center: center, scale: part.scale * scale, rotationDegrees: rotation, axis: axis, tiltDegrees: tilt)
        }
        let view = view(center: middle * 2 - view(center: middle).pixel(of: part.center))

        let tones = artwork.tones
        let mainTone = design.mainTone
        let mainColor =
            tones.isEmpty
            ? Color.random(luminance: random.uniform(), saturation: random.uniform(), &random)
            : tones[mainTone % tones.count]
        let ground = Color.contrasting(
            with: mainColor, by: 0.35, saturation: random.uniform() * random.uniform(), &random)
        let inks = Inks(artwork, mainTone: mainTone, style: .original, on: ground, contrast: 0.3, &random)
        var layer = PrintLayer(size: size)
        let fill = FillStyle(noise: ValueNoise(&random))
        for element in design.elements { layer.paint(element, inks[element.tone], fill, through: view) }
        let palette = Recoloring(index: index, &random)
        var samples: [UInt8] = []
        samples.reserveCapacity(width * height * 3)
        for row in 0..<height {
            for column in 0..<width {
                let pixel = layer.pixels[row * size + column]
                let color = palette(Color(pixel.x, pixel.y, pixel.z) + ground * (1 - pixel.w))
                for channel in 0..<3 { samples.append(UInt8(color[channel].clampedToUnit * 255 + 0.5)) }
            }
        }
        return RasterImage(width: width, height: height, channels: 3, samples: samples)
    }
}

extension ArtworkViews {
    /// A composite with a part of the logo, at about the scale of its views.
    package struct Scene: Sendable {
        /// The image, with 3 channels.
        package let image: RasterImage
        /// The position of the centre of the part in the image.
        package let x: Float
        package let y: Float
    }

    /// Draws a part in a random composite, near the centre of the image.
    /// - Parameters:
    ///   - backdrops: The backgrounds, at least as large as the image.
    ///   - side: The height and width of the image.
    ///   - scale: The range of the scale, relative to the scale of the views.
    ///   - shift: The largest distance from the centre of the image, unless the logo is at the border of the composite.
    ///   - effects: The effects of material, surface and light.
    /// - Returns: nil if the logo is too large for the backgrounds, or if its scale is outside of the range after four attempts.
    package func scene(
        of part: ArtworkPart, backdrops: Backdrops, side: Int, scale: ClosedRange<Float>, shift: Float,
        effects: SceneEffects, seed: UInt64
    ) throws(ImageError) -> Scene? {
        var random = RandomStream(seed: seed, "artwork scene")
        for _ in 0..<4 {
            let span = 2 * part.scale * random.uniform(in: scale) / Float(backdrops.size)
            guard (0.02...0.9).contains(span) else { return nil }
            let configuration = Compositor.Configuration(
                span: span...span, rotatedShare: 0, originalShare: effects.originalShare)
            let scene = ImprintSynthesis.Scene(design, of: artwork, configuration, backdrops, &random)
            // A tilted logo is enlarged until it has the same span.
            guard scale.contains(scene.scale / part.scale) else { continue }
            let position = scene.position(of: part.center)
            func start(_ position: Float, _ shift: Float) -> Int {
                min(max(Int((position + shift).rounded()) - side / 2, 0), backdrops.size - side)
            }
            let left = start(position.x, random.uniform(in: -shift...shift))
            let top = start(position.y, random.uniform(in: -shift...shift))
            return Scene(
                image: try scene.render(
                    effects, around: position, radius: max(part.width, part.height) / 2, seed: seed
                ).image.part(left: left, top: top, width: side, height: side),
                x: position.x - Float(left), y: position.y - Float(top))
        }
        return nil
    }
}

/// The colours of a view: the original colours, or a function of their luminance.
private enum Recoloring {
    case none
    /// The colours of black and of white; the others lie between them.
    case duotone(Color, Color)

    /// Chooses the colours: half of the views have the original colours; the others are grey, inverted or in two random colours.
    init(index: Int, _ random: inout RandomStream) {
        let (black, white) = (Color.zero, Color(repeating: 1))
        switch index % 6 {
        case 1: self = .duotone(black, white)
        case 3: self = .duotone(white, black)
        case 5:
            let first = Color.random(luminance: random.uniform(), saturation: random.uniform(), &random)
            self = .duotone(
                first, .contrasting(with: first, by: 0.4, saturation: random.uniform(), &random))
        default: self = .none
        }
    }

    func callAsFunction(_ color: Color) -> Color {
        switch self {
        case .none: color
        case .duotone(let dark, let light): dark + (light - dark) * color.luminance
        }
    }
}
