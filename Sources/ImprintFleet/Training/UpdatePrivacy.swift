internal import Foundation
internal import Imprint

/// Clips the client updates of a device and adds noise to them (local differential privacy).
struct UpdatePrivacy: Sendable {
    /// The maximum Euclidean norm of a change; nil for no limit.
    let clip: Double?
    /// The standard deviation of the noise as a multiple of `clip`; nil for no noise.
    let noise: Double?
    let delta: Double

    /// A client update that may leave the device: Δ · min(1, C / ‖Δ‖) + N(0, (z C)²).
    struct Release: Equatable {
        var change: HeadChange
        /// The norm before clipping; 0 for a change that is not finite.
        let norm: Double
        let isClipped: Bool
    }

    /// Returns the change that may leave the device.
    ///
    /// A change that is not finite counts as zero. Clipping would turn infinite values into NaN, which noise does not hide. An error would reveal
    /// that training on these photos diverged.
    func release(_ change: HeadChange) -> Release {
        var generator = SystemRandomNumberGenerator()
        return release(change, &generator)
    }

    func release(_ change: HeadChange, _ generator: inout some RandomNumberGenerator) -> Release {
        let norm = (change.weights + change.biases).reduce(0.0) { $0 + Double($1) * Double($1) }.squareRoot()
        guard norm.isFinite else {
            let zeros = HeadChange(weights: change.weights.map { _ in 0 }, biases: change.biases.map { _ in 0 })
            return release(zeros, &generator)
        }
        let scale = clip.map { norm > $0 ? $0 / norm : 1 } ?? 1
        let deviation = (noise ?? 0) * (clip ?? 0)
        func released(_ values: [Float]) -> [Float] {
            values.map { value in
                Float(Double(value) * scale + (deviation > 0 ? deviation * generator.gaussian() : 0))
            }
        }
        return Release(
            change: HeadChange(weights: released(change.weights), biases: released(change.biases)), norm: norm,
            isClipped: scale < 1)
    }

    /// Adds the squared privacy loss of one more answer to that of earlier ones.
    ///
    /// For any two sets of photos, two clipped changes differ by at most 2C, so the noise is z/2 times the sensitivity: the answer has the
    /// loss μ = 2 / z. The squares of the losses of all answers add up (Dong, Roth and Su, "Gaussian differential privacy", 2022,
    /// corollary 3.3).
    /// - Returns: The sum of all μ²; nil if an answer had no noise, so that there is no limit.
    func addingAnswer(to squaredLoss: Double?) -> Double? {
        guard let squaredLoss, let noise else { return nil }
        return squaredLoss + 4 / (noise * noise)
    }

    /// Returns the ε of answers; nil if there is no limit.
    /// - Parameter squaredLoss: The sum of all μ².
    func epsilon(squaredLoss: Double?) -> Double? {
        squaredLoss.map { $0 > 0 ? GaussianMechanism.epsilon(multiplier: 1 / $0.squareRoot(), delta: delta) : 0 }
    }
}
