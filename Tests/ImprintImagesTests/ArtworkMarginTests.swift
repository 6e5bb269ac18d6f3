import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Tests of artwork whose logo covers a small part of a large file.
@Suite struct ArtworkMarginTests {
    /// Returns a white image with a red square near its middle.
    private func square(_ side: Int, in imageSide: Int) -> RasterImage {
        var samples = [UInt8](repeating: 255, count: 3 * imageSide * imageSide)
        // At the edges of JPEG blocks, which therefore have no artefacts.
        let start = (imageSide - side) / 16 * 8
        for y in start..<(start + side) {
            for x in start..<(start + side) {
                let index = 3 * (y * imageSide + x)
                (samples[index], samples[index + 1], samples[index + 2]) = (200, 30, 30)
            }
        }
        return RasterImage(width: imageSide, height: imageSide, channels: 3, samples: samples)
    }

    private func load(_ image: RasterImage, as name: String) throws -> Artwork {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: name)
            try ImageFile.write(image, to: file, quality: 95)
            return try Artwork(contentsOf: file)
        }
    }

    @Test(
        "A JPEG with large margins gives the same size of the logo as a PNG",
        arguments: [(120, 2000, 120), (304, 3000, 256), (1504, 2000, 256)])
    func margins(side: Int, imageSide: Int, expected: Int) throws {
        let image = square(side, in: imageSide)
        for name in ["logo.jpg", "logo.png"] {
            let artwork = try load(image, as: name)
            let cutOut = try #require(artwork.cutOut)
            #expect((cutOut.width, cutOut.height) == (expected, expected), "\(name): \(cutOut.width)x\(cutOut.height)")
            #expect(artwork.notes.isEmpty, "\(name): \(artwork.notes)")
        }
    }

    @Test(
        "A small drawing on a large page has enough pixels", .enabled(if: SVG.isAvailable, "librsvg is not installed"),
        arguments: [(10, 256...256), (5, 190...256)])
    func page(radius: Int, expected: ClosedRange<Int>) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "logo.svg")
            let text = """
                <svg xmlns='http://www.w3.org/2000/svg' width='210mm' height='297mm' viewBox='0 0 210 297'>\
                <circle cx='100' cy='100' r='\(radius)' fill='#c02020'/></svg>
                """
            try Data(text.utf8).write(to: file)
            let artwork = try Artwork(contentsOf: file)
            let cutOut = try #require(artwork.cutOut)
            #expect(expected.contains(max(cutOut.width, cutOut.height)), "\(cutOut.width)x\(cutOut.height)")
            #expect(artwork.notes.isEmpty, "\(artwork.notes)")
        }
    }
}
