public import Foundation
internal import ImprintCore
public import ImprintImages
public import ImprintModel
internal import ImprintNetwork

/// A trained model, ready to say what is in an image.
///
/// ```swift
/// let classifier = try ImageClassifier(contentsOf: URL(filePath: "logo.imprint"))
/// let best = try classifier.classify(URL(filePath: "photo.jpg"))[0]
/// print(best.label, best.confidence)
/// ```
///
/// It may be used from any number of threads at once. Photos are prepared exactly as in training: the rules are part of
/// the model file.
public final class ImageClassifier: Sendable {
    /// The model; if it is personalized, the base, which stays as it is.
    public let weights: ModelFile
    /// What one person's photos add to it; nil if nothing does.
    public let personalization: Personalization?
    /// Whether an image's mirror image is looked at too, and the mean of both taken: that of the logits.
    public let averagesMirrored: Bool
    let workers: Workers
    /// What computes confidences, one after the other.
    private let stages: [ExecutionPlanPool]
    /// What looks for marks, where the model spots some.
    private let spots: DetectorPool?
    /// What computes features; shared by all that are personalized from one base.
    let features: FeaturePool
    /// The classifier without a personalization, if there is one.
    private let base: ImageClassifier?

    /// Makes a classifier of a model.
    /// - Parameters:
    ///   - weights: The model.
    ///   - threads: How many threads one classification may use.
    ///   - averagesMirrored: Whether to look at an image's mirror image too.
    /// - Throws: `NetworkError` if the network is not a classifier, `ImprintError.invalidSetting` where a model that spots marks is to look
    ///   at mirror images.
    public init(_ weights: ModelFile, threads: Int = 1, averagesMirrored: Bool = false) throws {
        guard weights.detector == nil || !averagesMirrored else {
            throw ImprintError.invalidSetting(
                name: "averagesMirrored (--mirror)", found: "true",
                expected: "false for a model that spots marks: it looks at each photo in many sizes already")
        }
        self.weights = weights
        self.averagesMirrored = averagesMirrored
        personalization = nil
        base = nil
        workers = Workers(threads)
        features = FeaturePool(weights, workers: workers)
        spots = weights.detector.map { DetectorPool(weights, $0) }
        stages =
            spots == nil
            ? [try ExecutionPlanPool(weights.network, parameters: weights.parameters, workers: workers)] : []
    }

    private init(_ base: ImageClassifier, _ personalization: Personalization) throws {
        weights = base.weights
        self.personalization = personalization
        self.base = base
        averagesMirrored = base.averagesMirrored
        workers = base.workers
        features = base.features
        if weights.detector == nil {
            spots = nil
            stages = try features.stages(with: personalization)
        } else {
            let personalized = try weights.personalized(with: personalization)
            spots = personalized.detector.map { DetectorPool(personalized, $0) }
            stages = []
        }
    }

    /// The same model with what one person's photos add to it, in place of what was added before, if anything; without it if nil.
    ///
    /// It takes as long as a copy of the layers that change: next to nothing for the head. Without, the confidences are the base's, bit
    /// for bit. A classifier itself never changes, so other threads may go on using this one.
    /// - Throws: `ModelFileError` if it was made for another model.
    public func personalized(with personalization: Personalization?) throws -> ImageClassifier {
        let base = base ?? self
        return try personalization.map { try ImageClassifier(base, $0) } ?? base
    }

    /// Reads a model file and makes a classifier of it.
    /// - Throws: What reading a model file throws; see `ModelFile`.
    public convenience init(contentsOf url: URL, threads: Int = 1, averagesMirrored: Bool = false) throws {
        try self.init(ModelFile(contentsOf: url), threads: threads, averagesMirrored: averagesMirrored)
    }

    /// The labels, in the order of the network's outputs.
    public var labels: [String] { weights.labels + (personalization?.addedLabels ?? []) }

