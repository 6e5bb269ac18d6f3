#if canImport(ImageIO)
    internal import CImprintCodecs
    internal import CoreGraphics
    internal import Foundation
    internal import ImageIO

    /// An image file that ImageIO reads, on Apple platforms.
    ///
    /// ImageIO returns the image as stored, without its orientation. Core Graphics converts its colours to sRGB when it draws the image.
    struct ImageIOFile {
        private let format: ImageFormat
        private let file: URL
        private let source: CGImageSource
        private let index: Int
        private let properties: [CFString: Any]

        /// Opens the bytes of a file and reads its properties.
        /// - Throws: `ImageError.truncated` if ImageIO finds no image, or a damaged one.
        init(_ bytes: [UInt8], _ format: ImageFormat, file: URL) throws(ImageError) {
            self.format = format
            self.file = file
            guard let source = CGImageSourceCreateWithData(Data(bytes) as CFData, nil) else {
                throw .truncated(file: file, reason: "ImageIO cannot open the \(format.rawValue)")
            }
            self.source = source
            // An HEIC may store other images before the primary one.
            index = CGImageSourceGetPrimaryImageIndex(source)
            let status = CGImageSourceGetStatusAtIndex(source, index)
            let isDamaged = [.statusUnexpectedEOF, .statusInvalidData, .statusUnknownType].contains(status)
            guard !isDamaged,
                let properties = CGImageSourceCopyPropertiesAtIndex(source, index, nil) as? [CFString: Any]
            else {
                throw .truncated(
                    file: file, reason: "ImageIO reports status \(status.rawValue) for the \(format.rawValue)")
            }
            self.properties = properties
        }

        /// The header, without colours.
        ///
        /// Its orientation is the one that ImageIO reports. For HEIC, this is the rotation and mirroring in the container.
        func header() throws(ImageError) -> ImageHeader {
            guard let width = properties[kCGImagePropertyPixelWidth] as? Int,
                let height = properties[kCGImagePropertyPixelHeight] as? Int
            else { throw .truncated(file: file, reason: "ImageIO reports no size for the \(format.rawValue)") }
            var header = ImageHeader(format: format, width: width, height: height)
            let model = properties[kCGImagePropertyColorModel] as? String
            if model == kCGImagePropertyColorModelGray as String { header.model = .grey }
            if model == kCGImagePropertyColorModelCMYK as String { header.model = .cmyk }
            header.hasAlpha = properties[kCGImagePropertyHasAlpha] as? Bool ?? false
            // The other images of an HEIC are a burst or thumbnails.
            header.isAnimated = format != .heic && CGImageSourceGetCount(source) > 1
            header.orientation =
                (properties[kCGImagePropertyOrientation] as? Int).flatMap { Orientation(rawValue: $0) } ?? .up
            header.decoderByteCount = decoderByteCount(header)
            return header
        }

        /// Returns the bytes of the image that ImageIO decodes, and of the red, green, blue and alpha drawn from it.
        func decoderByteCount(_ header: ImageHeader) -> Int {
            // The size comes from the file; the caller rejects a larger image.
            guard header.height > 0, header.width <= ImageFile.pixelLimit / header.height else { return 0 }
            let isDeep = properties[kCGImagePropertyDepth] as? Int ?? 8 > 8
            return (isDeep ? 12 : 8) * header.width * header.height
        }

        /// Returns the name of the file's profile, or the problem of an unusable description; nil if the samples are sRGB.
        func profile(_ colors: ColorDescription?) -> ColorProfile? {
            if case .unusable(let reason)? = colors { return ColorProfile(name: nil, problem: reason) }
            guard colors != nil || format == .heic else { return nil }
            return ColorProfile(name: properties[kCGImagePropertyProfileName] as? String, problem: nil)
        }

        /// Decodes to sRGB as stored: red, green and blue, with alpha if the file has it.
        ///
        /// - Parameters:
        ///   - header: The header of the file.
        ///   - eighths: The scale of a JPEG, in eighths of its size: 1, 2, 4 or 8.
        ///   - reduction: The reduced size of a very large image; nil for the full size.
        func decode(
            _ header: ImageHeader, eighths: Int = 8, _ reduction: Reduction? = nil
        ) throws(ImageError) -> RasterImage {
            var options: [CFString: Any] = [kCGImageSourceShouldCache: false]
            if eighths < 8 { options[kCGImageSourceSubsampleFactor] = 8 / eighths }
            guard let decoded = CGImageSourceCreateImageAtIndex(source, index, options as CFDictionary) else {
                throw .truncated(file: file, reason: "ImageIO cannot decode the \(format.rawValue)")
            }
            let drawing = Drawing(
                image: decoded, width: (header.width * eighths + 7) / 8, height: (header.height * eighths + 7) / 8)
            guard var image = drawing.rgba(isSRGB: isSRGB(header), isGrey: header.model == .grey, header.hasAlpha)
            else { throw .decoderOutOfMemory(file, format) }
            if let reduction { image = try reduced(image, header, to: reduction) }
            return header.hasAlpha ? image.alphaDivided() : image.withoutFourthChannel()
        }

        /// Whether the samples are sRGB, because the file describes no other colours.
        ///
        /// Only ImageIO reads the description of an HEIC, and CMYK always needs a conversion.
        private func isSRGB(_ header: ImageHeader) -> Bool {
            if case .unusable? = header.colors { return true }
            return header.colors == nil && format != .heic && header.model != .cmyk
        }

        /// Scales an image with premultiplied alpha to the size of a reduction.
        private func reduced(
            _ image: RasterImage, _ header: ImageHeader, to reduction: Reduction
        ) throws(ImageError) -> RasterImage {
            var result = RasterImage(width: reduction.width, height: reduction.height, channels: 4)
            var boxes = reduction.boxes(header, channels: 4)
            guard imprint_reduce(image.samples, 4 * image.width, &boxes, 0, &result.samples) == IMPRINT_DECODED else {
                throw .decoderOutOfMemory(file, format)
            }
            return result
        }
    }

    /// A decoded image, and the size at which Core Graphics draws it.
    private struct Drawing {
        let image: CGImage
        let width: Int
        let height: Int

        /// Returns red, green, blue and premultiplied alpha; the fourth channel has no meaning without alpha.
        ///
        /// - Parameters:
        ///   - isSRGB: Whether the samples are sRGB already, even if ImageIO assumes another colour space.
        ///   - isGrey: Whether the image has one colour channel.
        ///   - hasAlpha: Whether the image has alpha.
        /// - Returns: nil if memory runs out.
        func rgba(isSRGB: Bool, isGrey: Bool, _ hasAlpha: Bool) -> RasterImage? {
            guard isSRGB, isGrey, !hasAlpha else {
                guard let space = CGColorSpace(name: CGColorSpace.sRGB) else { return nil }
                // An image with a palette keeps its own colour space, because Core Graphics cannot replace it.
                let source = isSRGB ? image.copy(colorSpace: space) ?? image : image
                let info: CGImageAlphaInfo = hasAlpha ? .premultipliedLast : .noneSkipLast
                return samples(of: source, space, channels: 4, info).map {
                    RasterImage(width: width, height: height, channels: 4, samples: $0)
                }
            }
            // Core Graphics would convert grey without a profile from gamma 2.2 to sRGB.
            let space = CGColorSpaceCreateDeviceGray()
            guard let grey = samples(of: image.copy(colorSpace: space) ?? image, space, channels: 1, .none) else {
                return nil
            }
            var result = RasterImage(width: width, height: height, channels: 4, filledWith: 255)
            for pixel in grey.indices {
                for channel in 0..<3 { result.samples[4 * pixel + channel] = grey[pixel] }
            }
            return result
        }

        private func samples(
            of image: CGImage, _ space: CGColorSpace, channels: Int, _ info: CGImageAlphaInfo
        ) -> [UInt8]? {
            var samples = [UInt8](repeating: 0, count: width * height * channels)
            let isDrawn = samples.withUnsafeMutableBytes { target in
                guard
                    let context = CGContext(
                        data: target.baseAddress, width: width, height: height, bitsPerComponent: 8,
                        bytesPerRow: width * channels, space: space, bitmapInfo: info.rawValue)
                else { return false }
                context.setBlendMode(.copy)
                context.interpolationQuality = .high
                context.draw(image, in: CGRect(x: 0, y: 0, width: width, height: height))
                return true
            }
            return isDrawn ? samples : nil
        }
    }
#endif
