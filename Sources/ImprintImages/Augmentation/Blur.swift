internal import CImprintKernels
internal import Foundation

extension RasterImage {
    /// Returns the image blurred with a Gaussian that has the given standard deviation in pixels.
    ///
    /// The kernel ends at three standard deviations, and border pixels are repeated. Samples are within 1 of the exact
    /// result for standard deviations of up to 20 pixels.
    package func blurred(standardDeviation: Float) -> RasterImage {
        guard standardDeviation > 0 else { return self }
        let weights = gaussianWeights(standardDeviation)
        let (columns, rows, depth, radius) = (Int32(width), Int32(height), Int32(channels), Int32(weights.count - 1))
        let capacity = imprint_blur_scratch(columns, rows, depth, radius)
        return withNewSamples { target in
            withUnsafeTemporaryAllocation(of: UInt16.self, capacity: capacity) { scratch in
                imprint_blur(samples, target, columns, rows, depth, weights, radius, scratch.baseAddress)
            }
        }
    }
}

/// Returns the weights of a Gaussian kernel from its middle outwards, in units of 1/65536; both sides together add up to 65536.
private func gaussianWeights(_ standardDeviation: Float) -> [UInt16] {
    let radius = max(1, Int((3 * standardDeviation).rounded(.up)))
    let heights = (0...radius).map { expf(-Float($0 * $0) / (2 * standardDeviation * standardDeviation)) }
    let sum = 2 * heights.reduce(0, +) - heights[0]
    var weights = heights.map { UInt16(min(65536 * $0 / sum, 65535)) }
    // The middle weight absorbs the rounding errors; it must still fit into 16 bits.
    let outerSum = 2 * weights.dropFirst().reduce(0) { $0 + Int($1) }
    weights[0] = UInt16(min(65536 - outerSum, 65535))
    return weights
}
