internal import Foundation
internal import ImprintImages

/// What is visible of a logo's picture: trimmed, at most 256 pixels on its longer side.
struct ArtworkPicture {
    /// With alpha, not premultiplied.
    let image: RasterImage
    /// Whether the picture has neither transparency nor a border of one colour, so that all of it is taken as the logo.
    let keepsBackground: Bool

    /// The longer side at most: a mark is hardly ever drawn larger.
    static let longestSide = 256
    /// The longer side at least, in the file.
    static let shortestSide = 16
    /// The alpha above which a pixel is visible.
    private static let visibleAlpha: UInt8 = 8

    /// Reads a picture; throws `ArtworkError` where it shows no logo.
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
    /// An RGB image without what has the colour of its border; nil if the border has several colours.
    ///
    /// A pixel is taken for a mixture of the border's colour and another one, so that edges stay soft.
    fileprivate func withoutBorderColor() -> RasterImage? {
        func pixel(_ place: Int) -> SIMD3<Float> {
            SIMD3(Float(samples[3 * place]), Float(samples[3 * place + 1]), Float(samples[3 * place + 2]))
        }
        var border: [Int] = []
        for column in 0..<width { border += [column, (height - 1) * width + column] }
        for row in 0..<height { border += [row * width, row * width + width - 1] }
        let mean = border.reduce(SIMD3<Float>.zero) { $0 + pixel($1) } / Float(border.count)
        // As far as a JPEG's artefacts change a plain colour.
        let tolerance: Float = 14
        func distance(_ place: Int) -> Float {
            let difference = pixel(place) - mean
            return max(difference.max(), -difference.min())
        }
        guard border.allSatisfy({ distance($0) <= 2 * tolerance }) else { return nil }
        let farthest = (0..<(width * height)).reduce(0) { max($0, distance($1)) }
        // From here on a pixel is all mark; of a pale mark, sooner.
        let whole = max(min(farthest * 0.6, 80), tolerance + 1)
        var result = RasterImage(width: width, height: height, channels: 4)
        for place in 0..<(width * height) {
            let alpha = ((distance(place) - tolerance) / (whole - tolerance)).clampedToUnit
            guard alpha > 0 else { continue }
            let color = (pixel(place) - mean * (1 - alpha)) / alpha
            for channel in 0..<3 {
                result.samples[4 * place + channel] = UInt8(min(max(color[channel], 0), 255) + 0.5)
            }
            result.samples[4 * place + 3] = UInt8(alpha * 255 + 0.5)
        }
        return result
    }

    /// An RGB image with an alpha channel in which every pixel is visible.
    fileprivate func withOpaqueAlpha() -> RasterImage {
        var result = RasterImage(width: width, height: height, channels: 4)
        for place in 0..<(width * height) {
            for channel in 0..<3 { result.samples[4 * place + channel] = samples[3 * place + channel] }
            result.samples[4 * place + 3] = 255
        }
        return result
    }

    /// The image with all alpha enlarged so that the greatest is whole: of a faint logo, or one of hairlines alone.
    fileprivate func withFullAlpha() -> RasterImage {
        let alphas = stride(from: 3, to: samples.count, by: 4)
        let greatest = alphas.reduce(1) { max($0, Int(samples[$1])) }
        var image = self
        for place in alphas { image.samples[place] = UInt8((Int(samples[place]) * 255 + greatest / 2) / greatest) }
        return image
    }

    /// The smallest part that holds all pixels of a greater alpha; nil if there are none.
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

    /// A part of the image.
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
