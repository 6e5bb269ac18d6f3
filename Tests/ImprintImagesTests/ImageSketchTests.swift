import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Image sketch") struct ImageSketchTests {
    /// Returns a grey image with noise in one rectangle.
    private func makeImage(width: Int, height: Int, columns: Range<Int>, rows: Range<Int>) -> RasterImage {
        var image = RasterImage(width: width, height: height, filledWith: 120)
        let noise = RasterImage.noise(width: width, height: height, channels: 3)
        for y in rows {
            for sample in ((y * width + columns.lowerBound) * 3)..<((y * width + columns.upperBound) * 3) {
                image.samples[sample] = noise.samples[sample]
            }
        }
        return image
    }

    @Test(
        "A subject outside the centre square is detected",
        arguments: [
            (160, 80, 5..<35, 20..<60, true), (160, 80, 65..<95, 20..<60, false), (80, 160, 20..<60, 125..<155, true),
            (80, 160, 20..<60, 65..<95, false), (80, 80, 0..<20, 0..<20, false), (160, 80, 0..<160, 0..<80, false),
            (400, 200, 10..<90, 50..<150, true), (1, 1, 0..<1, 0..<1, false), (3, 1, 0..<1, 0..<1, false),
        ])
    func outside(width: Int, height: Int, columns: Range<Int>, rows: Range<Int>, isOutside: Bool) {
        let sketch = ImageSketch(makeImage(width: width, height: height, columns: columns, rows: rows))
        #expect(sketch.isSubjectLikelyOutsideSquare == isOutside, "\(sketch.contrastOutsideSquare)")
        #expect((0...1).contains(sketch.contrastOutsideSquare))
        let area = 1 - Float(min(width, height)) / Float(max(width, height))
        #expect(abs(sketch.areaOutsideSquare - area) < 0.01)
    }

    @Test("Scaling down keeps the aspect ratio and never enlarges") func shrinking() {
        for (width, height, side, expected) in [
            (400, 300, 100, [133, 100]), (300, 400, 100, [100, 133]), (64, 64, 64, [64, 64]), (50, 90, 64, [50, 90]),
            (10_000, 1, 64, [10_000, 1]), (500, 65, 64, [492, 64]),
        ] {
            let image = RasterImage(width: width, height: height, channels: 1).shrunk(toShortSide: side)
            #expect([image.width, image.height] == expected)
        }
        for (width, height, side, expected) in [
            (400, 300, 100, [100, 75]), (300, 400, 100, [75, 100]), (50, 64, 64, [50, 64]), (10_000, 1, 64, [64, 1]),
        ] {
            let image = RasterImage(width: width, height: height, channels: 1).shrunk(toLongSide: side)
            #expect([image.width, image.height] == expected)
        }
    }

    @Test("A damaged file is an error") func damaged() throws {
        try withTemporaryFolder { folder in
            let bytes = try ImageFile.encodeJPEG(.scene(1, width: 200, height: 200))
            let file = folder.appending(path: "a.jpg")
            try Data(bytes.prefix(bytes.count / 2)).write(to: file)
            #expect(throws: ImageError.self) { try ImageSketch(file) }
        }
    }
}
