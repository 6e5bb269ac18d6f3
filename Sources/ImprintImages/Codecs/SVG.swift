internal import CImprintCodecs
package import Foundation
internal import ImprintCore

/// Renders SVG drawings with librsvg, if it is installed and the build has the trait `SVG`.
package enum SVG {
    /// The number of bytes in which the first element of a drawing starts; programs write comments before it.
    private static let prologLimit = 1 << 16

    /// Returns whether the content of a file is an SVG drawing.
    package static func isDrawing(_ file: URL) -> Bool {
        guard let stream = FileStatus(file).flatMap({ $0.isFile ? fopen(file.displayPath, "rb") : nil }) else {
            return false
        }
        defer { fclose(stream) }
        let bytes = [UInt8](unsafeUninitializedCapacity: prologLimit) { target, count in
            count = fread(target.baseAddress, 1, prologLimit, stream)
        }
        return isDrawing(bytes)
    }

    /// Returns whether bytes are the start of an SVG drawing: XML with the element `svg`, with any namespace prefix.
    static func isDrawing(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes.prefix(prologLimit), as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines.union(CharacterSet(charactersIn: "\u{FEFF}")))
        let element = #"<([A-Za-z]\w*:)?svg[\s/>]"#
        guard text.hasPrefix("<"), let start = text.range(of: element, options: .regularExpression) else {
            return false
        }
        // HTML may contain drawings.
        let prolog = text[..<start.lowerBound].lowercased()
        return !prolog.contains("<html") && !prolog.contains("<!doctype html")
    }

    /// The maximum size of a drawing in bytes (16 MiB), because librsvg needs many times as much memory.
    private static let byteLimit = 1 << 24

    /// Whether drawings can be rendered: librsvg is installed, and the build has the trait `SVG`.
    package static var isAvailable: Bool { imprint_can_render_svg() != 0 }

    /// Renders a drawing with transparency.
    /// - Parameter longerSide: The length of the longer side, in pixels.
    /// - Returns: The image with 4 channels, not premultiplied; nil if drawings cannot be rendered (`isAvailable`).
    /// - Throws: `ImageError` if the file cannot be read, is too large, or is damaged, or if memory runs out.
    package static func render(_ file: URL, longerSide: Int) throws(ImageError) -> RasterImage? {
        let bytes = try ImageFile.read(file, byteLimit: byteLimit)
        var image = imprint_svg_image()
        var message = [CChar](repeating: 0, count: 128)
        let status = imprint_render_svg(bytes, bytes.count, UInt32(longerSide), &image, &message)
        let reason = message.withUnsafeBufferPointer { message in
            message.baseAddress.map { String(cString: $0).split(whereSeparator: \.isWhitespace) } ?? []
        }.joined(separator: " ")
        switch status {
        case IMPRINT_SVG_MISSING_LIBRARY: return nil
        case IMPRINT_SVG_OUT_OF_MEMORY: throw .outOfMemory(file: file, reason: "librsvg cannot render the drawing")
        default: break
        }
        guard let samples = image.samples else { throw .truncated(file: file, reason: "librsvg: \(reason)") }
        defer { free(samples) }
        let (width, height) = (Int(image.width), Int(image.height))
        return RasterImage(
            width: width, height: height, channels: 4,
            samples: Array(UnsafeBufferPointer(start: samples, count: width * height * 4)))
    }
}
