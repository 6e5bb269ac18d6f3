import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Tests of logos whose tones have almost the same luminance, so that a single ink cannot print them.
@Suite struct ArtworkLikenessTests {
    /// Returns the artwork of a red shape on a blue disc.
    private func load(_ isRed: (Int, Int) -> Bool) throws -> Artwork {
        func pixel(_ x: Int, _ y: Int) -> [UInt8] {
            // Twice the distance to the centre of 120x120 pixels, along both sides.
            let (right, down) = (2 * x - 119, 2 * y - 119)
            guard right * right + down * down < 114 * 114 else { return [0, 0, 0, 0] }
            return isRed(x, y) ? [200, 30, 30, 255] : [30, 70, 200, 255]
        }
        let samples = (0..<120).flatMap { y in (0..<120).flatMap { x in pixel(x, y) } }
        return try withTemporaryFolder { folder in
            let file = folder.appending(path: "logo.png")
            try ImageFile.write(RasterImage(width: 120, height: 120, channels: 4, samples: samples), to: file)
            return try Artwork(contentsOf: file)
        }
    }

    private func artworkLogo(of artwork: Artwork) throws -> ArtworkLogo {
        guard case .image(let logo) = artwork.source else { throw CocoaError(.featureUnsupported) }
        return logo
    }

    @Test("A red Z on a blue disc of the same luminance differs from its mirror image and from the disc")
    func letter() throws {
        let strokes: [(columns: Range<Int>, rows: Range<Int>)] = [
            (28..<70, 30..<48), (51..<69, 48..<72), (50..<92, 72..<90),
        ]
        let artwork = try load { x, y in strokes.contains { $0.columns.contains(x) && $0.rows.contains(y) } }
        let logo = try artworkLogo(of: artwork)
        #expect(logo.tones.count == 2 && logo.inkedTones.isEmpty)
        #expect(!artwork.isMirrorSymmetric && logo.isDistinct(logo.design.mirrored))
        #expect(!logo.isDistinct(logo.design))
        let disc = Element(figure: Figure([.disc(center: .zero, radius: 1)]), tone: 0)
        #expect(logo.isDistinct(Design(elements: [disc])))
    }

    @Test("A red bar on a blue disc of the same luminance is mirror-symmetric") func symmetric() throws {
        let artwork = try load { x, y in (50..<70).contains(x) && (30..<90).contains(y) }
        let logo = try artworkLogo(of: artwork)
        #expect(logo.tones.count == 2 && logo.inkedTones.isEmpty)
        #expect(artwork.isMirrorSymmetric)
    }
}
