internal import Foundation
internal import ImprintImages

/// A small JPEG that is embedded in a page.
struct Thumbnail {
    /// The width in pixels.
    let width: Int
    /// The height in pixels.
    let height: Int
    private let data: String

    /// Whether the width exceeds the height.
    var isWide: Bool { width > height }

    /// Creates a thumbnail from an image, without scaling it.
    init(_ image: RasterImage, quality: Int = 80) throws(ImageError) {
        (width, height) = (image.width, image.height)
        data = Data(try ImageFile.encodeJPEG(image, quality: quality)).base64EncodedString()
    }

    /// Creates a thumbnail of a whole photo, upright, with a short side of at most 120 pixels.
    /// - Throws: `ImageError` if the file cannot be read as an image.
    init(of file: URL) throws(ImageError) {
        let side = 120
        try self.init(ImageFile.decode(file, coveringShortSide: side).shrunk(toShortSide: side), quality: 72)
    }

    /// Returns the image element.
    /// - Parameter alternative: The alternative text.
    func html(alternative: String) -> String {
        "<img src=\"data:image/jpeg;base64,\(data)\" width=\"\(width)\" height=\"\(height)\" alt=\"\(escaped(alternative))\">"
    }
}
