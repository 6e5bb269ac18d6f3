import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Image information") struct ImageInformationTests {
    private func information(_ bytes: [UInt8]) throws -> ImageInformation {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "photo")
            try Data(bytes).write(to: file)
            return try ImageFile.information(of: file)
        }
    }

    @Test("Size and orientation describe the stored image") func jpeg() throws {
        let jpeg = inserting(
            0xE1, Array("Exif\0\0".utf8) + exif(orientation: 6, isBigEndian: false),
            into: try ImageFile.encodeJPEG(.scene(1, width: 50, height: 30)))
        let found = try information(jpeg)
        #expect(found.width == 50 && found.height == 30)
        #expect(found.orientation == .right && !found.isAnimated)
    }

    @Test("An animated PNG is reported as animated", arguments: [false, true]) func animated(isAnimated: Bool) throws {
        let bytes = png(
            width: 3, height: 2, colorType: 0, rows: [[1, 2, 3], [4, 5, 6]],
            extra: isAnimated ? [("acTL", [0, 0, 0, 2, 0, 0, 0, 0])] : [])
        let found = try information(bytes)
        #expect(found.width == 3 && found.height == 2)
        #expect(found.orientation == .up && found.isAnimated == isAnimated)
    }

    @Test(
        "Files that are not images or have a damaged header are errors",
        arguments: [
            Array("text".utf8), [0xFF, 0xD8, 0xFF], [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A],
            Array("RIFF\0\0\0\0WEBP".utf8), [0, 0, 0, 24] + Array("ftypheic".utf8), Array("GIF89a".utf8),
        ] as [[UInt8]])
    func noImage(bytes: [UInt8]) {
        #expect(throws: ImageError.self) { try information(bytes) }
    }
}
