internal import CImprintKernels

/// Softmax and cross-entropy in one: the loss of a classifier, and its gradient with respect to the logits.
///
/// With p = softmax(x), K labels, label smoothing s and class weights w, for an image of label t:
/// loss = −Σₖ qₖ · wₖ · log pₖ with qₖ = (1 − s)·[k = t] + s / K, averaged with Σ w_t over the batch as the divisor
/// (PyTorch's formula; Szegedy et al., "Rethinking the inception architecture", 2016, for the smoothing).
public struct SoftmaxCrossEntropy: Hashable, Codable, Sendable {
    /// How much of the target is spread evenly over all labels, 0 ≤ `labelSmoothing` < 1.
    public var labelSmoothing: Float
    /// The weight of each label; all 1 if nil.
    public var classWeights: [Float]?

    /// Makes the loss.
    public init(labelSmoothing: Float = 0, classWeights: [Float]? = nil) {
        precondition((0..<1).contains(labelSmoothing), "label smoothing is at least 0 and less than 1")
        precondition(classWeights?.allSatisfy { $0 >= 0 } ?? true, "class weights are at least 0")
        self.labelSmoothing = labelSmoothing
        self.classWeights = classWeights
    }

    /// What the loss over a batch came to.
    public struct Result: Sendable {
        /// The mean loss.
        public var loss: Float
        /// How many images have their largest logit at their label.
        public var correct: Int
    }

    /// Computes the loss over a batch and, where wanted, its gradient.
    /// - Parameters:
    ///   - logits: [N, K].
    ///   - labels: N numbers in 0..<K.
    ///   - gradient: [N, K], overwritten; it may be the same memory as `logits`.
    public func callAsFunction(
        logits: UnsafeMutableBufferPointer<Float>, labels: [Int],
        gradient: UnsafeMutableBufferPointer<Float>? = nil
    ) -> Result {
        let batch = labels.count
        precondition(batch > 0 && logits.count % batch == 0, "\(logits.count) logits are not [\(batch), labels]")
        let classes = logits.count / batch
        precondition(
            classWeights.map { $0.count == classes } ?? true, "there are \(classes) labels, not as many class weights")
        precondition(gradient.map { $0.count == logits.count } ?? true, "the gradient has another size than the logits")
        var divisor: Double = 0
        for label in labels {
            precondition((0..<classes).contains(label), "the label \(label) is not in 0..<\(classes)")
            divisor += Double(weight(label))
        }
        let factor = divisor > 0 ? Float(1 / divisor) : 0
        var total: Double = 0
        var correct: Int32 = 0
        withClassWeights { weights in
            var row = imprint_cross_entropy(
                classes: classes, label_smoothing: labelSmoothing, weights: weights, factor: factor)
            for (image, label) in labels.enumerated() {
                var isCorrect: Int32 = 0
                let start = image * classes
                total += imprint_softmax_cross_entropy(
                    &row, logits.baseAddress! + start, label, gradient.map { $0.baseAddress! + start }, &isCorrect)
                correct += isCorrect
            }
        }
        return Result(loss: divisor > 0 ? Float(total / divisor) : 0, correct: Int(correct))
    }

    /// The confidences that a classifier with these logits states: softmax over each row.
    /// - Parameters:
    ///   - logits: [N, K].
    ///   - batch: N.
    public static func confidences(_ logits: UnsafeMutableBufferPointer<Float>, batch: Int) -> [[Float]] {
        precondition(batch > 0 && logits.count % batch == 0, "\(logits.count) logits are not [\(batch), labels]")
        let classes = logits.count / batch
        return (0..<batch).map { image in
            Array(unsafeUninitializedCapacity: classes) { row, count in
                imprint_softmax_forward(logits.baseAddress! + image * classes, row.baseAddress!, classes)
                count = classes
            }
        }
    }

    private func weight(_ label: Int) -> Float { classWeights?[label] ?? 1 }

    private func withClassWeights(_ body: (UnsafePointer<Float>?) -> Void) {
        guard let classWeights else { return body(nil) }
        classWeights.withUnsafeBufferPointer { body($0.baseAddress) }
    }
}
