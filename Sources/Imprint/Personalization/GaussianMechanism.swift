internal import Foundation

/// What adding normally distributed numbers to a sum says at most of any one person in it (differential privacy).
///
/// A sum to which one person adds a vector of a Euclidean norm of at most C, and to whose every number noise of the deviation z · C was
/// added, is (ε, δ)-private exactly where Φ(1/(2z) − εz) − e^ε Φ(−1/(2z) − εz) ≤ δ, with Φ the distribution of normal numbers (Balle and
/// Wang, "Improving the Gaussian mechanism for differential privacy", 2018, theorem 8).
public enum GaussianMechanism {
    /// The smallest ε ≥ 0 for a δ, to about twelve digits.
    /// - Parameters:
    ///   - multiplier: z, the deviation of the noise by the greatest norm of a person's part, > 0.
    ///   - delta: δ, in 0…1 without the ends.
    public static func epsilon(multiplier: Double, delta: Double) -> Double {
        precondition(
            multiplier > 0 && multiplier.isFinite && delta > 0 && delta < 1,
            "no privacy is known of noise \(multiplier) and δ \(delta)")
        guard loss(0, multiplier) > delta else { return 0 }
        var (low, high) = (0.0, 1.0)
        while loss(high, multiplier) > delta { (low, high) = (high, 2 * high) }
        while high - low > 1e-13 * high {
            let middle = low + (high - low) / 2
            if loss(middle, multiplier) > delta { low = middle } else { high = middle }
        }
        return high
    }

    /// The smallest δ for an ε.
    ///
    /// With φ the density of normal numbers, e^ε φ(1/(2z) + εz) = φ(1/(2z) − εz). So the second term is this times the ratio of Mills
    /// at 1/(2z) + εz, and nothing overflows, however large ε is.
    private static func loss(_ epsilon: Double, _ multiplier: Double) -> Double {
        let near = epsilon * multiplier - 0.5 / multiplier
        let far = epsilon * multiplier + 0.5 / multiplier
        let density = exp(-near * near / 2)
        let second = density * scaledComplement(far / 2.0.squareRoot()) / 2
        // Both terms may be tiny: as multiples of the density they keep their digits.
        guard near > 0 else { return erfc(near / 2.0.squareRoot()) / 2 - second }
        return density * scaledComplement(near / 2.0.squareRoot()) / 2 - second
    }

    /// e^(x²) erfc(x) for x ≥ 0.
    private static func scaledComplement(_ x: Double) -> Double {
        guard x > 5 else { return exp(x * x) * erfc(x) }
        // Laplace's continued fraction; from 5 on sixty terms are more than a Double has digits for.
        var rest = x
        for term in stride(from: 60.0, to: 0, by: -1) { rest = x + term / 2 / rest }
        return 1 / (Double.pi.squareRoot() * rest)
    }
}

extension RandomNumberGenerator {
    /// A normally distributed number with mean 0 and deviation 1 (Box and Muller, 1958).
    ///
    /// What is said of privacy is about this distribution: the sum of a few uniform numbers, as `RandomStream.normal()` has it, ends where
    /// noise must not end.
    mutating func gaussian() -> Double {
        let radius = (-2 * log((Double(next() >> 11) + 1) * 0x1p-53)).squareRoot()
        return radius * cos(2 * .pi * Double(next() >> 11) * 0x1p-53)
    }
}
