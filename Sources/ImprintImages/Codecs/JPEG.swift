internal import CTurboJPEG
internal import Foundation

/// JPEG in and out through libturbojpeg.
enum JPEG {
    /// Decodes a baseline or progressive, grey, colour or CMYK JPEG to RGB, as stored (not yet upright).
    ///
    /// With `coveringShortSide`, the picture is shrunk while it is decoded, to the smallest *n*/8 of its size whose
    /// short side is still at least that long.
    static func decode(_ bytes: [UInt8], file: URL, coveringShortSide: Int?) throws(ImageError) -> Image {
        guard let decoder = tjInitDecompress() else {
            throw .unreadable(file: file, reason: "the JPEG decoder has no memory")
        }
        defer { tjDestroy(decoder) }
        let size = UInt(bytes.count)
        var (width, height, subsampling, colorSpace): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
        // A header that is refused only for rare subsampling still gives its size, and the picture can be decoded.
        _ = tjDecompressHeader3(decoder, bytes, size, &width, &height, &subsampling, &colorSpace)
        guard width > 0, height > 0 else { throw failure(of: decoder, file: file) }
        try ImageFile.checkSize(width: Int(width), height: Int(height), file: file)

        let eighths = eighths(shortSide: Int(min(width, height)), covering: coveringShortSide)
        (width, height) = ((width * eighths + 7) / 8, (height * eighths + 7) / 8)
        let isCMYK = colorSpace == TJCS_CMYK.rawValue || colorSpace == TJCS_YCCK.rawValue
        let channels = isCMYK ? 4 : 3
        let format = isCMYK ? TJPF_CMYK : TJPF_RGB
        let sampleCount = Int(width) * Int(height) * channels
        var status: Int32 = 0
        let samples = [UInt8](unsafeUninitializedCapacity: sampleCount) { target, count in
            status = tjDecompress2(
                decoder, bytes, size, target.baseAddress, width, 0, height, Int32(format.rawValue), TJFLAG_LIMITSCANS)
            // A failed decode leaves memory unset, and none of it is looked at.
            count = status == 0 ? sampleCount : 0
        }
        guard status == 0 else { throw failure(of: decoder, file: file) }
        return Image(
            width: Int(width), height: Int(height), channels: 3,
            samples: isCMYK ? rgb(cmyk: samples, isInverted: JPEGSegments(bytes).hasAdobeMarker) : samples)
    }

    /// Encodes an image (grey or RGB) as a baseline JPEG with colour at full resolution (4:4:4).
    static func encode(_ image: Image, quality: Int) throws(ImageError) -> [UInt8] {
        precondition((1...100).contains(quality), "the quality of a JPEG is 1 to 100, not \(quality)")
        precondition(image.channels != 4, "a JPEG has no alpha channel")
        let longestSide = 65_500
        guard max(image.width, image.height) <= longestSide else {
            throw .unencodable(
                format: "JPEG",
                reason: "it has \(image.width)x\(image.height) pixels, at most \(longestSide) a side fit")
        }
        guard let encoder = tjInitCompress() else {
            throw .unencodable(format: "JPEG", reason: "the encoder has no memory")
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

    /// The smallest number of eighths that keeps a short side at least `covering` long; 8 where none does.
    static func eighths(shortSide: Int, covering: Int?) -> Int32 {
        guard let covering else { return 8 }
        return Int32((1..<8).first { (shortSide * $0 + 7) / 8 >= covering } ?? 8)
    }

    private static func failure(of decoder: tjhandle, file: URL) -> ImageError {
        let message = message(of: decoder)
        // The decoder begins so where the file is whole, but of a kind that it was not made for.
        if message.hasPrefix("Unsupported") || message.hasPrefix("Sorry") {
            return .unsupported(file: file, what: message)
        }
        return .truncated(file: file, reason: message)
    }

    private static func message(of handle: tjhandle) -> String {
        tjGetErrorStr2(handle).map { String(cString: $0) } ?? "unknown error"
    }

    /// RGB of CMYK samples: red = (1 − C)(1 − K), and so on.
    ///
    /// Adobe's writers store 1 − C and so on to begin with.
    private static func rgb(cmyk: [UInt8], isInverted: Bool) -> [UInt8] {
        let flip: UInt8 = isInverted ? 0 : 255
        var rgb: [UInt8] = []
        rgb.reserveCapacity(cmyk.count / 4 * 3)
        for pixel in stride(from: 0, to: cmyk.count, by: 4) {
            let light = Int(cmyk[pixel + 3] ^ flip)
            for channel in 0..<3 { rgb.append(UInt8((Int(cmyk[pixel + channel] ^ flip) * light + 127) / 255)) }
        }
        return rgb
    }
}

/// The marker segments of a JPEG from its start to its first scan, for what the decoder does not report.
struct JPEGSegments: Sequence, IteratorProtocol {
    private let bytes: [UInt8]
    private var position = 2

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The next segment: its marker (the byte after 0xFF) and what it holds; nil at the first scan or where the
    /// bytes make no sense.
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

    /// The orientation in the first EXIF segment; `.up` where there is none.
    var orientation: Orientation {
        let prefix = Array("Exif\0\0".utf8)
        let exif = first { $0.marker == 0xE1 && $0.content.starts(with: prefix) }
        return exif.flatMap { Orientation(exif: $0.content.dropFirst(prefix.count)) } ?? .up
    }

    /// Whether Adobe's marker is there, whose CMYK is stored inverted.
    var hasAdobeMarker: Bool { contains { $0.marker == 0xEE && $0.content.starts(with: "Adobe".utf8) } }
}
