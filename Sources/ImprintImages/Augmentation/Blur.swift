#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

extension Image {
    /// The image blurred by a Gaussian of the given standard deviation in pixels, cut off at three deviations; borders
    /// are continued.
    func blurred(deviation: Float) -> Image {
        guard deviation > 0 else { return self }
        let radius = max(1, Int((3 * deviation).rounded(.up)))
        var weights = (-radius...radius).map { expf(-Float($0 * $0) / (2 * deviation * deviation)) }
        let sum = weights.reduce(0, +)
        for i in weights.indices { weights[i] /= sum }

        let rowLength = width * channels
        var rows = [Float](repeating: 0, count: samples.count)
        var padded = [Float](repeating: 0, count: (width + 2 * radius) * channels)
        for y in 0..<height {
            // A row with its borders continued needs no bounds in the loop over the weights.
            for x in -radius..<(width + radius) {
                let from = y * rowLength + min(max(x, 0), width - 1) * channels
                for channel in 0..<channels {
                    padded[(x + radius) * channels + channel] = Float(samples[from + channel])
                }
            }
            for (tap, weight) in weights.enumerated() {
                accumulate(weight, padded, from: tap * channels, into: &rows, at: y * rowLength, count: rowLength)
            }
        }
        var result = self
        var column = [Float](repeating: 0, count: rowLength)
        for y in 0..<height {
            column.withUnsafeMutableBufferPointer { $0.update(repeating: 0.5) }
            for (tap, weight) in weights.enumerated() {
                let from = min(max(y + tap - radius, 0), height - 1) * rowLength
                accumulate(weight, rows, from: from, into: &column, at: 0, count: rowLength)
            }
            for i in 0..<rowLength { result.samples[y * rowLength + i] = UInt8(min(column[i], 255)) }
        }
        return result
    }
}

/// Adds weight · source[from + i] to target[place + i].
private func accumulate(
    _ weight: Float, _ source: [Float], from: Int, into target: inout [Float], at place: Int, count: Int
) {
    source.withUnsafeBufferPointer { source in
        target.withUnsafeMutableBufferPointer { target in
            for i in 0..<count { target[place + i] += weight * source[from + i] }
        }
    }
}
