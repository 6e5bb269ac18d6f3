internal import Foundation
public import ImprintModel

extension Calibration {
    /// The temperatures that are looked at.
    static let temperatures = 0.01...100

    /// Finds the temperature that makes a network's confidences honest; nil if there are no images, or a logit is not
    /// finite.
    ///
    /// With β = 1 / T and p = softmax(β·z), it minimises −Σₖ qₖ · log pₖ over all images, for T of 0.01…100. This is convex in
    /// β. The targets q are not quite 1 and 0, else T would go to 0 where the network makes no mistake: with N images and K
    /// labels, the true one has (N + 1) / (N + 2), and the others share the rest. For two labels these are, with one N for
    /// both, the targets of Platt, "Probabilistic outputs for support vector machines", 1999: as if one image more of
    /// either kind, right and wrong, had been seen.
    /// - Parameters:
    ///   - logits: For each image a number per label, the input of the softmax.
    ///   - labels: For each image the place of its true label.
    public init?(logits: [[Float]], labels: [Int]) {
        precondition(logits.count == labels.count, "\(logits.count) images have \(labels.count) labels")
        precondition(
            zip(logits, labels).allSatisfy { $0.indices.contains($1) && $0.count == logits[0].count },
            "a label is none of the network's, or images have different numbers of logits")
        guard !logits.isEmpty, logits.allSatisfy({ $0.allSatisfy(\.isFinite) }) else { return nil }
        let temperature = Self.temperature(logits, labels)
        self.init(temperature: temperature, errorBefore: 0, errorAfter: 0, images: logits.count)
        errorAfter = calibrationError(logits, labels)
        errorBefore = Calibration(temperature: 1, errorBefore: 0, errorAfter: 0, images: 0)
            .calibrationError(logits, labels)
    }

    private func calibrationError(_ logits: [[Float]], _ labels: [Int]) -> Double {
        let nowhere = URL(filePath: "/")
        let results = zip(logits, labels).map { logits, label in
            Evaluation.Result(url: nowhere, label: label, confidences: confidences(logits))
        }
        // Which names the labels have makes no difference.
        return Evaluation(labels: logits[0].map { "\($0)" }, results: results, skipped: []).calibrationError
    }

    /// Newton's method for the place of log β where the slope is 0, inside a bracket that is halved where a step leaves it.
    private static func temperature(_ logits: [[Float]], _ labels: [Int]) -> Double {
        let targets = labels.enumerated().map { meanTarget(logits[$0], label: $1, images: labels.count) }
        var low = -log(temperatures.upperBound)
        var high = -log(temperatures.lowerBound)
        var place = 0.0
        for _ in 0..<100 {
            let beta = exp(place)
            let (slope, curvature) = derivatives(logits, targets, beta)
            if slope == 0 { break }
            if slope > 0 { high = place } else { low = place }
            let next = place - slope / (beta * curvature)
            let before = place
            place = next > low && next < high ? next : (low + high) / 2
            if abs(place - before) < 1e-12 { break }
        }
        return exp(-place)
    }

    /// Σₖ qₖ · zₖ of one image, relative to its largest logit.
    private static func meanTarget(_ logits: [Float], label: Int, images: Int) -> Double {
        guard logits.count > 1 else { return 0 }
        let largest = Double(logits.max() ?? 0)
        let own = Double(logits[label]) - largest
        let others = logits.reduce(0) { $0 + (Double($1) - largest) } - own
        let rest = 1 / Double(images + 2)
        return (1 - rest) * own + rest * others / Double(logits.count - 1)
    }

    /// The first and second derivative by β, over all images: Σ (Σ p·z − Σ q·z) and Σ (Σ p·z² − (Σ p·z)²).
    private static func derivatives(_ logits: [[Float]], _ targets: [Double], _ beta: Double) -> (Double, Double) {
        var (slope, curvature) = (0.0, 0.0)
        for (logits, target) in zip(logits, targets) {
            // Relative to the largest, which changes no derivative, so that no power overflows.
            let largest = Double(logits.max() ?? 0)
            var (sum, first, second) = (0.0, 0.0, 0.0)
            for logit in logits {
                let z = Double(logit) - largest
                let power = exp(beta * z)
                sum += power
                first += power * z
                second += power * z * z
            }
            let mean = first / sum
            slope += mean - target
            curvature += second / sum - mean * mean
        }
        return (slope, curvature)
    }
}
