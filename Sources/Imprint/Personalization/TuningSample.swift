internal import ImprintFormats

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
    /// The gradient of the loss by the logits z.
    /// - Parameter before: The confidences from before.
    func slope(_ logits: [Float], before: [Float]) -> [Float] {
        var slope = softmax(logits)
        switch self {
        case .label(let label): slope[label] -= 1
        case .asBefore: for label in slope.indices { slope[label] -= before[label] }
        case .not(let label):
            let own = slope[label]
            // Where it is all but sure, the rest shares next to nothing; no more than that may be divided by.
            let factor = own / max(1 - own, 1e-6)
            for other in slope.indices { slope[other] = other == label ? own : -slope[other] * factor }
        }
        return slope
    }
}

/// The confidences of what was known before: those of the first labels, and 0 for new ones.
func softmax(_ logits: [Float], ofFirst count: Int) -> [Float] {
    softmax(Array(logits.prefix(count))) + logits.dropFirst(count).map { _ in 0 }
}

/// eᶻ / Σ eᶻ.
func softmax(_ logits: [Float]) -> [Float] {
    Calibration(temperature: 1, errorBefore: 0, errorAfter: 0, images: 0).confidences(logits)
}
