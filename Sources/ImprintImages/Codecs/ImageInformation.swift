package import Foundation

/// The supported formats of image files.
public enum ImageFormat: String, Sendable, Codable, CaseIterable {
    /// JPEG: baseline and progressive; grey, colour and CMYK.
    case jpeg = "JPEG"
    /// PNG, of any depth.
    case png = "PNG"
    /// WebP: lossy and lossless, and the first frame of an animation.
    case webp = "WebP"
    /// HEIC, unless a build for Linux leaves it out (package trait `HEIC`).
    case heic = "HEIC"

    /// The usual extensions of file names, in lower case.
    package var fileExtensions: [String] {
        switch self {
        case .jpeg: ["jpg", "jpeg", "jpe", "jfif"]
        case .png: ["png"]
        case .webp: ["webp"]
        case .heic: ["heic", "heif"]
        }
    }

    /// The names of all formats, as part of a sentence.
    package static let list =
        allCases.dropLast().map(\.rawValue).joined(separator: ", ") + " or " + (allCases.last?.rawValue ?? "")
}

/// The metadata of an image file, read without decoding the image.
package struct ImageInformation: Sendable, Hashable {
    /// The format, detected from the content.
    package let format: ImageFormat
    /// The width of the stored image, in pixels.
    package let width: Int
    /// The height of the stored image, in pixels.
    package let height: Int
    /// The orientation of the stored image; except on Apple platforms, always `up` for HEIC, whose size refers to the upright image.
    package let orientation: Orientation
    /// The name of the colour profile ("Display P3"); nil if the file has no readable profile.
    package let colorProfile: String?
    /// The reason why the image is treated as sRGB although the file describes other colours; nil if there is no problem.
    package let colorProblem: String?
    /// Whether the file can store transparency for each pixel.
    package let hasAlpha: Bool
    /// Whether the file contains an animation; only its first frame is decoded.
    package let isAnimated: Bool

    /// The size of the upright image, in pixels.
    package var uprightSize: (width: Int, height: Int) {
        orientation.swapsSides ? (height, width) : (width, height)
    }
}

extension ImageFile {
    /// Reads the metadata of the image file at `url`, without decoding the image.
    ///
    /// Damage within the image is therefore not detected.
    ///
    /// - Throws: `ImageError` if the file cannot be read, is not an image, is of an unsupported kind, has a damaged header, or
    ///   has more than `pixelLimit` pixels.
    package static func information(of url: URL) throws(ImageError) -> ImageInformation {
        let header = try ImageHeader(read(url), file: url)
        let profile = header.profile
        return ImageInformation(
            format: header.format, width: header.width, height: header.height, orientation: header.orientation,
            colorProfile: profile?.name, colorProblem: profile?.problem, hasAlpha: header.hasAlpha,
            isAnimated: header.isAnimated)
    }
}
