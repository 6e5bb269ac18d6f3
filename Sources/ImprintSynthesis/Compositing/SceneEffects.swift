internal import Foundation
internal import ImprintCore

/// The effects of composites, which make them more like photos of real objects.
///
/// `Compositor` uses the standard effects, and `ArtworkViews.scene` also uses the photographic effects, to train features. The recipe of drawn
/// artwork can choose other effects, to measure the benefit of each one.
package struct SceneEffects: OptionSet, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    /// Relief, embroidery, metal, light and raster instead of ink.
    package static let materials = SceneEffects(rawValue: 1)
    /// A cylinder, such as a bottle or a cup.
    package static let curvature = SceneEffects(rawValue: 2)
    /// A close, strongly tilted camera.
    package static let perspective = SceneEffects(rawValue: 4)
    /// An object in front of a part of the logo, or the edge of the object with the logo.
    package static let occlusion = SceneEffects(rawValue: 8)
    /// Low light and motion blur.
    package static let light = SceneEffects(rawValue: 16)
    /// The original colours of the logo, more often; without effect on drawn artwork.
    package static let colors = SceneEffects(rawValue: 32)

    /// Any rotation of the logo, instead of small ones.
    package static let rotation = SceneEffects(rawValue: 64)
    /// A tilt of the logo, in weak perspective.
    package static let tilt = SceneEffects(rawValue: 128)
    /// Other inks than the original colours; for drawn artwork, more than one ink.
    package static let inks = SceneEffects(rawValue: 256)
    /// Outlines instead of filled shapes.
    package static let outlines = SceneEffects(rawValue: 512)
    /// Worn ink, and wobbly outlines as if drawn by hand.
    package static let roughness = SceneEffects(rawValue: 1024)
    /// A word beside the logo.
    package static let words = SceneEffects(rawValue: 2048)
    /// A disc, a label, a card or a sign behind the logo.
    package static let plates = SceneEffects(rawValue: 4096)
    /// A margin around the logo, as of a sticker.
    package static let halos = SceneEffects(rawValue: 8192)
    /// The texture, bulge and gloss of the surface, and thin ink.
    package static let surface = SceneEffects(rawValue: 16384)
    /// An edge or a pole in front of the logo.
    package static let occluders = SceneEffects(rawValue: 32768)
    /// The light, blur, noise and compression of the image.
    package static let camera = SceneEffects(rawValue: 65536)

    /// The effects of `Compositor`.
    package static let standard: SceneEffects = [
        .rotation, .tilt, .inks, .outlines, .roughness, .words, .plates, .halos, .surface, .occluders, .camera,
    ]
    /// The effects that `ArtworkViews.scene` can add.
    package static let photographic: SceneEffects = [
        .materials, .curvature, .perspective, .occlusion, .light, .colors,
    ]
    /// The effects that a recipe of drawn artwork can choose.
    package static let drawable = standard.union(photographic).subtracting(.colors)

    /// All effects by name.
    private static let named: [(name: String, effect: SceneEffects)] = [
        ("rotation", .rotation), ("tilt", .tilt), ("inks", .inks), ("outlines", .outlines), ("roughness", .roughness),
        ("words", .words), ("plates", .plates), ("halos", .halos), ("surface", .surface), ("occluders", .occluders),
        ("camera", .camera), ("materials", .materials), ("curvature", .curvature), ("perspective", .perspective),
        ("occlusion", .occlusion), ("light", .light), ("colors", .colors),
    ]

    /// Creates the set of the effects with the given names; ignores other names.
    package init(named names: [String]) {
        self.init(Self.named.filter { names.contains($0.name) }.map(\.effect))
    }

    /// The names of the effects.
    package var names: [String] { Self.named.filter { contains($0.effect) }.map(\.name) }

    /// The fraction of scenes with each of the effects.
    private static let share: Float = 0.3

    /// The fraction of scenes with the original colours of the logo.
    var originalShare: Float { contains(.colors) ? 0.65 : 0.3 }

    /// Returns a random material, or nil for ink.
    func material(_ random: inout RandomStream) -> PrintMaterial? {
        let isMaterial = random.chance(Self.share)
        let material = PrintMaterial(random.element(of: PrintMaterial.Kind.allCases), &random)
        return contains(.materials) && isMaterial ? material : nil
    }

    /// Changes the painted scene; the point at `center` stays where it is.
    /// - Parameter radius: Half of the diameter of the visible part of the logo, in pixels.
    /// - Returns: A function that maps a position on the logo in the painted scene to its position in the changed scene.
    @discardableResult
    func apply(
        to canvas: inout Canvas, around center: Point, radius: Float, _ random: inout RandomStream
    ) -> (Point) -> Point {
        func hasEffect(_ effect: SceneEffects) -> Bool { random.chance(Self.share) && contains(effect) }
        var curvature: Curvature?
        if hasEffect(.curvature) {
            curvature = Curvature(radius, &random)
            curvature?.apply(to: &canvas, around: center)
        }
        var steepness = Point.zero
        if hasEffect(.perspective) {
            steepness = random.direction() * (random.uniform(in: 0.15...0.5) / radius)
            canvas = canvas.warped { pixel in
                let offset = pixel - center
                return center + offset / max(1 + steepness.dot(offset), 0.2)
            }
        }
        if hasEffect(.occlusion) { occlude(&canvas, center, radius, &random) }
        if hasEffect(.light) { dim(&canvas, &random) }
        return { position in
            let offset = (curvature?.position(of: position, around: center) ?? position) - center
            // The inverse of the map above.
            return center + offset / max(1 - steepness.dot(offset), 0.2)
        }
    }

    /// Covers a part of the logo by another part of the scene: everything beyond a line, or a band.
    private func occlude(_ canvas: inout Canvas, _ center: Point, _ radius: Float, _ random: inout RandomStream) {
        let direction = random.direction()
        let near = radius * random.uniform(in: 0.25...0.8)
        let far = random.chance(0.5) ? Float.infinity : near + radius * random.uniform(in: 0.2...0.6)
        let size = Float(canvas.size)
        let shift = Point(random.uniform(in: 0.3...0.7), random.uniform(in: 0.3...0.7)) * size
        let source = canvas
        let brightness = random.uniform(in: 0.5...1.3)
        canvas.update { ground, position in
            let pixel = (position + 1) * size / 2
            let depth = (pixel - center).dot(direction)
            let coverage = (min(depth - near, far - depth) + 0.5).clampedToUnit
            guard coverage > 0 else { return ground }
            let other = Point(
                (pixel.x + shift.x).truncatingRemainder(dividingBy: size),
                (pixel.y + shift.y).truncatingRemainder(dividingBy: size))
            return ground + (source.color(at: other) * brightness - ground) * coverage
        }
    }

    /// Blurs in one direction, or darkens and adds noise, or both.
    private func dim(_ canvas: inout Canvas, _ random: inout RandomStream) {
        let isMoving = random.chance(0.6)
        let motion = random.direction() * random.uniform(in: 1...4)
        let isDark = !isMoving || random.chance(0.4)
        let brightness = random.uniform(in: 0.2...0.6)
        let noise = random.uniform(in: 0.01...0.05)
        if isMoving {
            let source = canvas
            let size = Float(canvas.size)
            canvas.update { _, position in
                let pixel = (position + 1) * size / 2
                return (-2...2).reduce(Color.zero) { $0 + source.color(at: pixel + motion * (Float($1) / 2)) } / 5
            }
        }
        if isDark {
            canvas.update { color, _ in
                color * brightness + Color(random.roughlyNormal(), random.roughlyNormal(), random.roughlyNormal())
                    * noise
            }
        }
    }
}

