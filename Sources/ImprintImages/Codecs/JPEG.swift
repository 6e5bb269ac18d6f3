#if !canImport(ImageIO)
    internal import CTurboJPEG
    internal import Foundation

    /// Reads and writes JPEG with libturbojpeg.
    enum JPEG {
        static func header(_ bytes: [UInt8], file: URL) throws(ImageError) -> ImageHeader {
            let decoder = try decoder(file)
            defer { tjDestroy(decoder) }
            var (width, height, subsampling, colorSpace): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
            // A header that is rejected only for its rare subsampling still has a size, and the image can be decoded.
            _ = tjDecompressHeader3(decoder, bytes, UInt(bytes.count), &width, &height, &subsampling, &colorSpace)
            guard width > 0, height > 0 else { throw failure(of: decoder, file: file) }
            let segments = JPEGSegments(bytes)
            var header = ImageHeader(format: .jpeg, width: Int(width), height: Int(height))
            switch UInt32(bitPattern: colorSpace) {
            case TJCS_GRAY.rawValue: header.model = .grey
            case TJCS_CMYK.rawValue, TJCS_YCCK.rawValue: header.model = .cmyk
            default: header.model = .rgb
            }
            header.orientation = segments.orientation
            header.colors = segments.profile
            header.decoderByteCount = segments.coefficientByteCount
            return header
        }

        /// Decodes a baseline or progressive, grey, colour or CMYK JPEG to RGB as stored; CMYK is converted to sRGB.
        ///
        /// - Parameter eighths: The scale of the decoded image, in eighths of its size.
        static func decode(
            _ bytes: [UInt8], _ header: ImageHeader, file: URL, eighths: Int
        ) throws(ImageError) -> RasterImage {
            let decoder = try decoder(file)
            defer { tjDestroy(decoder) }
            let bytes = JPEGSegments(bytes).withStandardHeader()
            let (width, height) = ((header.width * eighths + 7) / 8, (header.height * eighths + 7) / 8)
            let isCMYK = header.model == .cmyk
            let sampleCount = width * height * (isCMYK ? 4 : 3)
            let format = isCMYK ? TJPF_CMYK : TJPF_RGB
            var isWhole = false
            var samples = [UInt8](unsafeUninitializedCapacity: sampleCount) { target, count in
                let status = tjDecompress2(
                    decoder, bytes, UInt(bytes.count), target.baseAddress, Int32(width), 0, Int32(height),
                    Int32(format.rawValue), TJFLAG_LIMITSCANS)
                isWhole = status == 0 || isHarmless(decoder)
                // A failed decode leaves memory uninitialized, so none of it may be used.
                count = isWhole ? sampleCount : 0
            }
            guard isWhole else { throw failure(of: decoder, file: file) }
            if isCMYK { samples = rgb(cmyk: &samples, bytes, header) }
            return RasterImage(width: width, height: height, channels: 3, samples: samples)
        }

        /// Encodes an image (grey or RGB) as a baseline JPEG with colour at full resolution (4:4:4).
        static func encode(_ image: RasterImage, quality: Int) throws(ImageError) -> [UInt8] {
            try image.checkJPEG(quality: quality)
            guard let encoder = tjInitCompress() else {
                throw .unencodable(format: "JPEG", reason: "the encoder ran out of memory")
            }
            defer { tjDestroy(encoder) }
            let isGrey = image.channels == 1
            var output: UnsafeMutablePointer<UInt8>?
            defer { tjFree(output) }
            var size: UInt = 0
            let status = tjCompress2(
                encoder, image.samples, Int32(image.width), 0, Int32(image.height),
                Int32((isGrey ? TJPF_GRAY : TJPF_RGB).rawValue), &output, &size,
                Int32((isGrey ? TJSAMP_GRAY : TJSAMP_444).rawValue), Int32(quality), TJFLAG_ACCURATEDCT)
            guard status == 0, let output else { throw .unencodable(format: "JPEG", reason: message(of: encoder)) }
            return Array(UnsafeBufferPointer(start: output, count: Int(size)))
        }

        private static func decoder(_ file: URL) throws(ImageError) -> tjhandle {
            guard let decoder = tjInitDecompress() else {
                throw .decoderOutOfMemory(file, .jpeg)
            }
            return decoder
        }

        /// Whether the decoder only warns about extra bytes after the image, which some phones write.
        private static func isHarmless(_ decoder: tjhandle) -> Bool {
            tjGetErrorCode(decoder) == TJERR_WARNING.rawValue && message(of: decoder).hasSuffix("before marker 0xd9")
        }

        private static func failure(of decoder: tjhandle, file: URL) -> ImageError {
            let message = message(of: decoder)
            // The decoder's messages for a whole file of an unsupported kind.
            if message.hasPrefix("Unsupported") || message.hasPrefix("Sorry") {
                return .unsupported(file: file, found: message)
            }
            // The messages of libjpeg and of TurboJPEG.
            if message.contains("Insufficient memory") || message.contains("Memory allocation failure") {
                return .decoderOutOfMemory(file, .jpeg)
            }
            return .truncated(file: file, reason: message)
        }

        private static func message(of handle: tjhandle) -> String {
            tjGetErrorStr2(handle).map { String(cString: $0) } ?? "unknown error"
        }

        /// Converts CMYK samples to sRGB with the profile of the file, or else by red = (1 − C)(1 − K), and so on.
        /// - Parameter cmyk: The samples as stored; inverted in place if the file stores them inverted, to save memory.
        private static func rgb(cmyk: inout [UInt8], _ bytes: [UInt8], _ header: ImageHeader) -> [UInt8] {
            // Adobe's software inverts the samples: it stores 1 − C, 1 − M and so on.
            if JPEGSegments(bytes).hasAdobeMarker { for index in cmyk.indices { cmyk[index] = 255 - cmyk[index] } }
            if let converted = header.profile?.convert(cmyk: cmyk) { return converted }
            var rgb: [UInt8] = []
            rgb.reserveCapacity(cmyk.count / 4 * 3)
            for pixel in stride(from: 0, to: cmyk.count, by: 4) {
                let light = 255 - Int(cmyk[pixel + 3])
                for ink in cmyk[pixel..<pixel + 3] { rgb.append(UInt8(((255 - Int(ink)) * light + 127) / 255)) }
            }
            return rgb
        }
    }
#endif
