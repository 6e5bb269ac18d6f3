package import Foundation
package import ImprintCore

/// The kind of a file, detected from its content.
package enum FileKind: Equatable, Sendable {
    case image(ImageFormat)
    /// An image in an unsupported format, with the name of the format.
    case otherImage(String)
    /// A model of another program.
    case model(ModelFormat)
    /// Text that may be a list or annotations: "text", "JSON", "XML", "only white space" or "an empty file".
    case text(String)
    /// Another known kind, with an article.
    case other(String)
    case unknown

    /// The number of bytes from the start of a file that the detection of images needs.
    static let prefixLength = 256

    /// Detects the kind of a file from its content.
    /// - Parameter bytes: The content. The first `prefixLength` bytes are enough for images; ONNX, Core ML and Caffe models and drawings
    ///   with long comments need all.
    package init(_ bytes: [UInt8]) {
        let head = bytes.prefix(Self.prefixLength)
        if let image = Self.imageKind(head) {
            self = image
        } else if let format = ModelFormat(head) {
            self = .model(format)
        } else if let name = Self.nameOfOther(head) {
            self = .other(name)
        } else if SVG.isDrawing(bytes) {
            self = .other("an SVG drawing")
        } else if SVG.isCompressed(head) {
            self = .other("a gzip archive")
        } else if let text = Self.textKind(head) {
            self = text
        } else {
            let format = ModelFormat(protobuf: bytes.count) { Array(bytes[$0...].prefix($1)) }
            self = format.map { .model($0) } ?? .unknown
        }
    }

    /// Detects the kind of a regular file, without reading all of it; nil if it cannot be read.
    package init?(contentsOf url: URL) {
        guard let file = try? RegularFile(url.displayPath) else { return nil }
        self.init(contentsOf: file)
    }

    /// Detects the kind of an open file, without reading all of it.
    package init(contentsOf file: RegularFile) {
        func bytes(_ offset: Int, _ count: Int) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: max(min(count, file.byteCount - offset), 0))
            guard (try? bytes.withUnsafeMutableBytes { try file.read(into: $0, at: offset) }) != nil else { return [] }
            return bytes
        }
        self.init(bytes(0, Self.prefixLength))
        switch self {
        case .text where SVG.isDrawing(URL(filePath: file.path)): self = .other("an SVG drawing")
        case .unknown: if let format = ModelFormat(protobuf: file.byteCount, bytes) { self = .model(format) }
        default: break
        }
    }

    /// Whether the file is an image, supported or not.
    package var isImage: Bool {
        switch self {
        case .image, .otherImage: true
        case .model, .text, .other, .unknown: false
        }
    }

    /// The kind as a part of a sentence, such as "a JPEG image", "an ONNX model" or "text".
    package var name: String {
        switch self {
        case .image(let format): "a \(format.rawValue) image"
        case .otherImage(let format): "\(format == "AVIF" ? "an" : "a") \(format) image"
        case .model(let format): format.rawValue
        case .text(let name), .other(let name): name
        case .unknown: "unknown data"
        }
    }
}

extension FileKind {
    /// Returns the kind of an image or another media file; nil for other files.
    private static func imageKind(_ head: ArraySlice<UInt8>) -> FileKind? {
        func begins(_ text: String, at offset: Int = 0) -> Bool { head.dropFirst(offset).starts(with: text.utf8) }

        if head.starts(with: [0xFF, 0xD8, 0xFF]) { return .image(.jpeg) }
        if head.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return .image(.png) }
        if begins("RIFF"), begins("WEBP", at: 8) { return .image(.webp) }
        if begins("ftyp", at: 4) {
            // An ISO base media file; the brand that follows names its content.
            switch String(decoding: head.dropFirst(8).prefix(4), as: UTF8.self) {
            case "avif", "avis": return .otherImage("AVIF")
            case "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1": return .image(.heic)
            default: return .other("a video or another media file")
            }
        }
        if begins("GIF8") { return .otherImage("GIF") }
        if begins("BM"), head.dropFirst(6).starts(with: [0, 0, 0, 0]) { return .otherImage("BMP") }
        if begins("II*\0") || begins("MM\0*") { return .otherImage("TIFF") }
        return nil
    }

    private static func nameOfOther(_ head: ArraySlice<UInt8>) -> String? {
        if head.starts(with: "%PDF".utf8) { return "a PDF" }
        if head.starts(with: "PK\u{3}\u{4}".utf8) { return "a ZIP archive" }
        if head.starts(with: [0x7F] + Array("ELF".utf8)) { return "a program" }
        // The length of the header and its first characters; model files and personalizations are such files.
        if head.dropFirst(4).starts(with: [0, 0, 0, 0] + Array("{\"".utf8)) { return "a model file (safetensors)" }
        return nil
    }

    /// Returns the kind of text; nil if it is not text.
    private static func textKind(_ head: ArraySlice<UInt8>) -> FileKind? {
        if head.isEmpty { return .text("an empty file") }
        // Text has no control characters except white space, and no bytes that are invalid in UTF-8.
        let whiteSpace: Set<UInt8> = [9, 10, 12, 13]
        guard head.allSatisfy({ ((0x20..<0xF8).contains($0) && $0 != 0x7F) || whiteSpace.contains($0) }) else {
            return nil
        }
        let text = String(decoding: head, as: UTF8.self).lowercased()
        if text.contains("<html") || text.contains("<!doctype html") { return .other("a web page (HTML)") }
        if text.hasPrefix("<?xml") { return .text("XML") }
        let start = text.first { !$0.isWhitespace }
        if start == nil, head.count < prefixLength { return .text("only white space") }
        return .text(start == "{" || start == "[" ? "JSON" : "text")
    }
}
