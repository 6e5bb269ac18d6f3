internal import Foundation

/// What was shown, as the head sees it.
struct PersonalizationSample: Sendable {
    /// What is known of it, and how far confidences p = softmax(z) are from it.
    enum Target: Hashable, Sendable {
        /// It bears the label y at this place: −log p_y.
        case label(Int)
        /// It does not bear the label y at this place: −log(1 − p_y).
        case not(Int)
        /// It is to be judged as it was judged before, with confidences q (Li and Hoiem, "Learning without forgetting", 2016), and not to
        /// bear a new label: −Σ qₖ · log(pₖ / (1 − P)) − `newLabelWeight` · log(1 − P), P being the confidence in all new labels together.
        case asBefore
    }

    /// How much more it counts that the base's photos bear no new label than that the known ones are judged as before: there are few photos
    /// to learn a new label from, and nothing but this says what does not bear it.
    static let newLabelWeight: Float = 8

    /// The features, [places, channels].
    let features: [Float]
    let target: Target
    /// How much it counts.
    let weight: Float
}

extension PersonalizationSample.Target {
    /// Puts the gradient of the loss by the logits z in their place.
    /// - Parameters:
    ///   - before: The confidences from before.
    ///   - newCount: How many of the last labels are new.
    func differentiate(_ logits: inout [Float], before: ArraySlice<Float>, newCount: Int) {
        softmax(&logits)
        switch self {
        case .label(let label): logits[label] -= 1
        case .asBefore:
            let known = logits.count - newCount
            let rest = max(logits[..<known].reduce(0, +), 1e-12)
            for (label, place) in zip(logits.indices, before.indices) {
                let share = label < known ? logits[label] / rest : 0
                logits[label] = share - before[place] + PersonalizationSample.newLabelWeight * (logits[label] - share)
            }
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
