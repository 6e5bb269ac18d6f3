public import Foundation
internal import ImprintCore
public import ImprintImages
public import ImprintModel
public import ImprintNetwork

/// A trained model that classifies images or detects objects in them.
///
/// ```swift
/// let classifier = try ImageClassifier(contentsOf: URL(filePath: "logo.imprint"))
/// let best = try classifier.classify(URL(filePath: "photo.jpg"))[0]
/// print(best.label, best.confidence)
/// ```
///
/// A classifier is immutable, and any number of threads can use it at the same time. It preprocesses images exactly as in training, because
/// the model file stores the preprocessing.
///
/// Use `ClassificationRequest` to classify in async code, to classify a region of an image, or to filter classifications by confidence.
public final class ImageClassifier: Sendable {
    /// The model, without the personalization.
    public let model: ModelFile
    /// The personalization that is applied to the model, if any.
    public let personalization: Personalization?
    /// Whether predictions are averaged over the image and its horizontal flip (test-time augmentation).
    ///
    /// The classifier averages the logits of both images, which takes twice as long as a single prediction.
    public let averagesFlipped: Bool
    /// The precision of predictions, never `automatic`; personalization trains on float32 features.
    public let precision: Precision
    let workers: Workers
    let predictor: any HeadPredictor
    /// The runtime, shared by all classifiers that personalize the same base.
    let runtime: any HeadRuntime
    /// The classifier without the personalization; nil if this classifier has none.
    private let base: ImageClassifier?

    /// Creates a classifier from a model.
    /// - Parameters:
    ///   - model: The model.
    ///   - threads: The maximum number of threads for one prediction. The result does not depend on it.
    ///   - averagesFlipped: Whether to average predictions over the image and its horizontal flip; not available for detectors.
    ///   - precision: The precision of predictions.
    /// - Throws: `ModelFileError` if the labels or the preprocessing of the model do not match its network, `ImprintError.invalidSetting` if
    ///   `averagesFlipped` is true for a detector, or if `precision` is `int8` and the model is not quantized, `NetworkError.outOfMemory`.
    public init(
        _ model: ModelFile, threads: Int = 1, averagesFlipped: Bool = false, precision: Precision = .automatic
    ) throws {
        try model.checkConsistency()
        guard model.head.seesWholeImage || !averagesFlipped else {
            throw ImprintError.invalidSetting(
                name: "averagesFlipped", found: "true",
                expected: "false for a detector, which already evaluates each position of an image")
        }
        self.model = model
        self.averagesFlipped = averagesFlipped
        personalization = nil
        base = nil
        let isQuantized = model.parameters.quantization != nil
        guard precision != .int8 || isQuantized else {
            throw ImprintError.invalidSetting(
                name: "precision", found: "int8 for a model without quantization", expected: "float32 or bfloat16")
        }
        self.precision = precision.resolved(for: model.parameters)
        workers = Workers(threads)
        runtime = model.head.runtime(model, workers: workers, precision: precision)
        predictor = try runtime.predictor(with: nil, averagesFlipped: averagesFlipped)
    }

    private init(_ base: ImageClassifier, _ personalization: Personalization) throws {
        model = base.model
        self.personalization = personalization
        self.base = base
        averagesFlipped = base.averagesFlipped
        precision = base.precision
        workers = base.workers
        runtime = base.runtime
        predictor = try runtime.predictor(with: personalization, averagesFlipped: averagesFlipped)
    }

    /// Returns a classifier of the same model with another personalization, or without one.
    ///
    /// The new classifier shares the layers that the personalization does not change, so the call is cheap if only the head changes. Without
    /// a personalization, the confidences are bitwise identical to those of the base model. This classifier does not change.
    /// - Parameter personalization: The personalization that replaces the current one; nil for the base model.
    /// - Throws: `ModelFileError` if the personalization was made for another model.
    public func personalized(with personalization: Personalization?) throws -> ImageClassifier {
        let base = base ?? self
        return try personalization.map { try ImageClassifier(base, $0) } ?? base
    }

    /// Creates a classifier from a model file.
    /// - Parameters:
    ///   - url: The model file.
    ///   - threads: The maximum number of threads for one prediction. The result does not depend on it.
    ///   - averagesFlipped: Whether to average predictions over the image and its horizontal flip; not available for detectors.
    ///   - precision: The precision of predictions.
    /// - Throws: The errors of `ModelFile.init(contentsOf:)` and of `init(_:threads:averagesFlipped:precision:)`.
    public convenience init(
        contentsOf url: URL, threads: Int = 1, averagesFlipped: Bool = false, precision: Precision = .automatic
    ) throws {
        try self.init(
            ModelFile(contentsOf: url), threads: threads, averagesFlipped: averagesFlipped, precision: precision)
    }

    /// The labels: the labels of the model in the order of its outputs, then the labels that the personalization adds.
    public var labels: [String] { model.labels + (personalization?.addedLabels ?? []) }

    /// Returns the label that differs from a text only in case, spaces or Unicode form, such as "Ring" for "ring".
    ///
    /// Unicode forms are, for example, full-width letters and invisible characters. A personalization adds each other spelling as a new label, so
    /// check the labels of photos, artwork or boxes before you add them.
    /// - Returns: The label; nil if no label is similar, or if the text is a label itself.
    public func similarLabel(to text: String) -> String? { ImprintCore.similarLabel(to: text, in: labels) }

