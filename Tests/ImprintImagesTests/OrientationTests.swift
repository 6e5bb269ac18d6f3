import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Orientation") struct OrientationTests {
    /// The stored rows of the upright image  1 2 / 3 4 / 5 6  for each orientation (EXIF 2.32, 4.6.4).
    private static let stored: [(Orientation, [[UInt8]])] = [
        (.up, [[1, 2], [3, 4], [5, 6]]),
        (.upMirrored, [[2, 1], [4, 3], [6, 5]]),
        (.down, [[6, 5], [4, 3], [2, 1]]),
        (.downMirrored, [[5, 6], [3, 4], [1, 2]]),
        (.leftMirrored, [[1, 3, 5], [2, 4, 6]]),
        (.right, [[2, 4, 6], [1, 3, 5]]),
        (.rightMirrored, [[6, 4, 2], [5, 3, 1]]),
        (.left, [[5, 3, 1], [6, 4, 2]]),
    ]

    @Test("Each orientation becomes upright", arguments: stored.indices, [1, 3, 4])
    func upright(index: Int, channels: Int) {
        let (orientation, rows) = Self.stored[index]
        func samples(_ values: [UInt8]) -> [UInt8] {
            values.flatMap { value in (0..<channels).map { value + UInt8($0) * 10 } }
        }
        let image = RasterImage(
            width: rows[0].count, height: rows.count, channels: channels, samples: samples(rows.flatMap(\.self)))
        let upright = orientation.upright(image)
        #expect((upright.width, upright.height) == (2, 3))
        #expect(upright.samples == samples([1, 2, 3, 4, 5, 6]))
    }

    @Test("Each orientation is read from a JPEG", arguments: Orientation.allCases, [true, false])
    func readFromJPEG(orientation: Orientation, isBigEndian: Bool) throws {
        let image = RasterImage.gradient(width: 24, height: 16)
        let plain = try ImageFile.encodeJPEG(image, quality: 95)
        let block = Array("Exif\0\0".utf8) + exif(orientation: orientation.rawValue, isBigEndian: isBigEndian)
        // Segments with the same marker (XMP) and with others come first, as in photos from phones.
        let file = inserting(
            0xE2, [1, 2, 3], into: inserting(0xE1, Array("http://".utf8), into: inserting(0xE1, block, into: plain)))
        #expect(try decode(file) == orientation.upright(decode(plain)))
    }

    @Test("An invalid orientation does not change the image", arguments: [0, 9, 65_535])
    func invalid(value: Int) throws {
        let plain = try ImageFile.encodeJPEG(.gradient(width: 24, height: 16))
        let block = Array("Exif\0\0".utf8) + exif(orientation: value, isBigEndian: false)
        #expect(try decode(inserting(0xE1, block, into: plain)) == decode(plain))
    }

    @Test("Truncated blocks and wrong offsets or counts never crash")
    func hostile() {
        for isBigEndian in [true, false] {
            let whole = exif(orientation: 6, isBigEndian: isBigEndian)
            #expect(Orientation(exif: whole[...]) == .right)
            for length in 0..<whole.count { _ = Orientation(exif: whole[..<length]) }
            #expect(Orientation(exif: whole[..<30]) == nil)
            for position in whole.indices {
                for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
                    var bytes = whole
                    bytes[position] = value
                    _ = Orientation(exif: bytes[...])
                }
            }
            for start in 4..<(whole.count - 4) {
                var bytes = whole
                bytes.replaceSubrange(start..<(start + 4), with: [0xFF, 0xFF, 0xFF, 0xFF])
                _ = Orientation(exif: bytes[...])
            }
        }
    }

    @Test("A block is read from a slice of a longer file") func slice() {
        let bytes = [1, 2, 3] + exif(orientation: 8, isBigEndian: true) + [4, 5]
        #expect(Orientation(exif: bytes[3..<(bytes.count - 2)]) == .left)
    }

    @Test("Segments with wrong lengths end the search", arguments: [[0, 0], [0, 1], [0xFF, 0xFF]] as [[UInt8]])
    func invalidSegmentLengths(length: [UInt8]) {
        #expect(JPEGSegments([0xFF, 0xD8, 0xFF, 0xE1] + length + [1, 2, 3]).orientation == .up)
        #expect(JPEGSegments([0xFF, 0xD8, 0xFF, 0xE1] + length.prefix(1)).orientation == .up)
    }
}
