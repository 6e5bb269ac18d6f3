internal import Foundation

/// A training sample of a personalization: features and a target.
struct PersonalizationSample: Sendable {
    /// The target of a sample, which defines its loss for the confidences p = softmax(z).
    enum Target: Hashable, Sendable {
        /// The sample has the label y: −log p_y.
        case label(Int)
        /// The sample does not have the label y: −log(1 − p_y).
        case not(Int)
        /// The confidences q of the teacher, for replayed samples (Li and Hoiem, "Learning without forgetting", 2016).
        ///
        /// With P the sum of the confidences in all new labels, the loss is
        /// −Σ qₖ · log(pₖ / (1 − P)) − `newLabelWeight` · log(1 − P).
        case distilled
    }

    /// The loss weight of "the sample has none of the new labels" relative to the distillation of the known labels.
    ///
    /// It is large because a new label has few photos, and only the replayed samples are counterexamples.
    static let newLabelWeight: Float = 8

    /// The features, [positions, channels].
    let features: [Float]
    let target: Target
    /// The weight of the loss.
    let weight: Float
}

extension PersonalizationSample.Target {
    /// Replaces logits with the gradient of the loss with respect to them.
    /// - Parameters:
    ///   - logits: The logits, and on return the gradient.
    ///   - teacher: The confidences of the teacher; used only by `distilled`.
    ///   - newCount: The number of new labels, which are the last.
    func differentiate(_ logits: inout [Float], teacher: ArraySlice<Float>, newCount: Int) {
        softmax(&logits)
        switch self {
        case .label(let label): logits[label] -= 1
        case .distilled:
            let known = logits.count - newCount
            let rest = max(logits[..<known].reduce(0, +), 1e-12)
            for (label, index) in zip(logits.indices, teacher.indices) {
                let share = label < known ? logits[label] / rest : 0
                logits[label] = share - teacher[index] + PersonalizationSample.newLabelWeight * (logits[label] - share)
            }
        case .not(let label):
            let confidence = logits[label]
            // Avoids a division by zero if the confidence is almost 1.
            let factor = confidence / max(1 - confidence, 1e-6)
            for other in logits.indices { logits[other] = other == label ? confidence : -logits[other] * factor }
        }
    }
}

/// Replaces logits with their softmax.
///
/// With `count`, the softmax covers only the first `count` elements, and the others become 0.
func softmax(_ logits: inout [Float], ofFirst count: Int? = nil) {
    let count = count ?? logits.count
    let largest = logits[..<count].max() ?? 0
    var sum: Float = 0
    for label in logits.indices {
        logits[label] = label < count ? exp(logits[label] - largest) : 0
        sum += logits[label]
    }
    for label in logits.indices { logits[label] /= sum }
}
