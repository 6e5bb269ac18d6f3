internal import Foundation
internal import ImprintSynthesis

/// How the loss follows from the learning rate, and the rate to train with.
///
/// Up to a hundred steps are taken with a rate that rises from 10⁻⁵ to 10 by the same factor each, and then undone: a range test
/// (Smith, "Cyclical learning rates for training neural networks", 2017). The losses are smoothed to an average that forgets 10 %
/// a step. Where it lies above the lowest so far by 15 % of the first losses, training has become unstable, and the rate
/// is a fifth of the one there, and at most 0.1. The place where the average is lowest would say less: where little is learnt in a hundred steps, it
/// is a matter of chance.
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

    /// How many steps are taken at most.
    public static let stepCount = 100
    /// How many steps the average takes to settle.
    private static let settling = 10
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
