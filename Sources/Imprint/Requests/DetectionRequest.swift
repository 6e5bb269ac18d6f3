public import Foundation
internal import ImprintCore
public import ImprintImages
internal import ImprintModel

/// A request to find the objects in images, or in a region of them, with one detector.
///
/// ```swift
/// let detector = try ImageClassifier(contentsOf: URL(filePath: "logos.imprint"))
/// for object in try await DetectionRequest(detector).perform(on: .file(photo)) {
///     print(object.label, object.confidence, object.box)
/// }
/// ```
///
/// A request is a value, modelled on Vision's requests, and any number of tasks can use it at the same time.
public struct DetectionRequest: Sendable {
    /// The minimum confidence of an object, 0…1; nil for the model's threshold of each label, or 0.5 for a label without one.
    public var minimumConfidence: Float?
    /// The region of the upright image to search, which is extended to whole pixels.
    public var regionOfInterest = NormalizedRectangle.all
    private let live: LiveClassifier

    /// Creates a request for a detector.
    /// - Parameters:
    ///   - detector: A model whose predictions have boxes.
    ///   - minimumConfidence: The minimum confidence of an object; nil for the model's thresholds.
    public init(_ detector: ImageClassifier, minimumConfidence: Float? = nil) {
        self.init(LiveClassifier(detector), minimumConfidence: minimumConfidence)
    }

    /// Creates a request for a replaceable detector; each image is searched by the detector that is current at that time.
    /// - Parameters:
    ///   - detector: A replaceable model whose predictions have boxes.
    ///   - minimumConfidence: The minimum confidence of an object; nil for the model's thresholds.
    public init(_ detector: LiveClassifier, minimumConfidence: Float? = nil) {
        live = detector
        self.minimumConfidence = minimumConfidence
    }

    /// The current detector, which searches the next image.
    public var detector: ImageClassifier { live.current }

    /// Finds the objects in an image on a background thread.
    ///
    /// Use `RequestHandler` to perform several requests on the same image.
    /// - Parameter source: The image.
    /// - Returns: The objects by descending confidence: at most 100 per label (1,000 with an imported detector), each with a confidence
    ///   of at least 0.01. Their boxes are relative to the whole image.
    /// - Throws: The errors of `RequestHandler.perform(_:)` for detection requests.
    public func perform(on source: ImageSource) async throws -> [DetectedObject] {
        try await RequestHandler(source).perform([self])[0]
    }
}

/// A validated request, bound to the detector that was current when it was created.
private struct PreparedDetection {
    private let request: DetectionRequest
    private let detector: ImageClassifier

    /// - Throws: `ImprintError` if the model classifies whole images, or a value of the request is out of range.
    init(_ request: DetectionRequest) throws(ImprintError) {
        self.request = request
        detector = request.detector
        try detector.checkDetects(request.minimumConfidence)
        try request.regionOfInterest.checkIsWithinImage()
    }

    /// The short side, in pixels, to which a large photo may be decoded so that the region has enough pixels.
    var shortSideToDecode: Int { request.regionOfInterest.shortSideToDecode(detector.shortSideToDecode) }

    /// Returns the objects that reach the minimum confidence, by descending confidence.
    func objects(in image: StoredImage) throws(ImprintError) -> [DetectedObject] {
        try detector.objects(in: image, region: request.regionOfInterest)
            .filter { detector.reachesThreshold($0, request.minimumConfidence) }
    }
}

