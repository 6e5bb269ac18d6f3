internal import Foundation

/// Platt scaling: the probability that an image shows a logo, 1 / (1 + exp(−(slope · score + offset))).
///
/// Newton's method maximizes the likelihood of the smoothed targets (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2) for n₊ positive and n₋ negative
/// scores (Platt, "Probabilistic outputs for support vector machines", 1999). Positives and negatives have the same total weight.
struct PlattScaling: Equatable {
    var slope = 1.0
    var offset = 0.0

    /// Fits the curve to the scores of images with and without the logo.
    ///
    /// Without scores of both kinds, the slope is 1 and the offset 0, which stands for a logo without a calibration.
    init(positives: [Float], negatives: [Float]) {
        guard !positives.isEmpty, !negatives.isEmpty else { return }
        let all = (positives + negatives).map(Double.init)
        // The scores are standardized, so the fit does not depend on their mean and scale.
        let mean = all.reduce(0, +) / Double(all.count)
        let standardDeviation = max(
            (all.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(all.count)).squareRoot(), 1e-6)
        let (positiveCount, negativeCount) = (Double(positives.count), Double(negatives.count))
        let (positiveTarget, negativeTarget) = ((positiveCount + 1) / (positiveCount + 2), 1 / (negativeCount + 2))
        let samples =
            positives.map { ((Double($0) - mean) / standardDeviation, positiveTarget, 0.5 / positiveCount) }
            + negatives.map { ((Double($0) - mean) / standardDeviation, negativeTarget, 0.5 / negativeCount) }
        var (a, b) = (1.0, 0.0)
        for _ in 0..<100 {
            var (ga, gb, haa, hab, hbb) = (0.0, 0.0, 1e-9, 0.0, 1e-9)
            for (x, target, weight) in samples {
                let p = 1 / (1 + exp(-(a * x + b)))
                let (error, curvature) = (weight * (p - target), weight * p * (1 - p))
                ga += error * x
                gb += error
                haa += curvature * x * x
                hab += curvature * x
                hbb += curvature
            }
            let determinant = haa * hbb - hab * hab
            guard determinant > 0 else { break }
            let (da, db) = ((hbb * ga - hab * gb) / determinant, (haa * gb - hab * ga) / determinant)
            // Far from the optimum, a full Newton step may overshoot.
            let length = max(abs(da), abs(db))
            let scale = length > 2 ? 2 / length : 1
            a -= scale * da
            b -= scale * db
            if length < 1e-10 { break }
        }
        // The probability always increases with the score.
        slope = max(a, 0.01) / standardDeviation
        offset = b - slope * mean
    }

    /// Returns the mean cross-entropy −ln p of the scores in nats, where p is the probability of the correct answer.
    ///
    /// Positives and negatives have the same total weight. Neither may be empty.
    func loss(positives: [Float], negatives: [Float]) -> Double {
        /// The mean of ln(1 + exp(sign · z)) over log-odds z, without overflow.
        func mean(_ scores: [Float], sign: Double) -> Double {
            scores.reduce(0) { sum, score in
                let z = sign * (slope * Double(score) + offset)
                return sum + max(z, 0) + log1p(exp(-abs(z)))
            } / Double(scores.count)
        }
        return (mean(positives, sign: -1) + mean(negatives, sign: 1)) / 2
    }
}
