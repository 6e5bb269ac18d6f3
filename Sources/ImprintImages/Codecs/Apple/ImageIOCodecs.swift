#if canImport(ImageIO)
    internal import Foundation

    /// Reads and writes JPEG with ImageIO.
    enum JPEG {
        static func header(_ bytes: [UInt8], file: URL) throws(ImageError) -> ImageHeader {
            let segments = JPEGSegments(bytes)
            // ImageIO decodes a JPEG that is cut short, and leaves the rest grey.
            guard segments.hasEnd else {
                throw .truncated(file: file, reason: "the JPEG ends before its last byte")
            }
            let image = try ImageIOFile(bytes, .jpeg, file: file)
            var header = try image.header()
            header.orientation = segments.orientation
            header.colors = segments.profile
            header.profile = image.profile(header.colors)
            header.decoderByteCount += segments.coefficientByteCount
            return header
        }

        /// Decodes to RGB as stored; CMYK is converted to sRGB.
        ///
        /// - Parameter eighths: The scale of the decoded image, in eighths of its size.
        static func decode(
            _ bytes: [UInt8], _ header: ImageHeader, file: URL, eighths: Int
        ) throws(ImageError) -> RasterImage {
            try ImageIOFile(bytes, .jpeg, file: file).decode(header, eighths: eighths)
        }

        /// Encodes an image (grey or RGB) as a JPEG.
        ///
        /// ImageIO chooses the resolution of colour.
        static func encode(_ image: RasterImage, quality: Int) throws(ImageError) -> [UInt8] {
            try image.checkJPEG(quality: quality)
            return try ImageIOEncoder.encode(image, as: .jpeg, quality: quality)
        }
    }

    /// Reads and writes PNG with ImageIO.
    enum PNG {
        static func header(_ bytes: [UInt8], file: URL) throws(ImageError) -> ImageHeader {
            var header = try PNGChunks(bytes).header(file: file)
            let image = try ImageIOFile(bytes, .png, file: file)
            header.profile = image.profile(header.colors)
            header.decoderByteCount = image.decoderByteCount(header)
            return header
        }

        /// Decodes a PNG of any depth and colour type to 8-bit RGB, or RGBA if the file has transparency.
        static func decode(
            _ bytes: [UInt8], _ header: ImageHeader, file: URL, _ reduction: Reduction?
        ) throws(ImageError) -> RasterImage {
            try ImageIOFile(bytes, .png, file: file).decode(header, reduction)
        }

        /// Encodes an image as an 8-bit PNG: grey, RGB or RGBA, depending on its channels.
        static func encode(_ image: RasterImage) throws(ImageError) -> [UInt8] {
            try ImageIOEncoder.encode(image, as: .png, quality: nil)
        }
    }

    /// Reads WebP with ImageIO.
    enum WebP {
        static func header(_ bytes: [UInt8], file: URL) throws(ImageError) -> ImageHeader {
            let chunks = WebPChunks(bytes)
            guard chunks.isWhole else { throw .truncated(file: file, reason: "the WebP ends before its last byte") }
            let image = try ImageIOFile(bytes, .webp, file: file)
            var header = try image.header()
            header.orientation = chunks.first("EXIF").flatMap { Orientation(exif: $0) } ?? .up
            header.colors = chunks.first("ICCP").map { .profile(Array($0)) }
            header.profile = image.profile(header.colors)
            return header
        }

        /// Decodes to RGB, or RGBA if the file has alpha.
        static func decode(
            _ bytes: [UInt8], _ header: ImageHeader, file: URL, _ reduction: Reduction?
        ) throws(ImageError) -> RasterImage {
            try ImageIOFile(bytes, .webp, file: file).decode(header, reduction)
        }
    }

    /// Reads HEIC with ImageIO.
    enum HEIC {
        static func header(_ bytes: [UInt8], file: URL) throws(ImageError) -> ImageHeader {
            let image = try ImageIOFile(bytes, .heic, file: file)
            var header = try image.header()
            header.profile = image.profile(nil)
            return header
        }

        /// Decodes to RGB as stored, or RGBA if the file has alpha.
        static func decode(_ bytes: [UInt8], file: URL, _ reduction: Reduction?) throws(ImageError) -> RasterImage {
            let image = try ImageIOFile(bytes, .heic, file: file)
            return try image.decode(image.header(), reduction)
        }
    }

    /// The colour profile of a file.
    ///
    /// Core Graphics converts the samples to sRGB when it draws them, so nothing remains to be converted.
    final class ColorProfile: Sendable {
        /// The name in the profile; nil if the file has no readable colour description.
        let name: String?
        /// The reason why the samples are treated as sRGB although the file describes other colours; nil if there is no problem.
        let problem: String?

        init(name: String?, problem: String?) { (self.name, self.problem) = (name, problem) }

        /// Returns the image unchanged.
        func convert(_ image: RasterImage) -> RasterImage { image }
    }
#endif
