package import Foundation

#if canImport(ImageIO)
    internal import zlib
#else
    internal import CPNG
#endif

/// A comment in a PNG or JPEG file, by which Imprint recognizes the images that it wrote.
package struct ImageSignature: Sendable {
    /// The signature of a contact sheet.
    package static let contactSheet = ImageSignature("Imprint contact sheet")
    /// The signature of the artwork of a logo without its background.
    package static let cutOut = ImageSignature("Imprint cut-out")

    private let comment: [UInt8]

    private init(_ comment: String) { self.comment = Array(comment.utf8) }

    /// Encodes an image as PNG or JPEG, with the signature.
    ///
    /// - Parameters:
    ///   - image: The image.
    ///   - url: The file to write it to, whose extension is `png`, `jpg` or `jpeg`.
    /// - Throws: `ImageError` for another extension, or an image that the format cannot hold.
    package func encode(_ image: RasterImage, for url: URL) throws(ImageError) -> [UInt8] {
        let bytes = try ImageFile.encode(image, for: url)
        let (start, segment) =
            bytes.starts(with: Self.pngSignature) ? (Self.pngHeaderLength, pngSegment) : (2, jpegSegment)
        return bytes.prefix(start) + segment + bytes.dropFirst(start)
    }

    /// Whether the file at `url` is an image that `encode(_:for:)` made; false if it cannot be read.
    package func isIn(_ url: URL) -> Bool {
        guard let head = firstBytes(128, of: url) else { return false }
        return head.starts(with: Self.pngSignature) && head.dropFirst(Self.pngHeaderLength).starts(with: pngSegment)
            || head.starts(with: [0xFF, 0xD8] + jpegSegment)
    }

    private static let pngSignature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// The signature and the chunk IHDR, which comes first.
    private static let pngHeaderLength = 8 + 4 + 4 + 13 + 4

    /// A tEXt chunk (PNG specification, third edition, 11.3.3.2): length, type, keyword, zero, text, CRC of all but the length.
    private var pngSegment: [UInt8] {
        let content = Array("tEXtSoftware\0".utf8) + comment
        let checksum = UInt32(crc32(0, content, uInt(content.count)))
        return Self.bigEndian(UInt32(content.count - 4)) + content + Self.bigEndian(checksum)
    }

    private var jpegSegment: [UInt8] { JPEGSegments.segment(JPEGSegments.commentMarker, comment) }

    private static func bigEndian(_ value: UInt32) -> [UInt8] {
        stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }
    }
}
