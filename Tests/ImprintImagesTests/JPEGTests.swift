import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("JPEG") struct JPEGTests {
    @Test(
        "Files decode as in Pillow",
        arguments: [
            "baseline.jpg", "progressive-420.jpg", "subsampled-3x1.jpg", "grey.jpg", "cmyk.jpg", "ycck.jpg",
        ])
    func decodesLikePillow(name: String) throws {
        let vectors = try PillowVectors.load()
        let file = try vectors.file(name)
        let image = try decode([UInt8](file.file))
        #expect((image.width, image.height) == (vectors.width, vectors.height))
        #expect(image.channels == 3)
        #expect(largestDifference(image.samples, file.rgb) <= 2)
    }

    @Test("CMYK without Adobe's marker is not inverted") func cmykWithoutMarker() throws {
        let vectors = try PillowVectors.load()
        var bytes = [UInt8](try vectors.file("cmyk.jpg").file)
        let inverted = try decode(bytes)
        let marker = try #require(bytes.firstRange(of: [0xFF, 0xEE]))
        let length = Int(bytes[marker.upperBound]) << 8 | Int(bytes[marker.upperBound + 1])
        bytes.removeSubrange(marker.lowerBound..<(marker.upperBound + length))
        let plain = try decode(bytes)
        // The same bytes mean ink instead of light: C 40, K 20 of 255 become 215 and 235.
        #expect(largestDifference(inverted.pixel(0, 0).prefix(1), [198]) <= 2)
        #expect(largestDifference(plain.pixel(0, 0).prefix(1), [3]) <= 2)
    }

    @Test("Encoding and decoding returns nearly the same image", arguments: [1, 3], [(1, 1), (17, 9), (64, 48)])
    func roundTrip(channels: Int, size: (Int, Int)) throws {
        let image = RasterImage.gradient(width: size.0, height: size.1, channels: channels)
        let decoded = try decode(ImageFile.encodeJPEG(image, quality: 98))
        let expected = channels == 3 ? image.samples : image.samples.flatMap { [$0, $0, $0] }
        #expect(largestDifference(decoded.samples, expected) <= 6)
    }

    @Test("Transparency is encoded as white") func transparencyIsWhite() throws {
        let image = RasterImage(width: 8, height: 8, channels: 4, filledWith: 0)
        #expect(largestDifference(try decode(ImageFile.encodeJPEG(image)).pixel(3, 3), [255, 255, 255]) <= 1)
    }

    @Test("A lower quality makes a smaller file") func quality() throws {
        let image = RasterImage.noise(width: 64, height: 64, channels: 3)
        #expect(try ImageFile.encodeJPEG(image, quality: 30).count < ImageFile.encodeJPEG(image, quality: 90).count)
    }

    @Test("A side that is too long for a JPEG is an error") func tooLongToEncode() {
        #expect {
            try ImageFile.encodeJPEG(RasterImage(width: 65_501, height: 1, channels: 1))
        } throws: { "\($0)".contains("65501x1") }
    }

    @Test(
        "Decoding scales down by two, four or eight if the result covers the short side",
        arguments: [(nil, 200), (1, 25), (25, 25), (26, 50), (99, 100), (101, 200), (175, 200), (200, 200), (999, 200)])
    func shrinks(covering: Int?, shortSide: Int) throws {
        let image = RasterImage.gradient(width: 320, height: 200)
        let decoded = try decode(ImageFile.encodeJPEG(image, quality: 95), coveringShortSide: covering)
        #expect((decoded.width, decoded.height) == (shortSide * 320 / 200, shortSide))
        let same = CropAndScale.scaleFill.apply(image, width: decoded.width, height: decoded.height)
        #expect(largestDifference(decoded.samples, same.samples) <= 12)
    }

    @Test("An odd size is not scaled below the short side to cover") func oddSizes() {
        for shortSide in 1...70 {
            for covering in 1...shortSide {
                let eighths = JPEG.eighths(shortSide: shortSide, covering: covering)
                #expect((shortSide * eighths + 7) / 8 >= covering)
                #expect([1, 2, 4, 8].contains(eighths))
                #expect(eighths == 1 || (shortSide * (eighths / 2) + 7) / 8 < covering)
            }
        }
    }

    @Test("The end marker of an embedded preview does not count as the end of the file")
    func findsEnd() throws {
        let jpeg = try ImageFile.encodeJPEG(RasterImage(width: 20, height: 10, filledWith: 90))
        let withPreview = inserting(0xE1, Array("Exif\0\0".utf8) + jpeg, into: jpeg)
        #expect(JPEGSegments(withPreview).hasEnd)
        #expect(JPEGSegments(withPreview + [0, 0, 7]).hasEnd, "bytes follow the end")
        #expect(!JPEGSegments(Array(withPreview.dropLast(2))).hasEnd)
        #expect(!JPEGSegments(Array(withPreview.prefix(jpeg.count))).hasEnd)
        #expect(!JPEGSegments([]).hasEnd)
    }

    @Test("A file truncated at any byte is an error", arguments: ["baseline.jpg", "progressive-420.jpg", "cmyk.jpg"])
    func truncated(name: String) throws {
        let whole = [UInt8](try PillowVectors.load().file(name).file)
        for length in 3..<whole.count {
            #expect { try decode(Array(whole[..<length])) } throws: { error in
                if case .truncated? = error as? ImageError { return true }
                Issue.record("\(length) of \(whole.count) bytes: \(error)")
                return false
            }
        }
    }

    @Test("Damaged bytes never crash", arguments: ["baseline.jpg", "progressive-420.jpg", "cmyk.jpg"])
    func damaged(name: String) throws {
        let whole = [UInt8](try PillowVectors.load().file(name).file)
        var rejected = 0
        for position in 2..<whole.count {
            for value: UInt8 in [0, 0xFF, whole[position] ^ 0x10] {
                var bytes = whole
                bytes[position] = value
                do { _ = try decode(bytes) } catch is ImageError { rejected += 1 }
            }
        }
        #expect(rejected > 100)
    }

    @Test("A header without image data is an error") func headerOnly() throws {
        let whole = try ImageFile.encodeJPEG(.gradient(width: 16, height: 16))
        let scan = try #require(whole.firstRange(of: [0xFF, 0xC0])).lowerBound
        #expect(throws: ImageError.self) { try decode(Array(whole[..<scan]) + [0xFF, 0xD9]) }
        #expect(throws: ImageError.self) { try decode([0xFF, 0xD8, 0xFF, 0xD9]) }
    }

    @Test("An excessive size is rejected before memory is allocated") func bomb() throws {
        var bytes = try ImageFile.encodeJPEG(.gradient(width: 16, height: 16))
        let frame = try #require(bytes.firstRange(of: [0xFF, 0xC0])).lowerBound
        bytes.replaceSubrange((frame + 5)..<(frame + 9), with: [0xFF, 0x00, 0xFF, 0x00])
        #expect {
            try decode(bytes)
        } throws: { error in
            guard case .tooLarge(_, 65280, 65280, ImageFile.pixelLimit)? = error as? ImageError else { return false }
            return "\(error)".contains("65280x65280")
        }
    }

    @Test(
        "Twelve-bit and lossless files are reported as unsupported, not as damaged",
        arguments: [(4, 12), (1, 0xC3)] as [(Int, UInt8)])
    func unsupported(offset: Int, value: UInt8) throws {
        var bytes = try ImageFile.encodeJPEG(.gradient(width: 16, height: 16))
        let frame = try #require(bytes.firstRange(of: [0xFF, 0xC0])).lowerBound
        bytes[frame + offset] = value
        #expect { try decode(bytes) } throws: { error in
            if case .unsupported? = error as? ImageError { true } else { false }
        }
    }

    @Test("Extra bytes after the image data, which some phones write, are ignored") func strayBytes() throws {
        let plain = try ImageFile.encodeJPEG(.gradient(width: 40, height: 24))
        #expect(try decode(plain.dropLast(2) + [0, 0, 0, 7] + plain.suffix(2)) == decode(plain))
        #expect(try decode(plain + [1, 2, 3]) == decode(plain))
    }

    @Test(
        "An unknown version of JFIF and the spectral selection that some phones write do not matter",
        arguments: [false, true], [false, true])
    func unusualFields(hasUnknownVersion: Bool, hasUnusualSelection: Bool) throws {
        let plain = try ImageFile.encodeJPEG(.gradient(width: 40, height: 24))
        var bytes = plain
        if hasUnknownVersion {
            let majorVersion = try #require(bytes.firstRange(of: Array("JFIF\0".utf8))).upperBound
            bytes[majorVersion] = 0
        }
        if hasUnusualSelection {
            let scan = try #require(bytes.firstRange(of: [0xFF, 0xDA])).lowerBound
            // After the marker, the length, the number of components, two bytes for each of them, and the first frequency.
            let lastFrequency = scan + 2 + 2 + 1 + 2 * 3 + 1
            #expect(bytes[lastFrequency] == 63)
            bytes[lastFrequency] = 0
        }
        #expect(try decode(bytes) == decode(plain))
        // A file that is also cut short is still an error.
        #expect(throws: ImageError.self) { try decode(Array(bytes.prefix(bytes.count * 3 / 4))) }
    }

    @Test(
        "Extra bytes between the segments of the header, which some webcams write, are ignored",
        arguments: [0xDB, 0xC0, 0xC4, 0xDA] as [UInt8],
        [[0], [0, 0, 7], [0xFF, 0xFF], [0x12, 0xFF, 0, 0x34]] as [[UInt8]])
    func bytesBetweenSegments(marker: UInt8, extra: [UInt8]) throws {
        let plain = try ImageFile.encodeJPEG(.gradient(width: 40, height: 24))
        var bytes = plain
        bytes.insert(contentsOf: extra, at: try #require(plain.firstRange(of: [0xFF, marker])).lowerBound)
        #expect(try decode(bytes) == decode(plain))
        // A file that is also cut short, or damaged after the header, is still an error.
        #expect(throws: ImageError.self) { try decode(Array(bytes.prefix(bytes.count * 3 / 4))) }
        var damaged = bytes
        damaged.removeSubrange((bytes.count - 12)..<(bytes.count - 2))
        #expect(throws: ImageError.self) { try decode(damaged) }
    }

    @Test("A header with more than 1,000 gaps is an error, because crafted files have millions") func manyGaps() throws
    {
        let plain = try ImageFile.encodeJPEG(.gradient(width: 40, height: 24))
        // A byte, and a marker without content.
        let gap: [UInt8] = [0, 0xFF, 0x01]
        let position = try #require(plain.firstRange(of: [0xFF, 0xDB])).lowerBound
        func withGaps(_ count: Int) -> [UInt8] {
            Array(plain[..<position]) + Array(repeating: gap, count: count).joined() + plain[position...]
        }
        #expect(try decode(withGaps(1000)) == decode(plain))
        for count in [1001, 100_000] {
            let bytes = withGaps(count)
            #expect(JPEGSegments(bytes).withStandardHeader() == bytes)
            #expect { try decode(bytes) } throws: { error in
                if case .truncated? = error as? ImageError { true } else { false }
            }
        }
    }

    @Test("Metadata after extra bytes in the header is found") func metadataAfterExtraBytes() throws {
        let plain = try ImageFile.encodeJPEG(RasterImage(width: 40, height: 24, filledWith: 90))
        let onlyExif = inserting(
            0xE1, Array("Exif\0\0".utf8) + exif(orientation: 6, isBigEndian: true), into: [0xFF, 0xD8])
        var bytes = plain
        bytes.insert(
            contentsOf: [0, 0] + Array(onlyExif.dropFirst(2)),
            at: try #require(plain.firstRange(of: [0xFF, 0xDB])).lowerBound)
        #expect(try ImageHeader(bytes, file: URL(filePath: "/photo")).orientation == .right)
        let image = try decode(bytes)
        #expect((image.width, image.height) == (24, 40))
    }
}
