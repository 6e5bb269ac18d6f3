internal import Foundation

/// Samples of labels that an earlier personalization added, whose photos are gone.
///
/// A feature of the base's photos is moved along the weights of the label, Σ_c σ_c² · (w_c − w̄_c) with the deviations σ of features and the mean
/// w̄ of the other labels' weights, until the head gives the label a confidence of 95 %: what a photo of it might have been, as far as the
/// head can tell. Without such samples a label that is added later would take the place of the one before.
struct RecalledLabels {
    /// How many samples stand for a label.
    private static let count = 16
    private static let confidence: Float = 0.95

    private let head: HeadParameters
    /// How many outputs there were before.
    private let known: Int
    private let features: [[Float]]
    private let variances: [Float]

    /// - Parameters:
    ///   - head: The head as it was, with further outputs at its end for new labels.
    ///   - features: Of the base's photos.
    init(_ head: HeadParameters, known: Int, features: [[Float]]) {
        self.head = head
        self.known = known
        self.features = features
        let number = Float(max(features.count, 1))
        variances = (0..<head.channels).map { channel in
            let mean = features.reduce(0) { $0 + $1[channel] } / number
            return features.reduce(0) { $0 + ($1[channel] - mean) * ($1[channel] - mean) } / number
        }
    }

    /// The samples of one output, which weigh so much together.
    func samples(of output: Int, weight: Float) -> [PersonalizationSample] {
        let outputs = head.outputs
        let others = Float(max(known - 1, 1))
        let direction = (0..<head.channels).map { channel in
            let own = head.weight[channel * outputs + output]
            let sum = (0..<known).reduce(Float(0)) { $0 + head.weight[channel * outputs + $1] }
            return variances[channel] * (own - (sum - own) / others)
        }
        let slope = logits(direction, bias: false)
        return features.prefix(Self.count).compactMap { feature in
            let start = logits(feature, bias: true)
            func confidence(_ way: Float) -> Float {
                var logits = zip(start, slope).map { $0 + way * $1 }
                softmax(&logits)
                return logits[output]
            }
            var way: Float = 0.01
            while confidence(way) < Self.confidence && way < 1e6 { way *= 1.2 }
            guard confidence(way) >= Self.confidence else { return nil }
            let moved = zip(feature, direction).map { $0 + way * $1 }
            return PersonalizationSample(features: moved, target: .asBefore, weight: weight / Float(Self.count))
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
