/// The marker segments of a JPEG up to its first scan, for metadata that the decoder does not report.
struct JPEGSegments: Sequence, IteratorProtocol {
    private let bytes: [UInt8]
    private var position = 2
    /// The bytes between the segments so far, at most `maximumGapCount + 1` ranges: padding, and bytes that some cameras write there.
    private var gaps: [Range<Int>] = []
    /// The maximum number of gaps to remove; a crafted file can have one for every three bytes.
    private static let maximumGapCount = 1000

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The marker of a comment segment (COM; ITU-T T.81, B.2.4.5).
    static let commentMarker: UInt8 = 0xFE

    /// Returns the bytes of a segment: 0xFF, its marker, the length of the rest in two bytes, and its content.
    /// - Precondition: The content has at most 65,533 bytes.
    static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
        let length = UInt16(content.count + 2)
        return [0xFF, marker, UInt8(length >> 8), UInt8(length & 0xFF)] + content
    }

    /// Returns the next segment: its marker (the byte after 0xFF) and its content; nil at the first scan, at an invalid length or at the end.
    mutating func next() -> (marker: UInt8, content: ArraySlice<UInt8>)? {
        while let marker = nextMarker() {
            switch marker {
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

    /// Moves to the next marker, a byte 0xFF followed by neither 0 nor 0xFF, and returns the byte that follows; nil at the end.
    ///
    /// The decoder skips the same bytes.
    private mutating func nextMarker() -> UInt8? {
        let start = position
        while position + 1 < bytes.count {
            let code = bytes[position + 1]
            if bytes[position] == 0xFF, code != 0, code != 0xFF {
                if position > start, gaps.count <= Self.maximumGapCount { gaps.append(start..<position) }
                return code
            }
            position += 1
        }
        return nil
    }

    /// The orientation in the first EXIF segment; `.up` without EXIF.
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

    /// The last frame header before the first scan, the index of the marker of this scan, or of invalid bytes, and the bytes between the segments.
    private var firstScan: (frame: (marker: UInt8, content: [UInt8])?, index: Int, gaps: [Range<Int>]) {
        var segments = self
        var frame: (marker: UInt8, content: [UInt8])?
        while let (marker, content) = segments.next() {
            // Of the markers 0xC0 to 0xCF, these are not frames: Huffman tables, extensions, arithmetic conditioning.
            if 0xC0...0xCF ~= marker, ![0xC4, 0xC8, 0xCC].contains(marker) { frame = (marker, Array(content)) }
        }
        return (frame, segments.position, segments.gaps)
    }

    /// The number of bytes of coefficients that the decoder buffers: all if there are several scans, else none.
    var coefficientByteCount: Int {
        let first = firstScan
        guard let (marker, content) = first.frame, content.count >= 6 else { return 0 }
        func pair(_ offset: Int) -> Int { Int(content[offset]) << 8 | Int(content[offset + 1]) }
        let (height, width) = (pair(1), pair(3))
        var components: [(across: Int, down: Int)] = []
        for offset in stride(from: 6, to: content.count - 2, by: 3) where components.count < Int(content[5]) {
            components.append((Int(content[offset + 1] >> 4), Int(content[offset + 1] & 15)))
        }
        // The number of components in the first scan follows its marker and length.
        let scan = first.index + 4
        let isInterleaved = scan < bytes.count && Int(bytes[scan]) == components.count
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

    /// Whether the file has the marker of its end after the start of its first scan.
    var hasEnd: Bool {
        // Within a scan, a zero follows each byte 0xFF that is not part of a marker. Some writers add bytes after the end.
        let scan = bytes[Swift.min(firstScan.index, bytes.count)...]
        return zip(scan, scan.dropFirst()).contains { $0 == 0xFF && $1 == 0xD9 }
    }

    /// Returns the file without three deviations of its header that do not change the image: bytes between the segments, which some webcams write,
    /// unknown versions of JFIF, and the spectral selection of some phones.
    ///
    /// The decoder warns about each of them, and it reports only its first warning, which would hide one about damaged data. A file with more than
    /// `maximumGapCount` gaps keeps them, so the decoder reports it as damaged.
    func withStandardHeader() -> [UInt8] {
        let gaps = firstScan.gaps
        guard !gaps.isEmpty, gaps.count <= Self.maximumGapCount else { return withStandardFields() }
        var joined: [UInt8] = []
        joined.reserveCapacity(bytes.count)
        var start = 0
        for gap in gaps {
            joined += bytes[start..<gap.lowerBound]
            start = gap.upperBound
        }
        return JPEGSegments(joined + bytes[start...]).withStandardFields()
    }

    /// Returns the file with standard values of the version of JFIF, and of the spectral selection of the first scan of a sequential JPEG.
    private func withStandardFields() -> [UInt8] {
        var result = bytes
        let prefix = Array("JFIF\0".utf8)
        for (marker, content) in self where marker == 0xE0 && content.starts(with: prefix) {
            let majorVersion = content.startIndex + prefix.count
            if majorVersion < content.endIndex, result[majorVersion] != 1 { result[majorVersion] = 1 }
        }
        let (frame, scan, _) = firstScan
        // Baseline; extended, with Huffman or arithmetic coding.
        let sequential: [UInt8] = [0xC0, 0xC1, 0xC9]
        guard let marker = frame?.marker, sequential.contains(marker), scan + 4 < bytes.count, bytes[scan + 1] == 0xDA
        else { return result }
        // The marker, the length, the number of components with two bytes each; then the first and last frequency, and the bit positions.
        let start = scan + 5 + 2 * Int(bytes[scan + 4])
        let standard: [UInt8] = [0, 63, 0]
        guard start + standard.count <= bytes.count, !bytes[start...].starts(with: standard) else { return result }
        result.replaceSubrange(start..<(start + standard.count), with: standard)
        return result
    }

    /// Whether the file has Adobe's marker, which means that CMYK is inverted.
    var hasAdobeMarker: Bool { contains { $0.marker == 0xEE && $0.content.starts(with: "Adobe".utf8) } }
}

extension JPEG {
    /// Returns the smallest of 1, 2, 4 and 8 eighths at which a short side is at least `covering` long; 8 without `covering`, or if
    /// none is sufficient.
    ///
    /// The decoder supports other scales too, but without vector instructions, so decoding more pixels is faster.
    static func eighths(shortSide: Int, covering: Int?) -> Int {
        guard let covering else { return 8 }
        return [1, 2, 4].first { (shortSide * $0 + 7) / 8 >= covering } ?? 8
    }
}
