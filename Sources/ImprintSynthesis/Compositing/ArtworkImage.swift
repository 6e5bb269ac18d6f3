internal import Foundation
internal import ImprintImages

/// The visible part of an artwork file: trimmed, with at most 256 pixels on its longer side.
struct ArtworkImage {
    /// The image with alpha, not premultiplied.
    let image: RasterImage
    /// Whether the file has neither transparency nor a border of one colour, so that the whole image is the logo.
    let keepsBackground: Bool

    /// The maximum length of the longer side; composites rarely show a logo larger.
    static let longestSide = 256
    /// The minimum length of the longer side in the file.
    static let shortestSide = 16
    /// The alpha above which a pixel is visible.
    private static let visibleAlpha: UInt8 = 8

    /// Creates an artwork image from a file.
    /// - Throws: `ArtworkError` if the file cannot be read, contains no logo, or is too small.
    init(contentsOf file: URL) throws(ArtworkError) {
        let decoded: RasterImage
        do {
            decoded = try ImageFile.decode(
                file, coveringShortSide: ImageFile.shortSideToDecode(covering: Self.longestSide), keepsAlpha: true)
        } catch {
            throw .unreadable(error)
        }
        let isOpaque =
            decoded.channels < 4
            || stride(from: 3, to: decoded.samples.count, by: 4).allSatisfy { decoded.samples[$0] == 255 }
        let cutOut = isOpaque ? decoded.flattenedOnWhite().withoutBorderColor() : decoded
        keepsBackground = cutOut == nil
        let visible = cutOut ?? decoded.flattenedOnWhite().withOpaqueAlpha()
        guard let trimmed = visible.trimmed(alphaAbove: Self.visibleAlpha) else { throw .empty(file: file) }
        guard max(trimmed.width, trimmed.height) >= Self.shortestSide else {
            throw .tooSmall(file: file, width: trimmed.width, height: trimmed.height, minimum: Self.shortestSide)
        }
        let scale = min(Float(Self.longestSide) / Float(max(trimmed.width, trimmed.height)), 1)
        func scaled(_ length: Int) -> Int { max(Int((Float(length) * scale).rounded()), 1) }
        image = CropAndScale.scaleFill.apply(trimmed, width: scaled(trimmed.width), height: scaled(trimmed.height))
            .withFullAlpha()
    }
}

extension RasterImage {
    /// Makes the border colour of an RGB image transparent everywhere; nil if the border has several colours.
    ///
    /// Every pixel is treated as a mixture of the border colour and another colour, so that edges stay soft.
    fileprivate func withoutBorderColor() -> RasterImage? {
        func pixel(_ index: Int) -> SIMD3<Float> {
            SIMD3(Float(samples[3 * index]), Float(samples[3 * index + 1]), Float(samples[3 * index + 2]))
        }
        var border: [Int] = []
        for column in 0..<width { border += [column, (height - 1) * width + column] }
        for row in 0..<height { border += [row * width, row * width + width - 1] }
        let mean = border.reduce(SIMD3<Float>.zero) { $0 + pixel($1) } / Float(border.count)
        // JPEG artefacts change a plain colour by up to this much.
        let tolerance: Float = 14
        func distance(_ index: Int) -> Float {
            let difference = pixel(index) - mean
            return max(difference.max(), -difference.min())
        }
        guard border.allSatisfy({ distance($0) <= 2 * tolerance }) else { return nil }
        let farthest = (0..<(width * height)).reduce(0) { max($0, distance($1)) }
        // The distance from which a pixel is opaque; smaller for a pale logo.
        let opaqueDistance = max(min(farthest * 0.6, 80), tolerance + 1)
        var result = RasterImage(width: width, height: height, channels: 4)
        for index in 0..<(width * height) {
            let alpha = ((distance(index) - tolerance) / (opaqueDistance - tolerance)).clampedToUnit
            guard alpha > 0 else { continue }
            let color = (pixel(index) - mean * (1 - alpha)) / alpha
            for channel in 0..<3 {
                result.samples[4 * index + channel] = UInt8(min(max(color[channel], 0), 255) + 0.5)
            }
            result.samples[4 * index + 3] = UInt8(alpha * 255 + 0.5)
        }
        return result
    }

    /// Adds an alpha channel to an RGB image; every pixel is opaque.
    fileprivate func withOpaqueAlpha() -> RasterImage {
        var result = RasterImage(width: width, height: height, channels: 4)
        for index in 0..<(width * height) {
            for channel in 0..<3 { result.samples[4 * index + channel] = samples[3 * index + channel] }
            result.samples[4 * index + 3] = 255
        }
        return result
    }

    /// Scales alpha so that its maximum is 255; this affects faint logos and logos of thin lines.
    fileprivate func withFullAlpha() -> RasterImage {
        let alphas = stride(from: 3, to: samples.count, by: 4)
        let maximum = alphas.reduce(1) { max($0, Int(samples[$1])) }
        var image = self
        for index in alphas { image.samples[index] = UInt8((Int(samples[index]) * 255 + maximum / 2) / maximum) }
        return image
    }

    /// Crops to the bounding box of the pixels whose alpha exceeds `limit`; nil if there are none.
    fileprivate func trimmed(alphaAbove limit: UInt8) -> RasterImage? {
        var (left, top, right, bottom) = (width, height, -1, -1)
        for y in 0..<height {
            for x in 0..<width where samples[4 * (y * width + x) + 3] > limit {
                (left, right) = (min(left, x), max(right, x))
                (top, bottom) = (min(top, y), y)
            }
        }
        return right < 0 ? nil : part(left: left, top: top, width: right - left + 1, height: bottom - top + 1)
    }

    /// Crops the image to a rectangle.
    func part(left: Int, top: Int, width: Int, height: Int) -> RasterImage {
        var part: [UInt8] = []
        part.reserveCapacity(width * height * channels)
        for y in top..<(top + height) {
            let first = (y * self.width + left) * channels
            part += samples[first..<(first + width * channels)]
        }
        return RasterImage(width: width, height: height, channels: channels, samples: part)
    }
}
