internal import Foundation

extension Evaluation {
    /// The images whose highest confidence lies in one part of 0…1: a bar of a reliability diagram.
    public struct ReliabilityBin: Codable, Hashable, Sendable {
        /// Where the part begins.
        public let lowerBound: Double
        /// Where the part ends.
        public let upperBound: Double
        /// How many images it has.
        public let count: Int
        /// The mean of their highest confidences; nil if it has none.
        public let meanConfidence: Double?
        /// The share of them that were classified rightly; nil if it has none.
        public let accuracy: Double?
    }

    /// The images in 15 bins of equal width by their highest confidence, from low to high.
    ///
    /// Where confidences are honest, the accuracy of each bin is near its mean confidence.
    public var reliability: [ReliabilityBin] {
        let bins = 15
        var counts = Array(repeating: (count: 0, right: 0, confidence: 0.0), count: bins)
        for result in results {
            let predicted = result.predicted
            let confidence = Double(result.confidences[predicted])
            // No Float lies between two bins: of the multiples of 1/15 only 0 and 1 are some.
            let bin = min(max(Int(confidence * Double(bins)), 0), bins - 1)
            counts[bin].count += 1
            counts[bin].right += predicted == result.label ? 1 : 0
            counts[bin].confidence += confidence
        }
        return counts.enumerated().map { place, bin in
            ReliabilityBin(
                lowerBound: Double(place) / Double(bins), upperBound: Double(place + 1) / Double(bins),
                count: bin.count, meanConfidence: bin.count > 0 ? bin.confidence / Double(bin.count) : nil,
                accuracy: bin.count > 0 ? Double(bin.right) / Double(bin.count) : nil)
        }
    }

    /// The expected calibration error: how far confidence and accuracy are apart, as the mean over the bins of `reliability`
    /// weighted by their images (Guo et al., "On calibration of modern neural networks", 2017); 0 if there are no images.
    public var calibrationError: Double {
        guard !results.isEmpty else { return 0 }
        let sum = reliability.reduce(0) { sum, bin in
            guard let accuracy = bin.accuracy, let confidence = bin.meanConfidence else { return sum }
            return sum + Double(bin.count) * abs(accuracy - confidence)
        }
        return sum / Double(results.count)
    }

    /// The mean of −log of the confidence in the true label, natural logarithm; 0 if there are no images.
    ///
    /// A confidence below 2⁻⁵² counts as that much, so that a single image cannot make it infinite.
    public var logLoss: Double {
        guard !results.isEmpty else { return 0 }
        let sum = results.reduce(0) { sum, result in
            sum - log(min(max(Double(result.confidences[result.label]), .ulpOfOne), 1))
        }
        return sum / Double(results.count)
    }
}
