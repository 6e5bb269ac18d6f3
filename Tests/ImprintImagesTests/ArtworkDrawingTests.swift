import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite struct ArtworkDrawingTests {
    /// A red rectangle of 60x40 that a blue, half transparent disc overlaps, in a view box of 100x60.
    private static let shapes = """
        <rect x="10" y="10" width="60" height="40" fill="#c02020"/>\
        <circle cx="70" cy="30" r="20" fill="#2040c0" fill-opacity="0.5"/>
        """

    private func withDrawing<Result>(_ text: String, _ body: (URL) throws -> Result) throws -> Result {
        try withDrawing(Data(text.utf8), body)
    }

    private func withDrawing<Result>(_ data: Data, _ body: (URL) throws -> Result) throws -> Result {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "leaf.svg")
            try data.write(to: file)
            return try body(file)
        }
    }

    /// A red rectangle.
    private static let rectangle =
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 40 40'><rect x='4' y='4' width='30' height='20' fill='#c02020'/></svg>"
    /// `rectangle` as gzip data.
    private static let compressedRectangle =
        "H4sIAAAAAAACAx2MwQrDMAxDf8Wwg261SXsaSQ77lS5LAtk6WlO3f790SIiHEPLbnul4t88WUFS/d2YzG2wcljWzExHuC9Bekz2WI0BIaLqM6Nc0K/VuAp3/tPrUEjAKqKSa"
        + "iwa4zq/aWsBtFtcFjv76jD8/MvKbewAAAA=="

    /// Returns a red rectangle in an encoding, or compressed.
    private func rectangle(_ encoding: String.Encoding?) throws -> Data {
        guard let encoding else { return try #require(Data(base64Encoded: Self.compressedRectangle)) }
        // UTF-16 without a byte order mark needs the declaration.
        return try #require(("<?xml version='1.0' encoding='UTF-16'?>" + Self.rectangle).data(using: encoding))
    }

    /// Returns gzip data without its checksum: a text, and 258 times as many spaces as `count`.
    private func compressed(_ text: String, spaces count: Int) -> Data {
        var bytes: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3]
        var (byte, bitCount): (UInt8, Int) = (0, 0)
        /// Appends a Huffman code, beginning with its highest bit.
        func append(_ code: Int, _ length: Int) {
            for bit in (0..<length).reversed() {
                byte |= UInt8(code >> bit & 1) << UInt8(bitCount)
                bitCount += 1
                if bitCount == 8 {
                    bytes.append(byte)
                    (byte, bitCount) = (0, 0)
                }
            }
        }
        // The last block, with fixed codes (RFC 1951, 3.2.6).
        append(0b110, 3)
        for character in "\(text) ".utf8 { append(0x30 + Int(character), 8) }
        // The longest match at a distance of 1.
        for _ in 0..<count { append(0b1100_0101_00000, 13) }
        append(0, 14)
        return Data(bytes)
    }

    @Test(
        "A drawing is recognized by its content",
        arguments: [
            ("<svg xmlns=\"http://www.w3.org/2000/svg\"/>", true),
            ("\u{FEFF}<?xml version=\"1.0\"?>\n<!-- A comment. -->\n<svg>", true),
            ("<svg:svg xmlns:svg=\"http://www.w3.org/2000/svg\"/>", true),
            ("<!DOCTYPE html><html><svg></svg></html>", false), ("the element <svg> of XML", false),
            ("<svgs/>", false), ("", false), ("<svg", true),
            ("<!-- <svg> --><html/>", false), ("<!-- <html> --><svg/>", true), ("<!-- <svg/>", false),
            ("<!DOCTYPE svg [\n<!-- it's > -->\n<!ENTITY a \"]>\">\n]>\n<svg/>", true), ("<?php echo '<svg>'", false),
        ])
    func content(text: String, isDrawing: Bool) throws {
        try withDrawing(text) { #expect((FileKind(contentsOf: $0) == .drawing) == isDrawing) }
    }

    @Test(
        "A drawing in UTF-16 and a compressed drawing are recognized",
        arguments: [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, nil])
    func encodings(encoding: String.Encoding?) throws {
        try withDrawing(rectangle(encoding)) { #expect(FileKind(contentsOf: $0) == .drawing) }
        #expect(try FileKind(Array(rectangle(encoding))) == .drawing)
    }

    @Test(
        "A drawing in UTF-16 and a compressed drawing give the same artwork as a drawing in UTF-8",
        .enabled(if: SVG.isAvailable, "librsvg is not installed"),
        arguments: [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, nil])
    func encodedArtwork(encoding: String.Encoding?) throws {
        let expected = try withDrawing(Self.rectangle) { try Artwork(contentsOf: $0) }
        let artwork = try withDrawing(rectangle(encoding)) { try Artwork(contentsOf: $0) }
        #expect(artwork.digest == expected.digest)
    }

    @Test("A drawing in UTF-16 and a compressed drawing may start with a comment") func encodedComment() throws {
        let text = "<!-- \(String(repeating: "drawn ", count: 100)) --><svg xmlns='http://www.w3.org/2000/svg'/>"
        for data in [compressed(text, spaces: 1), try #require(text.data(using: .utf16))] {
            try #require(data.count > FileKind.prefixLength)
            try withDrawing(data) { #expect(FileKind(contentsOf: $0) == .drawing) }
            #expect(FileKind(Array(data)) == .drawing)
        }
    }

    @Test(
        "The first tag may cross the byte up to which most drawings are read", arguments: 0..<6,
        ["<!-- -->", "<!DOCTYPE >", "<?xml ?>"])
    func crossingTag(offset: Int, prolog: String) throws {
        let spaces = String(repeating: " ", count: 1 + (1 << 16) - offset - prolog.count)
        let text = prolog.replacing(" ", with: spaces) + "<svg/>"
        try withDrawing(text) { #expect(FileKind(contentsOf: $0) == .drawing) }
        #expect(FileKind(Array(text.utf8)) == .drawing)
    }

    @Test("A long comment may come first", arguments: [1000, 6000, 100_000]) func longComment(count: Int) throws {
        let comment = "<!-- \(String(repeating: "made by hand ", count: count)) -->"
        try withDrawing("\(comment)<svg/>") { #expect(FileKind(contentsOf: $0) == .drawing) }
    }

    @Test(
        "A drawing of any size becomes artwork with its proportions and colours",
        .enabled(if: SVG.isAvailable, "librsvg is not installed"),
        arguments: [
            "viewBox='0 0 100 60'", "viewBox='-20 -20 140 100'", "width='100' height='60'",
            "width='10' height='6' viewBox='0 0 100 60'", "width='100%' height='100%' viewBox='0 0 100 60'", "",
        ])
    func drawing(size: String) throws {
        let image = try render(size, Self.shapes)
        func pixel(_ x: Int, _ y: Int) -> [UInt8] {
            Array(image.samples[(4 * (y * image.width + x))...].prefix(4))
        }
        #expect(pixel(20, 64) == [0xC0, 0x20, 0x20, 255])
        // Colours are not multiplied by alpha.
        let half = pixel(220, 64)
        #expect(zip(half, [0x20, 0x40, 0xC0, 128]).allSatisfy { abs(Int($0) - $1) <= 2 }, "\(half)")
        #expect(pixel(255, 0)[3] == 0)
    }

    @Test(
        "A drawing without a size may have negative coordinates",
        .enabled(if: SVG.isAvailable, "librsvg is not installed"), arguments: [-500, -45, 500])
    func coordinates(offset: Int) throws {
        let image = try render("", "<g transform='translate(\(offset) \(offset))'>\(Self.shapes)</g>")
        // The rectangle is on the left, and the upper right corner is outside of the disc.
        let pixel = Array(image.samples[(4 * (64 * image.width + 20))...].prefix(4))
        #expect(pixel == [0xC0, 0x20, 0x20, 255])
        #expect(image.samples[4 * (image.width - 1) + 3] == 0)
    }

    /// Returns the artwork of a drawing whose visible part is 80 units wide and 40 high.
    private func render(_ size: String, _ shapes: String) throws -> RasterImage {
        let text = "<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg' \(size)>\(shapes)</svg>"
        let artwork = try withDrawing(text) { try Artwork(contentsOf: $0) }
        let image = try #require(artwork.cutOut)
        try #require(image.width == 256 && abs(image.height - 128) <= 1 && image.channels == 4)
        #expect(artwork.notes.isEmpty)
        return image
    }

    @Test(
        "A damaged or empty drawing has a clear error", .enabled(if: SVG.isAvailable, "librsvg is not installed"),
        arguments: [
            (
                "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'><rect",
                "the SVG drawing is damaged: found an XML error in line 1, column "
            ),
            (
                "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'><image xlink:href='a.png'/></svg>",
                "(Namespace prefix xlink for href on image is not defined), expected XML with the element svg"
            ),
            (
                "<doc><svg xmlns='http://www.w3.org/2000/svg'/></doc>",
                "found text, expected XML with the element svg"
            ),
            (
                "<svg xmlns='http://www.w3.org/2000/svg'/>",
                "the SVG drawing has no visible content, because it is fully transparent or has only one colour"
            ),
            (
                "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 nan 9'><rect/></svg>",
                "the SVG drawing has no visible content, because it is fully transparent or has only one colour"
            ),
            (
                "<svg xmlns='http://www.w3.org/2000/svg' width='1e-320' height='1e-320'/>",
                "the SVG drawing has no visible content, because it is fully transparent or has only one colour"
            ),
        ])
    func damaged(text: String, reason: String) throws {
        let error = try withDrawing(text) { file in
            #expect(throws: ArtworkError.self) { _ = try Artwork(contentsOf: file) }
        }
        let description = "\(try #require(error))"
        #expect(description.contains("leaf.svg") && description.contains(reason) && !description.contains("\n"))
        #expect(!description.contains("rror domain") && !description.contains("error code"), "\(description)")
        #expect(description.contains("PNG"))
    }

    @Test("A drawing of more than 16 MiB is refused") func large() throws {
        let spaces = String(repeating: " ", count: 1 << 24)
        let error = try withDrawing("<svg xmlns='http://www.w3.org/2000/svg'>\(spaces)</svg>") { file in
            #expect(throws: ArtworkError.self) { _ = try Artwork(contentsOf: file) }
        }
        #expect("\(try #require(error))".contains("bytes, expected at most 16777216"))
    }

    @Test("A compressed drawing of more than 16 MiB after decompression is refused") func largeCompressed() throws {
        let data = compressed("<svg xmlns='http://www.w3.org/2000/svg'>", spaces: 65_100)
        #expect(data.count < 110_000)
        let error = try withDrawing(data) { file in
            #expect(throws: ArtworkError.self) { _ = try Artwork(contentsOf: file) }
        }
        #expect(
            "\(try #require(error))".contains("after decompression, it has more than the maximum of 16777216 bytes"))
    }

    @Test("A compressed drawing that is cut short is refused") func damagedCompressed() throws {
        try withDrawing(compressed("<svg xmlns='http://www.w3.org/2000/svg'/>", spaces: 1)) { file in
            let error = ArtworkError.damagedDrawing(file: file, found: "gzip data that is damaged or cut short")
            #expect(throws: error) { _ = try Artwork(contentsOf: file) }
        }
    }

    @Test("A drawing does not read other files", .enabled(if: SVG.isAvailable, "librsvg is not installed"))
    func externalFiles() throws {
        try withTemporaryFolder { folder in
            let image = RasterImage(width: 8, height: 8, channels: 3, samples: Array(repeating: 9, count: 192))
            let other = folder.appending(path: "other.png")
            try ImageFile.write(image, to: other)
            let text = """
                <svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' viewBox='0 0 40 40'>\
                <image xlink:href='\(other.absoluteString)' x='0' y='0' width='20' height='20'/>\
                <image xlink:href='other.png' x='0' y='0' width='20' height='20'/></svg>
                """
            let file = folder.appending(path: "drawing.svg")
            try Data(text.utf8).write(to: file)
            #expect(throws: ArtworkError.emptyDrawing(file: file)) { _ = try Artwork(contentsOf: file) }
        }
    }

    @Test("Without librsvg, a drawing is an error that says what to install", .enabled(if: !SVG.isAvailable))
    func unavailable() throws {
        try withDrawing("<svg xmlns='http://www.w3.org/2000/svg'/>") { file in
            #expect(throws: ArtworkError.unsupportedDrawing(file: file)) { _ = try Artwork(contentsOf: file) }
            #expect("\(ArtworkError.unsupportedDrawing(file: file))".contains("librsvg2-2"))
        }
    }
}
