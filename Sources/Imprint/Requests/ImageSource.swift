public import Foundation
public import ImprintImages

/// Where a picture comes from.
public enum ImageSource: Sendable {
    /// A file: JPEG, PNG, WebP or HEIC.
    ///
    /// Its colours are brought to sRGB and it is turned upright as the file says, or as the orientation given does, for files that lost
    /// theirs.
    case file(URL, orientation: Orientation? = nil)
    /// The bytes of such a file.
    case data(Data, orientation: Orientation? = nil)
    /// Pixels, and how they are to be turned.
    case pixels(PixelBuffer, orientation: Orientation = .up)
    /// A picture in memory, upright and in sRGB.
    case image(RasterImage)

    /// What errors call bytes: relative, or they would be looked for in the current folder.
    private static let nameOfData = URL(string: "the%20image%20data")!

    /// Decodes the picture; a JPEG may be shrunk to what covers the short side given.
    package func stored(coveringShortSide side: Int) throws(ImageError) -> StoredPicture {
        switch self {
        case .file(let url, let orientation):
            let stored = try StoredPicture(url, coveringShortSide: side)
            return orientation.map(stored.oriented) ?? stored
        case .data(let data, let orientation):
            let stored = try StoredPicture(
                [UInt8](data), named: Self.nameOfData, coveringShortSide: side)
            return orientation.map(stored.oriented) ?? stored
        case .pixels(let pixels, let orientation): return StoredPicture(pixels, orientation: orientation)
        case .image(let image): return StoredPicture(image)
        }
    }
}
