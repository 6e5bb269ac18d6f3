import Foundation
import Synchronization
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Tests of large images, which are decoded at a reduced size and one at a time.
@Suite struct LargeImageTests {
    private static let file = URL(filePath: "/photo")

    /// Returns a PNG of random samples; an interlaced PNG has the rows of its seven passes.
    private static func sample(colorType: UInt8, depth: UInt8, isInterlaced: Bool) -> [UInt8] {
        let (width, height) = (37, 29)
        let channels = [0: 1, 2: 3, 4: 2, 6: 4][Int(colorType)] ?? 1
        let starts = [(0, 8, 0, 8), (4, 8, 0, 8), (0, 4, 4, 8), (2, 4, 0, 4), (0, 2, 2, 4), (1, 2, 0, 2), (0, 1, 1, 2)]
        let passes = isInterlaced ? starts : [(0, 1, 0, 1)]
        var rows: [[UInt8]] = []
        for (x, right, y, down) in passes {
            let columns = stride(from: x, to: width, by: right).map { $0 }
            let lines = stride(from: y, to: height, by: down).map { $0 }
            for line in lines {
                let count = (columns.count * channels * Int(depth) + 7) / 8
                rows.append((0..<count).map { UInt8(truncatingIfNeeded: ($0 + 7 * line + x) &* 2_654_435_761 >> 7) })
            }
        }
        var bytes = png(width: width, height: height, depth: depth, colorType: colorType, rows: rows)
        if isInterlaced {
            bytes[28] = 1
            let header = Array(bytes[12..<29])
            bytes.replaceSubrange(29..<33, with: bigEndian(crc32(header)))
        }
        return bytes
    }

    /// Returns the means of the boxes, with colours weighted by alpha.
    private static func means(_ image: RasterImage, width: Int, height: Int) -> [UInt8] {
        var result: [UInt8] = []
        for row in 0..<height {
            for column in 0..<width {
                var sums = [Double](repeating: 0, count: 4)
                var count = 0.0
                for y in 0..<image.height where y * height / image.height == row {
                    for x in 0..<image.width where x * width / image.width == column {
                        let pixel = image.pixel(x, y).map(Double.init)
                        let alpha = image.channels == 4 ? pixel[3] : 1
                        for channel in 0..<3 { sums[channel] += pixel[channel] * alpha }
                        sums[3] += alpha
                        count += 1
                    }
                }
                for channel in 0..<3 { result.append(sums[3] > 0 ? UInt8((sums[channel] / sums[3]).rounded()) : 0) }
                if image.channels == 4 { result.append(UInt8((sums[3] / count).rounded())) }
            }
        }
        return result
    }

    @Test(
        "A PNG reduced during decoding has the box means of the full image",
        arguments: [
            (0, 1, false), (0, 8, false), (2, 8, false), (2, 16, false), (4, 8, false), (6, 8, false), (6, 16, false),
            (0, 1, true), (0, 8, true), (2, 8, true), (4, 8, true), (6, 8, true),
        ] as [(UInt8, UInt8, Bool)])
    func reduced(colorType: UInt8, depth: UInt8, isInterlaced: Bool) throws {
        let bytes = Self.sample(colorType: colorType, depth: depth, isInterlaced: isInterlaced)
        let header = try ImageHeader(bytes, file: Self.file)
        #expect(header.isInterlaced == isInterlaced)
        let whole = try PNG.decode(bytes, header, file: Self.file, nil)
        let reduction = Reduction(width: 9, height: 7)
        let image = try PNG.decode(bytes, header, file: Self.file, reduction)
        #expect((image.width, image.height, image.channels) == (9, 7, whole.channels))
        #expect(image.samples == Self.means(whole, width: 9, height: 7))
    }

