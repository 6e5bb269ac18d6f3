internal import ImprintImages
internal import ImprintModel

/// A predictor for classifiers of whole images, with a softmax or sigmoid head.
struct ClassifierPredictor: HeadPredictor {
    /// The parts of the network, run one after another.
    let parts: [ExecutionPlanPool]
    let preprocessing: Preprocessing
    /// The name of the network, for errors.
    let network: String
    let confidencesSumToOne: Bool
    let averagesFlipped: Bool

    var shortSideToDecode: Int { preprocessing.shortSideToDecode }

    func predict(_ image: StoredImage, cropAndScale: CropAndScale?) throws(ImprintError) -> Prediction {
        var preprocessing = preprocessing
        if let cropAndScale { preprocessing.cropAndScale = cropAndScale }
        let confidences = try confidences(prepared: preprocessing.prepare(image))
        return Prediction(confidences: confidences, boxes: confidences.map { _ in nil })
    }

    /// Computes the confidences for an image of the network's input size.
    private func confidences(prepared image: RasterImage) throws(ImprintError) -> [Float] {
        let confidences = try forward(image)
        guard averagesFlipped else { return confidences }
        let flipped = try forward(image.mirrored)
        // The mean of the logits is the geometric mean of the odds.
        let products = zip(confidences, flipped).map { ($0 * $1).squareRoot() }
        guard !confidencesSumToOne else {
            let sum = products.reduce(0, +)
            return sum > 0 ? products.map { $0 / sum } : confidences
        }
        return zip(products, zip(confidences, flipped)).map { product, pair in
            let rest = ((1 - pair.0) * (1 - pair.1)).squareRoot()
            return product + rest > 0 ? product / (product + rest) : 0.5
        }
    }

    private func forward(_ image: RasterImage) throws(ImprintError) -> [Float] {
        var confidences = parts[0].withPlan { plan in
            preprocessing.normalize(image, into: plan.input)
            plan.forward(count: 1)
            return Array(plan.output)
        }
        for part in parts.dropFirst() { confidences = part(confidences) }
        // Activations can overflow even though the parameters are finite.
        guard confidences.allSatisfy(\.isFinite) else { throw .nonFiniteOutput(network: network) }
        return confidences
    }
}
