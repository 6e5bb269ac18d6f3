internal import Foundation
internal import ImprintImages

/// A small JPEG within a page.
struct Thumbnail {
    /// The width in pixels.
    let width: Int
    /// The height in pixels.
    let height: Int
    private let data: String

    /// Whether it is wider than high.
    var isWide: Bool { width > height }

    /// Makes a thumbnail of a picture of the right size.
    init(_ image: RasterImage, quality: Int = 80) throws(ImageError) {
        (width, height) = (image.width, image.height)
        data = Data(try ImageFile.encodeJPEG(image, quality: quality)).base64EncodedString()
    }

    /// Makes a thumbnail of a whole photo, upright, with a short side of at most 120 pixels.
    /// - Throws: `ImageError` if the file cannot be read as an image.
    init(of file: URL) throws(ImageError) {
        let side = 120
        try self.init(ImageFile.decode(file, coveringShortSide: side).shrunk(toShortSide: side), quality: 72)
    }

    /// The picture, and what it shows in words.
    func html(alternative: String) -> String {
        "<img src=\"data:image/jpeg;base64,\(data)\" width=\"\(width)\" height=\"\(height)\" alt=\"\(escaped(alternative))\">"
    }
}
