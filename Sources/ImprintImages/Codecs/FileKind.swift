package import Foundation
package import ImprintCore

/// The kind of a file, detected from its content.
package enum FileKind: Equatable, Sendable {
    case image(ImageFormat)
    /// An image in an unsupported format.
    case otherImage(UnsupportedImageFormat)
    /// An SVG drawing, which may be compressed.
    case drawing
    case model(ModelFormat)
    /// The checkpoint of a training run, a safetensors file.
    case checkpoint
    /// A personalization, a safetensors file.
    case personalization
    /// A cache of the features of photos, a safetensors file.
    case featureCache
    /// Text that may be a list or annotations.
    case text(TextFormat)
    case webPage
    case pdf
    /// A ZIP archive that does not start like a model.
    case zip
    /// Compressed data that is not a drawing.
    case gzip
    case tar
    /// A NumPy array (.npy).
    case numPy
    /// A Python pickle that does not start like a PyTorch checkpoint.
    case pickle
    /// A video or another media file.
    case media
    case program
    case unknown

    /// A format of text.
    package enum TextFormat: Sendable {
        case empty, whiteSpace, json, xml, plain
    }

    /// The number of bytes from the start of a file that the detection of images needs.
    static let prefixLength = 256

    /// Detects the kind of a file from its content.
    /// - Parameters:
    ///   - byteCount: The length of the file, in bytes.
    ///   - bytes: Returns the bytes from an offset, at most a given count.
    package init(byteCount: Int, _ bytes: (_ offset: Int, _ count: Int) -> [UInt8]) {
        let head = bytes(0, Self.prefixLength)[...]
        let text = Self.textKind(head)
        // Text, such as a list of paths, may start like the signature of a binary format.
        if text == nil, let kind = Self.binaryKind(head) {
            self = kind
        } else if Self.isPDF(head) {
            self = .pdf
        } else if SVG.isDrawing(byteCount: byteCount, { bytes(0, $0) }) {
            self = .drawing
        } else if SVG.isCompressed(head) {
            self = .gzip
        } else if text == nil, bytes(257, 5).elementsEqual("ustar".utf8) {
            self = .tar
        } else if let format = ModelFormat(protobuf: byteCount, bytes) {
            // Before text, because a model may start with a long name.
            self = .model(format)
        } else if text == nil, head.dropFirst(8).starts(with: "{\"".utf8) {
            // The header of a model file whose length is damaged.
            self = .model(.safetensors)
        } else {
            self = text ?? .unknown
        }
    }

    /// Detects the kind of a file in memory.
    /// - Parameter bytes: The content. The first `prefixLength` bytes are enough for images.
    package init(_ bytes: [UInt8]) {
        self.init(byteCount: bytes.count) { Array(bytes.dropFirst($0).prefix($1)) }
    }

    /// Detects the kind of a regular file, without reading all of it; nil if it cannot be read.
    package init?(contentsOf url: URL) {
        guard let file = try? RegularFile(url.displayPath) else { return nil }
        self.init(contentsOf: file)
    }

    /// Detects the kind of an open file, without reading all of it.
    package init(contentsOf file: RegularFile) {
        self.init(byteCount: file.byteCount) { offset, count in
            var bytes = [UInt8](repeating: 0, count: max(min(count, file.byteCount - offset), 0))
            guard (try? bytes.withUnsafeMutableBytes { try file.read(into: $0, at: offset) }) != nil else { return [] }
            return bytes
        }
    }

    /// Whether the file is a safetensors file.
    package var isSafetensors: Bool {
        [.model(.safetensors), .checkpoint, .personalization, .featureCache].contains(self)
    }

    /// Whether the file is an image, supported or not.
    package var isImage: Bool {
        switch self {
        case .image, .otherImage: true
        default: false
        }
    }

    /// The kind as a part of a sentence, such as "a JPEG image", "an ONNX model" or "text".
    package var name: String {
        switch self {
        case .image(let format): "a \(format.rawValue) image"
        case .otherImage(.avif): "an AVIF image"
        case .otherImage(let format): "a \(format.rawValue) image"
        case .drawing: "an SVG drawing"
        case .model(let format): format.name
        case .checkpoint: "the checkpoint of a training run"
        case .personalization: "a personalization"
        case .featureCache: "a feature cache"
        case .text(.empty): "an empty file"
        case .text(.whiteSpace): "only white space"
        case .text(.json): "JSON"
        case .text(.xml): "XML"
        case .text(.plain): "text"
        case .webPage: "a web page (HTML)"
        case .pdf: "a PDF"
        case .zip: "a ZIP archive"
        case .gzip: "a gzip archive"
        case .tar: "a tar archive"
        case .numPy: "a NumPy array"
        case .pickle: "a Python pickle (perhaps a PyTorch checkpoint)"
        case .media: "a video or another media file"
        case .program: "a program"
        case .unknown: "unknown data"
        }
    }
}

