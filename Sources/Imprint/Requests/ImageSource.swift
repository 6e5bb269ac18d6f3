public import Foundation
public import ImprintImages

/// An image to classify: a file, the bytes of a file, pixels, or a decoded image.
public enum ImageSource: Sendable {
    /// A JPEG, PNG, WebP or HEIC file.
    ///
    /// The image is rotated upright and converted to sRGB, according to the metadata of the file. `orientation` replaces the orientation of
    /// the file, for example if an upload has lost its EXIF metadata.
    case file(URL, orientation: Orientation? = nil)
    /// The bytes of a JPEG, PNG, WebP or HEIC file.
    case data(Data, orientation: Orientation? = nil)
    /// Pixels in memory, and their orientation.
    case pixels(PixelBuffer, orientation: Orientation = .up)
    /// A decoded image, upright and in sRGB.
    case image(RasterImage)

    /// The name of image data in errors: a relative URL, so that its path is not resolved against the current folder.
    private static let nameOfData = URL(string: "the%20image%20data")!

    /// Decodes the image; a JPEG may be scaled down if it still covers the short side.
    package func stored(coveringShortSide side: Int) throws(ImageError) -> StoredImage {
        switch self {
        case .file(let url, let orientation):
            let stored = try StoredImage(url, coveringShortSide: side)
            return orientation.map(stored.oriented) ?? stored
        case .data(let data, let orientation):
            let stored = try StoredImage(
                [UInt8](data), named: Self.nameOfData, coveringShortSide: side)
            return orientation.map(stored.oriented) ?? stored
        case .pixels(let pixels, let orientation): return StoredImage(pixels, orientation: orientation)
        case .image(let image): return StoredImage(image)
        }
    }
}
