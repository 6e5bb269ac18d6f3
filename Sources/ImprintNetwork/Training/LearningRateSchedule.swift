#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A learning-rate schedule, which scales the peak learning rate in each step.
public struct LearningRateSchedule: Hashable, Codable, Sendable {
    /// The shape of the schedule after the warm-up.
    public enum Shape: Hashable, Codable, Sendable {
        /// The peak rate in every step.
        case constant
        /// Step decay, which multiplies the rate by `factor` after every `every` steps.
        case step(every: Int, factor: Float)
        /// Cosine decay from the peak rate to `final` times the peak rate (Loshchilov and Hutter, "SGDR", 2017).
        case cosine(final: Float)
        /// Exponential change from 10^`from` to 10^`to` times the peak rate, as in a learning-rate range test (Smith, "Cyclical learning
        /// rates for training neural networks", 2017). After a warm-up, it is only continuous if `from` is 0.
        case exponential(from: Int, to: Int)
    }

    /// The shape of the schedule after the warm-up.
    public var shape: Shape
    /// The number of warm-up steps, during which the rate grows linearly to its peak.
    public var warmUpSteps: Int

    private enum CodingKeys: String, CodingKey {
        // The key in version 1.
        case shape = "course"
        case warmUpSteps
    }

    /// Creates a schedule.
    public init(_ shape: Shape = .constant, warmUpSteps: Int = 0) {
        precondition(warmUpSteps >= 0, "the number of warm-up steps must be at least 0, not \(warmUpSteps)")
        self.shape = shape
        self.warmUpSteps = warmUpSteps
    }

    /// Returns the factor of the peak rate at `step` (from 0) of a run of `totalSteps`.
    ///
    /// Warm-up over w steps: (step + 1) / w. Cosine: final + (1 − final) · (1 + cos(π·p)) / 2, with p the fraction of the steps after
    /// the warm-up that are done. Exponential: 10^(from + (to − from) · q), with q from 0 in the first step after the warm-up to 1 in
    /// the last step.
    public func factor(at step: Int, of totalSteps: Int) -> Float {
        if step < warmUpSteps { return Float(step + 1) / Float(warmUpSteps) }
        switch shape {
        case .constant: return 1
        case .step(let every, let factor): return powf(factor, Float((step - warmUpSteps) / max(every, 1)))
        case .exponential(let from, let to):
            let progress = Double(step - warmUpSteps) / Double(max(totalSteps - warmUpSteps - 1, 1))
            return Float(pow(10, Double(from) + Double(to - from) * progress))
        case .cosine(let final):
            let progress = Float(step - warmUpSteps) / Float(max(totalSteps - warmUpSteps, 1))
            return final + (1 - final) * (1 + cosf(.pi * min(progress, 1))) / 2
        }
    }
}
