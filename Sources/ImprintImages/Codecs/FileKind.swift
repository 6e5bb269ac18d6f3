internal import Foundation

/// The kind of a file, detected from the start of its content.
enum FileKind: Equatable {
    case image(ImageFormat)
    /// An image in an unsupported format, with the name of the format.
    case otherImage(String)
    /// Not an image; a description of the content, with an article.
    case notAnImage(String)

    /// The number of bytes from the start of a file that detection needs.
    static let prefixLength = 256

    init(_ bytes: [UInt8]) {
        let head = bytes.prefix(Self.prefixLength)
        func begins(_ text: String, at offset: Int = 0) -> Bool { head.dropFirst(offset).starts(with: text.utf8) }

        if head.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .image(.jpeg)
        } else if head.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .image(.png)
        } else if begins("RIFF"), begins("WEBP", at: 8) {
            self = .image(.webp)
        } else if begins("ftyp", at: 4) {
            // An ISO base media file; the brand that follows names its content.
            switch String(decoding: head.dropFirst(8).prefix(4), as: UTF8.self) {
            case "avif", "avis": self = .otherImage("AVIF")
            case "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1": self = .image(.heic)
            default: self = .notAnImage("a video or another media file")
            }
        } else if begins("GIF8") {
            self = .otherImage("GIF")
        } else if begins("BM"), head.dropFirst(6).starts(with: [0, 0, 0, 0]) {
            self = .otherImage("BMP")
        } else if begins("II*\0") || begins("MM\0*") {
            self = .otherImage("TIFF")
        } else {
            self = .notAnImage(Self.nameOfOther(head))
        }
    }

    /// Whether the file is an image, supported or not.
    var isImage: Bool {
        switch self {
        case .image, .otherImage: true
        case .notAnImage: false
        }
    }

    private static func nameOfOther(_ head: ArraySlice<UInt8>) -> String {
        if head.isEmpty { return "an empty file" }
        if head.starts(with: "%PDF".utf8) { return "a PDF" }
        if head.starts(with: "PK\u{3}\u{4}".utf8) { return "a ZIP archive" }
        // The length of the header and its first characters; model files and personalizations are such files.
        if head.dropFirst(4).starts(with: [0, 0, 0, 0] + Array("{\"".utf8)) { return "a model file (safetensors)" }
        if SVG.isDrawing(Array(head)) { return "an SVG drawing" }
        if SVG.isCompressed(head) { return "a gzip archive" }
        // Text has no control characters except white space, and no bytes that are invalid in UTF-8.
        let whiteSpace: Set<UInt8> = [9, 10, 12, 13]
        guard head.allSatisfy({ ((0x20..<0xF8).contains($0) && $0 != 0x7F) || whiteSpace.contains($0) }) else {
            return "unknown data"
        }
        let text = String(decoding: head, as: UTF8.self).lowercased()
        if text.contains("<html") || text.contains("<!doctype html") { return "a web page (HTML)" }
        if text.hasPrefix("<?xml") { return "XML" }
        let isBlank = head.count < Self.prefixLength && text.allSatisfy(\.isWhitespace)
        return isBlank ? "only white space" : "text"
    }
}
