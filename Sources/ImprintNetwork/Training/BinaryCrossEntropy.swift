internal import Foundation

/// Binary cross-entropy loss of a multi-label classifier, computed from logits.
///
/// loss = −[w · q · log σ(z) + (1 − q) · log(1 − σ(z))] for each image and label, with the logit z, σ(z) = 1 / (1 + e⁻ᶻ), the positive weight w of
/// the label, and the target q = t · (1 − s) + s / 2, where t is 1 if the image has the label and 0 otherwise, and s is the label smoothing. The
/// loss of a batch is the mean over its images and labels, as in `BCEWithLogitsLoss` of PyTorch.
///
/// Logits: [batch, labels].
public struct BinaryCrossEntropy: Hashable, Codable, Sendable {
    /// The share of the target that is replaced by ½, 0 ≤ `labelSmoothing` < 1.
    public var labelSmoothing: Float
    /// The weight of the positive term of each label, ≥ 0, or nil for weights of 1.
    public var positiveWeights: [Float]?

    /// Creates the loss.
    public init(labelSmoothing: Float = 0, positiveWeights: [Float]? = nil) {
        precondition((0..<1).contains(labelSmoothing), "label smoothing must be at least 0 and less than 1")
        precondition(positiveWeights?.allSatisfy { $0 >= 0 } ?? true, "positive weights must be at least 0")
        self.labelSmoothing = labelSmoothing
        self.positiveWeights = positiveWeights
    }

    /// The loss of a batch and the number of correct decisions.
    public struct Result: Sendable {
        /// The mean loss.
        public var loss: Float
        /// The number of correct decisions over all images and labels, at a confidence threshold of 0.5.
        public var correctDecisions: Int
    }

    /// Computes the loss of a batch and, if `gradient` is not nil, its gradient with respect to the logits.
    /// - Parameters:
    ///   - logits: [batch, labels].
    ///   - targets: [batch], the indices of the labels of each image.
    ///   - gradient: [batch, labels], overwritten; may alias `logits`.
    public func callAsFunction(
        logits: UnsafeMutableBufferPointer<Float>, targets: [[Int]],
        gradient: UnsafeMutableBufferPointer<Float>? = nil
    ) -> Result {
        let batch = targets.count
        precondition(
            batch > 0 && logits.count % batch == 0, "there are \(logits.count) logits, expected [\(batch), labels]")
        let labels = logits.count / batch
        precondition(
            positiveWeights.map { $0.count == labels } ?? true, "there must be \(labels) positive weights")
        precondition(
            gradient.map { $0.count == logits.count } ?? true, "the gradient and the logits must have the same size")
        let smoothing = Double(labelSmoothing)
        let factor = 1 / Double(logits.count)
        var total = 0.0
        var correct = 0
        var hasLabel = [Bool](repeating: false, count: labels)
        for (image, target) in targets.enumerated() {
            for label in target {
                precondition((0..<labels).contains(label), "target \(label) is not in 0..<\(labels)")
                hasLabel[label] = true
            }
            for label in 0..<labels {
                let index = image * labels + label
                let logit = Double(logits[index])
                let isPositive = hasLabel[label]
                let q = (isPositive ? 1 - smoothing : 0) + smoothing / 2
                let weight = Double(positiveWeights?[label] ?? 1)
                // log σ(z) = −log(1 + e⁻ᶻ), without overflow.
                let power = exp(-abs(logit))
                let negativeLogSigmoid = log1p(power) + max(-logit, 0)
                // log(1 − σ(z)) = log σ(z) − z.
                total += weight * q * negativeLogSigmoid + (1 - q) * (negativeLogSigmoid + logit)
                // 1 − σ(z) and σ(z).
                let complement = (logit >= 0 ? power : 1) / (1 + power)
                let sigmoid = (logit >= 0 ? 1 : power) / (1 + power)
                gradient?[index] = Float(((1 - q) * sigmoid - weight * q * complement) * factor)
                if (logit >= 0) == isPositive { correct += 1 }
            }
            for label in target { hasLabel[label] = false }
        }
        return Result(loss: Float(total * factor), correctDecisions: correct)
    }
}
