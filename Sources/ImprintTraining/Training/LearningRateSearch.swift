internal import Foundation
internal import ImprintNetwork
internal import ImprintSynthesis

/// The result of a learning-rate range test (Smith, "Cyclical learning rates for training neural networks", 2017).
///
/// The test takes up to 100 steps, with a learning rate that increases exponentially from 10⁻⁵ to 10, and then restores the parameters. It
/// smooths the losses to an exponential moving average with a decay of 0.9. Once the average exceeds its minimum by 15 % of the first
/// average, training is unstable. The learning rate to train with is a fifth of the rate of that step, and at most 0.1. The rate of the
/// minimum itself is less reliable: if the loss hardly falls in 100 steps, it depends on chance.
public struct LearningRateSearch: Codable, Hashable, Sendable {
    /// A step of the test.
    public struct Point: Codable, Hashable, Sendable {
        /// The learning rate of the step.
        public let learningRate: Float
        /// The smoothed loss before the update of the step.
        public let loss: Float
    }

    /// The steps, until training became unstable.
    public private(set) var points: [Point] = []
    /// Whether the time limit ended the test before training became unstable, so that the learning rate is too low.
    public internal(set) var endedEarly = false
    private var smoothed = 0.0

    /// The maximum number of steps.
    public static let stepCount = 100
    /// The number of steps until the average has settled, which a learning rate needs.
    static let settling = 10
    /// The schedule of the test: from 10⁻⁵ to 10.
    static let schedule = LearningRateSchedule.Shape.exponential(from: -5, to: 1)
    /// Returns the learning rate of a step (from 0): 10⁻⁵ · 10^(6 · step / 99).
    public static func learningRate(at step: Int) -> Float {
        LearningRateSchedule(schedule).factor(at: step, of: stepCount)
    }

    /// Adds the loss of the next step.
    /// - Returns: Whether to continue.
    mutating func add(loss: Float) -> Bool {
        guard loss.isFinite else { return false }
        smoothed = 0.9 * smoothed + 0.1 * Double(loss)
        // The divisor corrects the bias of an average that starts at 0.
        let mean = Float(smoothed / (1 - pow(0.9, Double(points.count + 1))))
        points.append(Point(learningRate: Self.learningRate(at: points.count), loss: mean))
        let settled = points.dropFirst(Self.settling - 1)
        guard let first = settled.first?.loss, let lowest = settled.map(\.loss).min() else { return true }
        return points.count < Self.stepCount && mean <= lowest + 0.15 * first
    }

    /// The learning rate to train with, rounded to two digits; nil if there were too few finite losses.
    public var learningRate: Float? {
        guard points.count >= Self.settling, let last = points.last else { return nil }
        return Float(String(format: "%.1e", min(last.learningRate / 5, 0.1)))
    }
}
