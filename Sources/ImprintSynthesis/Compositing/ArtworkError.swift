public import Foundation
public import ImprintCore
public import ImprintImages

/// An image file that cannot be used as the artwork of a logo.
///
/// The description of each case names the file, the problem, the expected state and the fix.
public enum ArtworkError: DescribedError, Equatable, Sendable {
    /// The file cannot be read as an image.
    case unreadable(ImageError)
    /// The file is neither an image nor an SVG drawing; `found` describes its content ("text", "an empty file").
    case notArtwork(file: URL, found: String)
    /// The file is an SVG drawing with an error, or it is named like a drawing, but its content is not one; `found` describes it.
    case damagedDrawing(file: URL, found: String)
    /// The file is an SVG drawing, but librsvg 2.52 or newer is not installed, or the build leaves out the package trait `SVG`.
    case unsupportedDrawing(file: URL)
    /// The image has no visible pixel, or all of its pixels have the colour of its border.
    case empty(file: URL)
    /// The SVG drawing has no visible pixel, or all of its pixels have the colour of its border.
    case emptyDrawing(file: URL)
    /// The visible part of the image has fewer than `minimum` pixels on its longer side.
    case tooSmall(file: URL, width: Int, height: Int, minimum: Int)
    /// The logo is too long to be matched with photos; `name` is the name of the artwork, and `ratio` is the ratio of its sides.
    case tooLong(name: String, ratio: Int, maximum: Int)
}

extension ArtworkError {
    /// The error in one or two sentences.
    public var description: String {
        switch self {
        case .unreadable(let error):
            "\(error)"
        case .notArtwork(let file, let found):
            "\(file.displayPath): expected an image (\(ImageFormat.list)) or an SVG drawing, found \(found). Name another file."
        case .damagedDrawing(let file, let found):
            "\(file.displayPath): the SVG drawing is damaged: found \(found), expected XML with the element svg. Export the drawing again, "
                + "or convert it to PNG."
        case .unsupportedDrawing(let file):
            "\(file.displayPath): found an SVG drawing, and this program cannot use librsvg 2.52 or newer, which reads SVG. Install "
                + "librsvg2-2 (Debian, Ubuntu) or librsvg (Homebrew), or convert the drawing to PNG."
        case .empty(let file):
            "\(file.displayPath): the image contains no logo, because it is fully transparent or has only one colour. "
                + "Save the logo as a PNG with a transparent background."
        case .emptyDrawing(let file):
            "\(file.displayPath): the SVG drawing has no visible content, because it is fully transparent or has only one colour. Check that "
                + "its shapes have colours and are within its view box, and that it contains its images, because other files are not loaded. "
                + "Or export the logo as a PNG with a transparent background."
        case .tooSmall(let file, let width, let height, let minimum):
            "\(file.displayPath): the logo has \(width)x\(height) pixels, expected at least \(minimum) on its longer "
                + "side. Export it at a larger size."
        case .tooLong(let name, let ratio, let maximum):
            "\(name): the longer side of the logo is \(ratio) times the shorter one, expected at most \(maximum) times. Use a "
                + "less elongated version of the logo."
        }
    }
}

extension ArtworkImage.Problem {
    /// Returns the problem and its remedy, in one or two sentences.
    func note(file: URL) -> String {
        switch self {
        case .hasBackground:
            "\(file.displayPath) has no transparency, and its background is not plain, so the whole image is used as the logo. "
                + "A PNG of only the logo with a transparent background works better."
        case .mayBeCropped(let border):
            "\(file.displayPath): the logo covers \(Int((border * 100).rounded())) % of the border of the image, so part of it may be "
                + "missing. Leave a margin around the logo."
        case .isFaint:
            "\(file.displayPath): the logo hardly differs from its background. Use a version of the logo with more contrast, or a PNG "
                + "with a transparent background."
        case .mayHaveFrame:
            "\(file.displayPath): the logo is a rectangle that fills the image up to a thin frame. If the frame is not the background of "
                + "the logo, remove it, for example with an image editor."
        case .isNarrow(let width, let height):
            "\(file.displayPath): Imprint scales the logo to \(width)x\(height) pixels, so details may be missing. Use a "
                + "less elongated version of the logo."
        case .isSmall(let width, let height):
            "\(file.displayPath): the logo has only \(width)x\(height) pixels, so details may be missing. Export it with at least "
                + "128 pixels on its longer side."
        }
    }
}