    /// Whether the confidences of an image sum to 1.
    ///
    /// It is false for center-point and anchor-based detectors, and for multi-label models, which predict an independent probability for each label.
    public var confidencesSumToOne: Bool { model.head.confidencesSumToOne }

    /// Classifies the image in a file.
    /// - Parameters:
    ///   - url: A JPEG, PNG, WebP or HEIC file.
    ///   - cropAndScale: The rule that fits the image to the network's input; nil for the rule used in training, and for detectors.
    /// - Returns: One classification per label, by descending confidence.
    /// - Throws: `ImageError` if the file cannot be read as an image, `ImprintError.invalidSetting` if `cropAndScale` is set for a detector,
    ///   `ImprintError.nonFiniteOutput` if an output of the network is not finite.
    public func classify(_ url: URL, cropAndScale: CropAndScale? = nil) throws -> [Classification] {
        try classify(StoredImage(url, coveringShortSide: shortSideToDecode), cropAndScale: cropAndScale)
    }

    /// Classifies an image in memory.
    ///
    /// Confidences can differ slightly from those of `classify(_:cropAndScale:)` for the same photo in a large JPEG file, because that
    /// method decodes large JPEGs at a reduced size.
    /// - Parameters:
    ///   - image: The image, upright and in sRGB.
    ///   - cropAndScale: The rule that fits the image to the network's input; nil for the rule used in training, and for detectors.
    /// - Returns: One classification per label, by descending confidence.
    /// - Throws: `ImprintError.invalidSetting` if `cropAndScale` is set for a detector, `ImprintError.nonFiniteOutput` if an output of the
    ///   network is not finite.
    public func classify(
        _ image: RasterImage, cropAndScale: CropAndScale? = nil
    ) throws(ImprintError) -> [Classification] {
        try classify(StoredImage(image), cropAndScale: cropAndScale)
    }

    /// Classifies a region of an image.
    /// - Returns: One classification per label, by descending confidence; boxes are relative to the whole image.
    func classify(
        _ image: StoredImage, in region: NormalizedRectangle = .all, cropAndScale: CropAndScale? = nil
    ) throws(ImprintError) -> [Classification] {
        try classifyWithNovelty(image, in: region, cropAndScale: cropAndScale).classifications
    }

    /// Classifies a region of an image, and returns its novelty.
    func classifyWithNovelty(
        _ image: StoredImage, in region: NormalizedRectangle = .all, cropAndScale: CropAndScale? = nil
    ) throws(ImprintError) -> (classifications: [Classification], novelty: Float?) {
        try check(cropAndScale)
        let prediction = try predictor.predict(image.cropped(to: region), cropAndScale: cropAndScale)
        return (classifications(prediction, in: image.croppedPart(region)), prediction.novelty)
    }

    /// Throws if a rule that fits images to the network's input is set for a detector, which has its own rule.
    func check(_ cropAndScale: CropAndScale?) throws(ImprintError) {
        guard let cropAndScale, !model.head.seesWholeImage else { return }
        throw .invalidSetting(
            name: "cropAndScale", found: cropAndScale.rawValue,
            expected: "nil for a detector, which has its own rule")
    }

    /// Returns all objects in a region of an image, by descending confidence; boxes are relative to the whole image.
    func objects(
        in image: StoredImage, region: NormalizedRectangle = .all
    ) throws(ImprintError) -> [DetectedObject] {
        let part = image.croppedPart(region)
        return try predictor.predict(image.cropped(to: region), cropAndScale: nil).objects.map {
            DetectedObject(label: $0.label, confidence: $0.confidence, box: $0.box.mapped(from: part))
        }
    }

    /// The rule that rejects images unlike the training photos.
    ///
    /// It is nil if the model does not store one, or if the personalization changes layers before the head.
    public var noveltyRule: NoveltyRule? { predictor.noveltyRule }

    /// The short side, in pixels, to which a large photo may be decoded.
    var shortSideToDecode: Int { predictor.shortSideToDecode }

    /// Returns the confidence in each label, in the order of `labels`, for the image in a file.
    package func confidences(of url: URL) throws -> [Float] {
        try predictor.predict(StoredImage(url, coveringShortSide: shortSideToDecode), cropAndScale: nil).confidences
    }

    /// Returns the confidence in each label, in the order of `labels`, for a photo in a file or in memory.
    package func confidences(of photo: TrainingPhoto) throws -> [Float] {
        try predictor.predict(photo.stored(coveringShortSide: shortSideToDecode), cropAndScale: nil).confidences
    }

    /// Returns a classification for each label, by descending confidence.
    /// - Parameter part: The part of the image that the prediction is for; the boxes are relative to the whole image.
    func classifications(_ prediction: Prediction, in part: NormalizedRectangle) -> [Classification] {
        // Hoisted: a model may have a thousand labels.
        let (curves, thresholds) = (model.training?.precisionRecall, model.training?.thresholds)
        return Classification.ranked(
            labels.indices.map { index in
                let label = labels[index]
                return Classification(
                    label: label, confidence: prediction.confidences[index], precisionRecallCurve: curves?[label] ?? [],
                    threshold: thresholds?[label], box: prediction.boxes[index]?.mapped(from: part))
            })
    }
}
