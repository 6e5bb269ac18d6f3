/// Which source samples make each target sample along one axis, and with what weights.
struct ResampledAxis {
    /// How many target samples there are.
    let count: Int
    /// The source samples that count for each target sample.
    let ranges: [Range<Int>]
    /// Their weights, which add up to 1: those of target sample *i* start at `i * stride`.
    let weights: [Float]
    let stride: Int
    /// The source samples that count for any target sample.
    let used: Range<Int>

    /// Scales the middle `part` (all of it, where nil) of `length` source samples to `target` samples.
    ///
    /// Samples beyond the part, but within the source, count as if the whole were scaled first and cropped then.
    init(length: Int, target: Int, part: Double? = nil) {
        let part = min(part ?? Double(length), Double(length))
        let first = (Double(length) - part) / 2
        let step = part / Double(target)
        let reach = max(step, 1)
        let stride = 2 * Int(reach.rounded(.up)) + 1
        var ranges: [Range<Int>] = []
        ranges.reserveCapacity(target)
        var weights = [Float](repeating: 0, count: target * stride)
        for index in 0..<target {
            let center = first + (Double(index) + 0.5) * step
            let lower = max(Int((center - reach + 0.5).rounded(.down)), 0)
            let upper = min(Int((center + reach + 0.5).rounded(.down)), length)
            func triangle(_ source: Int) -> Double { max(1 - abs(Double(source) + 0.5 - center) / reach, 0) }
            let sum = (lower..<upper).reduce(0) { $0 + triangle($1) }
            for source in lower..<upper { weights[index * stride + source - lower] = Float(triangle(source) / sum) }
            ranges.append(lower..<upper)
        }
        count = target
        self.stride = stride
        self.weights = weights
        used = ranges[0].lowerBound..<ranges[target - 1].upperBound
        self.ranges = ranges
    }
}

extension Image {
    /// The image whose columns and rows are weighted sums of this one's.
    func resampled(columns: ResampledAxis, rows: ResampledAxis) -> Image {
        // Weighted as they are, the colours of transparent pixels would tint their neighbours.
        guard channels == 4 else { return resampledChannels(columns: columns, rows: rows) }
        return alphaPremultiplied().resampledChannels(columns: columns, rows: rows).alphaDivided()
    }

    /// Rows first, one target row at a time: that pass runs along memory and takes rows away before the other one,
    /// which has to gather, and only one row of sums is ever needed in between.
    private func resampledChannels(columns: ResampledAxis, rows: ResampledAxis) -> Image {
        let (channels, usedCount) = (channels, columns.used.count * channels)
        let targetCount = columns.count * channels
        let result = withUnsafeTemporaryAllocation(of: Float.self, capacity: usedCount + gatherSlack) { sums in
            [UInt8](unsafeUninitializedCapacity: rows.count * targetCount) { target, count in
                samples.withUnsafeBufferPointer { source in
                    for y in 0..<rows.count {
                        sums.initialize(repeating: 0)
                        for (tap, row) in rows.ranges[y].enumerated() {
                            let start = (row * width + columns.used.lowerBound) * channels
                            add(
                                UnsafeBufferPointer(rebasing: source[start..<(start + usedCount)]),
                                times: rows.weights[y * rows.stride + tap], to: sums)
                        }
                        let line = (y * targetCount)..<((y + 1) * targetCount)
                        gather(
                            UnsafeRawBufferPointer(sums), columns, channels: channels,
                            into: UnsafeMutableBufferPointer(rebasing: target[line]))
                    }
                }
                count = rows.count * targetCount
            }
        }
        return Image(width: columns.count, height: rows.count, channels: channels, samples: result)
    }

    /// The image in the middle of a larger one that is grey, or transparent with 4 channels, around it.
    func padded(width: Int, height: Int, with grey: UInt8) -> Image {
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
        return Image(width: width, height: height, channels: channels, samples: padded)
    }

    /// Each colour times its alpha.
    private func alphaPremultiplied() -> Image {
        var result = self
        for pixel in stride(from: 0, to: samples.count, by: 4) {
            let alpha = Int(samples[pixel + 3])
            for index in pixel..<(pixel + 3) {
                result.samples[index] = UInt8((Int(samples[index]) * alpha + 127) / 255)
            }
        }
        return result
    }

    /// Each colour divided by its alpha; black where nothing is visible.
    func alphaDivided() -> Image {
        var result = self
        for pixel in stride(from: 0, to: samples.count, by: 4) {
            let alpha = Int(samples[pixel + 3])
            for index in pixel..<(pixel + 3) {
                result.samples[index] =
                    alpha == 0 ? 0 : UInt8(min((Int(samples[index]) * 255 + alpha / 2) / alpha, 255))
            }
        }
        return result
    }
}

/// Adds each source sample times `weight` to the sum at its index.
private func add(
    _ source: UnsafeBufferPointer<UInt8>, times weight: Float, to sums: UnsafeMutableBufferPointer<Float>
) {
    for index in 0..<source.count { sums[index] += weight * Float(source[index]) }
}

/// How many sums there must be past the last one, for `gather` to read.
private let gatherSlack = 3

/// Makes a row of target samples of a row of sums that starts with the first column used.
///
/// Four sums are taken at a time; with fewer channels those past the pixel are computed along and dropped.
private func gather(
    _ sums: UnsafeRawBufferPointer, _ columns: ResampledAxis, channels: Int,
    into line: UnsafeMutableBufferPointer<UInt8>
) {
    let pixelBytes = channels * MemoryLayout<Float>.stride
    columns.weights.withUnsafeBufferPointer { weights in
        var next = 0
        for (x, range) in columns.ranges.enumerated() {
            var offset = (range.lowerBound - columns.used.lowerBound) * pixelBytes
            var total = SIMD4<Float>(repeating: 0.5)
            for tap in (x * columns.stride)..<(x * columns.stride + range.count) {
                total += weights[tap] * sums.loadUnaligned(fromByteOffset: offset, as: SIMD4<Float>.self)
                offset += pixelBytes
            }
            for channel in 0..<channels { line[next + channel] = UInt8(min(total[channel], 255)) }
            next += channels
        }
    }
}
