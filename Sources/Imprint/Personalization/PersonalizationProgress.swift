internal import Foundation

/// The progress of training with several photos.
public enum PersonalizationProgress: Sendable, Hashable {
    /// The features of some of the photos are extracted.
    case extractedFeatures(done: Int, of: Int)
    /// A training step is done.
    case step(Step)

    /// The state after some training steps.
    public struct Step: Sendable, Hashable {
        /// The number of completed steps.
        public let step: Int
        /// The total number of steps.
        public let steps: Int
        /// The mean loss of the user's photos.
        ///
        /// The loss is −log p for a photo that has a label, and −log (1 − p) for a photo that does not, with p the confidence in the label.
        public let loss: Float
        /// The accuracy on the user's photos, 0…1.
        public let accuracy: Float
    }
}

extension PersonalizationSample.Target {
    /// Computes the loss and correctness of confidences; nil for rehearsal samples.
    func score(_ confidences: [Float]) -> (loss: Float, isCorrect: Bool)? {
        let best = confidences.indices.max { confidences[$0] < confidences[$1] }
        switch self {
        case .label(let label): return (-log(max(confidences[label], .leastNormalMagnitude)), best == label)
        case .not(let label): return (-log(max(1 - confidences[label], .leastNormalMagnitude)), best != label)
        case .distilled: return nil
        }
    }
}

extension PersonalizationProgress.Step {
    /// Averages the scores of single views; nil if there are none.
    init?(_ step: Int, of steps: Int, scores: [(loss: Float, isCorrect: Bool)]) {
        guard !scores.isEmpty else { return nil }
        self.step = step
        self.steps = steps
        loss = scores.reduce(0) { $0 + $1.loss } / Float(scores.count)
        accuracy = Float(scores.count { $0.isCorrect }) / Float(scores.count)
    }
}
