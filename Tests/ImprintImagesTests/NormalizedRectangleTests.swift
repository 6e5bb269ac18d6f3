import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite struct NormalizedRectangleTests {
    @Test(
        "A rectangle touches at least one pixel",
        arguments: [
            (0, 1, 7, 0..<7), (0.5, 0.5, 4, 2..<4), (0.5, 0.5, 5, 2..<5), (0.25, 0.5, 4, 1..<3), (0.3, 0.1, 10, 3..<4),
            (0.31, 0.01, 10, 3..<4), (0.999, 0.001, 3, 2..<3), (0, 0.001, 3, 0..<1), (1.0 / 3, 1.0 / 3, 3, 1..<2),
        ] as [(Float, Float, Int, Range<Int>)])
    func pixels(start: Float, length: Float, count: Int, expected: Range<Int>) {
        let across = NormalizedRectangle(x: start, y: 0, width: length, height: 1)
        #expect(across.pixels(width: count, height: 1).columns == expected)
        let down = NormalizedRectangle(x: 0, y: start, width: 1, height: length)
        #expect(down.pixels(width: 1, height: count).rows == expected)
    }

    @Test(
        "A rectangle of whole pixels touches exactly these, also in a wide photo and after it is mapped",
        arguments: [4001, 16_001, 40_001, 65_535])
    func wholePixels(count: Int) {
        func part(_ pixels: Range<Int>, of count: Int) -> NormalizedRectangle {
            NormalizedRectangle(
                x: Float(pixels.lowerBound) / Float(count), y: 0, width: Float(pixels.count) / Float(count), height: 1)
        }
        for start in stride(from: 0, to: count - 600, by: 97) {
            let region = start..<(start + 531)
            let outer = part(region, of: count)
            #expect(outer.pixels(width: count, height: 1).columns == region)
            let mapped = part(100..<201, of: region.count).mapped(from: outer)
            #expect(mapped.pixels(width: count, height: 1).columns == (start + 100)..<(start + 201))
        }
    }

    @Test("Cropping the stored image equals cropping the upright image", arguments: Orientation.allCases)
    func storedPixels(orientation: Orientation) {
        let stored = StoredImage(RasterImage.noise(width: 9, height: 5, channels: 3), orientation: orientation)
        let upright = stored.upright
        for (x, y, width, height) in [(0, 0, 1, 1), (1, 2, 3, 2), (0, 0, upright.width, upright.height), (4, 1, 1, 4)]
            as [(Int, Int, Int, Int)]
        {
            func share(_ part: Int, _ whole: Int) -> Float { Float(part) / Float(whole) }
            let part = NormalizedRectangle(
                x: share(x, upright.width), y: share(y, upright.height), width: share(width, upright.width),
                height: share(height, upright.height))
            let cropped = stored.cropped(to: part).upright
            let pixels = stored.croppedPart(part).pixels(width: upright.width, height: upright.height)
            #expect(pixels == part.pixels(width: upright.width, height: upright.height))
            #expect(cropped.width == min(width, upright.width - x) && cropped.height == min(height, upright.height - y))
            for row in 0..<cropped.height {
                for column in 0..<cropped.width {
                    #expect(cropped.pixel(column, row) == upright.pixel(x + column, y + row))
                }
            }
        }
    }

    @Test("The part that a crop returns is extended to whole pixels", arguments: [Orientation.up, .right])
    func croppedPart(orientation: Orientation) {
        let image = RasterImage(width: 8, height: 4)
        let stored = StoredImage(
            orientation.swapsSides ? RasterImage(width: 4, height: 8) : image, orientation: orientation)
        let part = stored.croppedPart(NormalizedRectangle(x: 0.3, y: 0.3, width: 0.3, height: 0.3))
        #expect(part == NormalizedRectangle(x: 0.25, y: 0.25, width: 0.375, height: 0.5))
        #expect(stored.croppedPart(.all) == .all)
    }

    @Test("Mapping a rectangle from a part to the whole image keeps its position")
    func mapped() {
        let part = NormalizedRectangle(x: 0.5, y: 0.25, width: 0.5, height: 0.5)
        let inner = NormalizedRectangle(x: 0.5, y: 0, width: 0.25, height: 1)
        #expect(inner.mapped(from: part) == NormalizedRectangle(x: 0.75, y: 0.25, width: 0.125, height: 0.5))
        #expect(inner.mapped(from: .all) == inner)
    }

    @Test(
        "Invalid rectangles are detected",
        arguments: [
            (0, 0, 0, 1), (0, 0, 1, -1), (-0.1, 0, 1, 1), (0.5, 0, 0.6, 1), (0, 0.9, 1, 0.2), (.nan, 0, 1, 1),
            (0, 0, .nan, 1), (0, 0, .infinity, 1), (0, 0, 1e30, 1),
        ] as [(Float, Float, Float, Float)])
    func outside(x: Float, y: Float, width: Float, height: Float) {
        #expect(!NormalizedRectangle(x: x, y: y, width: width, height: height).isWithinImage)
    }

    @Test("Bytes decode like the file, and errors contain the name of the bytes")
    func data() throws {
        let bytes = try ImageFile.encodeJPEG(.gradient(width: 30, height: 20))
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "x.jpg")
            try Data(bytes).write(to: url)
            let file = try StoredImage(url, coveringShortSide: nil)
            let data = try StoredImage(bytes, named: try #require(URL(string: "the%20bytes")), coveringShortSide: nil)
            #expect(file.upright == data.upright)
            #expect(data.oriented(.left).upright == Orientation.left.upright(data.upright))
        }
        let error = #expect(throws: ImageError.self) {
            try StoredImage(
                Array("hello".utf8), named: try #require(URL(string: "the%20bytes")), coveringShortSide: nil)
        }
        #expect("\(try #require(error))".hasPrefix("the bytes: expected an image"))
    }

    @Test("A rectangle outside of the image is clipped to an empty one", arguments: [(-2, 1), (-0.5, 0.25), (1.5, 1)])
    func clipping(start: Float, length: Float) {
        for rectangle in [
            NormalizedRectangle(x: start, y: 0.25, width: length, height: 0.5),
            NormalizedRectangle(x: 0.25, y: start, width: 0.5, height: length),
        ] {
            let clipped = rectangle.clippedToImage
            #expect(clipped.width >= 0 && clipped.height >= 0 && clipped.width * clipped.height == 0)
            #expect(clipped.x >= 0 && clipped.x <= 1 && clipped.y >= 0 && clipped.y <= 1)
        }
    }
}
