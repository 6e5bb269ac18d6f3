public import Foundation
internal import ImprintCore
public import ImprintImages
public import ImprintModel

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
    private let predictor: any HeadPredictor
    /// Shared by all classifiers that are personalized from one base.
    let runtime: any HeadRuntime
    /// The classifier without a personalization, if there is one.
    private let base: ImageClassifier?

    /// Makes a classifier of a model.
    /// - Parameters:
    ///   - weights: The model.
    ///   - threads: How many threads one classification may use.
    ///   - averagesMirrored: Whether to look at an image's mirror image too.
    /// - Throws: `NetworkError` if the network is not a classifier, `ImprintError.invalidSetting` if a logo detector is to average
    ///   over mirrored copies.
    public init(_ weights: ModelFile, threads: Int = 1, averagesMirrored: Bool = false) throws {
        guard weights.head.seesWholeImage || !averagesMirrored else {
            throw ImprintError.invalidSetting(
                name: "averagesMirrored", found: "true",
                expected: "false for a logo detector: it looks at each photo in many sizes already")
        }
        self.weights = weights
        self.averagesMirrored = averagesMirrored
        personalization = nil
        base = nil
        workers = Workers(threads)
        runtime = weights.head.runtime(weights, workers: workers)
        predictor = try runtime.predictor(with: nil, averagesMirrored: averagesMirrored)
    }

    private init(_ base: ImageClassifier, _ personalization: Personalization) throws {
        weights = base.weights
        self.personalization = personalization
        self.base = base
        averagesMirrored = base.averagesMirrored
        workers = base.workers
        runtime = base.runtime
        predictor = try runtime.predictor(with: personalization, averagesMirrored: averagesMirrored)
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
    public var sharesConfidence: Bool { weights.head.sharesConfidence }

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
        let prediction = try predictor.predict(picture.cropped(to: region), cropAndScale: cropAndScale)
        return observations(prediction, in: region)
    }

    /// The short side, in pixels, to which a large photo may be decoded.
    var shortSideToDecode: Int { predictor.shortSideToDecode }

    /// The confidence in every label, in the order of `labels`, for the image in a file.
    package func confidences(of url: URL) throws -> [Float] {
        try predictor.predict(StoredPicture(url, coveringShortSide: shortSideToDecode), cropAndScale: nil).confidences
    }

    private func observations(_ prediction: Prediction, in region: NormalizedRectangle) -> [Classification] {
        // Read once: a model may have a thousand labels.
        let (curves, thresholds) = (weights.training?.precisionRecall, weights.training?.thresholds)
        return Classification.ranked(
            labels.indices.map { index in
                let label = labels[index]
                return Classification(
                    label: label, confidence: prediction.confidences[index], precisionRecallCurve: curves?[label] ?? [],
                    threshold: thresholds?[label], box: prediction.boxes[index]?.mapped(from: region))
            })
    }
}
