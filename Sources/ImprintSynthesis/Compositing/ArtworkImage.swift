internal import Foundation
internal import ImprintImages

/// The visible part of an artwork file: trimmed, with at most 256 pixels on its longer side.
struct ArtworkImage {
    /// The image with alpha, not premultiplied.
    let image: RasterImage
    /// Whether the file has neither transparency nor a plain background, so that the whole image is the logo.
    let keepsBackground: Bool
    /// The problems of the file that make detection worse; empty if there are none.
    let problems: [Problem]

    /// A problem of an artwork file.
    enum Problem: Hashable {
        /// There is neither transparency nor a plain background.
        case hasBackground
        /// The logo touches the border of the image; `border` is the fraction of the border that it covers.
        case mayBeCropped(border: Float)
        /// The logo hardly differs from its background.
        case isFaint
        /// The background may be a frame.
        case mayHaveFrame
        /// The logo has few rows or columns when it is scaled down, in pixels.
        case isNarrow(width: Int, height: Int)
        /// The logo is small, in pixels.
        case isSmall(width: Int, height: Int)
    }

    /// The maximum length of the longer side; composites rarely show a logo larger.
    static let longestSide = 256
    /// The minimum length of the longer side in the file.
    static let shortestSide = 16
    /// The length of the longer side below which details of a logo are missing.
    private static let sharpSide = 64
    /// The length of the shorter side below which details of a wide or tall logo are missing.
    private static let narrowSide = 8
    /// The minimum covered fraction of the border at which a logo may be cropped; a smaller fraction can be dust.
    private static let croppedBorder: Float = 0.02
    /// The difference to the background below which a logo is faint, 0…255.
    private static let faintContrast: Float = 48
    /// The alpha above which a pixel is visible.
    private static let visibleAlpha: UInt8 = 8

    /// Creates an artwork image from a file.
    /// - Throws: `ArtworkError` if the file cannot be read, contains no logo, or is too small.
    init(contentsOf file: URL) throws(ArtworkError) {
        let isDrawing = FileKind(contentsOf: file) == .drawing
        let decoded = try Self.decode(file, isDrawing: isDrawing)
        let isOpaque =
            decoded.channels < 4
            || stride(from: 3, to: decoded.samples.count, by: 4).allSatisfy { decoded.samples[$0] == 255 }
        var problems: [Problem] = []
        let visible: RasterImage
        var keepsBackground = false
        if !isOpaque {
            visible = decoded
        } else if case let opaque = decoded.flattenedOnWhite(), let background = PlainBackground(opaque) {
            let cutOut = opaque.cutOut(from: background)
            visible = cutOut.image
            if background.coveredBorder > Self.croppedBorder {
                problems.append(.mayBeCropped(border: background.coveredBorder))
            }
            if cutOut.contrast < Self.faintContrast { problems.append(.isFaint) }
            if background.coveredBorder == 0 && cutOut.mayHaveFrame { problems.append(.mayHaveFrame) }
        } else {
            visible = decoded.flattenedOnWhite().withOpaqueAlpha()
            problems.append(.hasBackground)
            keepsBackground = true
        }
        self.keepsBackground = keepsBackground
        guard let trimmed = visible.trimmed(alphaAbove: Self.visibleAlpha) else {
            throw isDrawing ? ArtworkError.emptyDrawing(file: file) : .empty(file: file)
        }
        guard max(trimmed.width, trimmed.height) >= Self.shortestSide else {
            throw .tooSmall(file: file, width: trimmed.width, height: trimmed.height, minimum: Self.shortestSide)
        }
        if max(trimmed.width, trimmed.height) < Self.sharpSide {
            problems.append(.isSmall(width: trimmed.width, height: trimmed.height))
        }
        let scale = min(Float(Self.longestSide) / Float(max(trimmed.width, trimmed.height)), 1)
        func scaled(_ length: Int) -> Int { max(Int((Float(length) * scale).rounded()), 1) }
        if min(scaled(trimmed.width), scaled(trimmed.height)) < Self.narrowSide {
            problems.append(.isNarrow(width: scaled(trimmed.width), height: scaled(trimmed.height)))
        }
        self.problems = problems
        image = CropAndScale.scaleFill.apply(trimmed, width: scaled(trimmed.width), height: scaled(trimmed.height))
            .withFullAlpha()
    }
}

extension ArtworkImage {
    /// The longer side of a rendered drawing, in pixels: enough for a logo that covers a quarter of it.
    private static let renderedSide = 4 * longestSide

    private static func decode(_ file: URL, isDrawing: Bool) throws(ArtworkError) -> RasterImage {
        do throws(ImageError) {
            guard isDrawing else {
                return try ImageFile.decode(
                    file, coveringShortSide: ImageFile.shortSideToDecode(covering: longestSide), keepsAlpha: true)
            }
            if let drawing = try SVG.render(file, longerSide: renderedSide) { return drawing }
        } catch {
            switch error {
            case .truncated(_, let found) where isDrawing: throw .damagedDrawing(file: file, found: found)
            case .notAnImage(_, let found) where ["svg", "svgz"].contains(file.pathExtension.lowercased()):
                throw .damagedDrawing(file: file, found: found)
            case .notAnImage(_, let found): throw .notArtwork(file: file, found: found)
            default: throw .unreadable(error)
            }
        }
        throw .unsupportedDrawing(file: file)
    }
}

extension RasterImage {
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
