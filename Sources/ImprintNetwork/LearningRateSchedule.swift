#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// How the learning rate changes over a run, as a factor of its highest value.
public struct LearningRateSchedule: Hashable, Codable, Sendable {
    /// The course after the warm-up.
    public enum Decay: Hashable, Codable, Sendable {
        /// Always the highest rate.
        case constant
        /// Multiplied by `factor` after every `every` steps.
        case step(every: Int, factor: Float)
        /// Half a cosine from the highest rate to `final` times it (Loshchilov and Hutter, "SGDR", 2017).
        case cosine(final: Float)
    }

    /// The course after the warm-up.
    public var course: Decay
    /// How many steps the rate takes to rise linearly from near 0 to its highest value.
    public var warmUpSteps: Int

    /// Makes a schedule.
    public init(_ course: Decay = .constant, warmUpSteps: Int = 0) {
        precondition(warmUpSteps >= 0, "a warm-up has at least 0 steps, not \(warmUpSteps)")
        self.course = course
        self.warmUpSteps = warmUpSteps
    }

    /// The factor of the rate at `step` (from 0) of a run of `totalSteps`.
    ///
    /// Warm-up over w steps: (step + 1) / w. Cosine with p the share of the remaining steps that are done:
    /// final + (1 − final) · (1 + cos(π·p)) / 2.
    public func factor(at step: Int, of totalSteps: Int) -> Float {
        if step < warmUpSteps { return Float(step + 1) / Float(warmUpSteps) }
        switch course {
        case .constant: return 1
        case .step(let every, let factor): return powf(factor, Float((step - warmUpSteps) / max(every, 1)))
        case .cosine(let final):
            let progress = Float(step - warmUpSteps) / Float(max(totalSteps - warmUpSteps, 1))
            return final + (1 - final) * (1 + cosf(.pi * min(progress, 1))) / 2
        }
    }
}
