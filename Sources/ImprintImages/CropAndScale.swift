/// The method that fits an image to the input size of a network; the cases are the three options of Vision.
public enum CropAndScale: String, Codable, CaseIterable, Sendable {
    /// Scale so that the shorter side fits, keep the aspect ratio, and cut the middle out of the longer side.
    case centerCrop = "center-crop"
    /// Scale so that the longer side fits, keep the aspect ratio, and pad the shorter side on both ends.
    case scaleFit = "scale-fit"
    /// Stretch both sides to fit; the aspect ratio changes.
    case scaleFill = "scale-fill"

    /// Crops and scales an image to `width` x `height` pixels; the number of channels does not change.
    ///
    /// The filter is antialiased bilinear, as in Pillow: a triangle (`1 − |t|`) whose half-width is one source pixel if the
    /// image is enlarged (bilinear interpolation), and one target pixel if it is reduced (which avoids aliasing). Transparent
    /// pixels do not tint their neighbours.
    ///
    /// - Parameters:
    ///   - image: The image.
    ///   - width: The width of the result in pixels, at least 1.
    ///   - height: The height of the result in pixels, at least 1.
    ///   - padding: The grey level (0 black … 255 white) around an image that `scaleFit` does not fill; with 4 channels the
    ///     padding is transparent.
    public func apply(_ image: RasterImage, width: Int, height: Int, padding: UInt8 = 0) -> RasterImage {
        precondition(width > 0 && height > 0, "an image must have at least one pixel, not \(width)x\(height)")
        let (scaleX, scaleY) = (Double(width) / Double(image.width), Double(height) / Double(image.height))
        switch self {
        case .scaleFill:
            return image.resampled(
                columns: ResampledAxis(length: image.width, target: width),
                rows: ResampledAxis(length: image.height, target: height))
        case .centerCrop:
            let scale = max(scaleX, scaleY)
            return image.resampled(
                columns: ResampledAxis(length: image.width, target: width, part: Double(width) / scale),
                rows: ResampledAxis(length: image.height, target: height, part: Double(height) / scale))
        case .scaleFit:
            let scale = min(scaleX, scaleY)
            let fitted = image.resampled(
                columns: ResampledAxis(length: image.width, target: Self.fitted(image.width, scale, width)),
                rows: ResampledAxis(length: image.height, target: Self.fitted(image.height, scale, height)))
            return fitted.padded(width: width, height: height, with: padding)
        }
    }

    private static func fitted(_ length: Int, _ scale: Double, _ limit: Int) -> Int {
        min(max(Int((Double(length) * scale).rounded()), 1), limit)
    }
}
