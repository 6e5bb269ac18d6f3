/// The mean and the variance of each channel of features.
package struct ChannelStatistics {
    /// The number of rows.
    package private(set) var count = 0
    private var sums: [Double]
    private var squares: [Double]

    /// Creates the statistics of no rows.
    package init(channels: Int) {
        precondition(channels > 0, "features must have at least one channel")
        (sums, squares) = ([Double](repeating: 0, count: channels), [Double](repeating: 0, count: channels))
    }

    /// Adds rows, [rows, channels].
    package mutating func add(_ rows: UnsafeBufferPointer<Float>) {
        precondition(rows.count % sums.count == 0, "\(rows.count) values are not rows of \(sums.count) channels")
        for start in stride(from: 0, to: rows.count, by: sums.count) {
            for channel in sums.indices {
                let value = Double(rows[start + channel])
                sums[channel] += value
                squares[channel] += value * value
            }
        }
        count += rows.count / sums.count
    }

    /// The mean of each channel; at least one row is required.
    package var means: [Double] { sums.map { $0 / Double(count) } }

    /// The biased variance of each channel; at least one row is required.
    package var variances: [Double] { zip(squares, means).map { max($0 / Double(count) - $1 * $1, 0) } }
}

/// The standardization of feature channels: x ← (x − mean) / standard deviation.
///
/// An optimizer then changes rarely active channels as much as others. A hundredth of the mean variance is added to every variance, which
/// avoids amplifying channels that are almost constant.
package struct Standardization: Sendable {
    /// The mean of each channel.
    package let means: [Float]
    /// The standard deviation of each channel, > 0.
    package let standardDeviations: [Float]

    /// Measures features.
    /// - Parameters:
    ///   - features: The features, [rows, channels], at least one row.
    ///   - channels: The number of channels.
    ///   - isCentred: Whether to subtract the means; otherwise `means` are 0.
    package init(_ features: UnsafeBufferPointer<Float>, channels: Int, isCentred: Bool = true) {
        var statistics = ChannelStatistics(channels: channels)
        statistics.add(features)
        precondition(statistics.count > 0, "a standardization needs at least one row of features")
        means = statistics.means.map { isCentred ? Float($0) : 0 }
        let variances = statistics.variances
        let floor = 0.01 * variances.reduce(0, +) / Double(channels) + 1e-12
        standardDeviations = variances.map { Float(($0 + floor).squareRoot()) }
    }

    /// Standardizes features in place, [rows, channels].
    package func apply(to features: UnsafeMutableBufferPointer<Float>) {
        for start in stride(from: 0, to: features.count, by: means.count) {
            for channel in means.indices {
                features[start + channel] = (features[start + channel] - means[channel]) / standardDeviations[channel]
            }
        }
    }

    /// Converts a linear layer for standardized features to one for the original features, with the same outputs.
    /// - Parameters:
    ///   - weights: [channels, outputs].
    ///   - bias: [outputs].
    package func absorb(into weights: inout [Float], bias: inout [Float]) {
        let outputs = bias.count
        precondition(weights.count == means.count * outputs, "\(weights.count) weights for \(outputs) outputs")
        var offsets = bias.map(Double.init)
        for channel in means.indices {
            for output in 0..<outputs {
                let index = channel * outputs + output
                weights[index] /= standardDeviations[channel]
                offsets[output] -= Double(weights[index]) * Double(means[channel])
            }
        }
        bias = offsets.map { Float($0) }
    }
}
