internal import Foundation

/// The Gaussian mechanism of differential privacy, which adds normally distributed noise to a sum.
///
/// Each user contributes a vector with a Euclidean norm of at most C to the sum, and each element of the sum receives noise with a standard
/// deviation of z · C. The noisy sum is (ε, δ)-differentially private if and only if
/// Φ(1/(2z) − εz) − e^ε Φ(−1/(2z) − εz) ≤ δ, with Φ the cumulative distribution function of the standard normal distribution (Balle and
/// Wang, "Improving the Gaussian mechanism for differential privacy", 2018, theorem 8).
package enum GaussianMechanism {
    /// Returns the smallest ε ≥ 0 for a given δ, to about twelve digits.
    /// - Parameters:
    ///   - multiplier: The noise multiplier z > 0: the standard deviation of the noise divided by the clipping norm.
    ///   - delta: δ, more than 0 and less than 1.
    package static func epsilon(multiplier: Double, delta: Double) -> Double {
        precondition(
            multiplier > 0 && multiplier.isFinite && delta > 0 && delta < 1,
            "expected a finite noise multiplier above 0 and 0 < δ < 1, not \(multiplier) and \(delta)")
        guard smallestDelta(0, multiplier) > delta else { return 0 }
        var (low, high) = (0.0, 1.0)
        while smallestDelta(high, multiplier) > delta { (low, high) = (high, 2 * high) }
        while high - low > 1e-13 * high {
            let middle = low + (high - low) / 2
            if smallestDelta(middle, multiplier) > delta { low = middle } else { high = middle }
        }
        return high
    }

    /// Returns the smallest δ for a given ε.
    ///
    /// With φ the density of the standard normal distribution, e^ε φ(1/(2z) + εz) = φ(1/(2z) − εz). Therefore the second term is this density
    /// times the Mills ratio at 1/(2z) + εz, which does not overflow for large ε.
    private static func smallestDelta(_ epsilon: Double, _ multiplier: Double) -> Double {
        let near = epsilon * multiplier - 0.5 / multiplier
        let far = epsilon * multiplier + 0.5 / multiplier
        let density = exp(-near * near / 2)
        let second = density * scaledComplement(far / 2.0.squareRoot()) / 2
        // If both terms are tiny, multiples of the density keep their precision.
        guard near > 0 else { return erfc(near / 2.0.squareRoot()) / 2 - second }
        return density * scaledComplement(near / 2.0.squareRoot()) / 2 - second
    }

    /// Returns the scaled complementary error function e^(x²) erfc(x), for x ≥ 0.
    private static func scaledComplement(_ x: Double) -> Double {
        guard x > 5 else { return exp(x * x) * erfc(x) }
        // Laplace's continued fraction: for x > 5, sixty terms reach the precision of Double.
        var rest = x
        for term in stride(from: 60.0, to: 0, by: -1) { rest = x + term / 2 / rest }
        return 1 / (Double.pi.squareRoot() * rest)
    }
}

extension RandomNumberGenerator {
    /// Returns a sample of the standard normal distribution (Box and Muller, 1958).
    ///
    /// The privacy guarantee needs this distribution. `RandomStream.normal()` is not a substitute: it sums uniform samples, so its tails are
    /// cut off.
    package mutating func gaussian() -> Double {
        let radius = (-2 * log((Double(next() >> 11) + 1) * 0x1p-53)).squareRoot()
        return radius * cos(2 * .pi * Double(next() >> 11) * 0x1p-53)
    }
}
