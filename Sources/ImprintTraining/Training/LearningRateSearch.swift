internal import Foundation
internal import ImprintNetwork
internal import ImprintSynthesis

/// The result of a learning-rate range test (Smith, "Cyclical learning rates for training neural networks", 2017).
///
/// The test takes up to 100 steps, with a learning rate that rises from 10⁻⁵ to 10 by the same factor each step, and then undoes them. It
/// smooths the losses to an exponential moving average with a decay of 0.9. Once the average exceeds its minimum by 15 % of the first
/// losses, training is unstable: the learning rate to train with is a fifth of the rate of that step, and at most 0.1. The rate of the
/// minimum itself says less: if little is learnt in a hundred steps, it depends on chance.
public struct LearningRateSearch: Codable, Hashable, Sendable {
    /// One step.
    public struct Point: Codable, Hashable, Sendable {
        /// The learning rate of the step.
        public let learningRate: Float
        /// The loss before it, smoothed.
        public let loss: Float
    }

    /// The steps, up to where training became unstable.
    public private(set) var points: [Point] = []
    private var smoothed = 0.0

    /// The largest number of steps.
    public static let stepCount = 100
    /// The number of steps that the average takes to settle.
    private static let settling = 10
    /// The schedule of the test: from 10⁻⁵ to 10.
    static let schedule = LearningRateSchedule.Decay.exponential(from: -5, to: 1)
    /// The learning rate of a step (from 0): 10⁻⁵ · 10^(6 · step / 99).
    public static func learningRate(at step: Int) -> Float {
        LearningRateSchedule(schedule).factor(at: step, of: stepCount)
    }

    /// Takes note of the loss of the next step.
    /// - Returns: Whether to go on.
    mutating func add(loss: Float) -> Bool {
        guard loss.isFinite else { return false }
        smoothed = 0.9 * smoothed + 0.1 * Double(loss)
        // The average begins at 0, which the divisor makes up for.
        let mean = Float(smoothed / (1 - pow(0.9, Double(points.count + 1))))
        points.append(Point(learningRate: Self.learningRate(at: points.count), loss: mean))
        let settled = points.dropFirst(Self.settling - 1)
        guard let first = settled.first?.loss, let lowest = settled.map(\.loss).min() else { return true }
        return points.count < Self.stepCount && mean <= lowest + 0.15 * first
    }

    /// The rate to train with, rounded to two digits; nil if there were too few losses that are numbers.
    public var learningRate: Float? {
        guard points.count >= Self.settling, let last = points.last else { return nil }
        return Float(String(format: "%.1e", min(last.learningRate / 5, 0.1)))
    }
}
