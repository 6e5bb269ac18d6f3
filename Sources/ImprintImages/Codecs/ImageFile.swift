public import Foundation
internal import ImprintCore

/// Image files in and out, told apart by their content and never by their name; `ImageFormat` lists what is read.
public enum ImageFile {
    /// Decodes the image file at `url`, upright and in sRGB.
    ///
    /// Colours that cannot be converted are taken for sRGB; `information(of:)` says why.
    ///
    /// - Parameters:
    ///   - coveringShortSide: If given, a large JPEG may be shrunk while it is decoded, which is much faster, and so is any other
    ///     picture of more than 24 million pixels, which saves memory. The short side of the result is at least this long, if that
    ///     of the file is.
    ///   - keepsAlpha: Whether an image with transparency gives 4 channels. Otherwise it is laid on white.
    /// - Returns: The image with 3 channels, or 4 if it has transparency and `keepsAlpha` is true.
    /// - Throws: `ImageError` if the file cannot be read, is no image, is of an unsupported kind, is cut short or
    ///   damaged anywhere, has more than `pixelLimit` pixels or `byteLimit` bytes, or needs more memory than half of what is available.
    public static func decode(
        _ url: URL, coveringShortSide: Int? = nil, keepsAlpha: Bool = false
    ) throws(ImageError) -> RasterImage {
        let upright = try StoredPicture(url, coveringShortSide: coveringShortSide).upright
        return keepsAlpha ? upright : upright.laidOnWhite()
    }

    /// The most pixels that an image file may have: 200 million.
    ///
    /// It is checked before memory is taken: a file of some hundred bytes can claim billions of pixels.
    public static let pixelLimit = 200_000_000

    /// The most bytes that an image file may have: 1 GiB; it is read into memory as a whole.
    public static let byteLimit = 1 << 30

    /// Encodes an image as a JPEG of the given quality (1…100); transparency is laid on white.
    ///
    /// Colour is kept at full resolution (4:4:4). Throws `ImageError` where a side is longer than 65,500 pixels.
    public static func encodeJPEG(_ image: RasterImage, quality: Int = 90) throws(ImageError) -> [UInt8] {
        try JPEG.encode(image.laidOnWhite(), quality: quality)
    }

    /// Encodes an image as a PNG, which keeps every sample; throws `ImageError` where memory runs out.
    public static func encodePNG(_ image: RasterImage) throws(ImageError) -> [UInt8] { try PNG.encode(image) }

    /// Writes an image to `url` as its extension says: `jpg` or `jpeg` (of the given quality), or `png`.
    ///
    /// The file appears whole or not at all. Throws `ImageError` for another extension or where writing fails.
    public static func write(_ image: RasterImage, to url: URL, quality: Int = 90) throws(ImageError) {
        let bytes = try encode(image, for: url, quality: quality)
        do {
            try Data(bytes).write(to: url, options: .atomic)
        } catch {
            throw .unwritable(file: url, reason: reason(of: error))
        }
    }

    /// Encodes an image in the format that the extension of `url` names; throws `ImageError` for another extension.
    static func encode(_ image: RasterImage, for url: URL, quality: Int = 90) throws(ImageError) -> [UInt8] {
        switch url.pathExtension.lowercased() {
        case "jpg", "jpeg": try encodeJPEG(image, quality: quality)
        case "png": try encodePNG(image)
        default:
            throw .unencodable(
                format: url.lastPathComponent, reason: "the name of an image file ends in .jpg, .jpeg or .png")
        }
    }

    /// The short side to decode at least, for a picture that is then scaled down to cover `side` pixels.
    ///
    /// Decoded to not much more than it will have, it would be scaled twice by nearly the same filter and come out blurred.
    /// From half as much again on, the outcome agrees with that of the whole picture to 34 dB or better.
    package static func shortSideToDecode(covering side: Int) -> Int { side * 3 / 2 }

    static func read(_ url: URL) throws(ImageError) -> [UInt8] {
        // A device or a pipe could be read for ever, and what is no image may be of any size.
        guard let status = FileStatus(url) else {
            throw .unreadable(file: url, reason: "there is no such file, or no permission to look into its folder")
        }
        guard !status.isFolder else { throw .unreadable(file: url, reason: "it is a folder") }
        guard status.isFile else { throw .unreadable(file: url, reason: "it is not a regular file") }
        guard status.size <= byteLimit else {
            throw .unreadable(file: url, reason: "it holds \(status.size) bytes, expected at most \(byteLimit)")
        }
        guard SystemMemory.allows(status.size) else {
            throw .outOfMemory(file: url, reason: "the file has \(SystemMemory.text(status.size))")
        }
        guard let stream = fopen(url.displayPath, "rb") else {
            throw .unreadable(file: url, reason: String(cString: strerror(errno)))
        }
        defer { fclose(stream) }
        // Straight to where they stay: copying megabytes takes as long as scaling a decoded photo down.
        let bytes = [UInt8](unsafeUninitializedCapacity: status.size) { target, count in
            count = fread(target.baseAddress, 1, status.size, stream)
        }
        guard ferror(stream) == 0 else { throw .unreadable(file: url, reason: "the disk gives an error") }
        return bytes
    }
}
