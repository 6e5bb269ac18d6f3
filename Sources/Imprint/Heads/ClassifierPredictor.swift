internal import ImprintImages
internal import ImprintModel

/// Predicts with a network that sees a whole image and gives one probability for each label.
struct ClassifierPredictor: HeadPredictor {
    /// The parts of the network, which run one after the other.
    let stages: [ExecutionPlanPool]
    let preprocessing: Preprocessing
    /// The name of the network, for errors.
    let network: String
    let sharesConfidence: Bool
    let averagesMirrored: Bool

    var shortSideToDecode: Int { preprocessing.shortSideToDecode }

    func predict(_ picture: StoredPicture, cropAndScale: CropAndScale?) throws(ImprintError) -> Prediction {
        var preprocessing = preprocessing
        if let cropAndScale { preprocessing.cropAndScale = cropAndScale }
        let confidences = try confidences(prepared: preprocessing.prepare(picture))
        return Prediction(confidences: confidences, boxes: confidences.map { _ in nil })
    }

    /// The confidences for an image that has the size of the network's input.
    private func confidences(prepared image: RasterImage) throws(ImprintError) -> [Float] {
        let confidences = try forward(image)
        guard averagesMirrored else { return confidences }
        let mirrored = try forward(image.mirrored)
        // The mean of the logits is the geometric mean of the odds.
        let products = zip(confidences, mirrored).map { ($0 * $1).squareRoot() }
        guard !sharesConfidence else {
            let sum = products.reduce(0, +)
            return sum > 0 ? products.map { $0 / sum } : confidences
        }
        return zip(products, zip(confidences, mirrored)).map { product, pair in
            let rest = ((1 - pair.0) * (1 - pair.1)).squareRoot()
            return product + rest > 0 ? product / (product + rest) : 0.5
        }
    }

    private func forward(_ image: RasterImage) throws(ImprintError) -> [Float] {
        var confidences = stages[0].withPlan { plan in
            preprocessing.normalize(image, into: plan.input)
            plan.forward(count: 1)
            return Array(plan.output)
        }
        for stage in stages.dropFirst() { confidences = stage(confidences) }
        // Finite parameters may still overflow in the layers.
        guard confidences.allSatisfy(\.isFinite) else { throw .noConfidence(network: network) }
        return confidences
    }
}
