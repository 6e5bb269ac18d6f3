import Foundation
import ImprintImages
import TestSupport

extension RasterImage {
    /// Returns an image whose samples depend on their position, without edges that a JPEG would blur.
    static func gradient(width: Int, height: Int, channels: Int = 3) -> RasterImage {
        var image = RasterImage(width: width, height: height, channels: channels)
        for y in 0..<height {
            for x in 0..<width {
                let pixel = [20 + 200 * x / width, 230 - 200 * y / height, 40 + 90 * x / width + 90 * y / height, 255]
                for channel in 0..<channels {
                    image.samples[(y * width + x) * channels + channel] = UInt8(pixel[channel])
                }
            }
        }
        return image
    }

    /// Returns an image of random samples.
    static func noise(width: Int, height: Int, channels: Int, seed: UInt64 = 1) -> RasterImage {
        var state = seed
        let samples = (0..<(width * height * channels)).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
        return RasterImage(width: width, height: height, channels: channels, samples: samples)
    }

    func pixel(_ x: Int, _ y: Int) -> [UInt8] { Array(samples[((y * width + x) * channels)...].prefix(channels)) }
}

/// Returns the largest difference between two lists of samples; 256 if their counts differ.
func largestDifference(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Int {
    guard a.count == b.count else { return 256 }
    return zip(a, b).map { abs(Int($0) - Int($1)) }.max() ?? 0
}

/// Returns the peak signal-to-noise ratio of two images in dB: 10 lg (255² / mean squared difference).
func peakSignalToNoise(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Double {
    let sum = zip(a, b).reduce(0) { sum, pair in
        let difference = Int(pair.0) - Int(pair.1)
        return sum + difference * difference
    }
    return 10 * log10(255 * 255 * Double(a.count) / Double(max(sum, 1)))
}

/// Decodes bytes through a file without an extension.
func decode(_ bytes: [UInt8], coveringShortSide: Int? = nil, keepsAlpha: Bool = false) throws -> RasterImage {
    try withTemporaryFolder { folder in
        let url = folder.appending(path: "file")
        try Data(bytes).write(to: url)
        return try ImageFile.decode(url, coveringShortSide: coveringShortSide, keepsAlpha: keepsAlpha)
    }
}

/// Returns an EXIF block with another entry before the orientation.
func exif(orientation: Int, isBigEndian: Bool) -> [UInt8] {
    func integer(_ value: Int, _ bytes: Int) -> [UInt8] {
        let little = (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        return isBigEndian ? little.reversed() : little
    }
    let header = isBigEndian ? Array("MM".utf8) : Array("II".utf8)
    let width = integer(0x0100, 2) + integer(4, 2) + integer(1, 4) + integer(7, 4)
    let turn = integer(0x0112, 2) + integer(3, 2) + integer(1, 4) + integer(orientation, 2) + integer(0, 2)
    return header + integer(42, 2) + integer(8, 4) + integer(2, 2) + width + turn + integer(0, 4)
}

/// Inserts a marker segment after the start of a JPEG.
func inserting(_ marker: UInt8, _ content: [UInt8], into jpeg: [UInt8]) -> [UInt8] {
    let length = content.count + 2
    return jpeg[..<2] + [0xFF, marker, UInt8(length >> 8), UInt8(length & 0xFF)] + content + jpeg[2...]
}

/// Builds a PNG from chunks, with any depth, colour type and extra chunks.
func png(
    width: Int, height: Int, depth: UInt8 = 8, colorType: UInt8, rows: [[UInt8]],
    extra: [(type: String, content: [UInt8])] = []
) -> [UInt8] {
    func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
        let checked = Array(type.utf8) + content
        return bigEndian(UInt32(content.count)) + checked + bigEndian(crc32(checked))
    }
    let raw: [UInt8] = rows.flatMap { [0] + $0 }
    let (low, high) = (UInt8(raw.count & 0xFF), UInt8(raw.count >> 8))
    // A zlib stream of one stored block.
    let stream: [UInt8] = [0x78, 0x01, 0x01, low, high, ~low, ~high] + raw + bigEndian(adler32(raw))
    return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        + chunk("IHDR", bigEndian(UInt32(width)) + bigEndian(UInt32(height)) + [depth, colorType, 0, 0, 0])
        + extra.flatMap { chunk($0.type, $0.content) } + chunk("IDAT", stream) + chunk("IEND", [])
}

/// The bytes of a number, the highest first.
func bigEndian(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }

/// The checksum of a PNG chunk.
func crc32(_ bytes: [UInt8]) -> UInt32 {
    var crc: UInt32 = 0xFFFF_FFFF
    for byte in bytes {
        crc ^= UInt32(byte)
        for _ in 0..<8 { crc = crc & 1 == 1 ? 0xEDB8_8320 ^ (crc >> 1) : crc >> 1 }
    }
    return ~crc
}

private func adler32(_ bytes: [UInt8]) -> UInt32 {
    var (a, b): (UInt32, UInt32) = (1, 0)
    for byte in bytes {
        a = (a + UInt32(byte)) % 65_521
        b = (b + a) % 65_521
    }
    return b << 16 | a
}
