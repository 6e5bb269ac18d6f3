import Testing

@testable import ImprintImages

@Suite("Raster image") struct RasterImageTests {
    private func address(of image: RasterImage) -> UnsafePointer<UInt8>? {
        image.samples.withUnsafeBufferPointer { $0.baseAddress }
    }

    @Test("Single samples change in place, without a copy of the others") func inPlace() {
        var image = RasterImage(width: 100, height: 40)
        let before = address(of: image)
        image.samples[7] = 1
        image.samples.replaceSubrange(0..<2, with: [2, 3])
        image.samples.withUnsafeMutableBufferPointer { $0[9] = 4 }
        #expect(image.samples.prefix(10) == [2, 3, 0, 0, 0, 0, 0, 1, 0, 4])
        #expect(address(of: image) == before)
    }

    @Test("A copy keeps its samples, and all samples can be replaced by as many others") func copies() {
        var image = RasterImage(width: 2, height: 1)
        let copy = image
        image.samples[0] = 5
        #expect(copy.samples == [0, 0, 0, 0, 0, 0] && image.samples == [5, 0, 0, 0, 0, 0])
        image.samples = [1, 2, 3, 4, 5, 6]
        #expect(image == RasterImage(width: 2, height: 1, channels: 3, samples: [1, 2, 3, 4, 5, 6]))
    }
}
