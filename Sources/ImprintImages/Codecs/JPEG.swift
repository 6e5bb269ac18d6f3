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
        let (width, height) = ((header.width * eighths + 7) / 8, (header.height * eighths + 7) / 8)
        let isCMYK = header.model == .cmyk
        let sampleCount = width * height * (isCMYK ? 4 : 3)
        let format = isCMYK ? TJPF_CMYK : TJPF_RGB
        var isWhole = false
        let samples = [UInt8](unsafeUninitializedCapacity: sampleCount) { target, count in
            let status = tjDecompress2(
                decoder, bytes, UInt(bytes.count), target.baseAddress, Int32(width), 0, Int32(height),
                Int32(format.rawValue), TJFLAG_LIMITSCANS)
            isWhole = status == 0 || isHarmless(decoder)
            // A failed decode leaves memory uninitialized, so none of it may be used.
            count = isWhole ? sampleCount : 0
        }
        guard isWhole else { throw failure(of: decoder, file: file) }
        return RasterImage(
            width: width, height: height, channels: 3, samples: isCMYK ? rgb(cmyk: samples, bytes, header) : samples)
    }

    /// Encodes an image (grey or RGB) as a baseline JPEG with colour at full resolution (4:4:4).
    static func encode(_ image: RasterImage, quality: Int) throws(ImageError) -> [UInt8] {
        precondition((1...100).contains(quality), "the quality of a JPEG must be 1 to 100, not \(quality)")
        precondition(image.channels != 4, "a JPEG cannot have an alpha channel")
        let longestSide = 65_500
        guard max(image.width, image.height) <= longestSide else {
            throw .unencodable(
                format: "JPEG",
                reason: "it has \(image.width)x\(image.height) pixels, expected at most \(longestSide) per side")
        }
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

    /// Returns the smallest of 1, 2, 4 and 8 eighths at which a short side is at least `covering` long; 8 without `covering`, or if
    /// none is sufficient.
    ///
    /// The decoder supports other scales too, but without vector instructions, so decoding more pixels is faster.
    static func eighths(shortSide: Int, covering: Int?) -> Int {
        guard let covering else { return 8 }
        return [1, 2, 4].first { (shortSide * $0 + 7) / 8 >= covering } ?? 8
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
    private static func rgb(cmyk stored: [UInt8], _ bytes: [UInt8], _ header: ImageHeader) -> [UInt8] {
        // Adobe's software inverts the samples: it stores 1 − C, 1 − M and so on.
        let cmyk = JPEGSegments(bytes).hasAdobeMarker ? stored.map { 255 - $0 } : stored
        if let converted = header.profile?.convert(cmyk: cmyk) { return converted }
        var rgb: [UInt8] = []
        rgb.reserveCapacity(cmyk.count / 4 * 3)
        for pixel in stride(from: 0, to: cmyk.count, by: 4) {
            let light = 255 - Int(cmyk[pixel + 3])
            for channel in 0..<3 { rgb.append(UInt8(((255 - Int(cmyk[pixel + channel])) * light + 127) / 255)) }
        }
        return rgb
    }
}

/// The marker segments of a JPEG up to its first scan, for metadata that the decoder does not report.
struct JPEGSegments: Sequence, IteratorProtocol {
    private let bytes: [UInt8]
    private var position = 2

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Returns the next segment: its marker (the byte after 0xFF) and its content; nil at the first scan or at invalid bytes.
    mutating func next() -> (marker: UInt8, content: ArraySlice<UInt8>)? {
        while position + 1 < bytes.count, bytes[position] == 0xFF {
            let marker = bytes[position + 1]
            switch marker {
            case 0xFF: position += 1  // padding
            case 0x01, 0xD0...0xD7: position += 2  // no content
            case 0xD9, 0xDA: return nil  // end of image, start of scan
            default:
                guard position + 3 < bytes.count else { return nil }
                let length = Int(bytes[position + 2]) << 8 | Int(bytes[position + 3])
                let end = position + 2 + length
                guard length >= 2, end <= bytes.count else { return nil }
                defer { position = end }
                return (marker, bytes[(position + 4)..<end])
            }
        }
        return nil
    }

    /// The orientation in the first EXIF segment; `.up` if there is none.
    var orientation: Orientation {
        let prefix = Array("Exif\0\0".utf8)
        return first { $0.marker == 0xE1 && $0.content.starts(with: prefix) }.flatMap { Orientation(exif: $0.content) }
            ?? .up
    }

    /// The ICC profile, joined from its numbered parts, because a segment holds only 64 kB.
    var profile: ColorDescription? {
        let prefix = Array("ICC_PROFILE\0".utf8)
        let (number, count, overhead) = (prefix.count, prefix.count + 1, prefix.count + 2)
        let parts = filter { $0.marker == 0xE2 && $0.content.count > overhead && $0.content.starts(with: prefix) }
            .map { Array($0.content) }.sorted { $0[number] < $1[number] }
        guard let first = parts.first else { return nil }
        guard parts.map({ Int($0[number]) }) == Array(1...parts.count), Int(first[count]) == parts.count else {
            return .unusable("parts of the ICC profile are missing")
        }
        return .profile(parts.flatMap { $0.dropFirst(overhead) })
    }

    /// The number of bytes of coefficients that the decoder buffers: all if there are several scans, else none.
    var coefficientByteCount: Int {
        var segments = self
        var frame: (marker: UInt8, content: [UInt8])?
        while let (marker, content) = segments.next() {
            // Of the markers 0xC0 to 0xCF, these are not frames: Huffman tables, extensions, arithmetic conditioning.
            if 0xC0...0xCF ~= marker, ![0xC4, 0xC8, 0xCC].contains(marker) { frame = (marker, Array(content)) }
        }
        guard let (marker, content) = frame, content.count >= 6 else { return 0 }
        func pair(_ offset: Int) -> Int { Int(content[offset]) << 8 | Int(content[offset + 1]) }
        let (height, width) = (pair(1), pair(3))
        var components: [(across: Int, down: Int)] = []
        for offset in stride(from: 6, to: content.count - 2, by: 3) where components.count < Int(content[5]) {
            components.append((Int(content[offset + 1] >> 4), Int(content[offset + 1] & 15)))
        }
        // The number of components in the first scan follows its marker and length.
        let scan = segments.position + 4
        let isInterleaved = scan < segments.bytes.count && Int(segments.bytes[scan]) == components.count
        let isProgressive = marker & 3 == 2
        guard isProgressive || !isInterleaved else { return 0 }
        let across = 8 * Swift.max(components.map { $0.across }.max() ?? 0, 1)
        let down = 8 * Swift.max(components.map { $0.down }.max() ?? 0, 1)
        let (columns, rows) = ((width + across - 1) / across, (height + down - 1) / down)
        let blocks = components.reduce(0) { sum, component in
            sum + columns * component.across * rows * component.down
        }
        return blocks * 64 * MemoryLayout<Int16>.stride
    }

    /// Whether the file has Adobe's marker, which means that CMYK is inverted.
    var hasAdobeMarker: Bool { contains { $0.marker == 0xEE && $0.content.starts(with: "Adobe".utf8) } }
}
