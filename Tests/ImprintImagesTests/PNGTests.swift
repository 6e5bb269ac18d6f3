import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("PNG") struct PNGTests {
    private typealias Case = (name: String, file: [UInt8], rgba: [[UInt8]])

    /// Two pixels, side by side, in every PNG pixel format.
    private static var cases: [Case] {
        let palette: [UInt8] = [10, 20, 30, 200, 100, 50]
        let (black, white): ([UInt8], [UInt8]) = ([0, 0, 0, 255], [255, 255, 255, 255])
        func two(
            _ depth: UInt8, _ colorType: UInt8, _ row: [UInt8], _ extra: [(type: String, content: [UInt8])] = []
        ) -> [UInt8] {
            png(width: 2, height: 1, depth: depth, colorType: colorType, rows: [row], extra: extra)
        }
        return [
            ("grey 1", two(1, 0, [0b0100_0000]), [black, white]),
            ("grey 2", two(2, 0, [0b0110_0000]), [[85, 85, 85, 255], [170, 170, 170, 255]]),
            ("grey 4", two(4, 0, [0x1F]), [[17, 17, 17, 255], white]),
            ("grey 8", two(8, 0, [7, 99]), [[7, 7, 7, 255], [99, 99, 99, 255]]),
            ("grey 16", two(16, 0, [100, 100, 200, 200]), [[100, 100, 100, 255], [200, 200, 200, 255]]),
            (
                "grey with a transparent value", two(8, 0, [7, 99], [("tRNS", [0, 99])]),
                [[7, 7, 7, 255], [99, 99, 99, 0]]
            ),
            ("colour 8", two(8, 2, [1, 2, 3, 4, 5, 6]), [[1, 2, 3, 255], [4, 5, 6, 255]]),
            (
                "colour 16", two(16, 2, [50, 50, 60, 60, 70, 70, 200, 200, 210, 210, 220, 220]),
                [[50, 60, 70, 255], [200, 210, 220, 255]]
            ),
            ("palette 1", two(1, 3, [0b0100_0000], [("PLTE", palette)]), [[10, 20, 30, 255], [200, 100, 50, 255]]),
            ("palette 8", two(8, 3, [1, 0], [("PLTE", palette)]), [[200, 100, 50, 255], [10, 20, 30, 255]]),
            (
                "palette with alpha", two(8, 3, [0, 1], [("PLTE", palette), ("tRNS", [128])]),
                [[10, 20, 30, 128], [200, 100, 50, 255]]
            ),
            ("grey and alpha", two(8, 4, [40, 255, 80, 51]), [[40, 40, 40, 255], [80, 80, 80, 51]]),
            ("colour and alpha", two(8, 6, [1, 2, 3, 255, 90, 80, 70, 102]), [[1, 2, 3, 255], [90, 80, 70, 102]]),
            (
                "colour and alpha 16",
                two(16, 6, [50, 50, 60, 60, 70, 70, 255, 255, 200, 200, 210, 210, 220, 220, 128, 128]),
                [[50, 60, 70, 255], [200, 210, 220, 128]]
            ),
        ]
    }

    @Test("Every depth and colour type decodes, with and without alpha", arguments: cases.indices)
    func decodes(index: Int) throws {
        let (name, file, pixels) = Self.cases[index]
        let decoded = try decode(file, keepsAlpha: true)
        let hasAlpha = pixels.contains { $0[3] < 255 }
        #expect(decoded.channels == (hasAlpha ? 4 : 3), "\(name)")
        let expected = pixels.flatMap { $0.prefix(decoded.channels) }
        #expect(largestDifference(decoded.samples, expected) <= 1, "\(name): \(decoded.samples), not \(expected)")

        let opaque = try decode(file)
        #expect(opaque.channels == 3)
        let onWhite = pixels.flatMap { pixel in
            pixel.prefix(3).map { channel in
                let alpha = Double(pixel[3]) / 255
                return UInt8((Double(channel) * alpha + 255 * (1 - alpha)).rounded())
            }
        }
        #expect(largestDifference(opaque.samples, onWhite) <= 1, "\(name): \(opaque.samples), not \(onWhite)")
    }

    @Test("Encoding and decoding give the same image", arguments: [1, 3, 4], [(1, 1), (13, 7), (100, 1)])
    func roundTrip(channels: Int, size: (Int, Int)) throws {
        let image = RasterImage.noise(width: size.0, height: size.1, channels: channels)
        let decoded = try decode(ImageFile.encodePNG(image), keepsAlpha: true)
        #expect(decoded.samples == (channels == 1 ? image.samples.flatMap { [$0, $0, $0] } : image.samples))
    }

    @Test("A file truncated at any byte is an error") func truncated() throws {
        let whole = try ImageFile.encodePNG(.noise(width: 9, height: 9, channels: 3))
        for length in 8..<whole.count {
            #expect { try decode(Array(whole[..<length])) } throws: { error in
                if case .truncated? = error as? ImageError { true } else { false }
            }
        }
    }

    @Test("A damaged byte never crashes, and damaged image data is an error") func damaged() throws {
        let whole = try ImageFile.encodePNG(.noise(width: 9, height: 9, channels: 4))
        let data = try #require(whole.firstRange(of: Array("IDAT".utf8)))
        for position in 8..<whole.count {
            for value: UInt8 in [0, 0xFF, whole[position] ^ 0x10] where value != whole[position] {
                var bytes = whole
                bytes[position] = value
                var isRejected = false
                do { _ = try decode(bytes) } catch is ImageError { isRejected = true }
                let isImageData = (data.upperBound..<(whole.count - 16)).contains(position)
                #expect(isRejected || !isImageData, "byte \(position)")
            }
        }
    }

    @Test("An excessive size is rejected before memory is allocated") func bomb() {
        let bytes = png(width: 100_000, height: 100_000, colorType: 2, rows: [])
        #expect { try decode(bytes) } throws: { error in
            if case .tooLarge(_, 100_000, 100_000, _)? = error as? ImageError { true } else { false }
        }
    }

    @Test("The orientation in an eXIf chunk is applied", arguments: [true, false], [[], Array("Exif\0\0".utf8)])
    func orientation(isBigEndian: Bool, prefix: [UInt8]) throws {
        let block = prefix + exif(orientation: 6, isBigEndian: isBigEndian)
        let file = png(width: 2, height: 1, colorType: 0, rows: [[10, 90]], extra: [("eXIf", block)])
        let image = try decode(file)
        #expect((image.width, image.height) == (1, 2))
        #expect(image.samples == [10, 10, 10, 90, 90, 90])
    }
}
