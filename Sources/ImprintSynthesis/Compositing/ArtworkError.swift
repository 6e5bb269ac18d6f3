public import Foundation
public import ImprintCore
public import ImprintImages

/// Why a picture could not be used as the artwork of a logo.
///
/// The text of each case names the file, what was found, what was expected and what to do about it.
public enum ArtworkError: DescribedError, Equatable, Sendable {
    /// The file cannot be read as an image.
    case unreadable(ImageError)
    /// No pixel of the picture is visible, or all of it has the colour of its border.
    case empty(file: URL)
    /// What is visible of the picture is smaller than `minimum` pixels on its longer side.
    case tooSmall(file: URL, width: Int, height: Int, minimum: Int)
}

extension ArtworkError {
    /// The error in one or two sentences.
    public var description: String {
        switch self {
        case .unreadable(let error):
            "\(error)"
        case .empty(let file):
            "\(file.displayPath) shows nothing: it is transparent or of one colour all over, expected a logo. "
                + "Save the logo as a PNG with a transparent background."
        case .tooSmall(let file, let width, let height, let minimum):
            "\(file.displayPath): the logo has \(width)x\(height) pixels, expected at least \(minimum) on its longer "
                + "side. Export it larger."
        }
    }
}
