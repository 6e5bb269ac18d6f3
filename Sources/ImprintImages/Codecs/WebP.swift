#if !canImport(ImageIO)
    internal import CWebP
    internal import Foundation

    /// Reads WebP with libwebp.
    enum WebP {
        static func header(_ bytes: [UInt8], file: URL) throws(ImageError) -> ImageHeader {
            let chunks = WebPChunks(bytes)
            guard chunks.isWhole else { throw .truncated(file: file, reason: "the WebP ends before its last byte") }
            let features = try features(of: bytes[...], file: file)
            var header = ImageHeader(format: .webp, width: Int(features.width), height: Int(features.height))
            header.hasAlpha = features.has_alpha != 0
            header.isAnimated = features.has_animation != 0
            // A lossless image is decoded at full size, 4 bytes per pixel; the alpha of a lossy image is stored losslessly too.
            let frame = header.isAnimated ? try? Frame(bytes, file: file).features : features
            if let frame {
                let isLossless = frame.format == 2
                let bytesPerPixel = isLossless ? 4 : frame.has_alpha != 0 ? 5 : 0
                header.decoderByteCount = bytesPerPixel * Int(frame.width) * Int(frame.height)
            }
            header.orientation = chunks.first("EXIF").flatMap { Orientation(exif: $0) } ?? .up
            header.colors = chunks.first("ICCP").map { .profile(Array($0)) }
            return header
        }

        /// Decodes to RGB, or RGBA if the file has alpha or the first frame of an animation does not cover the image.
        static func decode(
            _ bytes: [UInt8], _ header: ImageHeader, file: URL, _ reduction: Reduction?
        ) throws(ImageError) -> RasterImage {
            let (width, height) = reduction.map { ($0.width, $0.height) } ?? (header.width, header.height)
            guard header.isAnimated else {
                var image = RasterImage(width: width, height: height, channels: header.hasAlpha ? 4 : 3)
                try decode(bytes[...], into: &image, columns: 0..<width, rows: 0..<height, file: file)
                return image
            }
            let frame = try Frame(bytes, file: file)
            let size = (width: Int(frame.features.width), height: Int(frame.features.height))
            guard frame.x + size.width <= header.width, frame.y + size.height <= header.height else {
                throw .truncated(file: file, reason: "the first frame lies outside of the image")
            }
            let isOpaque = frame.features.has_alpha == 0 && size == (header.width, header.height)
            var image = RasterImage(width: width, height: height, channels: isOpaque ? 3 : 4)
            let columns = Reduction.scaled(frame.x, size.width, from: header.width, to: width)
            let rows = Reduction.scaled(frame.y, size.height, from: header.height, to: height)
            try decode(frame.bitstream, into: &image, columns: columns, rows: rows, file: file)
            return image
        }

        /// The first frame of an animation.
        private struct Frame {
            /// The position in the image.
            let x, y: Int
            let bitstream: ArraySlice<UInt8>
            let features: WebPBitstreamFeatures

            init(_ bytes: [UInt8], file: URL) throws(ImageError) {
                // The halved position, the size and the duration in 3 bytes each, a byte of flags, then the bitstream.
                let overhead = 16
                guard let frame = WebPChunks(bytes).first("ANMF"), frame.count > overhead else {
                    throw .truncated(file: file, reason: "the WebP has no frame")
                }
                (x, y) = (2 * frame.littleEndian(at: 0, bytes: 3), 2 * frame.littleEndian(at: 3, bytes: 3))
                bitstream = frame.dropFirst(overhead)
                features = try WebP.features(of: bitstream, file: file)
            }
        }

        /// Decodes a bitstream into a part of an image, scaled to the size of the part.
        private static func decode(
            _ bytes: ArraySlice<UInt8>, into image: inout RasterImage, columns: Range<Int>, rows: Range<Int>, file: URL
        ) throws(ImageError) {
            let stride = image.width * image.channels
            let start = rows.lowerBound * stride + columns.lowerBound * image.channels
            var config = WebPDecoderConfig()
            guard WebPInitDecoderConfig(&config) != 0 else {
                throw .missingDecoder(
                    file: file, format: .webp, reason: "the libwebp library has a different version from its header")
            }
            let features = try features(of: bytes, file: file)
            if (Int(features.width), Int(features.height)) != (columns.count, rows.count) {
                config.options.use_scaling = 1
                config.options.scaled_width = Int32(columns.count)
                config.options.scaled_height = Int32(rows.count)
            }
            config.output.colorspace = image.channels == 4 ? MODE_RGBA : MODE_RGB
            config.output.is_external_memory = 1
            let status = bytes.withUnsafeBufferPointer { source in
                image.samples.withUnsafeMutableBufferPointer { target in
                    let part = UnsafeMutableBufferPointer(rebasing: target[start...])
                    config.output.u.RGBA.rgba = part.baseAddress
                    config.output.u.RGBA.stride = Int32(stride)
                    config.output.u.RGBA.size = part.count
                    return WebPDecode(source.baseAddress, source.count, &config)
                }
            }
            switch status {
            case VP8_STATUS_OK: return
            case VP8_STATUS_OUT_OF_MEMORY: throw .decoderOutOfMemory(file, .webp)
            default: throw .truncated(file: file, reason: "the WebP decoder reports damaged data")
            }
        }

        private static func features(
            of bytes: ArraySlice<UInt8>, file: URL
        ) throws(ImageError) -> WebPBitstreamFeatures {
            var features = WebPBitstreamFeatures()
            let status = bytes.withUnsafeBufferPointer { WebPGetFeatures($0.baseAddress, $0.count, &features) }
            guard status != VP8_STATUS_OUT_OF_MEMORY else { throw .decoderOutOfMemory(file, .webp) }
            guard status == VP8_STATUS_OK else {
                throw .truncated(file: file, reason: "the WebP decoder reports a damaged header")
            }
            return features
        }
    }
#endif