    @Test("Damage is detected in a PNG that is reduced during decoding") func damaged() throws {
        var bytes = Self.sample(colorType: 2, depth: 8, isInterlaced: false)
        let header = try ImageHeader(bytes, file: Self.file)
        bytes[bytes.count / 2] ^= 0x55
        #expect {
            _ = try PNG.decode(bytes, header, file: Self.file, Reduction(width: 9, height: 7))
        } throws: { error in
            if case .truncated? = error as? ImageError { true } else { false }
        }
    }

    @Test("Only images of more than 24 million pixels are reduced, by integer factors")
    func threshold() {
        func reduction(_ width: Int, _ height: Int, _ format: ImageFormat = .png, covering: Int?) -> [Int]? {
            Reduction(ImageHeader(format: format, width: width, height: height), covering: covering)
                .map { [$0.width, $0.height] }
        }
        #expect(reduction(6000, 4000, covering: 100) == nil)
        #expect(reduction(14000, 14000, covering: nil) == nil)
        #expect(reduction(14000, 14000, .jpeg, covering: 336) == nil)
        #expect(reduction(14000, 14000, covering: 336) == [341, 341])
        #expect(reduction(14000, 10000, covering: 5001) == nil)
        #expect(reduction(14000, 10000, covering: 1) == [54, 39])
    }

    @Test("An image that needs more than half of the available memory is an error") func budget() {
        let memory = DecodingMemory(capacity: 1 << 30) { 1 << 28 }
        let header = ImageHeader(format: .webp, width: 14000, height: 14000)
        #expect {
            try memory.withBytes(784_000_000, for: header, file: Self.file) { () throws(ImageError) in }
        } throws: { error in
            "\(error)".contains(
                "/photo: there is not enough memory to decode the image: its 14000x14000 pixels need about 784 MB, "
                    + "expected at most 135 MB")
        }
    }

    @Test("Large images are decoded one at a time, others concurrently within the memory capacity") func oneByOne() {
        let memory = DecodingMemory(capacity: 1 << 29) { 1 << 36 }
        let header = ImageHeader(format: .png, width: 1, height: 1)
        let state = Mutex((bytes: 0, large: 0, maximum: 0, maximumLarge: 0, failures: 0))
        DispatchQueue.concurrentPerform(iterations: 24) { index in
            let needed = index % 2 == 0 ? 1 << 30 : 100 << 20
            let large = needed > DecodingMemory.largeByteCount ? 1 : 0
            do throws(ImageError) {
                try memory.withBytes(needed, for: header, file: Self.file) { () throws(ImageError) in
                    state.withLock {
                        ($0.bytes, $0.large) = ($0.bytes + needed, $0.large + large)
                        $0.maximum = max($0.maximum, $0.bytes)
                        $0.maximumLarge = max($0.maximumLarge, $0.large)
                    }
                    usleep(500)
                    state.withLock { ($0.bytes, $0.large) = ($0.bytes - needed, $0.large - large) }
                }
            } catch {
                state.withLock { $0.failures += 1 }
            }
        }
        let end = state.withLock { $0 }
        #expect(end.failures == 0 && end.bytes == 0)
        #expect(end.maximumLarge == 1)
        #expect(end.maximum <= 1 << 30)
    }

    @Test("The memory of a progressive JPEG includes its coefficients") func progressive() throws {
        var bytes = try ImageFile.encodeJPEG(.gradient(width: 40, height: 24))
        #expect(try ImageHeader(bytes, file: Self.file).decoderByteCount == 0)
        let frame = try #require(bytes.indices.dropLast().first { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xC0 })
        bytes[frame + 1] = 0xC2
        // Three components of 40x24 coefficients, 2 bytes per coefficient.
        #expect(try ImageHeader(bytes, file: Self.file).decoderByteCount == 3 * 40 * 24 * 2)
    }

    @Test("The memory of a CMYK JPEG includes its samples before and after the conversion to RGB")
    func cmyk() {
        var header = ImageHeader(format: .jpeg, width: 1000, height: 500)
        #expect(header.byteCount(nil, eighths: 8) == 3 * 500_000)
        header.model = .cmyk
        #expect(header.byteCount(nil, eighths: 8) == 7 * 500_000)
        #expect(header.byteCount(nil, eighths: 4) == 7 * 125_000)
    }
}
