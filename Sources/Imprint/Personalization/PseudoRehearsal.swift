internal import Foundation

/// Pseudo-rehearsal samples of labels that an earlier personalization added without storing their photos.
///
/// A sample is a rehearsal feature, moved towards the label until the head gives the label a confidence of 95 %. The direction in
/// channel c is σ_c² · (w_c − w̄_c), with σ the standard deviations of the features, w the weights of the label, and w̄ the mean weights of the
/// other labels. Without these samples, a label that is added later would suppress the earlier one.
struct PseudoRehearsal {
    /// The maximum number of samples per label.
    private static let count = 16
    private static let confidence: Float = 0.95

    private let head: HeadParameters
    /// The number of outputs without new labels.
    private let known: Int
    private let features: [[Float]]
    private let variances: [Float]

    /// - Parameters:
    ///   - head: The initial head, with outputs of new labels at its end.
    ///   - known: The number of outputs without new labels.
    ///   - features: The rehearsal features of the base model.
    init(_ head: HeadParameters, known: Int, features: [[Float]]) {
        self.head = head
        self.known = known
        self.features = features
        let total = Float(max(features.count, 1))
        variances = (0..<head.channels).map { channel in
            let mean = features.reduce(0) { $0 + $1[channel] } / total
            return features.reduce(0) { $0 + ($1[channel] - mean) * ($1[channel] - mean) } / total
        }
    }

    /// Returns the samples of one output.
    /// - Parameter weight: The sum of the weights of `count` samples; fewer samples have a lower sum.
    func samples(of output: Int, weight: Float) -> [PersonalizationSample] {
        let outputs = head.outputs
        let others = Float(max(known - 1, 1))
        let direction = (0..<head.channels).map { channel in
            let ofOutput = head.weight[channel * outputs + output]
            let sum = (0..<known).reduce(Float(0)) { $0 + head.weight[channel * outputs + $1] }
            return variances[channel] * (ofOutput - (sum - ofOutput) / others)
        }
        let slope = logits(direction, bias: false)
        return features.prefix(Self.count).compactMap { feature in
            let start = logits(feature, bias: true)
            func confidence(_ distance: Float) -> Float {
                var logits = zip(start, slope).map { $0 + distance * $1 }
                softmax(&logits)
                return logits[output]
            }
            var distance: Float = 0.01
            while confidence(distance) < Self.confidence && distance < 1e6 { distance *= 1.2 }
            guard confidence(distance) >= Self.confidence else { return nil }
            let moved = zip(feature, direction).map { $0 + distance * $1 }
            return PersonalizationSample(features: moved, target: .distilled, weight: weight / Float(Self.count))
        }
    }

    private func logits(_ values: [Float], bias: Bool) -> [Float] {
        (0..<known).map { output in
            values.indices.reduce(bias ? head.bias[output] : 0) { sum, channel in
                sum + values[channel] * head.weight[channel * head.outputs + output]
            }
        }
    }
}
