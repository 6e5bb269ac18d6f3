internal import CImprintKernels
internal import Foundation

extension RasterImage {
    /// The image blurred by a Gaussian of the given standard deviation in pixels, cut off at three deviations; borders
    /// are continued.
    ///
    /// Samples are within 1 of what they should be for deviations of up to 20 pixels.
    package func blurred(deviation: Float) -> RasterImage {
        guard deviation > 0 else { return self }
        let weights = gaussianShares(deviation: deviation)
        let (columns, rows, depth, radius) = (Int32(width), Int32(height), Int32(channels), Int32(weights.count - 1))
        let capacity = imprint_blur_scratch(columns, rows, depth, radius)
        return withNewSamples { target in
            withUnsafeTemporaryAllocation(of: UInt16.self, capacity: capacity) { scratch in
                imprint_blur(samples, target, columns, rows, depth, weights, radius, scratch.baseAddress)
            }
        }
    }
}

/// The weights of a Gaussian from its middle outwards, in shares of 65536, which they add up to with both sides counted.
private func gaussianShares(deviation: Float) -> [UInt16] {
    let radius = max(1, Int((3 * deviation).rounded(.up)))
    let heights = (0...radius).map { expf(-Float($0 * $0) / (2 * deviation * deviation)) }
    let sum = 2 * heights.reduce(0, +) - heights[0]
    var shares = heights.map { UInt16(min(65536 * $0 / sum, 65535)) }
    // What rounding takes away goes to the middle, which must fit into 16 bits all the same.
    let others = 2 * shares.dropFirst().reduce(0) { $0 + Int($1) }
    shares[0] = UInt16(min(65536 - others, 65535))
    return shares
}
