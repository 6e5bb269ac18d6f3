public import Foundation
public import ImprintCore
public import ImprintImages

/// An image file that cannot be used as the artwork of a logo.
///
/// The description of each case names the file, what was found, what was expected and how to fix it.
public enum ArtworkError: DescribedError, Equatable, Sendable {
    /// The file cannot be read as an image.
    case unreadable(ImageError)
    /// The image has no visible pixel, or all of its pixels have the colour of its border.
    case empty(file: URL)
    /// The visible part of the image has fewer than `minimum` pixels on its longer side.
    case tooSmall(file: URL, width: Int, height: Int, minimum: Int)
}

extension ArtworkError {
    /// The error in one or two sentences.
    public var description: String {
        switch self {
        case .unreadable(let error):
            "\(error)"
        case .empty(let file):
            "\(file.displayPath): the image contains no logo, because it is fully transparent or has only one colour. "
                + "Save the logo as a PNG with a transparent background."
        case .tooSmall(let file, let width, let height, let minimum):
            "\(file.displayPath): the logo has \(width)x\(height) pixels, expected at least \(minimum) on its longer "
                + "side. Export it at a larger size."
        }
    }
}
