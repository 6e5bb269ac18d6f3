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
    let noveltyRule: NoveltyRule?

    var shortSideToDecode: Int { preprocessing.shortSideToDecode }

    func predict(_ image: StoredImage, cropAndScale: CropAndScale?) throws(ImprintError) -> Prediction {
        var preprocessing = preprocessing
        if let cropAndScale { preprocessing.cropAndScale = cropAndScale }
        let (confidences, features) = try confidences(prepared: preprocessing.prepare(image))
        return Prediction(
            confidences: confidences, boxes: confidences.map { _ in nil }, novelty: novelty(features, confidences))
    }

    /// Returns the novelty of an image, or nil without a rule, or if the rule does not cover the label with the highest confidence.
    private func novelty(_ features: [Float]?, _ confidences: [Float]) -> Float? {
        guard let noveltyRule, let features, let highest = confidences.max(),
            let best = confidences.firstIndex(of: highest), noveltyRule.labels.contains(best)
        else { return nil }
        return noveltyRule.novelty(of: features)
    }

    /// Computes the confidences for an image of the network's input size, and the features of the image if there is a novelty rule.
    private func confidences(
        prepared image: RasterImage
    ) throws(ImprintError) -> (confidences: [Float], features: [Float]?) {
        let (confidences, features) = try forward(image)
        guard averagesFlipped else { return (confidences, features) }
        return (average(confidences, try forward(image.mirrored).confidences), features)
    }

    /// Returns the confidences for the mean of the logits of an image and its horizontal flip.
    func average(_ confidences: [Float], _ flipped: [Float]) -> [Float] {
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

    private func forward(_ image: RasterImage) throws(ImprintError) -> (confidences: [Float], features: [Float]?) {
        var (confidences, features) = parts[0].withPlan { plan -> ([Float], [Float]?) in
            preprocessing.normalize(image, into: plan.input)
            plan.forward(count: 1)
            return (Array(plan.output), noveltyRule == nil ? nil : plan.headInput.map(Array.init))
        }
        // The first of two parts computes the features.
        if noveltyRule != nil, parts.count > 1 { features = confidences }
        for part in parts.dropFirst() { confidences = part(confidences) }
        // Activations can overflow even though the parameters are finite.
        guard confidences.allSatisfy(\.isFinite) else { throw .nonFiniteOutput(network: network) }
        return (confidences, features)
    }
}
