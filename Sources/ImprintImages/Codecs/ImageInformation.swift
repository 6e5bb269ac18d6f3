public import Foundation

/// The kinds of image files that are read.
public enum ImageFormat: String, Sendable, Codable, CaseIterable {
    /// JPEG: baseline and progressive; grey, colour and CMYK.
    case jpeg = "JPEG"
    /// PNG, of any depth.
    case png = "PNG"
    /// WebP: lossy and lossless; of an animation, the first frame.
    case webp = "WebP"
    /// HEIC, unless the build leaves it out (package trait `HEIC`).
    case heic = "HEIC"

    /// The names of all of them, as part of a sentence.
    static let list =
        allCases.dropLast().map(\.rawValue).joined(separator: ", ") + " or " + (allCases.last?.rawValue ?? "")
}

/// What an image file says of itself, without its picture being decoded.
public struct ImageInformation: Sendable, Hashable {
    /// The kind of file, judged by its content.
    public let format: ImageFormat
    /// The columns of the stored picture, in pixels.
    public let width: Int
    /// The rows of the stored picture, in pixels.
    public let height: Int
    /// What makes the stored picture upright; always `up` for HEIC, whose size is that of the upright picture.
    public let orientation: Orientation
    /// What the colour profile calls itself ("Display P3"); nil if there is none, or none that can be read.
    public let colorProfile: String?
    /// Why the picture is taken for sRGB although the file says something else of its colours; nil where all is well.
    public let colorProblem: String?
    /// Whether the file can store transparency for each pixel.
    public let hasAlpha: Bool
    /// Whether the file holds an animation, of which the first frame is decoded.
    public let isAnimated: Bool
}

extension ImageFile {
    /// What the image file at `url` says of itself; nothing is decoded, so that damage within the picture goes unseen.
    ///
    /// - Throws: `ImageError` if the file cannot be read, is no image, is of an unsupported kind, has a damaged
    ///   beginning, or has more than `pixelLimit` pixels.
    public static func information(of url: URL) throws(ImageError) -> ImageInformation {
        let header = try ImageHeader(read(url), file: url)
        let profile = header.profile
        return ImageInformation(
            format: header.format, width: header.width, height: header.height, orientation: header.orientation,
            colorProfile: profile?.name, colorProblem: profile?.problem, hasAlpha: header.hasAlpha,
            isAnimated: header.isAnimated)
    }
}
