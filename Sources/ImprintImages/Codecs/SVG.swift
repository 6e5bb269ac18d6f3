internal import CImprintCodecs
package import Foundation
internal import ImprintCore

/// Renders SVG drawings with librsvg, if it is installed and the build has the trait `SVG`.
package enum SVG {
    /// The number of bytes that usually contain the first element of a drawing; programs write comments before it.
    private static let prologLength = 1 << 16

    /// Returns whether a file is an SVG drawing: XML whose first element is `svg`, with any namespace prefix, maybe compressed.
    ///
    /// Reads up to `byteLimit` bytes if comments before the first element need them.
    /// - Parameters:
    ///   - byteCount: The length of the file.
    ///   - start: Returns the start of the file, at most a given number of bytes.
    static func isDrawing(byteCount: Int, _ start: (Int) -> [UInt8]) -> Bool {
        for length in [prologLength, byteLimit] {
            let bytes = start(length)
            var (content, isWhole) = (bytes, byteCount <= length)
            if isCompressed(bytes) {
                let inflated = InflatedData(bytes, limit: length)
                (content, isWhole) = (inflated.bytes, isWhole && inflated.end != .limit)
            }
            switch XMLProlog(Array(text(content).utf8), isWhole: isWhole) {
            case .element(let name): return name.split(separator: ":", maxSplits: 1).last == "svg"
            case .incomplete where !isWhole: continue
            case .incomplete, .other: return false
            }
        }
        return false
    }

    /// Whether bytes are the start of a gzip file, which usually has the extension `svgz`.
    static func isCompressed(_ bytes: some Sequence<UInt8>) -> Bool { bytes.starts(with: [0x1F, 0x8B]) }

    /// Returns the text of an XML file in UTF-8, or in UTF-16 with a byte order mark or an XML declaration.
    private static func text(_ bytes: [UInt8]) -> String {
        // Without a byte order mark, the first character is "<" (XML 1.0, appendix F).
        let isLittleEndian = bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0x3C, 0])
        let isBigEndian = bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0, 0x3C])
        guard isLittleEndian || isBigEndian else { return String(decoding: bytes, as: UTF8.self) }
        let units = stride(from: 0, to: bytes.count - 1, by: 2).map { index -> UInt16 in
            let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
            return isLittleEndian ? second << 8 | first : first << 8 | second
        }
        return String(decoding: units, as: UTF16.self)
    }

    /// The maximum size of a drawing in bytes (16 MiB), also after decompression, because librsvg needs many times as much memory.
    private static let byteLimit = 1 << 24

    /// Whether drawings can be rendered: librsvg is installed, and the build has the trait `SVG`.
    package static var isAvailable: Bool { imprint_can_render_svg() != 0 }

    /// Renders a drawing with transparency.
    /// - Parameter longerSide: The length of the longer side, in pixels.
    /// - Returns: The image with 4 channels, not premultiplied; nil if drawings cannot be rendered (`isAvailable`).
    /// - Throws: `ImageError` if the file cannot be read, is too large, or is damaged, if librsvg does not support it, or if memory runs out.
    package static func render(_ file: URL, longerSide: Int) throws(ImageError) -> RasterImage? {
        let bytes = try content(of: file)
        var image = imprint_svg_image()
        var message = [CChar](repeating: 0, count: 256)
        let status = imprint_render_svg(bytes, bytes.count, UInt32(longerSide), &image, &message)
        let reason = String(buffer: message).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        switch status {
        case IMPRINT_SVG_MISSING_LIBRARY: return nil
        case IMPRINT_SVG_OUT_OF_MEMORY: throw .outOfMemory(file: file, reason: "librsvg cannot render the drawing")
        default: break
        }
        guard let samples = image.samples else { throw error(reason, file) }
        defer { free(samples) }
        let (width, height) = (Int(image.width), Int(image.height))
        return RasterImage(
            width: width, height: height, channels: 4,
            samples: Array(UnsafeBufferPointer(start: samples, count: width * height * 4)))
    }

    /// Reads a drawing, and decompresses it.
    private static func content(of file: URL) throws(ImageError) -> [UInt8] {
        let bytes = try ImageFile.read(file, byteLimit: byteLimit)
        guard isCompressed(bytes) else { return bytes }
        // librsvg would decompress the drawing without a limit.
        let content = InflatedData(bytes, limit: byteLimit)
        switch content.end {
        case .complete: return content.bytes
        case .limit:
            throw .unreadable(
                file: file, reason: "after decompression, it has more than the maximum of \(byteLimit) bytes")
        case .damaged: throw .truncated(file: file, reason: "gzip data that is damaged or cut short")
        }
    }

    /// Returns the error for a message of librsvg, such as "XML parse error: Error domain 1 code 77 on line 3 column 5 of data: …".
    ///
    /// Apart from XML, librsvg reports limits that the drawing exceeds. It ignores unsupported elements and references to other files.
    private static func error(_ message: String, _ file: URL) -> ImageError {
        let kind = "XML parse error: "
        guard message.hasPrefix(kind) else {
            return .unsupported(file: file, found: "an SVG drawing that librsvg cannot render (\(message))")
        }
        let reason = message.dropFirst(kind.count)
        let positions = [
            #/Error domain \d+ code \d+ on line (\d+) column (\d+) of .*?: (.*)/#,
            #/error code=\d+ \(\d+\) in .*?:(\d+):(\d+): (.*)/#,
        ]
        for position in positions {
            guard let match = reason.wholeMatch(of: position) else { continue }
            let (_, line, column, text) = match.output
            return .truncated(file: file, reason: "an XML error in line \(line), column \(column) (\(text))")
        }
        return .truncated(file: file, reason: "an XML error (\(reason))")
    }
}
