internal import Foundation
public import ImprintModel

extension Calibration {
    /// The range of temperatures.
    static let temperatures = 0.01...100

    /// Fits the temperature of temperature scaling; nil if there are no images, or if a logit is not finite.
    ///
    /// With β = 1 / T and p = softmax(β·z), it minimizes the cross-entropy −Σₖ qₖ · log pₖ over all images, for T of 0.01…100. This is
    /// convex in β. The targets q are smoothed; otherwise T would go to 0 if the network makes no mistakes. With N images and K labels,
    /// the target of the true label is (N + 1) / (N + 2), and the other labels share the rest. For two labels these are the targets of
    /// Platt, "Probabilistic outputs for support vector machines", 1999, with the same N for both labels.
    /// - Parameters:
    ///   - logits: The logits of each image, which are the input of the softmax.
    ///   - labels: The index of the true label of each image.
    public init?(logits: [[Float]], labels: [Int]) {
        precondition(logits.count == labels.count, "\(logits.count) images, but \(labels.count) labels")
        precondition(
            zip(logits, labels).allSatisfy { $0.indices.contains($1) && $0.count == logits[0].count },
            "a label is out of range, or the images have different numbers of logits")
        guard !logits.isEmpty, logits.allSatisfy({ $0.allSatisfy(\.isFinite) }) else { return nil }
        let temperature = Self.temperature(logits, labels)
        self.init(temperature: temperature, errorBefore: 0, errorAfter: 0, images: logits.count)
        errorAfter = calibrationError(logits, labels)
        errorBefore = Calibration(temperature: 1, errorBefore: 0, errorAfter: 0, images: 0)
            .calibrationError(logits, labels)
    }

    private func calibrationError(_ logits: [[Float]], _ labels: [Int]) -> Double {
        let noFile = URL(filePath: "/")
        let results = zip(logits, labels).map { logits, label in
            Evaluation.Result(url: noFile, label: label, confidences: confidences(logits))
        }
        // The names of the labels do not matter.
        return Evaluation(labels: logits[0].map { "\($0)" }, results: results, skipped: []).calibrationError
    }

    /// Returns the temperature at which the slope is 0.
    ///
    /// It applies Newton's method to log β, inside a bracket; if a step leaves the bracket, it bisects.
    private static func temperature(_ logits: [[Float]], _ labels: [Int]) -> Double {
        let targets = labels.enumerated().map { meanTarget(logits[$0], label: $1, images: labels.count) }
        var low = -log(temperatures.upperBound)
        var high = -log(temperatures.lowerBound)
        var logBeta = 0.0
        for _ in 0..<100 {
            let beta = exp(logBeta)
            let (slope, curvature) = derivatives(logits, targets, beta)
            if slope == 0 { break }
            if slope > 0 { high = logBeta } else { low = logBeta }
            let next = logBeta - slope / (beta * curvature)
            let previous = logBeta
            logBeta = next > low && next < high ? next : (low + high) / 2
            if abs(logBeta - previous) < 1e-12 { break }
        }
        return exp(-logBeta)
    }

    /// Returns Σₖ qₖ · zₖ of one image, relative to its largest logit.
    private static func meanTarget(_ logits: [Float], label: Int, images: Int) -> Double {
        guard logits.count > 1 else { return 0 }
        let largest = Double(logits.max() ?? 0)
        let trueLogit = Double(logits[label]) - largest
        let otherLogits = logits.reduce(0) { $0 + (Double($1) - largest) } - trueLogit
        let rest = 1 / Double(images + 2)
        return (1 - rest) * trueLogit + rest * otherLogits / Double(logits.count - 1)
    }

    /// Returns the first and second derivative with respect to β: Σ (Σ p·z − Σ q·z) and Σ (Σ p·z² − (Σ p·z)²) over all images.
    private static func derivatives(_ logits: [[Float]], _ targets: [Double], _ beta: Double) -> (Double, Double) {
        var (slope, curvature) = (0.0, 0.0)
        for (logits, target) in zip(logits, targets) {
            // Subtracting the largest logit prevents overflow and does not change the derivatives.
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
