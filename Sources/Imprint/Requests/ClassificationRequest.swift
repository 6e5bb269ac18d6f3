public import ImprintImages
internal import ImprintModel

/// A request to classify images, or a region of them, with one classifier and one confidence rule.
///
/// ```swift
/// var request = ClassificationRequest(classifier, rule: ConfidenceRule(threshold: .confidence(0.5)))
/// request.regionOfInterest = NormalizedRectangle(x: 0.25, y: 0.25, width: 0.5, height: 0.5)
/// let classifications = try await request.perform(on: .file(photo))
/// ```
///
/// A request is a value, modelled on Vision's `CoreMLRequest`, and any number of tasks can use it at the same time. With default settings, it
/// returns the same classifications as `ImageClassifier.classify(_:cropAndScale:)`.
public struct ClassificationRequest: Sendable {
    /// The rule that fits the image, or its region of interest, to the network's input; nil for the rule used in training.
    ///
    /// It must be nil for a detector.
    public var cropAndScale: CropAndScale?
    /// The region of the upright image to classify, which is extended to whole pixels.
    public var regionOfInterest = NormalizedRectangle.all
    /// The rule that classifications must meet.
    public var rule: ConfidenceRule
    /// Whether to return an empty result for images that are unlike the training photos.
    ///
    /// It requires a model with a novelty rule; see `ImageClassifier.noveltyRule`.
    public var rejectsNovelImages = false
    private let live: LiveClassifier

    /// Creates a request for a classifier.
    /// - Parameters:
    ///   - classifier: The classifier.
    ///   - rule: The rule that classifications must meet; the default accepts every classification.
    public init(_ classifier: ImageClassifier, rule: ConfidenceRule = ConfidenceRule()) {
        self.init(LiveClassifier(classifier), rule: rule)
    }

    /// Creates a request for a replaceable classifier; each image is classified by the classifier that is current at that time.
    /// - Parameters:
    ///   - classifier: The replaceable classifier.
    ///   - rule: The rule that classifications must meet; the default accepts every classification.
    public init(_ classifier: LiveClassifier, rule: ConfidenceRule = ConfidenceRule()) {
        live = classifier
        self.rule = rule
    }

    /// Returns the classifications that the confidence rule accepts; none for an image that the request rejects as novel.
    func accepted(_ classifications: [Classification], novelty: Float?) -> [Classification] {
        rejectsNovelImages && NoveltyRule.rejects(novelty) ? [] : classifications.filter(rule.accepts)
    }

    /// The current classifier, which classifies the next image.
    public var classifier: ImageClassifier { live.current }

    /// Classifies an image on a background thread.
    ///
    /// Use `RequestHandler` to perform several requests on the same image.
    /// - Parameter source: The image.
    /// - Returns: The classifications that the rule accepts, by descending confidence; none for an image that `rejectsNovelImages` rejects.
    /// - Throws: The errors of `RequestHandler.perform(_:)` for classification requests.
    public func perform(on source: ImageSource) async throws -> [Classification] {
        try await RequestHandler(source).perform([self])[0]
    }
}

/// A validated request, bound to the classifier that was current when it was created.
struct PreparedRequest {
    private let request: ClassificationRequest
    let classifier: ImageClassifier

    /// - Throws: `ImprintError` if the classifier lacks metrics that the rule needs, a setting does not suit it, or the region is not within the
    ///   image.
    init(_ request: ClassificationRequest) throws(ImprintError) {
        self.request = request
        classifier = request.classifier
        try request.rule.check(classifier)
        try classifier.check(request.cropAndScale)
        let region = request.regionOfInterest
        guard !request.rejectsNovelImages || classifier.noveltyRule != nil else {
            throw .invalidSetting(
                name: "rejectsNovelImages", found: "true", expected: "false for a classifier without a novelty rule")
        }
        try region.checkIsWithinImage()
    }

    /// The short side, in pixels, to which a large photo may be decoded so that the region has enough pixels.
    var shortSideToDecode: Int {
        request.regionOfInterest.shortSideToDecode(classifier.shortSideToDecode)
    }

    /// Returns one classification per label, by descending confidence, and the novelty of the image.
    func all(_ image: StoredImage) throws(ImprintError) -> (classifications: [Classification], novelty: Float?) {
        try classifier.classifyWithNovelty(
            image, in: request.regionOfInterest, cropAndScale: request.cropAndScale)
    }

    /// Returns the classifications that the request accepts, by descending confidence.
    func accepted(_ image: StoredImage) throws(ImprintError) -> [Classification] {
        let (classifications, novelty) = try all(image)
        return request.accepted(classifications, novelty: novelty)
    }
}

extension NormalizedRectangle {
    /// Throws if this region of interest is empty or not within the image.
    func checkIsWithinImage() throws(ImprintError) {
        guard isWithinImage else {
            throw .invalidSetting(
                name: "regionOfInterest", found: "x \(x), y \(y), width \(width), height \(height)",
                expected: "a region that is not empty and lies within 0 to 1 in both directions")
        }
    }

    /// Returns the short side, in pixels, to which a large photo may be decoded so that this region has enough pixels.
    /// - Parameter side: The short side to which the region may be decoded.
    func shortSideToDecode(_ side: Int) -> Int {
        // The limit avoids an overflow of Int; it exceeds the side of every image that can be decoded.
        Int(min((Double(side) / Double(min(width, height))).rounded(.up), 1e9))
    }
}
