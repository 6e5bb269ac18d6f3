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
        let side = isDrawing ? Self.renderedSide : ImageFile.shortSideToDecode(covering: Self.longestSide)
        let (decoded, isReduced) = try Self.decode(file, isDrawing: isDrawing, side: side)
        var subject = Subject(decoded)
        if isReduced, (1..<Self.longestSide).contains(subject.longerSide),
            let side = Self.sideToDecode(decoded, isDrawing: isDrawing, longerSideOfLogo: subject.longerSide)
        {
            // The margins have used up most of the decoded pixels.
            let larger = Subject(try Self.decode(file, isDrawing: isDrawing, side: side).image)
            if larger.trimmed != nil { subject = larger }
        }
        keepsBackground = subject.keepsBackground
        var problems = subject.problems
        guard let trimmed = subject.trimmed else {
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
    /// The visible part of a decoded image.
    private struct Subject {
        /// The image, trimmed to its visible pixels; nil if there are none.
        let trimmed: RasterImage?
        /// Whether the image has neither transparency nor a plain background.
        let keepsBackground: Bool
        /// The problems of the image, without those of its size.
        let problems: [Problem]

        init(_ decoded: RasterImage) {
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
                if background.coveredBorder > ArtworkImage.croppedBorder {
                    problems.append(.mayBeCropped(border: background.coveredBorder))
                }
                if cutOut.contrast < ArtworkImage.faintContrast { problems.append(.isFaint) }
                if background.coveredBorder == 0 && cutOut.mayHaveFrame { problems.append(.mayHaveFrame) }
            } else {
                visible = decoded.flattenedOnWhite().withOpaqueAlpha()
                problems.append(.hasBackground)
                keepsBackground = true
            }
            trimmed = visible.trimmed(alphaAbove: ArtworkImage.visibleAlpha)
            self.keepsBackground = keepsBackground
            self.problems = problems
        }

        /// The length of the longer side of the logo, in pixels; 0 if it is not visible.
        var longerSide: Int { trimmed.map { max($0.width, $0.height) } ?? 0 }
    }

    /// The longer side of a rendered drawing, in pixels: enough for a logo that covers a quarter of it.
    private static let renderedSide = 4 * longestSide
    /// The maximum number of pixels of an image or a drawing that is decoded again because of its margins, which limits the memory.
    private static let pixelLimit: Float = 25_000_000

    /// Decodes an image, which may be reduced, or renders a drawing.
    /// - Parameter side: The minimum length of the short side of an image, or the longer side of a drawing, in pixels.
    private static func decode(
        _ file: URL, isDrawing: Bool, side: Int
    ) throws(ArtworkError) -> (image: RasterImage, isReduced: Bool) {
        do throws(ImageError) {
            guard isDrawing else {
                let stored = try StoredImage(file, coveringShortSide: side)
                return (stored.upright, stored.isReduced)
            }
            if let drawing = try SVG.render(file, longerSide: side) { return (drawing, true) }
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

    /// Returns the side to decode so that the logo itself has enough pixels, within the limit of pixels; nil if no more pixels are allowed.
    /// - Parameters:
    ///   - decoded: The image as decoded before.
    ///   - longerSideOfLogo: The length of the longer side of the logo in it, in pixels.
    private static func sideToDecode(_ decoded: RasterImage, isDrawing: Bool, longerSideOfLogo: Int) -> Int? {
        let needed = Float(ImageFile.shortSideToDecode(covering: longestSide)) / Float(longerSideOfLogo)
        let limit = (pixelLimit / Float(decoded.width * decoded.height)).squareRoot()
        guard !isDrawing else {
            let factor = min(needed, limit)
            return factor > 1 ? Int(Float(max(decoded.width, decoded.height)) * factor) : nil
        }
        // The JPEG decoder scales by powers of two.
        var factor = 1
        while Float(factor) < needed && Float(2 * factor) <= limit { factor *= 2 }
        // The decoded sides are rounded up, so twice a side can exceed the side at twice the scale.
        return factor > 1 ? (min(decoded.width, decoded.height) - 1) * factor : nil
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
