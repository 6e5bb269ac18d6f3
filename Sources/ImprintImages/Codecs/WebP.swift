internal import CWebP
internal import Foundation

/// WebP in, through libwebp.
enum WebP {
    static func header(_ bytes: [UInt8], file: URL) throws(ImageError) -> ImageHeader {
        let chunks = WebPChunks(bytes)
        guard chunks.isWhole else { throw .truncated(file: file, reason: "the WebP ends before its last byte") }
        let features = try features(of: bytes[...], file: file)
        var header = ImageHeader(format: .webp, width: Int(features.width), height: Int(features.height))
        header.hasAlpha = features.has_alpha != 0
        header.isAnimated = features.has_animation != 0
        header.orientation = chunks.first("EXIF").flatMap { Orientation(exif: $0) } ?? .up
        header.colors = chunks.first("ICCP").map { .profile(Array($0)) }
        return header
    }

    /// Decodes to RGB, or RGBA where the file has alpha or the first frame of an animation leaves a part of it open.
    static func decode(_ bytes: [UInt8], _ header: ImageHeader, file: URL) throws(ImageError) -> Image {
        guard header.isAnimated else {
            let channels = header.hasAlpha ? 4 : 3
            var image = Image(width: header.width, height: header.height, channels: channels)
            try decode(bytes[...], into: &image, x: 0, y: 0, file: file)
            return image
        }
        // A frame: its place, halved, its size and its duration in 3 bytes each, a byte of flags, then its picture.
        let overhead = 16
        guard let frame = WebPChunks(bytes).first("ANMF"), frame.count > overhead else {
            throw .truncated(file: file, reason: "the WebP has no frame")
        }
        let (x, y) = (2 * frame.littleEndian(at: 0, bytes: 3), 2 * frame.littleEndian(at: 3, bytes: 3))
        let picture = frame.dropFirst(overhead)
        let features = try features(of: picture, file: file)
        let (width, height) = (Int(features.width), Int(features.height))
        guard x + width <= header.width, y + height <= header.height else {
            throw .truncated(file: file, reason: "the first frame lies outside of the picture")
        }
        let isOpaque = features.has_alpha == 0 && (width, height) == (header.width, header.height)
        var image = Image(width: header.width, height: header.height, channels: isOpaque ? 3 : 4)
        try decode(picture, into: &image, x: x, y: y, file: file)
        return image
    }

    private static func decode(
        _ bytes: ArraySlice<UInt8>, into image: inout Image, x: Int, y: Int, file: URL
    ) throws(ImageError) {
        let stride = image.width * image.channels
        let start = y * stride + x * image.channels
        let isDecoded = bytes.withUnsafeBufferPointer { source in
            image.samples.withUnsafeMutableBufferPointer { target in
                let decode = image.channels == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto
                let room = UnsafeMutableBufferPointer(rebasing: target[start...])
                return decode(source.baseAddress, source.count, room.baseAddress, room.count, Int32(stride)) != nil
            }
        }
        guard isDecoded else { throw .truncated(file: file, reason: "the WebP decoder finds its data damaged") }
    }

    private static func features(
        of bytes: ArraySlice<UInt8>, file: URL
    ) throws(ImageError) -> WebPBitstreamFeatures {
        var features = WebPBitstreamFeatures()
        let status = bytes.withUnsafeBufferPointer { WebPGetFeatures($0.baseAddress, $0.count, &features) }
        guard status == VP8_STATUS_OK else {
            throw .truncated(file: file, reason: "the WebP decoder finds the header damaged")
        }
        return features
    }
}

/// The chunks of a WebP's RIFF container, for what the decoder does not report.
struct WebPChunks: Sequence, IteratorProtocol {
    private let bytes: ArraySlice<UInt8>
    private var position = 12  // past "RIFF", the size, "WEBP"

    /// Whether the file holds as many bytes as it says.
    let isWhole: Bool

    init(_ bytes: [UInt8]) {
        let end = bytes.count < 12 ? Int.max : 8 + bytes[...].littleEndian(at: 4, bytes: 4)
        isWhole = end <= bytes.count
        // Bytes past the end are no part of the image.
        self.bytes = bytes.prefix(end)
    }

    /// The next chunk; nil after the last one that is whole.
    mutating func next() -> (type: String, content: ArraySlice<UInt8>)? {
        let overhead = 8  // type, length
        guard position + overhead <= bytes.count else { return nil }
        let content = position + overhead
        let length = bytes.littleEndian(at: position + 4, bytes: 4)
        guard length <= bytes.count - content else { return nil }
        defer { position = content + length + length % 2 }
        return (String(decoding: bytes[position..<(position + 4)], as: UTF8.self), bytes[content..<(content + length)])
    }

    func first(_ type: String) -> ArraySlice<UInt8>? { first { $0.type == type }?.content }
}

extension ArraySlice<UInt8> {
    /// A whole number whose lowest byte comes first, `offset` bytes into the slice, which must hold it.
    fileprivate func littleEndian(at offset: Int, bytes: Int) -> Int {
        dropFirst(offset).prefix(bytes).reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
