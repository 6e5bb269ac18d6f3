#if !canImport(ImageIO)
    internal import CImprintCodecs
    internal import CPNG
    internal import Foundation
    internal import ImprintCore

    /// Reads and writes PNG with the simplified interface of libpng; reads very large images row by row.
    enum PNG {
        static func header(_ bytes: [UInt8], file: URL) throws(ImageError) -> ImageHeader {
            try PNGChunks(bytes).header(file: file)
        }

        /// Decodes a PNG of any depth and colour type to 8-bit RGB, or RGBA if the file has transparency.
        static func decode(
            _ bytes: [UInt8], _ stored: ImageHeader, file: URL, _ reduction: Reduction?
        ) throws(ImageError) -> RasterImage {
            if let reduction { return try decode(bytes, stored, file: file, to: reduction) }
            // The simplified interface of libpng would apply a gamma, but neither chromaticities nor profiles.
            let bytes = PNGChunks(bytes).withoutColors()
            var header = png_image()
            header.version = png_uint_32(PNG_IMAGE_VERSION)
            defer { png_image_free(&header) }
            // libpng keeps a pointer to the bytes between its calls.
            let image: RasterImage? = bytes.withUnsafeBufferPointer { bytes in
                guard png_image_begin_read_from_memory(&header, bytes.baseAddress, bytes.count) != 0,
                    (Int(header.width), Int(header.height)) == (stored.width, stored.height)
                else { return nil }
                let hasAlpha = header.format & png_uint_32(PNG_FORMAT_FLAG_ALPHA) != 0
                let channels = hasAlpha ? 4 : 3
                let sampleCount = stored.width * stored.height * channels
                header.format = png_uint_32(PNG_FORMAT_FLAG_COLOR) | (hasAlpha ? png_uint_32(PNG_FORMAT_FLAG_ALPHA) : 0)
                // Without this flag, libpng treats 16-bit samples without a colour space as linear light.
                header.flags |= png_uint_32(PNG_IMAGE_FLAG_16BIT_sRGB)
                var isDecoded = false
                let samples = [UInt8](unsafeUninitializedCapacity: sampleCount) { target, count in
                    isDecoded = png_image_finish_read(&header, nil, target.baseAddress, 0, nil) != 0
                    // A failed decode leaves memory uninitialized, so none of it may be used.
                    count = isDecoded ? sampleCount : 0
                }
                return isDecoded
                    ? RasterImage(width: stored.width, height: stored.height, channels: channels, samples: samples)
                    : nil
            }
            guard let image else { throw failure(message(of: header), file: file) }
            return image
        }

        /// Decodes row by row to the size of a reduction.
        private static func decode(
            _ bytes: [UInt8], _ stored: ImageHeader, file: URL, to reduction: Reduction
        ) throws(ImageError) -> RasterImage {
            var boxes = reduction.boxes(stored, channels: stored.hasAlpha ? 4 : 3)
            var image = RasterImage(width: reduction.width, height: reduction.height, channels: Int(boxes.channels))
            var message = [CChar](repeating: 0, count: 128)
            let status = imprint_decode_png_reduced(bytes, bytes.count, &boxes, &image.samples, &message)
            switch status {
            case IMPRINT_DECODED: return image
            case IMPRINT_OUT_OF_MEMORY: throw .decoderOutOfMemory(file, .png)
            default: throw failure(String(buffer: message), file: file)
            }
        }

        private static func failure(_ message: String, file: URL) -> ImageError {
            // The messages of libpng and, through it, of zlib.
            let isMemory = message.lowercased().hasSuffix("out of memory") || message.hasSuffix("insufficient memory")
            return isMemory ? .decoderOutOfMemory(file, .png) : .truncated(file: file, reason: message)
        }

        /// Encodes an image as an 8-bit PNG: grey, RGB or RGBA, depending on its channels.
        static func encode(_ image: RasterImage) throws(ImageError) -> [UInt8] {
            var header = png_image()
            header.version = png_uint_32(PNG_IMAGE_VERSION)
            header.width = png_uint_32(image.width)
            header.height = png_uint_32(image.height)
            header.format =
                switch image.channels {
                case 1: 0
                case 3: png_uint_32(PNG_FORMAT_FLAG_COLOR)
                default: png_uint_32(PNG_FORMAT_FLAG_COLOR) | png_uint_32(PNG_FORMAT_FLAG_ALPHA)
                }
            defer { png_image_free(&header) }
            // An upper bound for a PNG of this size: the raw rows with a filter byte each, and the overhead of zlib and the chunks.
            let raw = image.samples.count + image.height
            var size = png_alloc_size_t(raw + raw / 500 + 4096)
            var isEncoded = false
            let bytes = [UInt8](unsafeUninitializedCapacity: size) { target, count in
                isEncoded = png_image_write_to_memory(&header, target.baseAddress, &size, 0, image.samples, 0, nil) != 0
                count = isEncoded ? Int(size) : 0
            }
            guard isEncoded else { throw .unencodable(format: "PNG", reason: message(of: header)) }
            return bytes
        }

        private static func message(of header: png_image) -> String {
            withUnsafeBytes(of: header.message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        }
    }
#endif
