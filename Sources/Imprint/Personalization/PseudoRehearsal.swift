internal import Foundation

/// Pseudo-rehearsal samples of labels that an earlier personalization added without storing their photos.
///
/// A sample is a rehearsal feature, moved towards the label until the head gives the label a confidence of 95 %. The direction in
/// channel c is σ_c² · (w_c − w̄_c), with σ the standard deviations of the features, w the weights of the label, and w̄ the mean weights of the
/// other labels. Without these samples, a label that is added later would suppress the earlier one.
///
/// A logo detector has features of several positions, and the logit of a logo is the maximum over them. Only the features of the first
/// position, which has the highest score, move. The weights include the calibration of the logos, and the label of images without any logo
/// has the weights and the logit 0.
struct PseudoRehearsal {
    /// The maximum number of samples per label.
    private static let count = 16
    private static let confidence: Float = 0.95

    private let channels: Int
    /// The number of logits: those of the outputs without new labels, and that of images without any logo if the model has one.
    private let logitCount: Int
    /// The calibrated weights, [channels, logits].
    private let weight: [Float]
    /// The calibrated biases, [logits].
    private let bias: [Float]
    private let features: [[Float]]
    /// The variances of the features of the first position, [channels].
    private let variances: [Float]

    /// - Parameters:
    ///   - head: The initial head, with outputs of new labels at its end.
    ///   - known: The number of outputs without new labels.
    ///   - features: The rehearsal features of the base model, each [positions, channels].
    init(_ head: HeadParameters, known: Int, features: [[Float]]) {
        let channels = head.channels
        self.channels = channels
        self.features = features
        let none: [Float] = head.hasNone ? [0] : []
        logitCount = known + none.count
        weight = (0..<channels).flatMap { channel -> [Float] in
            let row = head.weight[(channel * head.outputs)...].prefix(known)
            return zip(head.slopes, row).map { $0 * $1 } + none
        }
        bias = (0..<known).map { head.slopes[$0] * head.bias[$0] + head.offsets[$0] } + none
        let total = Float(max(features.count, 1))
        variances = (0..<channels).map { channel in
            let mean = features.reduce(0) { $0 + $1[channel] } / total
            return features.reduce(0) { $0 + ($1[channel] - mean) * ($1[channel] - mean) } / total
        }
    }

    /// Returns the samples of one output.
    /// - Parameter weight: The sum of the weights of `count` samples; fewer samples have a lower sum.
    func samples(of output: Int, weight: Float) -> [PersonalizationSample] {
        let others = Float(max(logitCount - 1, 1))
        let direction = (0..<channels).map { channel in
            let weights = self.weight[(channel * logitCount)..<((channel + 1) * logitCount)]
            let ofOutput = weights[weights.startIndex + output]
            return variances[channel] * (ofOutput - (weights.reduce(0, +) - ofOutput) / others)
        }
        let slope = sums(direction[...], from: [Float](repeating: 0, count: logitCount))
        return features.prefix(Self.count).compactMap { feature in
            let start = sums(feature.prefix(channels), from: bias)
            let rest = maximumLogits(feature.dropFirst(channels))
            func confidence(_ distance: Float) -> Float {
                var logits = zip(zip(start, slope), rest).map { max($0.0 + distance * $0.1, $1) }
                softmax(&logits)
                return logits[output]
            }
            var distance: Float = 0.01
            while confidence(distance) < Self.confidence && distance < 1e6 { distance *= 1.2 }
            guard confidence(distance) >= Self.confidence else { return nil }
            let moved = zip(feature, direction).map { $0 + distance * $1 }
            return PersonalizationSample(
                features: moved + feature.dropFirst(channels), target: .distilled, weight: weight / Float(Self.count))
        }
    }

    /// Returns the maximum logits over the positions of features, [positions, channels]; -∞ without positions.
    private func maximumLogits(_ features: ArraySlice<Float>) -> [Float] {
        var maxima = [Float](repeating: -.infinity, count: logitCount)
        for start in stride(from: features.startIndex, to: features.endIndex, by: channels) {
            let logits = sums(features[start..<(start + channels)], from: bias)
            for logit in maxima.indices { maxima[logit] = max(maxima[logit], logits[logit]) }
        }
        return maxima
    }

    /// Returns the products of the features of one position and the weights, added to `start`.
    private func sums(_ features: ArraySlice<Float>, from start: [Float]) -> [Float] {
        var sums = start
        for (channel, value) in features.enumerated() {
            for logit in sums.indices { sums[logit] += value * weight[channel * logitCount + logit] }
        }
        return sums
    }
}
