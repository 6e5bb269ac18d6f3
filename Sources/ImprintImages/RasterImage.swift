/// An upright image in memory: rows from top to bottom, 8 bits per channel, sRGB.
///
/// The sample of channel *c* at column *x* of row *y* is `samples[(y * width + x) * channels + c]`.
public struct RasterImage: Sendable, Hashable {
    /// The number of columns, in pixels.
    public let width: Int
    /// The number of rows, in pixels.
    public let height: Int
    /// 1 (grey), 3 (red, green, blue) or 4 (red, green, blue, alpha; not premultiplied).
    public let channels: Int
    /// The `height * width * channels` samples, row by row, with interleaved channels.
    ///
    /// You can change their values, but not their number: a different number is a programming error.
    public var samples: [UInt8] {
        @inlinable get { values }
        // With an observer (`didSet`), each change of a sample by another module copies the array.
        @inlinable _modify {
            defer { checkSampleCount() }
            yield &values
        }
    }
    @usableFromInline var values: [UInt8]

    /// Creates an image from the given samples.
    ///
    /// Values out of range and another number of samples are programming errors.
    /// - Parameters:
    ///   - width: The number of columns, at least 1.
    ///   - height: The number of rows, at least 1.
    ///   - channels: 1, 3 or 4.
    ///   - samples: The `height * width * channels` samples, row by row, with interleaved channels.
    public init(width: Int, height: Int, channels: Int, samples: [UInt8]) {
        precondition(width > 0 && height > 0, "an image must have at least one pixel, not \(width)x\(height)")
        precondition([1, 3, 4].contains(channels), "an image must have 1, 3 or 4 channels, not \(channels)")
        self.width = width
        self.height = height
        self.channels = channels
        values = samples
        checkSampleCount()
    }

    @usableFromInline func checkSampleCount() {
        precondition(
            values.count == width * height * channels,
            "\(width)x\(height)x\(channels) needs \(width * height * channels) samples, not \(values.count)")
    }

    /// Creates an image in which every sample, also of alpha, has the same value.
    /// - Parameters:
    ///   - width: The number of columns, at least 1.
    ///   - height: The number of rows, at least 1.
    ///   - channels: 1, 3 or 4.
    ///   - value: The value of all samples.
    public init(width: Int, height: Int, channels: Int = 3, filledWith value: UInt8 = 0) {
        self.init(
            width: width, height: height, channels: channels,
            samples: [UInt8](repeating: value, count: width * height * channels))
    }
}

extension RasterImage {
    /// Returns an image of the same size, whose samples `body` writes.
    func withNewSamples(_ body: (UnsafeMutablePointer<UInt8>?) -> Void) -> RasterImage {
        let new = [UInt8](unsafeUninitializedCapacity: samples.count) { target, count in
            body(target.baseAddress)
            count = samples.count
        }
        return RasterImage(width: width, height: height, channels: channels, samples: new)
    }

    /// Returns the image with the alpha channel of another one, if both have one.
    func withAlpha(of other: RasterImage) -> RasterImage {
        guard channels == 4 else { return self }
        var samples = samples
        for index in stride(from: 3, to: samples.count, by: 4) { samples[index] = other.samples[index] }
        return RasterImage(width: width, height: height, channels: channels, samples: samples)
    }
}

extension RasterImage {
    /// Blends an RGBA image onto white; any other image does not change.
    ///
    /// The blend is linear in the sRGB values, as in browsers and most image editors.
    package func flattenedOnWhite() -> RasterImage {
        guard channels == 4 else { return self }
        var opaque: [UInt8] = []
        opaque.reserveCapacity(width * height * 3)
        for pixel in stride(from: 0, to: samples.count, by: 4) {
            let alpha = Int(samples[pixel + 3])
            for channel in 0..<3 {
                opaque.append(UInt8((Int(samples[pixel + channel]) * alpha + 255 * (255 - alpha) + 127) / 255))
            }
        }
        return RasterImage(width: width, height: height, channels: 3, samples: opaque)
    }
}

extension RasterImage {
    /// The image mirrored left to right.
    public var mirrored: RasterImage {
        var samples: [UInt8] = []
        samples.reserveCapacity(self.samples.count)
        for row in 0..<height {
            for column in (0..<width).reversed() {
                let offset = (row * width + column) * channels
                samples += self.samples[offset..<(offset + channels)]
            }
        }
        return RasterImage(width: width, height: height, channels: channels, samples: samples)
    }
}
