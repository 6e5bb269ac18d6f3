import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Artwork that a recipe draws.
@Suite struct ArtworkRecipeTests {
    @Test("The compositing section of a recipe determines the composited logo") func recipeWithCompositing() throws {
        guard case .recipe(let recipeLogos) = try #require(CompositorTests.artworks["two-circles"]).source else {
            throw CocoaError(.featureUnsupported)
        }
        #expect(recipeLogos.logos.map(\.kind) == [.looseTwoCircles])
        #expect(recipeLogos.hardNegatives.map(\.kind).contains(.touching))
    }

    @Test("The logo upside down is not a hard negative of another recipe")
    func recipe() throws {
        let file = packageFolder.appending(path: "datasets/two-circles.json")
        var fields = try #require(
            try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
        fields["compositing"] = nil
        let recipe = try DrawingRecipe(JSONSerialization.data(withJSONObject: fields), file: file)
        guard case .recipe(let recipeLogos) = Artwork(recipe).source else { throw CocoaError(.featureUnsupported) }
        let kinds = recipeLogos.hardNegatives.map(\.kind)
        #expect(!kinds.contains(.smallBelow) && !kinds.contains(.twoCircles))
        for kind in [LogoKind.oneDisc, .equalDiscs, .tinyDot, .threeDiscs, .ovals, .squares, .ring, .glyph, .nothing] {
            #expect(kinds.contains(kind), "\(kind)")
        }
    }

    @Test("A recipe keeps the digest of version 1 for its checkpoints, and another digest for its content")
    func recipeDigests() throws {
        let file = packageFolder.appending(path: "datasets/two-circles.json")
        let artwork = Artwork(try DrawingRecipe(contentsOf: file))
        // From the settings of a checkpoint that version 1 wrote for `--artwork TwoCircles=two-circles`.
        #expect(artwork.versionOneDigest.hasPrefix("cc56b0e31323"))
        let data = try String(contentsOf: file, encoding: .utf8)
        let changed = data.replacing("\"looseTwoCircles\", \"weight\": 1", with: "\"touching\", \"weight\": 1")
        #expect(changed != data)
        let other = Artwork(try DrawingRecipe(Data(changed.utf8), file: file))
        let same = Artwork(try DrawingRecipe(contentsOf: file))
        #expect(same.digest == artwork.digest && other.digest != artwork.digest)
    }
}