/// An image format that Imprint recognizes, but does not read; raw values are names.
package enum UnsupportedImageFormat: String, CaseIterable, Sendable {
    case avif = "AVIF"
    case gif = "GIF"
    case bmp = "BMP"
    case tiff = "TIFF"

    /// The usual extensions of file names, in lower case.
    package var fileExtensions: [String] {
        switch self {
        case .avif: ["avif"]
        case .gif: ["gif"]
        case .bmp: ["bmp"]
        case .tiff: ["tif", "tiff"]
        }
    }
}

extension FileKind {
    /// Returns the kind of a file that is not text, from its signature; nil for other files.
    private static func binaryKind(_ head: ArraySlice<UInt8>) -> FileKind? {
        func begins(_ text: String, at offset: Int = 0) -> Bool { head.dropFirst(offset).starts(with: text.utf8) }

        if head.starts(with: [0xFF, 0xD8, 0xFF]) { return .image(.jpeg) }
        if head.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return .image(.png) }
        if begins("RIFF"), begins("WEBP", at: 8) { return .image(.webp) }
        if begins("ftyp", at: 4) {
            // An ISO base media file; the brand that follows names its content.
            switch String(decoding: head.dropFirst(8).prefix(4), as: UTF8.self) {
            case "avif", "avis": return .otherImage(.avif)
            case "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1": return .image(.heic)
            default: return .media
            }
        }
        if begins("GIF8") { return .otherImage(.gif) }
        if begins("BM"), head.dropFirst(6).starts(with: [0, 0, 0, 0]) { return .otherImage(.bmp) }
        if begins("II*\0") || begins("MM\0*") { return .otherImage(.tiff) }
        if let kind = safetensorsKind(head) { return kind }
        if let format = ModelFormat(head) { return .model(format) }
        if begins("PK\u{3}\u{4}") { return .zip }
        if begins("\u{7F}ELF") { return .program }
        if head.starts(with: [0x93] + Array("NUMPY".utf8)) { return .numPy }
        // Protocols 2 to 5 start with their number. A damaged model file has its header at byte 8.
        if head.first == 0x80, let version = head.dropFirst().first, (2...5).contains(version), !begins("{", at: 8) {
            return .pickle
        }
        return nil
    }

    /// Returns the kind of a safetensors file of Imprint that is not a model, from its first metadata keys; nil for other files.
    private static func safetensorsKind(_ head: ArraySlice<UInt8>) -> FileKind? {
        let prefix = "{\"__metadata__\":{"
        guard head.dropFirst(8).starts(with: prefix.utf8) else { return nil }
        let members = String(decoding: head.dropFirst(8 + prefix.utf8.count), as: UTF8.self)
        // The keys are sorted, and quotes in values are escaped. Before these keys are only digests.
        if members.hasPrefix("\"imprint.checkpoint\":") { return .checkpoint }
        if members.hasPrefix("\"imprint.base\":"), members.contains("\",\"imprint.columns\":") {
            return .personalization
        }
        if members.hasPrefix("\"imprint.digest\":"), members.contains("\",\"imprint.features\":") {
            return .featureCache
        }
        return nil
    }

    /// Whether a file starts like a PDF, which may start with text: with a line that only has the version.
    private static func isPDF(_ head: ArraySlice<UInt8>) -> Bool {
        let (start, rest) = (head.prefix(8), head.dropFirst(8))
        guard start.count == 8, start.starts(with: "%PDF-".utf8) else { return false }
        return rest.first.map { $0 == 0x0A || $0 == 0x0D } ?? true
    }

    /// Returns the kind of text; nil if it is not text.
    private static func textKind(_ head: ArraySlice<UInt8>) -> FileKind? {
        if head.isEmpty { return .text(.empty) }
        // Text has no control characters except white space, and no bytes that are invalid in UTF-8.
        let whiteSpace: Set<UInt8> = [9, 10, 12, 13]
        guard head.allSatisfy({ ((0x20..<0xF8).contains($0) && $0 != 0x7F) || whiteSpace.contains($0) }) else {
            return nil
        }
        let text = String(decoding: head, as: UTF8.self).lowercased()
        if text.contains("<html") || text.contains("<!doctype html") { return .webPage }
        if text.hasPrefix("<?xml") { return .text(.xml) }
        let start = text.first { !$0.isWhitespace }
        if start == nil, head.count < prefixLength { return .text(.whiteSpace) }
        return .text(start == "{" || start == "[" ? .json : .plain)
    }
}
