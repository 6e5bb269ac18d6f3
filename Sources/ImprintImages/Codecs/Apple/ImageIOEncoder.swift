#if canImport(ImageIO)
    internal import CoreGraphics
    internal import Foundation
    internal import ImageIO

    /// Encodes images with ImageIO.
    enum ImageIOEncoder {
        /// A format that ImageIO writes; the raw value is its uniform type identifier.
        enum Format: String {
            case jpeg = "public.jpeg"
            case png = "public.png"
        }

        /// Encodes an image.
        /// - Parameters:
        ///   - image: The image; its samples are sRGB.
        ///   - format: The format of the result.
        ///   - quality: The quality of a JPEG (1…100); nil for PNG.
        /// - Throws: `ImageError.unencodable`.
        static func encode(
            _ image: RasterImage, as format: Format, quality: Int?
        ) throws(ImageError) -> [UInt8] {
            let output = NSMutableData()
            let properties = quality.map { [kCGImageDestinationLossyCompressionQuality: Double($0) / 100] }
            guard let source = cgImage(image),
                let destination = CGImageDestinationCreateWithData(
                    output as CFMutableData, format.rawValue as CFString, 1, nil)
            else { throw failure(format, "there is not enough memory") }
            CGImageDestinationAddImage(destination, source, properties.map { $0 as CFDictionary })
            guard CGImageDestinationFinalize(destination) else { throw failure(format, "ImageIO reports an error") }
            return [UInt8](output as Data)
        }

        private static func failure(_ format: Format, _ reason: String) -> ImageError {
            .unencodable(format: format == .jpeg ? "JPEG" : "PNG", reason: reason)
        }

        /// Returns the image for Core Graphics; nil if memory runs out.
        private static func cgImage(_ image: RasterImage) -> CGImage? {
            guard let provider = CGDataProvider(data: Data(image.samples) as CFData),
                let space = image.channels == 1 ? CGColorSpaceCreateDeviceGray() : CGColorSpace(name: CGColorSpace.sRGB)
            else { return nil }
            let alpha: CGImageAlphaInfo = image.channels == 4 ? .last : .none
            return CGImage(
                width: image.width, height: image.height, bitsPerComponent: 8, bitsPerPixel: 8 * image.channels,
                bytesPerRow: image.width * image.channels, space: space,
                bitmapInfo: CGBitmapInfo(rawValue: alpha.rawValue), provider: provider, decode: nil,
                shouldInterpolate: false, intent: .defaultIntent)
        }
    }

    extension RasterImage {
        /// Returns the image after JPEG compression with the given quality (1…100).
        ///
        /// ImageIO chooses the resolution of colour.
        /// - Throws: `ImageError.unencodable` if memory runs out, or if a side is too long for a JPEG.
        package func compressed(quality: Int) throws(ImageError) -> RasterImage {
            let opaque = channels == 4 ? withoutFourthChannel() : self
            let bytes = try JPEG.encode(opaque, quality: quality)
            let file = URL(filePath: "compressed.jpg")
            let decoded = try JPEG.decode(bytes, JPEG.header(bytes, file: file), file: file, eighths: 8)
            var result = self
            for pixel in 0..<(width * height) {
                for channel in 0..<min(channels, 3) {
                    result.samples[pixel * channels + channel] = decoded.samples[3 * pixel + channel]
                }
            }
            return result
        }

        /// Returns the first three of four channels.
        func withoutFourthChannel() -> RasterImage {
            var result = RasterImage(width: width, height: height)
            for pixel in 0..<(width * height) {
                for channel in 0..<3 { result.samples[3 * pixel + channel] = samples[4 * pixel + channel] }
            }
            return result
        }
    }
#endif
