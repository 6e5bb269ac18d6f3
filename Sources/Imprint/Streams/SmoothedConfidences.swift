/// Confidences that follow those of one frame after the other, so that one odd frame does not count for much.
///
/// s ← smoothing · s + (1 − smoothing) · c, label by label; the first frame counts whole.
struct SmoothedConfidences {
    /// What of the frames before stays, 0 (nothing) … 1 (all).
    let smoothing: Float
    private var confidences: [String: Float] = [:]
    /// Whose they are.
    private var classifier: ImageClassifier?

    init(smoothing: Float) { self.smoothing = smoothing }

    /// The observations of the next frame with what the frames before add to them, best first.
    mutating func take(_ observations: [Classification], of classifier: ImageClassifier) -> [Classification] {
        guard smoothing > 0 else { return observations }
        // What another model saw before does not belong to this one, whatever its labels.
        let isContinued = self.classifier === classifier
        self.classifier = classifier
        let smoothed = observations.map { observation in
            guard isContinued, let before = confidences[observation.label] else { return observation }
            return observation.with(confidence: smoothing * before + (1 - smoothing) * observation.confidence)
        }
        confidences = Dictionary(smoothed.map { ($0.label, $0.confidence) }) { first, _ in first }
        return Classification.ranked(smoothed)
    }
}
