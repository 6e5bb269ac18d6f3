internal import CImprintKernels

/// Softmax cross-entropy loss of a classifier.
///
/// loss = −Σₖ qₖ · wₖ · log pₖ with p = softmax(logits) and qₖ = (1 − s) · [k = t] + s / K, for an image of target class t among K classes,
/// label smoothing s and class weights w. The loss of a batch is the sum over its images divided by Σ w_t, as in PyTorch.
///
/// Logits: [batch, classes].
///
/// Source of label smoothing: Szegedy et al., "Rethinking the inception architecture for computer vision", 2016.
public struct SoftmaxCrossEntropy: Hashable, Codable, Sendable {
    /// The share of the target that is distributed evenly over all classes, 0 ≤ `labelSmoothing` < 1.
    public var labelSmoothing: Float
    /// The weight of each class; nil for weights of 1.
    public var classWeights: [Float]?

    /// Creates the loss.
    public init(labelSmoothing: Float = 0, classWeights: [Float]? = nil) {
        precondition((0..<1).contains(labelSmoothing), "label smoothing must be at least 0 and less than 1")
        precondition(classWeights?.allSatisfy { $0 >= 0 } ?? true, "class weights must be at least 0")
        self.labelSmoothing = labelSmoothing
        self.classWeights = classWeights
    }

    /// The loss and the number of correct images of a batch.
    public struct Result: Sendable {
        /// The mean loss.
        public var loss: Float
        /// The number of images whose largest logit belongs to their target (top-1).
        public var correct: Int
    }

    /// Computes the loss of a batch and, if `gradient` is not nil, its gradient with respect to the logits.
    /// - Parameters:
    ///   - logits: [batch, classes].
    ///   - targets: [batch], the class of each image, in 0..<classes.
    ///   - gradient: [batch, classes], overwritten; may alias `logits`.
    public func callAsFunction(
        logits: UnsafeMutableBufferPointer<Float>, targets: [Int],
        gradient: UnsafeMutableBufferPointer<Float>? = nil
    ) -> Result {
        let batch = targets.count
        precondition(
            batch > 0 && logits.count % batch == 0, "there are \(logits.count) logits, expected [\(batch), classes]")
        let classes = logits.count / batch
        precondition(
            classWeights.map { $0.count == classes } ?? true, "there must be \(classes) class weights")
        precondition(
            gradient.map { $0.count == logits.count } ?? true, "the gradient and the logits must have the same size")
        var divisor: Double = 0
        for target in targets {
            precondition((0..<classes).contains(target), "target \(target) is not in 0..<\(classes)")
            divisor += Double(weight(target))
        }
        let factor = divisor > 0 ? Float(1 / divisor) : 0
        var total: Double = 0
        var correct: Int32 = 0
        withClassWeights { weights in
            var options = imprint_cross_entropy_options(
                classes: classes, label_smoothing: labelSmoothing, weights: weights, factor: factor)
            for (image, target) in targets.enumerated() {
                var isCorrect: Int32 = 0
                let start = image * classes
                total += imprint_softmax_cross_entropy(
                    &options, logits.baseAddress! + start, target, gradient.map { $0.baseAddress! + start }, &isCorrect)
                correct += isCorrect
            }
        }
        return Result(loss: divisor > 0 ? Float(total / divisor) : 0, correct: Int(correct))
    }

    /// Returns the confidences of a classifier, the softmax of each row of logits.
    /// - Parameters:
    ///   - logits: [batch, classes].
    ///   - batch: The number of rows.
    public static func confidences(_ logits: UnsafeMutableBufferPointer<Float>, batch: Int) -> [[Float]] {
        precondition(
            batch > 0 && logits.count % batch == 0, "there are \(logits.count) logits, expected [\(batch), classes]")
        let classes = logits.count / batch
        return (0..<batch).map { image in
            Array(unsafeUninitializedCapacity: classes) { row, count in
                imprint_softmax_forward(logits.baseAddress! + image * classes, row.baseAddress!, classes)
                count = classes
            }
        }
    }

    private func weight(_ target: Int) -> Float { classWeights?[target] ?? 1 }

    private func withClassWeights(_ body: (UnsafePointer<Float>?) -> Void) {
        guard let classWeights else { return body(nil) }
        classWeights.withUnsafeBufferPointer { body($0.baseAddress) }
    }
}
