internal import CImprintCodecs

/// The reduced size at which a very large image is decoded.
///
/// Each pixel of the result is the mean of a box of pixels in the file.
struct Reduction: Equatable {
    /// The size of the result, in pixels.
    let width: Int
    let height: Int

    /// Images of up to this many pixels are always decoded at full size.
    ///
    /// Their samples therefore do not depend on the requested size.
    static let maximumFullSizePixelCount = 24_000_000
    /// The longest side of a box; the sums of libwebp overflow beyond a thousand.
    private static let maximumFactor = 256

    /// Converts the reduction to the structure of the C functions.
    func boxes(_ header: ImageHeader, channels: Int) -> imprint_reduction {
        imprint_reduction(
            width: UInt32(header.width), height: UInt32(header.height), channels: UInt32(channels),
            reduced_width: UInt32(width), reduced_height: UInt32(height))
    }

    /// Maps pixels [start, start + count) of a side to pixels of the result, at least one.
    static func scaled(_ start: Int, _ count: Int, from length: Int, to reduced: Int) -> Range<Int> {
        let lower = min(start * reduced / length, reduced - 1)
        return lower..<max((start + count) * reduced / length, lower + 1)
    }
}

extension Reduction {
    /// Creates a reduction by an integer factor that keeps the short side at least `side` long; nil if decoded at full size.
    init?(_ header: ImageHeader, covering side: Int?) {
        // A JPEG is scaled down by its own transform.
        guard let side, header.format != .jpeg, header.width * header.height > Self.maximumFullSizePixelCount else {
            return nil
        }
        let factor = min(min(header.width, header.height) / max(side, 1), Self.maximumFactor)
        guard factor > 1 else { return nil }
        (width, height) = (header.width / factor, header.height / factor)
    }
}

extension ImageHeader {
    /// Returns the approximate number of bytes that decoding needs, including the result.
    func byteCount(_ reduction: Reduction?, eighths: Int) -> Int {
        let channels = hasAlpha ? 4 : 3
        guard let reduction else {
            let pixels = ((width * eighths + 7) / 8) * ((height * eighths + 7) / 8)
            // Rotating an image and flattening it on white create copies.
            let copies = pixels > Reduction.maximumFullSizePixelCount ? 3 : 1
            // The four samples of a CMYK pixel are in memory until they are converted to red, green and blue.
            return decoderByteCount + pixels * max(copies * channels, model == .cmyk ? 4 + 3 : 0)
        }
        var boxes = reduction.boxes(self, channels: channels)
        return decoderByteCount + reduction.width * reduction.height * channels
            + imprint_reduction_scratch(&boxes, isInterlaced ? 1 : 0)
    }
}
