internal import CImprintKernels

/// The distribution of each channel of an activation over the calibration images.
struct ActivationStatistics {
    /// The number of histogram bins between the smallest and the largest value of a channel.
    static let binCount = 128
    /// The largest number of pixels per image that are counted in histograms.
    private static let pixelsPerImage = 1024

    let channels: Int
    private(set) var minima: [Float]
    private(set) var maxima: [Float]
    /// The sums of the squares of the values.
    private var squares: [Double]
    private var nonzero: [Double]
    private var count = 0.0
    /// The number of values in each bin, [channel, bin].
    private(set) var histogram: [UInt32]

    init(channels: Int) {
        self.channels = channels
        minima = [Float](repeating: .infinity, count: channels)
        maxima = [Float](repeating: -.infinity, count: channels)
        squares = [Double](repeating: 0, count: channels)
        nonzero = squares
        histogram = []
    }

    func meanSquare(_ channel: Int) -> Double { count > 0 ? squares[channel] / count : 0 }

    /// The share of values that are not 0.
    func nonzeroShare(_ channel: Int) -> Double { count > 0 ? nonzero[channel] / count : 1 }

    /// Records the ranges of an image's activation, [pixels, channels].
    mutating func recordRange(_ values: UnsafePointer<Float>, pixels: Int) {
        imprint_channel_ranges(values, pixels, channels, &minima, &maxima)
    }

    /// Records the values of an image's activation in the histograms; the ranges of all images must have been recorded.
    mutating func recordHistogram(_ values: UnsafePointer<Float>, _ shape: TensorShape) {
        if histogram.isEmpty { histogram = [UInt32](repeating: 0, count: channels * Self.binCount) }
        let factors = zip(minima, maxima).map { low, high -> Float in
            let width = high - low
            // NaN stands for a channel without a finite range, which is not counted. The factor of a tiny range must not overflow.
            guard width.isFinite else { return .nan }
            return width > 0 ? min(Float(Self.binCount) / width, .greatestFiniteMagnitude) : 0
        }
        for pixel in sampledPixels(shape, count: Self.pixelsPerImage) {
            let row = values + pixel * channels
            for channel in 0..<channels {
                let value = row[channel]
                // Zeros, which are frequent after a ReLU, have no error.
                guard value != 0, value.isFinite, factors[channel].isFinite else { continue }
                squares[channel] += Double(value) * Double(value)
                nonzero[channel] += 1
                let bin = Int((value - minima[channel]) * factors[channel])
                histogram[channel * Self.binCount + min(max(bin, 0), Self.binCount - 1)] += 1
            }
            count += 1
        }
    }

    /// Returns the range of a channel, including 0, that minimizes the mean squared error of 256 steps.
    ///
    /// Values outside the range are clipped. A narrower range has smaller steps, but larger errors of outliers. The range of a channel with
    /// infinite values, or with a range beyond float32, is 0...0.
    func bestRange(_ channel: Int) -> ClosedRange<Float> {
        let (low, high) = (min(minima[channel], 0), max(maxima[channel], 0))
        guard low < high, (high - low).isFinite else { return 0...0 }
        let width = (maxima[channel] - minima[channel]) / Float(Self.binCount)
        let bins = (0..<Self.binCount).compactMap { bin -> (value: Float, count: Float)? in
            let count = histogram[channel * Self.binCount + bin]
            return count == 0 ? nil : (minima[channel] + (Float(bin) + 0.5) * width, Float(count))
        }
        let fractions = stride(from: Float(1), through: 0.25, by: -0.05)
        var best = (error: Float.infinity, range: low...high)
        func consider(_ range: ClosedRange<Float>) {
            let step = (range.upperBound - range.lowerBound) / 255
            var error: Float = 0
            for (value, count) in bins {
                let distance = max(range.lowerBound - value, value - range.upperBound, 0)
                error += count * (distance > 0 ? distance * distance : step * step / 12)
            }
            if error < best.error { best = (error, range) }
        }
        // One bound after the other.
        for fraction in fractions { consider(low...(high * fraction)) }
        let upper = best.range.upperBound
        if low < 0 { for fraction in fractions { consider((low * fraction)...upper) } }
        return best.range
    }
}

/// Returns all pixels of a small image, otherwise `count` pixels that are spread evenly over its rows and its columns.
///
/// Source: the sequence R₂ of Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018.
func sampledPixels(_ shape: TensorShape, count: Int) -> [Int] {
    guard shape.pixels > count else { return Array(0..<shape.pixels) }
    func position(_ index: Int, _ step: Double, of length: Int) -> Int {
        Int((Double(index + 1) * step).truncatingRemainder(dividingBy: 1) * Double(length))
    }
    return (0..<count).map { index in
        position(index, 0.754_877_666_246_692_7, of: shape.height) * shape.width
            + position(index, 0.569_840_290_998_053_2, of: shape.width)
    }
}
