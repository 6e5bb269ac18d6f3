import ImprintCore
import ImprintNetwork
import Testing

@Suite struct StandardizationTests {
    /// [50, 3]: the channels have different scales, and the last one is constant.
    private let features: [Float] = (0..<50).flatMap { row -> [Float] in
        let (first, second) = (Float(row * 7 % 13), Float(row * 5 % 11))
        return [first, 100 + second / 100, 3]
    }

    private func standardization(isCentred: Bool = true) -> Standardization {
        features.withUnsafeBufferPointer { Standardization($0, channels: 3, isCentred: isCentred) }
    }

    private func standardized(_ standardization: Standardization) -> [Float] {
        var values = features
        values.withUnsafeMutableBufferPointer { standardization.apply(to: $0) }
        return values
    }

    @Test("Statistics do not depend on how the rows are divided") func statistics() {
        var whole = ChannelStatistics(channels: 3)
        features.withUnsafeBufferPointer { whole.add($0) }
        var parts = ChannelStatistics(channels: 3)
        for part in [0..<60, 60..<63, 63..<150] {
            features[part].withUnsafeBufferPointer { parts.add($0) }
        }
        #expect(whole.count == 50 && parts.count == 50)
        #expect(whole.means == parts.means && whole.variances == parts.variances)
        #expect(abs(whole.means[1] - 100.05) < 0.01 && whole.means[2] == 3 && whole.variances[2] < 1e-9)
    }

    @Test("Standardized channels have a mean of 0 and a standard deviation of about 1, or are 0 if they are constant")
    func apply() {
        let values = standardized(standardization())
        var statistics = ChannelStatistics(channels: 3)
        values.withUnsafeBufferPointer { statistics.add($0) }
        #expect(statistics.means.allSatisfy { abs($0) < 1e-3 })
        #expect(abs(statistics.variances[0] - 1) < 0.02)
        // A channel that hardly varies is not amplified to a variance of 1.
        #expect(statistics.variances[1] < 0.1 && statistics.variances[2] == 0)
    }

    @Test(
        "A linear layer for standardized features has the same outputs for the original features",
        arguments: [true, false])
    func absorb(isCentred: Bool) {
        func outputs(_ features: [Float], _ weights: [Float], _ bias: [Float]) -> [Float] {
            var outputs: [Float] = []
            for row in 0..<50 {
                for output in 0..<2 {
                    var sum = bias[output]
                    for channel in 0..<3 { sum += features[row * 3 + channel] * weights[channel * 2 + output] }
                    outputs.append(sum)
                }
            }
            return outputs
        }
        let standardization = standardization(isCentred: isCentred)
        let (weights, bias): ([Float], [Float]) = ([0.5, -1, 0.2, 0.1, 0, 2], [0.3, -0.4])
        let expected = outputs(standardized(standardization), weights, bias)
        var (absorbedWeights, absorbedBias) = (weights, bias)
        standardization.absorb(into: &absorbedWeights, bias: &absorbedBias)
        let found = outputs(features, absorbedWeights, absorbedBias)
        for (found, expected) in zip(found, expected) { #expect(abs(found - expected) < 1e-2) }
        if !isCentred { #expect(standardization.means == [0, 0, 0] && absorbedBias == bias) }
    }
}
