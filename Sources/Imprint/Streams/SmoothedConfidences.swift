/// An exponential moving average of the confidences over successive frames.
///
/// For each label, s ← smoothing · s + (1 − smoothing) · c; the first frame sets s to c.
struct SmoothedConfidences {
    /// The weight of the previous frames, 0 to less than 1.
    let smoothing: Float
    private var confidences: [String: Float] = [:]
    /// The classifier that predicted the averaged confidences.
    private var classifier: ImageClassifier?

    init(smoothing: Float) { self.smoothing = smoothing }

    /// Adds the classifications of the next frame.
    /// - Returns: The classifications with averaged confidences, by descending confidence.
    mutating func take(_ classifications: [Classification], of classifier: ImageClassifier) -> [Classification] {
        guard smoothing > 0 else { return classifications }
        // The average restarts with a new classifier, even if it has the same labels.
        let isContinued = self.classifier === classifier
        self.classifier = classifier
        let smoothed = classifications.map { classification in
            guard isContinued, let before = confidences[classification.label] else { return classification }
            return classification.with(confidence: smoothing * before + (1 - smoothing) * classification.confidence)
        }
        confidences = Dictionary(smoothed.map { ($0.label, $0.confidence) }) { first, _ in first }
        return Classification.ranked(smoothed)
    }
}