extension RequestHandler {
    /// Performs detection requests one after another, on a background thread.
    /// - Parameter requests: The requests, with the same or with different detectors.
    /// - Returns: For each request, in order, its objects by descending confidence.
    /// - Throws:
    ///   - `ImageError` if the image cannot be read.
    ///   - `ImprintError.notADetector` if a model classifies whole images.
    ///   - `ImprintError.invalidSetting` if a region of interest is not within the image, or a confidence not within 0…1.
    ///   - `ImprintError.nonFiniteOutput`, `ImprintError.unsupportedImageSize`, `ImprintError.outOfMemory`.
    ///   - `CancellationError` if the task is cancelled, which is checked before each request.
    @concurrent
    public func perform(_ requests: [DetectionRequest]) async throws -> [[DetectedObject]] {
        try Task.checkCancellation()
        let requests = try requests.map(PreparedDetection.init)
        guard let side = requests.map(\.shortSideToDecode).max() else { return [] }
        let image = try image.stored(coveringShortSide: side)
        return try requests.map { request in
            try Task.checkCancellation()
            return try request.objects(in: image)
        }
    }
}

extension ImageClassifier {
    /// Finds the objects in the image in a file.
    /// - Parameters:
    ///   - url: A JPEG, PNG, WebP or HEIC file.
    ///   - minimumConfidence: The minimum confidence of an object, 0…1; nil for the model's threshold of each label, or 0.5 for a label
    ///     without one.
    /// - Returns: The objects by descending confidence: at most 100 per label (1,000 with an imported detector), each with a confidence
    ///   of at least 0.01.
    /// - Throws: `ImprintError.notADetector` if the model classifies whole images, `ImprintError.invalidSetting` if the confidence is not
    ///   within 0…1, `ImageError` if the file cannot be read as an image, `ImprintError.nonFiniteOutput`,
    ///   `ImprintError.unsupportedImageSize`, `ImprintError.outOfMemory`.
    public func detect(_ url: URL, minimumConfidence: Float? = nil) throws -> [DetectedObject] {
        try checkDetects(minimumConfidence)
        return try objects(in: StoredImage(url, coveringShortSide: shortSideToDecode))
            .filter { reachesThreshold($0, minimumConfidence) }
    }

    /// Finds the objects in an image in memory.
    /// - Parameters:
    ///   - image: The image, upright and in sRGB.
    ///   - minimumConfidence: The minimum confidence of an object, 0…1; nil for the model's threshold of each label, or 0.5 for a label
    ///     without one.
    /// - Returns: The objects by descending confidence: at most 100 per label (1,000 with an imported detector), each with a confidence
    ///   of at least 0.01.
    /// - Throws: The errors of `detect(_:minimumConfidence:)` for a file, except `ImageError`.
    public func detect(
        _ image: RasterImage, minimumConfidence: Float? = nil
    ) throws(ImprintError) -> [DetectedObject] {
        try checkDetects(minimumConfidence)
        return try objects(in: StoredImage(image)).filter { reachesThreshold($0, minimumConfidence) }
    }

    /// Throws if the model classifies whole images, or if the minimum confidence is out of range.
    func checkDetects(_ minimumConfidence: Float?) throws(ImprintError) {
        try checkLocatesObjects()
        if let minimumConfidence, !(0...1).contains(minimumConfidence) {
            throw .invalidSetting(name: "minimumConfidence", found: messageText(minimumConfidence), expected: "0 to 1")
        }
    }

    /// The labels that objects can have, with those that a personalization adds; nil if the model classifies whole images.
    package var objectLabels: [String]? {
        locatesObjects ? model.head.outputLabels(model.labels) + (personalization?.addedLabels ?? []) : nil
    }

    /// Throws if the model classifies whole images.
    package func checkLocatesObjects() throws(ImprintError) {
        guard locatesObjects else { throw .notADetector(network: model.network.name) }
    }

    /// Returns whether the confidence of an object reaches the minimum or, without one, the threshold of its label.
    package func reachesThreshold(_ object: DetectedObject, _ minimumConfidence: Float?) -> Bool {
        if let minimumConfidence { return object.confidence >= minimumConfidence }
        return Double(object.confidence) >= detectionThreshold(of: object.label)
    }

    /// Returns the minimum confidence of a detection of a label.
    package func detectionThreshold(of label: String) -> Double { model.detectionThreshold(of: label) }
}
