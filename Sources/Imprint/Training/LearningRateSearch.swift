internal import Foundation

/// How the loss follows from the learning rate, and the rate to train with.
///
/// A hundred steps are taken with a rate that rises from 10⁻⁵ to 10 by the same factor each, and then undone (Smith, "Cyclical
/// learning rates for training neural networks", 2017). With the losses lᵢ smoothed to s, an average that forgets 10 % a step,
/// the rate is a third of the one where s is least: there training is still stable, and nearly as fast as it can be.
public struct LearningRateSearch: Codable, Hashable, Sendable {
    /// One step.
    public struct Point: Codable, Hashable, Sendable {
        /// The learning rate of the step.
        public let learningRate: Float
        /// The loss before it, smoothed.
        public let loss: Float
    }

    /// The steps, up to where the loss was four times the least.
    public private(set) var points: [Point] = []
    private var smoothed = 0.0

    /// How many steps are taken at most.
    public static let stepCount = 100
    /// The rate of the step at a place from 0: 10⁻⁵ · 10^(6 · step / 99).
    public static func learningRate(at step: Int) -> Float {
        Float(pow(10, -5 + 6 * Double(step) / Double(stepCount - 1)))
    }

    /// Takes note of the loss of the next step.
    /// - Returns: Whether to go on.
    mutating func add(loss: Float) -> Bool {
        guard loss.isFinite else { return false }
        smoothed = 0.9 * smoothed + 0.1 * Double(loss)
        // The average begins at 0, which the divisor makes up for.
        let mean = Float(smoothed / (1 - pow(0.9, Double(points.count + 1))))
        points.append(Point(learningRate: Self.learningRate(at: points.count), loss: mean))
        return points.count < Self.stepCount && mean < 4 * (points.map(\.loss).min() ?? mean)
    }

    /// The rate to train with, rounded to two digits; `nil` where not even the lowest gave a loss that is a number.
    public var learningRate: Float? {
        guard let best = points.min(by: { $0.loss < $1.loss }) else { return nil }
        return Float(String(format: "%.1e", best.learningRate / 3))
    }
}
