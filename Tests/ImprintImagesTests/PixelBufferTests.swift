import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite struct PixelBufferTests {
    /// Two rows of three pixels, whose red, green, blue and alpha are all different.
    private static let pixels: [[UInt8]] = (0..<6).map { pixel in (0..<4).map { UInt8(pixel * 10 + $0 + 1) } }

    private static func bytes(_ layout: PixelBuffer.Layout, of pixel: [UInt8]) -> [UInt8] {
        switch layout {
        case .gray: [pixel[0]]
        case .rgb: [pixel[0], pixel[1], pixel[2]]
        case .bgr: [pixel[2], pixel[1], pixel[0]]
        case .rgba: pixel
        case .bgra: [pixel[2], pixel[1], pixel[0], pixel[3]]
        }
    }

    @Test("Every layout decodes with and without row padding", arguments: PixelBuffer.Layout.allCases, [nil, 0, 1, 5])
    func layouts(layout: PixelBuffer.Layout, gap: Int?) throws {
        let rows = [Self.pixels[..<3], Self.pixels[3...]].map { $0.flatMap { Self.bytes(layout, of: $0) } }
        // Padding between rows is not part of the image, and the last row needs no padding.
        let bytes = rows[0] + Array(repeating: 255, count: gap ?? 0) + rows[1]
        let buffer = try PixelBuffer(
            width: 3, height: 2, layout: layout, bytesPerRow: gap.map { rows[0].count + $0 }, bytes: bytes)
        let count = layout == .gray ? 1 : layout.bytesPerPixel
        #expect(buffer.image.channels == count && buffer.image.width == 3 && buffer.image.height == 2)
        #expect(buffer.image.samples == Self.pixels.flatMap { $0.prefix(count) })
    }

    @Test("Slices and surplus bytes are accepted")
    func slices() throws {
        let bytes: [UInt8] = [9, 1, 2, 3, 4, 9, 9]
        #expect(try PixelBuffer(width: 2, height: 2, layout: .gray, bytes: bytes[1...]).image.samples == [1, 2, 3, 4])
        let lazy = bytes.lazy.map { $0 + 1 }
        #expect(try PixelBuffer(width: 2, height: 1, layout: .gray, bytes: lazy).image.samples == [10, 2])
    }

    @Test(
        "Invalid sizes, strides and byte counts are errors",
        arguments: [
            (0, 1, nil, 10), (1, -1, nil, 10), (3, 2, nil, 5), (3, 2, 2, 10), (3, 2, 4, 6), (3, 2, -4, 10),
            (1 << 40, 1 << 40, nil, 10), (1, 3, Int.max, 10), (2, 2, Int.max / 2, 10),
        ] as [(Int, Int, Int?, Int)])
    func invalid(width: Int, height: Int, bytesPerRow: Int?, count: Int) {
        let error = #expect(throws: ImageError.self) {
            try PixelBuffer(
                width: width, height: height, layout: .gray, bytesPerRow: bytesPerRow,
                bytes: Array(repeating: 0, count: count))
        }
        guard case .invalidPixels(let found, let expected)? = error else {
            Issue.record("another error: \(String(describing: error))")
            return
        }
        #expect(!found.isEmpty && !expected.isEmpty && "\(error!)".contains(found))
    }

    @Test("The error about too few bytes states the required rows, and the end of the last one") func tooFewBytes() {
        let expected = "2 rows of 4 bytes; the last row may end after 3 bytes"
        #expect(throws: ImageError.invalidPixels(found: "6 bytes", expected: expected)) {
            try PixelBuffer(
                width: 3, height: 2, layout: .gray, bytesPerRow: 4, bytes: Array(repeating: UInt8(0), count: 6))
        }
    }
}
