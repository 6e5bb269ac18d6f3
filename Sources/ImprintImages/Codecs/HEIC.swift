internal import Foundation

#if HEIC && !canImport(ImageIO)
    internal import CHEIF
    internal import CImprintCodecs

    /// Reads HEIC with libheif, which joins tiles and turns the image upright itself.
    enum HEIC {
        static func header(_ bytes: [UInt8], file: URL) throws(ImageError) -> ImageHeader {
            try HEICFile(bytes, file: file).header
        }

        /// Decodes to upright RGB, or RGBA if the file has alpha.
        static func decode(_ bytes: [UInt8], file: URL, _ reduction: Reduction?) throws(ImageError) -> RasterImage {
            try HEICFile(bytes, file: file).decode(reduction)
        }
    }

    /// An open HEIC file.
    private final class HEICFile {
        private let file: URL
        private let context: OpaquePointer
        /// The handle of the file's primary image.
        private let handle: OpaquePointer

        init(_ bytes: [UInt8], file: URL) throws(ImageError) {
            self.file = file
            guard heif_have_decoder_for_format(heif_compression_HEVC) != 0 else {
                throw .missingDecoder(
                    file: file, format: .heic,
                    reason: "libheif has no HEIC decoder; install the plug-in libheif-plugin-libde265")
            }
            guard let context = heif_context_alloc() else {
                throw .decoderOutOfMemory(file, .heic)
            }
            // Callers with many photos decode several at a time, so a single photo stays on the thread of the caller.
            heif_context_set_max_decoding_threads(context, 0)
            var handle: OpaquePointer?
            var status = heif_context_read_from_memory(context, bytes, bytes.count, nil)
            if status.code == heif_error_Ok { status = heif_context_get_primary_image_handle(context, &handle) }
            guard status.code == heif_error_Ok, let handle else {
                // The context owns the text of the error.
                let failure = Self.failure(status, file: file)
                heif_context_free(context)
                throw failure
            }
            self.context = context
            self.handle = handle
            // The decoded image may be larger than the visible one, which can be a small crop of it.
            let width = Int(heif_image_handle_get_ispe_width(handle))
            let height = Int(heif_image_handle_get_ispe_height(handle))
            guard width <= 0 || height <= ImageFile.pixelLimit / width else {
                throw .tooLarge(file: file, width: width, height: height, limit: ImageFile.pixelLimit)
            }
        }

        deinit {
            heif_image_handle_release(handle)
            heif_context_free(context)
        }

        var header: ImageHeader {
            var header = ImageHeader(
                format: .heic, width: Int(heif_image_handle_get_width(handle)),
                height: Int(heif_image_handle_get_height(handle)))
            header.hasAlpha = hasAlpha
            header.colors = colors
            // The luma and chroma planes, and the red, green, blue and alpha converted from them.
            let isDeep = heif_image_handle_get_luma_bits_per_pixel(handle) > 8
            let stored = max(
                header.width * header.height,
                Int(heif_image_handle_get_ispe_width(handle)) * Int(heif_image_handle_get_ispe_height(handle)))
            header.decoderByteCount = (isDeep ? 12 : 8) * stored
            return header
        }

        private var hasAlpha: Bool { heif_image_handle_has_alpha_channel(handle) != 0 }

        private var colors: ColorDescription? {
            let size = heif_image_handle_get_raw_color_profile_size(handle)
            if size > 0 {
                var profile = [UInt8](repeating: 0, count: size)
                let status = heif_image_handle_get_raw_color_profile(handle, &profile)
                return status.code == heif_error_Ok ? .profile(profile) : .unusable("the ICC profile cannot be read")
            }
            var codePoints: UnsafeMutablePointer<heif_color_profile_nclx>?
            guard heif_image_handle_get_nclx_color_profile(handle, &codePoints).code == heif_error_Ok, let codePoints
            else { return nil }
            defer { heif_nclx_color_profile_free(codePoints) }
            return .codePoints(
                primaries: Int(codePoints.pointee.color_primaries.rawValue),
                transfer: Int(codePoints.pointee.transfer_characteristics.rawValue))
        }

        /// The limit of the decoder for the size of images: the size in the header, because `DecodingMemory` counts no more, and the tiles may
        /// disagree with it.
        private var sizeLimit: Int32 {
            // Coded images are padded to blocks of up to 64 pixels, and a small image may be a part of one tile.
            let (padding, tile) = (64.0, 1024.0)
            let sides = [
                (heif_image_handle_get_width(handle), heif_image_handle_get_height(handle)),
                (heif_image_handle_get_ispe_width(handle), heif_image_handle_get_ispe_height(handle)),
            ].map { (width: Double($0) + padding, height: Double($1) + padding) }
            // Since version 1.18, libheif compares the number of pixels with the square of the limit; earlier versions compare each side with it.
            let comparesPixels = heif_get_version_number() >= 1 << 24 | 18 << 16
            let limits = sides.map { side in
                comparesPixels ? (side.width * side.height).squareRoot().rounded(.up) : max(side.width, side.height)
            }
            return Int32(min(limits.reduce(tile) { max($0, $1) }, Double(Int32.max)))
        }

        func decode(_ reduction: Reduction?) throws(ImageError) -> RasterImage {
            guard let options = heif_decoding_options_alloc() else {
                throw .decoderOutOfMemory(file, .heic)
            }
            defer { heif_decoding_options_free(options) }
            options.pointee.convert_hdr_to_8bit = 1
            options.pointee.strict_decoding = 1
            heif_context_set_maximum_image_size_limit(context, sizeLimit)

            let channels = hasAlpha ? 4 : 3
            var decoded: OpaquePointer?
            let status = heif_decode_image(
                handle, &decoded, heif_colorspace_RGB,
                hasAlpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, options)
            guard status.code == heif_error_Ok, let decoded else { throw Self.failure(status, file: file) }
            defer { heif_image_release(decoded) }
            let width = Int(heif_image_get_width(decoded, heif_channel_interleaved))
            let height = Int(heif_image_get_height(decoded, heif_channel_interleaved))
            var stride: Int32 = 0
            guard let rows = heif_image_get_plane_readonly(decoded, heif_channel_interleaved, &stride),
                width > 0, height > 0, Int(stride) >= width * channels
            else { throw .truncated(file: file, reason: "the HEIC decoder returned no image") }
            let isPremultiplied = hasAlpha && heif_image_handle_is_premultiplied_alpha(handle) != 0
            var image: RasterImage
            if let reduction, reduction.width <= width, reduction.height <= height {
                image = RasterImage(width: reduction.width, height: reduction.height, channels: channels)
                var boxes = reduction.boxes(
                    ImageHeader(format: .heic, width: width, height: height), channels: channels)
                guard
                    imprint_reduce(
                        rows, Int(stride), &boxes, hasAlpha && !isPremultiplied ? 1 : 0, &image.samples)
                        == IMPRINT_DECODED
                else { throw .decoderOutOfMemory(file, .heic) }
            } else {
                let samples = [UInt8](unsafeUninitializedCapacity: width * height * channels) { target, count in
                    for y in 0..<height {
                        let row = UnsafeBufferPointer(start: rows + y * Int(stride), count: width * channels)
                        _ = target[(y * width * channels)...].initialize(from: row)
                    }
                    count = width * height * channels
                }
                image = RasterImage(width: width, height: height, channels: channels, samples: samples)
            }
            return isPremultiplied ? image.alphaDivided() : image
        }

        private static func failure(_ error: heif_error, file: URL) -> ImageError {
            let message = error.message.map { String(cString: $0) } ?? "unknown error"
            let reason = message.split(whereSeparator: \.isNewline).joined(separator: " ")
            switch error.code {
            case heif_error_Unsupported_feature, heif_error_Unsupported_filetype:
                return .unsupported(file: file, found: "an HEIC variant (\(reason))")
            case heif_error_Memory_allocation_error where error.subcode == heif_suberror_Security_limit_exceeded:
                return .unsupported(file: file, found: "an HEIC variant (\(reason))")
            case heif_error_Memory_allocation_error: return .decoderOutOfMemory(file, .heic)
            default: return .truncated(file: file, reason: reason)
            }
        }
    }
#elseif !canImport(ImageIO)
    /// Reports HEIC as unsupported in a build without it.
    enum HEIC {
        static func header(_ bytes: [UInt8], file: URL) throws(ImageError) -> ImageHeader { throw missing(file) }

        static func decode(_ bytes: [UInt8], file: URL, _ reduction: Reduction?) throws(ImageError) -> RasterImage {
            throw missing(file)
        }

        private static func missing(_ file: URL) -> ImageError {
            .missingDecoder(
                file: file, format: .heic,
                reason: "this build has no HEIC support because the package trait HEIC is off")
        }
    }
#endif
