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

    /// Renders a drawing with transparency.
    /// - Parameter longerSide: The length of the longer side, in pixels.
    /// - Returns: The image with 4 channels, not premultiplied; nil without librsvg, or if the build leaves it out.
    /// - Throws: `ImageError` if the file cannot be read, or is damaged.
    package static func render(_ file: URL, longerSide: Int) throws(ImageError) -> RasterImage? {
        #if SVG
            let bytes = try ImageFile.read(file)
            var image = imprint_svg_image()
            var message = [CChar](repeating: 0, count: 128)
            let status = imprint_render_svg(bytes, bytes.count, UInt32(longerSide), &image, &message)
            if status == IMPRINT_SVG_MISSING_LIBRARY { return nil }
            guard status == IMPRINT_SVG_RENDERED, let samples = image.samples else {
                let words = String(cString: message).split(whereSeparator: \.isWhitespace)
                throw .truncated(file: file, reason: "librsvg: \(words.joined(separator: " "))")
            }
            defer { free(samples) }
            let (width, height) = (Int(image.width), Int(image.height))
            return RasterImage(
                width: width, height: height, channels: 4,
                samples: Array(UnsafeBufferPointer(start: samples, count: width * height * 4)))
        #else
            return nil
        #endif
    }
}
