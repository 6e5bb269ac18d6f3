internal import Foundation

/// A logistic curve through scores: the probability that the mark is there, 1 / (1 + exp(−(slope · score + offset))).
///
/// It maximises the likelihood with targets of (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2) for n₊ scores with the mark and n₋ without (Platt,
/// "Probabilistic outputs for support vector machines", 1999), each side weighing half, by Newton's method.
struct PlattScaling: Equatable {
    var slope = 1.0
    var offset = 0.0

    init(with positives: [Float], without negatives: [Float]) {
        guard !positives.isEmpty, !negatives.isEmpty else { return }
        let all = (positives + negatives).map(Double.init)
        // Scores of any size and place are the same to the method.
        let mean = all.reduce(0, +) / Double(all.count)
        let deviation = max((all.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(all.count)).squareRoot(), 1e-6)
        let (right, left) = (Double(positives.count), Double(negatives.count))
        let samples =
            positives.map { ((Double($0) - mean) / deviation, (right + 1) / (right + 2), 0.5 / right) }
            + negatives.map { ((Double($0) - mean) / deviation, 1 / (left + 2), 0.5 / left) }
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
            // Far from the end a whole step may lead astray.
            let length = max(abs(da), abs(db))
            let share = length > 2 ? 2 / length : 1
            a -= share * da
            b -= share * db
            if length < 1e-10 { break }
        }
        // More of the mark never means less.
        slope = max(a, 0.01) / deviation
        offset = b - slope * mean
    }
}
