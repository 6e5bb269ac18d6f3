import Foundation
import TestSupport
import Testing

@testable import ImprintImages

@Suite("Photo facts") struct PhotoFactsTests {
    private func facts(_ bytes: [UInt8]) throws -> PhotoFacts? {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "photo")
            try Data(bytes).write(to: file)
            return PhotoFacts(reading: file)
        }
    }

    @Test("Size and orientation are those of the stored picture") func jpeg() throws {
        let jpeg = inserting(
            0xE1, Array("Exif\0\0".utf8) + exif(orientation: 6, isBigEndian: false),
            into: try ImageFile.encodeJPEG(.scene(1, width: 50, height: 30)))
        let facts = try #require(try facts(jpeg))
        #expect(facts.width == 50 && facts.height == 30)
        #expect(facts.orientation == .right && !facts.isAnimated)
    }

    @Test("An animated PNG is one", arguments: [false, true]) func animated(isAnimated: Bool) throws {
        let bytes = png(
            width: 3, height: 2, colorType: 0, rows: [[1, 2, 3], [4, 5, 6]],
            extra: isAnimated ? [("acTL", [0, 0, 0, 2, 0, 0, 0, 0])] : [])
        let facts = try #require(try facts(bytes))
        #expect(facts.width == 3 && facts.height == 2)
        #expect(facts.orientation == .up && facts.isAnimated == isAnimated)
    }

    @Test("What is no image has none") func noImage() throws {
        #expect(try facts(Array("text".utf8)) == nil)
        #expect(try facts([0xFF, 0xD8, 0xFF]) == nil)
        #expect(try facts([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) == nil)
    }
}
