package import Foundation
internal import ImprintCore

/// Reads and writes image files; it detects the format from the content, never from the name.
///
/// `ImageFormat` lists the formats that it reads.
package enum ImageFile {
    /// Returns the media type of the content of an image file, such as image/jpeg; nil if it is not an image in a supported format.
    package static func mediaType(of data: Data) -> String? {
        guard case .image(let format) = FileKind([UInt8](data.prefix(FileKind.prefixLength))) else { return nil }
        return "image/\(format.rawValue.lowercased())"
    }

    /// Decodes the image file at `url`, upright and in sRGB.
    ///
    /// Colours that cannot be converted are treated as sRGB; `information(of:)` reports the reason.
    ///
    /// - Parameters:
    ///   - coveringShortSide: If given, the decoder may scale down a large JPEG, which is much faster, or any other image of
    ///     more than 24 million pixels, which saves memory. The short side of the result has at least this length if that of
    ///     the file has.
    ///   - keepsAlpha: Whether an image with transparency has 4 channels. Otherwise it is flattened on white.
    /// - Returns: The image with 3 channels, or 4 if it has transparency and `keepsAlpha` is true.
    /// - Throws: `ImageError` if the file cannot be read, is not an image, is of an unsupported kind, is cut short or damaged,
    ///   has more than `pixelLimit` pixels or `byteLimit` bytes, or needs more than half of the available memory.
    package static func decode(
        _ url: URL, coveringShortSide: Int? = nil, keepsAlpha: Bool = false
    ) throws(ImageError) -> RasterImage {
        let upright = try StoredImage(url, coveringShortSide: coveringShortSide).upright
        return keepsAlpha ? upright : upright.flattenedOnWhite()
    }

    /// The maximum number of pixels in an image file: 200 million.
    ///
    /// It is checked before memory is allocated, because a file of a few hundred bytes can claim billions of pixels.
    package static let pixelLimit = 200_000_000

    /// The maximum size of an image file in bytes (1 GiB), because the whole file is read into memory.
    package static let byteLimit = 1 << 30

    /// The maximum length of a side of a JPEG, in pixels.
    package static let jpegSideLimit = 65_500

    /// Encodes an image as a JPEG of the given quality (1…100); transparency is flattened on white.
    ///
    /// Colour has full resolution (4:4:4).
    /// - Throws: `ImageError` if a side is longer than `jpegSideLimit`.
    package static func encodeJPEG(_ image: RasterImage, quality: Int = 90) throws(ImageError) -> [UInt8] {
        try JPEG.encode(image.flattenedOnWhite(), quality: quality)
    }

    /// Encodes an image as a lossless PNG.
    /// - Throws: `ImageError` if memory runs out.
    package static func encodePNG(_ image: RasterImage) throws(ImageError) -> [UInt8] { try PNG.encode(image) }

    /// Writes an image to `url` in the format of its extension: `jpg` or `jpeg` (of the given quality), or `png`.
    ///
    /// The write is atomic.
    /// - Parameters:
    ///   - image: The image; a JPEG does not keep its transparency.
    ///   - url: The file, which is replaced if it exists.
    ///   - quality: The quality of a JPEG, 1…100.
    /// - Throws: `ImageError` for another extension, a side that is too long for a JPEG, or if writing fails.
    package static func write(_ image: RasterImage, to url: URL, quality: Int = 90) throws(ImageError) {
        let bytes = try encode(image, for: url, quality: quality)
        do {
            try Data(bytes).write(to: url, options: .atomic)
        } catch {
            throw .unwritable(file: url, reason: reason(of: error))
        }
    }

    /// Encodes an image in the format of the extension of `url`.
    /// - Throws: `ImageError` for another extension.
    static func encode(_ image: RasterImage, for url: URL, quality: Int = 90) throws(ImageError) -> [UInt8] {
        switch url.pathExtension.lowercased() {
        case "jpg", "jpeg": try encodeJPEG(image, quality: quality)
        case "png": try encodePNG(image)
        default:
            throw .unencodable(
                format: url.lastPathComponent, reason: "the file extension must be .jpg, .jpeg or .png")
        }
    }

    /// Returns the minimum short side to decode, for an image that is then scaled down to cover `side` pixels.
    ///
    /// An image decoded at little more than its final size would be filtered twice and become blurred. At 1.5 times the final
    /// size or more, the result agrees with that of the whole image to 34 dB or better.
    package static func shortSideToDecode(covering side: Int) -> Int { side * 3 / 2 }

    static func read(_ url: URL, byteLimit: Int = byteLimit) throws(ImageError) -> [UInt8] {
        // Reading a device or a pipe may never end, and a file that is not an image may have any size.
        guard let status = FileStatus(url) else {
            throw .unreadable(file: url, reason: "the file does not exist, or you may not read its folder")
        }
        if let kind = status.specialKind {
            throw .unreadable(file: url, reason: "it is \(kind), expected a regular file")
        }
        guard status.size <= byteLimit else {
            throw .unreadable(file: url, reason: "it has \(status.size) bytes, expected at most \(byteLimit)")
        }
        guard SystemMemory.allows(status.size) else {
            throw .outOfMemory(file: url, reason: "the file has \(SystemMemory.text(status.size))")
        }
        guard let stream = fopen(url.displayPath, "rb") else {
            throw .unreadable(file: url, reason: errorText(errno))
        }
        defer { fclose(stream) }
        // Read without a copy: copying megabytes takes as long as scaling down a decoded photo.
        let bytes = [UInt8](unsafeUninitializedCapacity: status.size) { target, count in
            count = fread(target.baseAddress, 1, status.size, stream)
        }
        guard ferror(stream) == 0 else { throw .unreadable(file: url, reason: "the disk reports an error") }
        return bytes
    }
}

extension RasterImage {
    /// Checks that the image can be encoded as a JPEG.
    /// - Precondition: The quality is 1 to 100, and the image has no alpha channel.
    /// - Throws: `ImageError.unencodable` if a side is too long.
    func checkJPEG(quality: Int) throws(ImageError) {
        precondition((1...100).contains(quality), "the quality of a JPEG must be 1 to 100, not \(quality)")
        precondition(channels != 4, "a JPEG cannot have an alpha channel")
        guard max(width, height) <= ImageFile.jpegSideLimit else {
            throw .unencodable(
                format: "JPEG",
                reason: "it has \(width)x\(height) pixels, expected at most \(ImageFile.jpegSideLimit) per side")
        }
    }
}
