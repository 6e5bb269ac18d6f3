import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// The effects that a recipe of drawn artwork chooses for its composites.
@Suite struct CompositeEffectsTests {
    /// Returns a compositor of two-circles.
    /// - Parameter effects: The field `effects` of the recipe; nil without the field.
    private func compositor(_ effects: [String]?, size: Int = 48) throws -> Compositor {
        let file = packageFolder.appending(path: "datasets/two-circles.json")
        var json = try String(contentsOf: file, encoding: .utf8)
        if let effects {
            let list = effects.map { "\"\($0)\"" }.joined(separator: ", ")
            json = json.replacing("\"compositing\": {", with: "\"compositing\": { \"effects\": [\(list)],")
        }
        let artwork = Artwork(try DrawingRecipe(Data(json.utf8), file: file))
        return Compositor(
            artworks: [artwork], backdrops: try Backdrops([], size: size, workers: Workers(1)), seed: 1)
    }

    @Test("The standard effects are the default") func standard() throws {
        let (chosen, usual) = (try compositor(SceneEffects.standard.names), try compositor(nil))
        for index in 0..<12 {
            #expect(try chosen.positive(index) == usual.positive(index))
            #expect(try chosen.hardNegative(index) == usual.hardNegative(index))
        }
    }

    @Test("Without a standard effect, some composites change", arguments: SceneEffects.standard.names)
    func without(name: String) throws {
        let chosen = try compositor(SceneEffects.standard.names.filter { $0 != name })
        let usual = try compositor(nil)
        let changed = try (0..<80).count { try chosen.positive($0).image != usual.positive($0).image }
        #expect(changed > 0)
    }

    @Test("With another effect, some composites change", arguments: SceneEffects.drawable.subtracting(.standard).names)
    func with(name: String) throws {
        let chosen = try compositor(SceneEffects.standard.names + [name])
        let usual = try compositor(nil)
        let changed = try (0..<40).filter { try chosen.positive($0).image != usual.positive($0).image }
        #expect((4...24).contains(changed.count), "\(changed.count) of 40")
        for index in changed {
            let composite = try chosen.positive(index)
            for point in composite.outline {
                #expect(point.x >= 0 && point.y >= 0 && point.x <= 48 && point.y <= 48)
                let (x, y) = (point.x - composite.subject.x, point.y - composite.subject.y)
                #expect((x * x + y * y).squareRoot() <= composite.subject.span / 2 + 0.01)
            }
        }
    }

    @Test("Without effects, a scene shows only the logo on the background") func none() throws {
        let compositor = try compositor([])
        for index in 0..<12 {
            let scene = compositor.positiveScene(index)
            #expect(scene.inks.style == .mono)
            let (with, without) = (scene.painted(), scene.painted(showsLogo: false))
            #expect(try compositor.positive(index).image == with.image)
            for pixel in with.pixels.indices where with.pixels[pixel] != without.pixels[pixel] {
                let (row, column) = pixel.quotientAndRemainder(dividingBy: 48)
                let offset = Point(Float(column) + 0.5, Float(row) + 0.5) - Point(scene.location.x, scene.location.y)
                #expect((offset * offset).sum().squareRoot() <= scene.location.span / 2 + 1)
            }
        }
    }

    @Test(
        "The position of a point on a curved or tilted surface is known",
        arguments: [SceneEffects.curvature, .perspective, [.curvature, .perspective]])
    func position(effects: SceneEffects) {
        let (side, center, point) = (96, Point(48, 48), Point(57, 42))
        for seed in 0..<60 as Range<UInt64> {
            var canvas = Canvas(size: side)
            canvas.paint(Color(1, 1, 1), through: View(center: .zero, scale: 1)) { position in
                let offset = position - point
                return (offset * offset).sum().squareRoot() - 3
            }
            var random = RandomStream(seed: seed, "effect")
            let moved = effects.apply(to: &canvas, around: center, radius: 24, &random)(point)
            var (sum, position) = (Float(0), Point.zero)
            canvas.update { color, pixel in
                sum += color.x
                position += (pixel + 1) * Float(side / 2) * color.x
                return color
            }
            let offset = position / sum - moved
            #expect(sum > 5 && (offset * offset).sum().squareRoot() < 1.5)
        }
    }

    @Test("The documentation of recipes lists every effect") func documentation() throws {
        let page = try String(contentsOf: packageFolder.appending(path: "datasets/README.md"), encoding: .utf8)
        for name in SceneEffects.drawable.names { #expect(page.contains("| `\(name)` |")) }
    }
}
