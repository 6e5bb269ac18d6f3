import Foundation
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Image store") struct ImageStoreTests {
    private let rules = Preprocessing(width: 5, height: 4)

    @Test(
        "The capacity is limited by the memory and by the number of images",
        arguments: [(0, 0), (59, 0), (60, 1), (179, 2), (180, 3), (.max, 3), (-1, 0), (.min, 0)])
    func capacity(memoryLimit: Int, expected: Int) {
        #expect(ImageStore(count: 3, of: rules, memoryLimit: memoryLimit).capacity == expected)
    }

    @Test("Images are read back unchanged after other images are written and moved") func roundTrip() {
        let store = ImageStore(count: 4, of: rules, memoryLimit: 1000)
        let images = (0..<4 as Range<UInt64>).map { RasterImage.noise(width: 5, height: 4, channels: 3, seed: $0) }
        for index in [2, 0, 3, 1] { store[index] = images[index] }
        #expect((0..<4).map { store[$0] } == images)
        store.move(from: 3, to: 1)
        store.move(from: 0, to: 0)
        #expect((0..<4).map { store[$0] } == [images[0], images[3], images[2], images[3]])
    }
}
