internal import CPNG
internal import Foundation

/// PNG in and out through libpng's simplified interface.
enum PNG {
    /// Decodes a PNG of any depth and colour type to 8-bit RGB, or RGBA where the file has transparency.
    static func decode(_ bytes: [UInt8], file: URL) throws(ImageError) -> Image {
        // libpng stops at the last row; without the end mark the file is cut short all the same.
        guard PNGChunks(bytes).contains(where: { $0.type == "IEND" }) else {
            throw .truncated(file: file, reason: "the PNG has no end")
        }
        var header = png_image()
        header.version = png_uint_32(PNG_IMAGE_VERSION)
        defer { png_image_free(&header) }
        guard png_image_begin_read_from_memory(&header, bytes, bytes.count) != 0 else {
            throw .truncated(file: file, reason: message(of: header))
        }
        let (width, height) = (Int(header.width), Int(header.height))
        try ImageFile.checkSize(width: width, height: height, file: file)
        let hasAlpha = header.format & png_uint_32(PNG_FORMAT_FLAG_ALPHA) != 0
        let channels = hasAlpha ? 4 : 3
        header.format = png_uint_32(PNG_FORMAT_FLAG_COLOR) | (hasAlpha ? png_uint_32(PNG_FORMAT_FLAG_ALPHA) : 0)
        // Without this, 16-bit samples that name no colour space would be taken for linear light.
        header.flags |= png_uint_32(PNG_IMAGE_FLAG_16BIT_sRGB)
        var isDecoded = false
        let samples = [UInt8](unsafeUninitializedCapacity: width * height * channels) { target, count in
            isDecoded = png_image_finish_read(&header, nil, target.baseAddress, 0, nil) != 0
            // A failed decode leaves memory unset, and none of it is looked at.
            count = isDecoded ? width * height * channels : 0
        }
        guard isDecoded else { throw .truncated(file: file, reason: message(of: header)) }
        return Image(width: width, height: height, channels: channels, samples: samples)
    }

    /// Encodes an image as an 8-bit PNG: grey, RGB or RGBA, as the image has channels.
    static func encode(_ image: Image) throws(ImageError) -> [UInt8] {
        var header = png_image()
        header.version = png_uint_32(PNG_IMAGE_VERSION)
        header.width = png_uint_32(image.width)
        header.height = png_uint_32(image.height)
        header.format =
            switch image.channels {
            case 1: 0
            case 3: png_uint_32(PNG_FORMAT_FLAG_COLOR)
            default: png_uint_32(PNG_FORMAT_FLAG_COLOR) | png_uint_32(PNG_FORMAT_FLAG_ALPHA)
            }
        defer { png_image_free(&header) }
        // One bound fits every PNG of this size: its raw rows with a filter byte each, zlib's and the chunks' overhead.
        let raw = image.samples.count + image.height
        var size = png_alloc_size_t(raw + raw / 500 + 4096)
        var isEncoded = false
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { target, count in
            isEncoded = png_image_write_to_memory(&header, target.baseAddress, &size, 0, image.samples, 0, nil) != 0
            count = isEncoded ? Int(size) : 0
        }
        guard isEncoded else { throw .unencodable(format: "PNG", reason: message(of: header)) }
        return bytes
    }

    private static func message(of header: png_image) -> String {
        withUnsafeBytes(of: header.message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

/// The chunks of a PNG, for what the decoder does not report.
struct PNGChunks: Sequence, IteratorProtocol {
    private let bytes: [UInt8]
    private var position = 8

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The next chunk; nil after the last one that is whole.
    mutating func next() -> (type: String, content: ArraySlice<UInt8>)? {
        let overhead = 12  // length, type, check sum
        guard bytes.count - position >= overhead else { return nil }
        let length = bytes[position..<(position + 4)].reduce(0) { $0 << 8 | Int($1) }
        guard length <= bytes.count - position - overhead else { return nil }
        defer { position += length + overhead }
        let content = position + 8
        return (String(decoding: bytes[(position + 4)..<content], as: UTF8.self), bytes[content..<(content + length)])
    }

    /// The orientation in the eXIf chunk; `.up` where there is none.
    var orientation: Orientation {
        guard let exif = first(where: { $0.type == "eXIf" })?.content else { return .up }
        // Some writers keep the prefix that EXIF has in a JPEG.
        let prefix = Array("Exif\0\0".utf8)
        return Orientation(exif: exif.starts(with: prefix) ? exif.dropFirst(prefix.count) : exif) ?? .up
    }
}
