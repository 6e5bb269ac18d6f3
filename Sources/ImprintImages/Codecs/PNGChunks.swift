internal import Foundation

/// The chunks of a PNG, for metadata that the decoder does not report.
struct PNGChunks: Sequence, IteratorProtocol {
    private let bytes: [UInt8]
    private var position = 8

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Returns the next chunk; nil after the last complete chunk.
    mutating func next() -> (type: String, content: ArraySlice<UInt8>)? {
        let overhead = 12  // length, type, check sum
        guard bytes.count - position >= overhead else { return nil }
        let length = bytes[position...].bigEndian(at: 0)
        guard length <= bytes.count - position - overhead else { return nil }
        defer { position += length + overhead }
        let content = position + 8
        return (String(decoding: bytes[(position + 4)..<content], as: UTF8.self), bytes[content..<(content + length)])
    }

    /// Reads the metadata of the image.
    /// - Throws: `ImageError.truncated` if the first or the last chunk is missing.
    func header(file: URL) throws(ImageError) -> ImageHeader {
        guard let first = first(where: { _ in true }), first.type == "IHDR", first.content.count == 13 else {
            throw .truncated(file: file, reason: "the PNG has no header")
        }
        // libpng stops at the last row, but without the end chunk the file is cut short.
        guard contains(where: { $0.type == "IEND" }) else {
            throw .truncated(file: file, reason: "the PNG has no end")
        }
        var header = ImageHeader(
            format: .png, width: first.content.bigEndian(at: 0), height: first.content.bigEndian(at: 4))
        let colorType = first.content.dropFirst(9).first ?? 0
        header.model = colorType & 2 == 0 ? .grey : .rgb
        header.hasAlpha = colorType & 4 != 0 || contains { $0.type == "tRNS" }
        header.isInterlaced = first.content.last == 1
        header.isAnimated = contains { $0.type == "acTL" }
        header.orientation = orientation
        header.colors = colors
        return header
    }

    /// The orientation in the eXIf chunk; `.up` if there is none.
    var orientation: Orientation {
        first { $0.type == "eXIf" }.flatMap { Orientation(exif: $0.content) } ?? .up
    }

    /// The colour description, in the order of precedence of the PNG specification (third edition, 4.3).
    var colors: ColorDescription? {
        func content(_ type: String) -> ArraySlice<UInt8>? { first { $0.type == type }?.content }
        if let codePoints = content("cICP").map(Array.init), codePoints.count == 4 {
            return .codePoints(primaries: Int(codePoints[0]), transfer: Int(codePoints[1]))
        }
        if let profile = content("iCCP") {
            return Self.inflated(profile).map { .profile($0) } ?? .unusable("the ICC profile cannot be unpacked")
        }
        guard content("sRGB") == nil else { return nil }
        let gamma = content("gAMA").flatMap { $0.count == 4 ? Double($0.bigEndian(at: 0)) / 100_000 : nil }
        let chromaticities = content("cHRM").flatMap { $0.count == 32 ? Chromaticities(chunk: $0) : nil }
        // The approximate exponent of sRGB's curve; files with this gamma mean sRGB.
        let isCurveOfSRGB = gamma.map { abs($0 - 1 / 2.2) < 0.005 } ?? true
        guard !isCurveOfSRGB || chromaticities != nil else { return nil }
        return .gamma(isCurveOfSRGB ? nil : gamma.map { 1 / $0 }, chromaticities)
    }

    /// Returns the file without its colour chunks.
    func withoutColors() -> [UInt8] {
        let colors: Set<String> = ["cICP", "iCCP", "sRGB", "gAMA", "cHRM"]
        guard contains(where: { colors.contains($0.type) }) else { return bytes }
        let (before, after) = (8, 4)  // length and type, check sum
        return reduce(into: Array(bytes.prefix(8))) { kept, chunk in
            guard !colors.contains(chunk.type) else { return }
            kept += bytes[(chunk.content.startIndex - before)..<(chunk.content.endIndex + after)]
        }
    }

    /// Decompresses the profile in an iCCP chunk: a name, a zero, the method (0), then a zlib stream.
    private static func inflated(_ chunk: ArraySlice<UInt8>) -> [UInt8]? {
        guard let nameEnd = chunk.firstIndex(of: 0), chunk.endIndex > nameEnd + 2 else { return nil }
        // The largest profiles for print have about 3 MB.
        let profile = InflatedData(Array(chunk[(nameEnd + 2)...]), limit: 1 << 24)
        return profile.end == .complete ? profile.bytes : nil
    }
}

extension Chromaticities {
    /// Creates chromaticities from a cHRM chunk: x and y of white, red, green and blue, times 100,000.
    fileprivate init(chunk: ArraySlice<UInt8>) {
        func point(_ index: Int) -> (Double, Double) {
            (Double(chunk.bigEndian(at: 8 * index)) / 100_000, Double(chunk.bigEndian(at: 8 * index + 4)) / 100_000)
        }
        self.init(white: point(0), red: point(1), green: point(2), blue: point(3))
    }
}

extension ArraySlice<UInt8> {
    /// Returns the big-endian integer of 4 bytes at `offset` in the slice, which must contain it.
    func bigEndian(at offset: Int) -> Int {
        dropFirst(offset).prefix(4).reduce(0) { $0 << 8 | Int($1) }
    }
}
