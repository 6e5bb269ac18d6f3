internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The loss of a classifier: cross-entropy for one label per photo, or binary cross-entropy for several.
enum ClassificationLoss {
    case softmax(SoftmaxCrossEntropy)
    case sigmoid(BinaryCrossEntropy)

    /// The loss of a batch.
    struct Result {
        let loss: Float
        /// The number of correct photos, or of correct decisions.
        let correct: Int
        /// The number of decisions, or nil for one per photo.
        let decisions: Int?
    }

    /// - Parameter classWeights: The weight of each label, or nil for weights of 1.
    init(_ hyperparameters: ClassifierHyperparameters, classWeights: [Float]?) {
        let smoothing = hyperparameters.labelSmoothing
        self =
            hyperparameters.isMultiLabel
            ? .sigmoid(BinaryCrossEntropy(labelSmoothing: smoothing, positiveWeights: classWeights))
            : .softmax(SoftmaxCrossEntropy(labelSmoothing: smoothing, classWeights: classWeights))
    }

    /// Returns the weight of each label, or nil for equal weights.
    /// - Parameters:
    ///   - counts: The number of training photos of each label.
    ///   - total: The number of training photos.
    static func classWeights(
        _ hyperparameters: ClassifierHyperparameters, counts: [Int], total: Int
    ) -> [Float]? {
        guard hyperparameters.classWeights != .none else { return nil }
        if hyperparameters.isMultiLabel { return counts.map { Float(max(total - $0, 1)) / Float(max($0, 1)) } }
        return counts.map { Float(total) / Float(counts.count * max($0, 1)) }
    }

    /// Computes the loss of a batch and, if `gradient` is not nil, its gradient with respect to the logits.
    func callAsFunction(
        logits: UnsafeMutableBufferPointer<Float>, batch: Batch, gradient: UnsafeMutableBufferPointer<Float>? = nil
    ) -> Result {
        switch self {
        case .softmax(let loss):
            let result = loss(logits: logits, targets: batch.labels, gradient: gradient)
            return Result(loss: result.loss, correct: result.correct, decisions: nil)
        case .sigmoid(let loss):
            let result = loss(logits: logits, targets: batch.labelSets, gradient: gradient)
            return Result(loss: result.loss, correct: result.correctDecisions, decisions: logits.count)
        }
    }
}
