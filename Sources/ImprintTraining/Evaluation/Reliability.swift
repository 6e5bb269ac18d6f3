internal import Foundation

extension Evaluation {
    /// A bin of a reliability diagram: the images whose highest confidence lies in one interval.
    public struct ReliabilityBin: Codable, Hashable, Sendable {
        /// The lower end of the interval.
        public let lowerBound: Double
        /// The upper end of the interval.
        public let upperBound: Double
        /// The number of images.
        public let count: Int
        /// The mean of their highest confidences; nil without images.
        public let meanConfidence: Double?
        /// The fraction of them that were classified correctly; nil without images.
        public let accuracy: Double?
    }

    /// The reliability diagram: the images in 15 bins of equal width by their highest confidence, in ascending order.
    ///
    /// If the confidences are calibrated, the accuracy of each bin is near its mean confidence. A confidence that is not a number counts as
    /// 0.
    public var reliability: [ReliabilityBin] {
        let bins = 15
        var counts = Array(repeating: (count: 0, correct: 0, confidence: 0.0), count: bins)
        for result in results {
            let predicted = result.predicted
            let found = Double(result.confidences[predicted])
            let confidence = found.isNaN ? 0 : min(max(found, 0), 1)
            // No Float lies exactly between two bins: among the multiples of 1/15, only 0 and 1 are Floats.
            let bin = min(Int(confidence * Double(bins)), bins - 1)
            counts[bin].count += 1
            counts[bin].correct += predicted == result.label ? 1 : 0
            counts[bin].confidence += confidence
        }
        return counts.enumerated().map { index, bin in
            ReliabilityBin(
                lowerBound: Double(index) / Double(bins), upperBound: Double(index + 1) / Double(bins),
                count: bin.count, meanConfidence: bin.count > 0 ? bin.confidence / Double(bin.count) : nil,
                accuracy: bin.count > 0 ? Double(bin.correct) / Double(bin.count) : nil)
        }
    }

    /// The expected calibration error (ECE); 0 if there are no images.
    ///
    /// It is the mean difference between the accuracy and the confidence of the bins of `reliability`, weighted by their images (Guo et
    /// al., "On calibration of modern neural networks", 2017).
    public var calibrationError: Double {
        guard !results.isEmpty else { return 0 }
        let sum = reliability.reduce(0) { sum, bin in
            guard let accuracy = bin.accuracy, let confidence = bin.meanConfidence else { return sum }
            return sum + Double(bin.count) * abs(accuracy - confidence)
        }
        return sum / Double(results.count)
    }

    /// The mean of −log of the confidence of the true label, with the natural logarithm; 0 if there are no images.
    ///
    /// Confidences are clipped to at least 2⁻⁵², so a single image cannot make it infinite.
    public var logLoss: Double {
        guard !results.isEmpty else { return 0 }
        let sum = results.reduce(0) { sum, result in
            sum - log(min(max(Double(result.confidences[result.label]), .ulpOfOne), 1))
        }
        return sum / Double(results.count)
    }
}