/// A cylinder with the scene on it.
private struct Curvature {
    /// The radius of the cylinder, in pixels.
    private let radius: Float
    /// The direction across the axis.
    private let direction: Point
    /// The sine of the angle between the camera and the surface at the centre.
    private let offset: Float

    init(_ logoRadius: Float, _ random: inout RandomStream) {
        radius = logoRadius * random.uniform(in: 1.05...2.2)
        // Most bottles and cups stand upright.
        direction = .direction(degrees: random.chance(0.7) ? random.normal() * 10 : random.uniform(in: -180...180))
        offset = random.uniform(in: -0.4...0.4)
    }

    /// Bends the scene; the scale at the centre stays the same.
    ///
    /// Beside the cylinder, the flat scene is visible, slightly darker.
    func apply(to canvas: inout Canvas, around center: Point) {
        let source = canvas
        let size = Float(canvas.size)
        let slope = (1 - offset * offset).squareRoot()
        let start = arcSine(offset)
        canvas.update { flat, position in
            let pixel = (position + 1) * size / 2
            let across = (pixel - center).dot(direction)
            let sine = across * slope / radius + offset
            guard abs(sine) < 0.98 else { return flat * 0.8 }
            let bent = radius * (arcSine(sine) - start)
            let shade = 0.55 + 0.45 * (1 - sine * sine).squareRoot() / slope
            return source.color(at: pixel + direction * (bent - across)) * shade
        }
    }

    /// Returns the position in the bent scene of a position in the flat scene.
    func position(of flat: Point, around center: Point) -> Point {
        let slope = (1 - offset * offset).squareRoot()
        let across = (flat - center).dot(direction)
        // Beyond this angle, the surface is not visible.
        let limit = arcSine(0.98)
        let angle = min(max(across / radius + arcSine(offset), -limit), limit)
        return flat + direction * ((sin(angle) - offset) * radius / slope - across)
    }

    private func arcSine(_ x: Float) -> Float { asin(x) }
}

extension Canvas {
    /// Returns the canvas whose pixels have the colours at other positions.
    fileprivate func warped(_ position: (Point) -> Point) -> Canvas {
        var result = self
        let half = Float(size) / 2
        result.update { _, pixel in color(at: position((pixel + 1) * half)) }
        return result
    }

    /// Returns the colour at a position in pixels, with bilinear interpolation; the border continues outside.
    fileprivate func color(at position: Point) -> Color {
        let last = Float(size - 1)
        let x = min(max(position.x - 0.5, 0), last), y = min(max(position.y - 0.5, 0), last)
        let (column, row) = (min(Int(x), size - 2), min(Int(y), size - 2))
        let (right, down) = (x - Float(column), y - Float(row))
        let first = row * size + column
        let top = pixels[first] + (pixels[first + 1] - pixels[first]) * right
        let bottom = pixels[first + size] + (pixels[first + size + 1] - pixels[first + size]) * right
        return top + (bottom - top) * down
    }
}