    /// Whether the labels share one certainty, so that their confidences add up to 1; otherwise each is given for itself, and an image may
    /// show several.
    public var sharesConfidence: Bool { !(weights.network.nodes.last?.layer is Sigmoid) }

    /// What is in the image in a file, best first; one observation per label.
    /// - Throws: `ImageError` if the file cannot be read as an image, `ImprintError.noConfidence` where the model cannot
    ///   be used.
    public func classify(_ url: URL, cropAndScale: CropAndScale? = nil) throws -> [Classification] {
        try classify(StoredPicture(url, coveringShortSide: shortSideToDecode), cropAndScale: cropAndScale)
    }

    /// What is in an image in memory (upright, sRGB), best first; one observation per label.
    ///
    /// Of a large JPEG file, `classify(_:cropAndScale:)` of its URL decodes no more than it needs, so that the confidences may differ a
    /// little from those of the same photo decoded whole.
    /// - Throws: `ImprintError.noConfidence` if the model cannot be used.
    public func classify(
        _ image: RasterImage, cropAndScale: CropAndScale? = nil
    ) throws(ImprintError) -> [Classification] {
        try classify(StoredPicture(image), cropAndScale: cropAndScale)
    }

    /// What is in a part of a picture, best first; one observation per label.
    func classify(
        _ picture: StoredPicture, in region: NormalizedRectangle = .all, cropAndScale: CropAndScale? = nil
    ) throws(ImprintError) -> [Classification] {
        let part = picture.cropped(to: region)
        guard let spots else {
            return observations(try confidences(prepared: preprocessing(cropAndScale).prepare(part)))
        }
        let sight = try spots.spot(PatchSource.shrunk(part.upright))
        return observations(sight.confidences, sight.boxes.map { $0?.placed(from: region) })
    }

    /// The short side of a photo to decode at least.
    var shortSideToDecode: Int {
        spots == nil ? weights.preprocessing.shortSideToDecode : PatchSource.shortSideToDecode
    }

    /// The confidence in every label, in the order of `labels`, for the image in a file.
    package func confidences(of url: URL) throws -> [Float] {
        guard let spots else { return try confidences(prepared: weights.preprocessing.prepare(url)) }
        return try spots.spot(PatchSource.read(url)).confidences
    }

    private func preprocessing(_ cropAndScale: CropAndScale?) -> Preprocessing {
        var preprocessing = weights.preprocessing
        if let cropAndScale { preprocessing.cropAndScale = cropAndScale }
        return preprocessing
    }

    /// The confidence in every label, in the order of `labels`, for an image that has the size of the network's input.
    func confidences(prepared image: RasterImage) throws(ImprintError) -> [Float] {
        let confidences = try confidences(ofOne: image)
        guard averagesMirrored else { return confidences }
        let mirrored = try self.confidences(ofOne: image.mirrored)
        // The mean of logits is the geometric mean of what is odds.
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

    private func confidences(ofOne image: RasterImage) throws(ImprintError) -> [Float] {
        var confidences = stages[0].withPlan { plan in
            weights.preprocessing.normalize(image, into: plan.input)
            plan.forward(count: 1)
            return Array(plan.output)
        }
        for stage in stages.dropFirst() { confidences = stage(confidences) }
        // Finite parameters may still overflow on the way.
        guard confidences.allSatisfy(\.isFinite) else { throw .noConfidence(network: weights.network.name) }
        return confidences
    }

    private func observations(_ confidences: [Float], _ boxes: [NormalizedRectangle?]? = nil) -> [Classification] {
        // Once for all of what may be a thousand labels.
        let (curves, thresholds) = (weights.training?.precisionRecall, weights.training?.thresholds)
        return Classification.ranked(
            zip(labels, confidences).enumerated().map { place, pair in
                let (label, confidence) = pair
                return Classification(
                    label: label, confidence: confidence, precisionRecallCurve: curves?[label] ?? [],
                    threshold: thresholds?[label], box: boxes?[place])
            })
    }
}
