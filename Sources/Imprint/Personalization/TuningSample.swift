internal import Foundation

/// What was shown, as the head sees it.
struct TuningSample: Sendable {
    /// What is known of it, and how far confidences p = softmax(z) are from it.
    enum Target: Hashable, Sendable {
        /// It bears the label y at this place: −log p_y.
        case label(Int)
        /// It does not bear the label y at this place: −log(1 − p_y).
        case not(Int)
        /// It is to be judged as it was judged before, with confidences q: −Σ qₖ · log pₖ (Li and Hoiem, "Learning without forgetting", 2016).
        case asBefore
    }

    /// The features, [places, channels].
    let features: [Float]
    let target: Target
    /// How much it counts.
    let weight: Float
}

extension TuningSample.Target {
    /// Puts the gradient of the loss by the logits z in their place.
    /// - Parameter before: The confidences from before.
    func differentiate(_ logits: inout [Float], before: ArraySlice<Float>) {
        softmax(&logits)
        switch self {
        case .label(let label): logits[label] -= 1
        case .asBefore: for (label, place) in zip(logits.indices, before.indices) { logits[label] -= before[place] }
        case .not(let label):
            let own = logits[label]
            // Where it is all but sure, the rest shares next to nothing; no more than that may be divided by.
            let factor = own / max(1 - own, 1e-6)
            for other in logits.indices { logits[other] = other == label ? own : -logits[other] * factor }
        }
    }
}

/// Puts eᶻ / Σ eᶻ in the place of logits z; the labels from `count` on count as new, with a confidence of 0.
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
