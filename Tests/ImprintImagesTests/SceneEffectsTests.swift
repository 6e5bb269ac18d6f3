import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Effects that make composites more like photos.
@Suite struct SceneEffectsTests {
    private static let side = 96

    /// Returns a random scene with a disc of half of its side.
    private static func scene(seed: UInt64) throws -> Scene {
        let artwork = try Artwork.load(named: "two-circles")
        let backdrops = try Backdrops([], size: side, seed: 5, workers: Workers(1))
        var random = RandomStream(seed: seed, "test")
        let configuration = Compositor.Configuration(span: 0.5...0.5, rotatedShare: 0)
        return Scene(artwork.logo(&random), of: artwork, configuration, backdrops, &random)
    }

    private static func render(_ scene: Scene, _ kinds: SceneEffects, seed: UInt64) throws -> RasterImage {
        let center = Point(scene.location.x, scene.location.y)
        return try scene.render(kinds, around: center, radius: scene.location.span / 2, seed: seed).image
    }

    @Test("Without effects, a scene stays the same") func none() throws {
        for seed in 0..<4 as Range<UInt64> {
            let scene = try Self.scene(seed: seed)
            #expect(try Self.render(scene, [], seed: seed) == scene.render())
        }
    }

    @Test(
        "An effect changes about a third of the scenes, the same ones for the same seed",
        arguments: SceneEffects.photographic.subtracting(.colors).names)
    func changes(name: String) throws {
        let effect = SceneEffects(named: [name])
        var changed = 0
        for seed in 0..<40 as Range<UInt64> {
            let scene = try Self.scene(seed: seed)
            let image = try Self.render(scene, effect, seed: seed)
            if try image != scene.render() { changed += 1 }
            #expect(try image == Self.render(scene, effect, seed: seed))
        }
        #expect((4...24).contains(changed), "\(changed) of 40")
    }

    @Test(
        "The centre of curved and tilted scenes stays where it is", arguments: [SceneEffects.curvature, .perspective])
    func center(effect: SceneEffects) {
        let center = Point(40, 52)
        for seed in 0..<60 as Range<UInt64> {
            var canvas = Canvas(size: Self.side)
            canvas.paint(Color(1, 1, 1), through: View(center: .zero, scale: 1)) { ($0 - center).length - 4 }
            var random = RandomStream(seed: seed, "effect")
            effect.apply(to: &canvas, around: center, radius: 24, &random)
            var (sum, position) = (Float(0), Point.zero)
            canvas.update { color, point in
                sum += color.x
                position += (point + 1) * Float(Self.side / 2) * color.x
                return color
            }
            #expect(sum > 10 && ((position / sum) - center).length < 1)
        }
    }

    @Test(
        "Materials leave the scene beside the logo as it is, except for light", arguments: PrintMaterial.Kind.allCases)
    func material(kind: PrintMaterial.Kind) throws {
        let scene = try Self.scene(seed: 3)
        var random = RandomStream(seed: 2, "material")
        let plain = scene.painted(showsLogo: false)
        let painted = scene.painted(material: PrintMaterial(kind, &random))
        let ink = scene.painted()
        let center = Point(scene.location.x, scene.location.y)
        var (differences, outside) = (0, 0)
        for index in painted.pixels.indices {
            let pixel = Point(Float(index % Self.side) + 0.5, Float(index / Self.side) + 0.5)
            #expect(painted.pixels[index].x.isFinite)
            if (painted.pixels[index] - ink.pixels[index]).length > 0.02 { differences += 1 }
            if (pixel - center).length > scene.location.span * 0.75, painted.pixels[index] != plain.pixels[index] {
                outside += 1
            }
        }
        #expect(differences > 50)
        #expect((outside == 0) == (kind != .light))
    }
}

extension SIMD3<Float> {
    fileprivate var length: Float { (self * self).sum().squareRoot() }
}
