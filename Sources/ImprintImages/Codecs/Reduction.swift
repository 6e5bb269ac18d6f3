internal import CImprintCodecs

/// The size at which a very large picture is decoded.
///
/// Each of its pixels is the mean of a box of the file's.
struct Reduction: Equatable {
    /// The size of the result, in pixels.
    let width: Int
    let height: Int

    /// Pictures of up to so many pixels are always decoded whole, so that their samples do not depend on the size that is asked for.
    static let greatestWholePixelCount = 24_000_000
    /// The longest side of a box; the sums of libwebp overflow beyond a thousand.
    private static let greatestFactor = 256

    /// The reduction as the C functions take it.
    func boxes(_ header: ImageHeader, channels: Int) -> imprint_reduction {
        imprint_reduction(
            width: UInt32(header.width), height: UInt32(header.height), channels: UInt32(channels),
            reduced_width: UInt32(width), reduced_height: UInt32(height))
    }

    /// Pixels [start, start + count) of a side, in those of the result; at least one.
    static func scaled(_ start: Int, _ count: Int, from length: Int, to reduced: Int) -> Range<Int> {
        let lower = min(start * reduced / length, reduced - 1)
        return lower..<max((start + count) * reduced / length, lower + 1)
    }
}

extension Reduction {
    /// The reduction of a picture by whole factors whose short side stays at least `side` long; nil if it is decoded whole.
    init?(_ header: ImageHeader, covering side: Int?) {
        // A JPEG is shrunk by its own transform.
        guard let side, header.format != .jpeg, header.width * header.height > Self.greatestWholePixelCount else {
            return nil
        }
        let factor = min(min(header.width, header.height) / max(side, 1), Self.greatestFactor)
        guard factor > 1 else { return nil }
        (width, height) = (header.width / factor, header.height / factor)
    }
}

extension ImageHeader {
    /// About how many bytes decoding takes, with the result.
    func byteCount(_ reduction: Reduction?, eighths: Int) -> Int {
        let channels = hasAlpha || model == .cmyk ? 4 : 3
        guard let reduction else {
            let pixels = ((width * eighths + 7) / 8) * ((height * eighths + 7) / 8)
            // Turning a picture and laying it on white makes copies of it.
            let copies = pixels > Reduction.greatestWholePixelCount ? 3 : 1
            return decoderByteCount + copies * pixels * channels
        }
        var boxes = reduction.boxes(self, channels: channels)
        return decoderByteCount + reduction.width * reduction.height * channels
            + imprint_reduction_scratch(&boxes, isInterlaced ? 1 : 0)
    }
}
