internal import CImprintKernels

/// The filter weights of a resampling along one axis.
package struct ResampledAxis {
    /// The number of target samples.
    let count: Int
    /// The first source sample of each target sample, and the number of its source samples.
    private var firsts: [Int32] = []
    private var taps: [Int32] = []
    /// The weights, which add up to 1 for each target sample; those of target sample *i* start at `i * stride`.
    private var weights: [Float]
    private let stride: Int

    /// Creates the filter that scales the middle part of a row of source samples.
    ///
    /// Samples outside the part contribute as if the whole source were scaled first and then cropped.
    /// - Parameters:
    ///   - length: The number of source samples, at least 1.
    ///   - target: The number of target samples, at least 1.
    ///   - part: The length of the part in source samples, more than 0; nil for all of them.
    package init(length: Int, target: Int, part: Double? = nil) {
        let part = min(part ?? Double(length), Double(length))
        let first = (Double(length) - part) / 2
        let step = part / Double(target)
        let reach = max(step, 1)
        count = target
        stride = 2 * Int(reach.rounded(.up)) + 1
        firsts.reserveCapacity(target)
        taps.reserveCapacity(target)
        weights = [Float](repeating: 0, count: target * stride)
        for index in 0..<target {
            let center = first + (Double(index) + 0.5) * step
            let lower = max(Int((center - reach + 0.5).rounded(.down)), 0)
            let upper = min(Int((center + reach + 0.5).rounded(.down)), length)
            func triangle(_ source: Int) -> Double { max(1 - abs(Double(source) + 0.5 - center) / reach, 0) }
            let sum = (lower..<upper).reduce(0) { $0 + triangle($1) }
            for source in lower..<upper { weights[index * stride + source - lower] = Float(triangle(source) / sum) }
            firsts.append(Int32(lower))
            taps.append(Int32(upper - lower))
        }
    }

    /// Returns the filter as a matrix [target samples, source samples].
    /// - Parameter length: The number of source samples.
    package func matrix(length: Int) -> [Float] {
        var matrix = [Float](repeating: 0, count: count * length)
        for index in 0..<count {
            for tap in 0..<Int(taps[index]) {
                matrix[index * length + Int(firsts[index]) + tap] = weights[index * stride + tap]
            }
        }
        return matrix
    }

    /// Calls `body` with the axis in the layout of the kernel.
    fileprivate func withKernelAxis(_ body: (UnsafePointer<imprint_axis>) -> Void) {
        firsts.withUnsafeBufferPointer { firsts in
            taps.withUnsafeBufferPointer { taps in
                weights.withUnsafeBufferPointer { weights in
                    var axis = imprint_axis(
                        count: count, stride: stride, first: firsts.baseAddress, taps: taps.baseAddress,
                        weights: weights.baseAddress)
                    body(&axis)
                }
            }
        }
    }
}

extension RasterImage {
    /// Resamples columns and rows with the given filters.
    package func resampled(columns: ResampledAxis, rows: ResampledAxis) -> RasterImage {
        // Without premultiplication, the colours of transparent pixels would tint their neighbours.
        guard channels == 4 else { return resampledChannels(columns: columns, rows: rows) }
        return alphaPremultiplied().resampledChannels(columns: columns, rows: rows).alphaDivided()
    }

    private func resampledChannels(columns: ResampledAxis, rows: ResampledAxis) -> RasterImage {
        let sampleCount = rows.count * columns.count * channels
        let result = [UInt8](unsafeUninitializedCapacity: sampleCount) { target, count in
            rows.withKernelAxis { rows in
                columns.withKernelAxis { columns in
                    let capacity = imprint_resample_scratch(width, columns, channels)
                    withUnsafeTemporaryAllocation(of: Float.self, capacity: capacity) { scratch in
                        imprint_resample(
                            rows, columns, samples, width, channels, target.baseAddress, scratch.baseAddress)
                    }
                }
            }
            count = sampleCount
        }
        return RasterImage(width: columns.count, height: rows.count, channels: channels, samples: result)
    }

    /// Centres the image in a larger one; the border is grey, or transparent with 4 channels.
    func padded(width: Int, height: Int, with grey: UInt8) -> RasterImage {
        guard (width, height) != (self.width, self.height) else { return self }
        let pixel = channels == 4 ? [grey, grey, grey, 0] : [UInt8](repeating: grey, count: channels)
        func padding(_ count: Int) -> [UInt8] { Array(repeatElement(pixel, count: count).joined()) }
        let (left, top) = ((width - self.width) / 2, (height - self.height) / 2)
        let (before, after, row) = (padding(left), padding(width - self.width - left), padding(width))
        let length = self.width * channels
        var padded: [UInt8] = []
        padded.reserveCapacity(width * height * channels)
        for y in -top..<(height - top) {
            if (0..<self.height).contains(y) {
                padded += before
                padded += samples[(y * length)..<((y + 1) * length)]
                padded += after
            } else {
                padded += row
            }
        }
        return RasterImage(width: width, height: height, channels: channels, samples: padded)
    }

    /// Multiplies each colour by its alpha.
    private func alphaPremultiplied() -> RasterImage {
        var samples = samples
        for pixel in stride(from: 0, to: samples.count, by: 4) {
            let alpha = Int(samples[pixel + 3])
            for index in pixel..<(pixel + 3) { samples[index] = UInt8((Int(samples[index]) * alpha + 127) / 255) }
        }
        return RasterImage(width: width, height: height, channels: channels, samples: samples)
    }

    /// Divides each colour by its alpha; fully transparent pixels become black.
    func alphaDivided() -> RasterImage {
        var samples = samples
        for pixel in stride(from: 0, to: samples.count, by: 4) {
            let alpha = Int(samples[pixel + 3])
            for index in pixel..<(pixel + 3) {
                samples[index] = alpha == 0 ? 0 : UInt8(min((Int(samples[index]) * 255 + alpha / 2) / alpha, 255))
            }
        }
        return RasterImage(width: width, height: height, channels: channels, samples: samples)
    }
}
