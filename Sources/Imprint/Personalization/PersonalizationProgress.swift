internal import Foundation

/// How far learning from several photos is.
public enum PersonalizationProgress: Sendable, Hashable {
    /// So many of the photos have been looked at.
    case looked(done: Int, of: Int)
    /// A step of training is done.
    case step(Step)

    /// How what was shown fares after some steps.
    public struct Step: Sendable, Hashable {
        /// How many steps are done.
        public let step: Int
        /// How many there are to be.
        public let steps: Int
        /// The mean loss of what was shown: −log of the confidence in its label, or of what is left beside a label that it does not bear.
        public let loss: Float
        /// The share of what was shown that is judged rightly, 0…1.
        public let accuracy: Float
    }
}

extension PersonalizationSample.Target {
    /// What confidences are worth as an answer to it; nil if it is to be judged as before, for that is not about what was shown.
    func score(_ confidences: [Float]) -> (loss: Float, isRight: Bool)? {
        let best = confidences.indices.max { confidences[$0] < confidences[$1] }
        switch self {
        case .label(let label): return (-log(max(confidences[label], .leastNormalMagnitude)), best == label)
        case .not(let label): return (-log(max(1 - confidences[label], .leastNormalMagnitude)), best != label)
        case .asBefore: return nil
        }
    }
}

extension PersonalizationProgress.Step {
    /// The mean of what single views score; nil if there is none.
    init?(_ step: Int, of steps: Int, scores: [(loss: Float, isRight: Bool)]) {
        guard !scores.isEmpty else { return nil }
        self.step = step
        self.steps = steps
        loss = scores.reduce(0) { $0 + $1.loss } / Float(scores.count)
        accuracy = Float(scores.count { $0.isRight }) / Float(scores.count)
    }
}
