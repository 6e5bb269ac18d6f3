internal import CPNG
package import Foundation

/// A contact sheet: many images in one, to review a data set.
package enum ContactSheet {
    /// Arranges `images` in rows of `columns`, in cells of the size of the largest image, 4 pixels apart on mid grey.
    ///
    /// - Parameters:
    ///   - images: At least one image; transparent images are shown on white.
    ///   - columns: At least 1.
    ///   - gapAfterFirstColumn: The additional gap after the first column, in pixels.
    /// - Returns: An image of 3 channels.
    package static func make(_ images: [RasterImage], columns: Int, gapAfterFirstColumn: Int = 0) -> RasterImage {
        precondition(!images.isEmpty, "a contact sheet needs at least one image")
        precondition(columns >= 1, "a contact sheet has at least one column, not \(columns)")
        let gap = 4
        let cellWidth = (images.map(\.width).max() ?? 0) + gap
        let cellHeight = (images.map(\.height).max() ?? 0) + gap
        let rows = (images.count + columns - 1) / columns
        var sheet = RasterImage(
            width: min(columns, images.count) * cellWidth + gap + gapAfterFirstColumn, height: rows * cellHeight + gap,
            filledWith: 128)
        for (index, image) in images.enumerated() {
            let (row, column) = index.quotientAndRemainder(dividingBy: columns)
            let left = column * cellWidth + gap + (column > 0 ? gapAfterFirstColumn : 0)
            sheet.paste(image, left: left, top: row * cellHeight + gap)
        }
        return sheet
    }

    /// Encodes a sheet as PNG or JPEG, with a comment that `wrote(_:)` recognizes.
    ///
    /// - Parameters:
    ///   - sheet: The image from `make(_:columns:gapAfterFirstColumn:)`.
    ///   - url: The file to write it to, whose extension is `png`, `jpg` or `jpeg`.
    /// - Throws: `ImageError` for another extension, or an image that the format cannot hold.
    package static func encode(_ sheet: RasterImage, for url: URL) throws(ImageError) -> [UInt8] {
        let bytes = try ImageFile.encode(sheet, for: url)
        let (start, comment) = bytes.starts(with: pngSignature) ? (pngHeaderLength, pngComment) : (2, jpegComment)
        return bytes.prefix(start) + comment + bytes.dropFirst(start)
    }

    /// Whether the file at `url` is a contact sheet that `encode(_:for:)` made; false if it cannot be read.
    package static func wrote(_ url: URL) -> Bool {
        guard let file = try? FileHandle(forReadingFrom: url) else { return false }
        defer { try? file.close() }
        guard let data = try? file.read(upToCount: 128) else { return false }
        let head = [UInt8](data)
        return head.starts(with: pngSignature) && head.dropFirst(pngHeaderLength).starts(with: pngComment)
            || head.starts(with: [0xFF, 0xD8] + jpegComment)
    }

    private static let comment = Array("Imprint contact sheet".utf8)

    private static let pngSignature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// The signature and the chunk IHDR, which comes first.
    private static let pngHeaderLength = 8 + 4 + 4 + 13 + 4

    /// A tEXt chunk (PNG specification, third edition, 11.3.3.2): length, type, keyword, zero, text, CRC of all but the length.
    private static let pngComment: [UInt8] = {
        let content = Array("tEXtSoftware\0".utf8) + comment
        let checksum = UInt32(crc32(0, content, uInt(content.count)))
        return bigEndian(UInt32(content.count - 4)) + content + bigEndian(checksum)
    }()

    /// A COM segment (ITU-T T.81, B.2.4.5): marker, length with these two bytes, text.
    private static let jpegComment: [UInt8] = [0xFF, 0xFE, 0, UInt8(comment.count + 2)] + comment

    private static func bigEndian(_ value: UInt32) -> [UInt8] {
        stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }
    }
}

extension RasterImage {
    fileprivate mutating func paste(_ image: RasterImage, left: Int, top: Int) {
        for row in 0..<image.height {
            for column in 0..<image.width {
                let source = (row * image.width + column) * image.channels
                let target = ((top + row) * width + left + column) * channels
                let alpha = image.channels == 4 ? Int(image.samples[source + 3]) : 255
                for channel in 0..<3 {
                    let value = Int(image.samples[source + (image.channels == 1 ? 0 : channel)])
                    samples[target + channel] = UInt8((value * alpha + 255 * (255 - alpha) + 127) / 255)
                }
            }
        }
    }
}
