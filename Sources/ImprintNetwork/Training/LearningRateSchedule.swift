#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A learning-rate schedule: the factor of the highest rate at each step.
public struct LearningRateSchedule: Hashable, Codable, Sendable {
    /// The schedule after the warm-up.
    public enum Decay: Hashable, Codable, Sendable {
        /// Always the highest rate.
        case constant
        /// Multiplied by `factor` after every `every` steps.
        case step(every: Int, factor: Float)
        /// Half a cosine from the highest rate to `final` times it (Loshchilov and Hutter, "SGDR", 2017).
        case cosine(final: Float)
        /// From 10 to the power `from` to 10 to the power `to` times the highest rate, by the same factor each step: the range test of
        /// Smith, "Cyclical learning rates for training neural networks", 2017.
        case exponential(from: Int, to: Int)
    }

    /// The schedule after the warm-up.
    public var decay: Decay
    /// The number of warm-up steps, in which the rate rises linearly from near 0 to its highest value.
    public var warmUpSteps: Int

    private enum CodingKeys: String, CodingKey {
        // The name of version 1.
        case decay = "course"
        case warmUpSteps
    }

    /// Makes a schedule.
    public init(_ decay: Decay = .constant, warmUpSteps: Int = 0) {
        precondition(warmUpSteps >= 0, "a warm-up has at least 0 steps, not \(warmUpSteps)")
        self.decay = decay
        self.warmUpSteps = warmUpSteps
    }

    /// The factor of the rate at `step` (from 0) of a run of `totalSteps`.
    ///
    /// Warm-up over w steps: (step + 1) / w. Cosine with p the share of the remaining steps that are done:
    /// final + (1 − final) · (1 + cos(π·p)) / 2.
    public func factor(at step: Int, of totalSteps: Int) -> Float {
        if step < warmUpSteps { return Float(step + 1) / Float(warmUpSteps) }
        switch decay {
        case .constant: return 1
        case .step(let every, let factor): return powf(factor, Float((step - warmUpSteps) / max(every, 1)))
        case .exponential(let from, let to):
            return Float(pow(10, Double(from) + Double(to - from) * Double(step) / Double(max(totalSteps - 1, 1))))
        case .cosine(let final):
            let progress = Float(step - warmUpSteps) / Float(max(totalSteps - warmUpSteps, 1))
            return final + (1 - final) * (1 + cosf(.pi * min(progress, 1))) / 2
        }
    }
}
