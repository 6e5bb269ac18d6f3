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
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "leaf.svg")
            try Data(text.utf8).write(to: file)
            return try body(file)
        }
    }

    @Test(
        "A drawing is recognized by its content",
        arguments: [
            ("<svg xmlns=\"http://www.w3.org/2000/svg\"/>", true),
            ("\u{FEFF}<?xml version=\"1.0\"?>\n<!-- A comment. -->\n<svg>", true),
            ("<svg:svg xmlns:svg=\"http://www.w3.org/2000/svg\"/>", true),
            ("<!DOCTYPE html><html><svg></svg></html>", false), ("the element <svg> of XML", false),
            ("<svgs/>", false), ("", false),
        ])
    func content(text: String, isDrawing: Bool) throws {
        try withDrawing(text) { #expect(SVG.isDrawing($0) == isDrawing) }
    }

    @Test("A long comment may come first") func longComment() throws {
        let comment = "<!-- \(String(repeating: "made by hand ", count: 1000)) -->"
        try withDrawing("\(comment)<svg/>") { #expect(SVG.isDrawing($0)) }
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
                "the SVG drawing is damaged: found an error (librsvg: XML parse error"
            ),
            (
                "<svg xmlns='http://www.w3.org/2000/svg'/>",
                "found an SVG drawing that is fully transparent or has only one colour"
            ),
            (
                "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 nan 9'><rect/></svg>",
                "found an SVG drawing that is fully transparent or has only one colour"
            ),
            (
                "<svg xmlns='http://www.w3.org/2000/svg' width='1e-320' height='1e-320'/>",
                "found an SVG drawing that is fully transparent or has only one colour"
            ),
        ])
    func damaged(text: String, reason: String) throws {
        let error = try withDrawing(text) { file in
            #expect(throws: ArtworkError.self) { _ = try Artwork(contentsOf: file) }
        }
        let description = "\(try #require(error))"
        #expect(description.contains("leaf.svg") && description.contains(reason) && !description.contains("\n"))
        #expect(description.contains("PNG"))
    }

    @Test("A drawing of more than 16 MiB is refused") func large() throws {
        let spaces = String(repeating: " ", count: 1 << 24)
        let error = try withDrawing("<svg xmlns='http://www.w3.org/2000/svg'>\(spaces)</svg>") { file in
            #expect(throws: ArtworkError.self) { _ = try Artwork(contentsOf: file) }
        }
        #expect("\(try #require(error))".contains("bytes, expected at most 16777216"))
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
            #expect(throws: ArtworkError.empty(file: file)) { _ = try Artwork(contentsOf: file) }
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
