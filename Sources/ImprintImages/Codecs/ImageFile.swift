public import Foundation

/// Image files in and out: JPEG and PNG, told apart by their content and never by their name.
public enum ImageFile {
    /// Decodes the image file at `url`, upright.
    ///
    /// - Parameters:
    ///   - coveringShortSide: Where given, a large JPEG may be shrunk while it is decoded, which is much faster; the
    ///     short side of the result is at least this long, if that of the file is.
    ///   - keepsAlpha: Whether an image with transparency gives 4 channels. Otherwise it is laid on white.
    /// - Returns: The image with 3 channels, or 4 where it has transparency and `keepsAlpha` is true.
    /// - Throws: `ImageError` where the file cannot be read, is no image, is of an unsupported kind, is cut short or
    ///   damaged anywhere, or has more than `pixelLimit` pixels.
    public static func decode(
        _ url: URL, coveringShortSide: Int? = nil, keepsAlpha: Bool = false
    ) throws(ImageError) -> Image {
        let bytes = try read(url)
        switch FileKind(bytes) {
        case .jpeg:
            let image = try JPEG.decode(bytes, file: url, coveringShortSide: coveringShortSide)
            return JPEGSegments(bytes).orientation.upright(image)
        case .png:
            let image = try PNG.decode(bytes, file: url)
            return PNGChunks(bytes).orientation.upright(keepsAlpha ? image : image.laidOnWhite())
        case .otherImage(let name): throw .unsupported(file: url, what: name)
        case .notAnImage(let found): throw .notAnImage(file: url, found: found)
        }
    }

    /// The most pixels that an image file may have: 200 million.
    ///
    /// It is checked before memory is taken: a file of some hundred bytes can claim billions of pixels.
    public static let pixelLimit = 200_000_000

    private static let byteLimit = 1 << 30

    static func checkSize(width: Int, height: Int, file: URL) throws(ImageError) {
        guard width * height <= pixelLimit else {
            throw .tooLarge(file: file, width: width, height: height, limit: pixelLimit)
        }
    }

    /// Encodes an image as a JPEG of the given quality (1…100); transparency is laid on white.
    ///
    /// Colour is kept at full resolution (4:4:4). Throws `ImageError` where a side is longer than 65,500 pixels.
    public static func encodeJPEG(_ image: Image, quality: Int = 90) throws(ImageError) -> [UInt8] {
        try JPEG.encode(image.laidOnWhite(), quality: quality)
    }

    /// Encodes an image as a PNG, which keeps every sample; throws `ImageError` where memory runs out.
    public static func encodePNG(_ image: Image) throws(ImageError) -> [UInt8] { try PNG.encode(image) }

    /// Writes an image to `url` as its extension says: `jpg` or `jpeg` (of the given quality), or `png`.
    ///
    /// The file appears whole or not at all. Throws `ImageError` for another extension or where writing fails.
    public static func write(_ image: Image, to url: URL, quality: Int = 90) throws(ImageError) {
        let bytes =
            switch url.pathExtension.lowercased() {
            case "jpg", "jpeg": try encodeJPEG(image, quality: quality)
            case "png": try encodePNG(image)
            default:
                throw .unencodable(
                    format: url.lastPathComponent, reason: "the name of an image file ends in .jpg, .jpeg or .png")
            }
        do {
            try Data(bytes).write(to: url, options: .atomic)
        } catch {
            throw .unwritable(file: url, reason: reason(of: error))
        }
    }

    private static func read(_ url: URL) throws(ImageError) -> [UInt8] {
        // A device or a pipe could be read for ever, and what is no image may be of any size.
        guard let status = FileStatus(url) else {
            throw .unreadable(file: url, reason: "there is no such file, or no permission to look into its folder")
        }
        guard !status.isFolder else { throw .unreadable(file: url, reason: "it is a folder") }
        guard status.isFile else { throw .unreadable(file: url, reason: "it is not a regular file") }
        guard status.size <= byteLimit else {
            throw .unreadable(file: url, reason: "it holds \(status.size) bytes, expected at most \(byteLimit)")
        }
        do {
            return [UInt8](try Data(contentsOf: url))
        } catch {
            throw .unreadable(file: url, reason: reason(of: error))
        }
    }
}
