public import ImprintImages

/// What is wanted to be known of pictures: of which classifier, of which part, and what of its answer is believed.
///
/// ```swift
/// var request = ClassificationRequest(classifier, rule: ConfidenceRule(threshold: .confidence(0.5)))
/// request.regionOfInterest = NormalizedRectangle(x: 0.25, y: 0.25, width: 0.5, height: 0.5)
/// let observations = try await request.perform(on: .file(photo))
/// ```
///
/// It is a value, and may be used from any number of tasks at once; Vision's `CoreMLRequest` is its model. Without a crop rule, region or
/// confidence of its own it sees exactly what `ImageClassifier.classify(_:cropAndScale:)` sees.
public struct ClassificationRequest: Sendable {
    /// How the picture, or the region of it, is fitted into the network's input; `nil` for the way of training.
    public var cropAndScale: CropAndScale?
    /// The part of the upright picture that is looked at, in whole pixels that it touches.
    public var regionOfInterest = NormalizedRectangle.all
    /// Which observations are kept: of a least confidence, or of labels that are precise or recalled enough.
    public var rule: ConfidenceRule
    private let live: LiveClassifier

    /// Makes a request for a classifier.
    public init(_ classifier: ImageClassifier, rule: ConfidenceRule = ConfidenceRule()) {
        self.init(LiveClassifier(classifier), rule: rule)
    }

    /// Makes a request for a classifier that may be swapped; each picture is looked at by the one that is current then.
    public init(_ classifier: LiveClassifier, rule: ConfidenceRule = ConfidenceRule()) {
        live = classifier
        self.rule = rule
    }

    /// The classifier that the next picture is looked at by.
    public var classifier: ImageClassifier { live.current }

    /// Looks at a picture, off the caller's thread.
    /// - Returns: What the rule accepts, best first.
    /// - Throws: As `RequestHandler.perform(_:)`.
    public func perform(on source: ImageSource) async throws -> [Classification] {
        try await RequestHandler(source).perform([self])[0]
    }
}

/// A request with the classifier that is current at one moment.
struct PreparedRequest {
    private let request: ClassificationRequest
    let classifier: ImageClassifier

    /// - Throws: `ImprintError` if the classifier does not know what the rule needs, or the region is none.
    init(_ request: ClassificationRequest) throws(ImprintError) {
        self.request = request
        classifier = request.classifier
        try request.rule.check(classifier)
        let region = request.regionOfInterest
        guard region.isWithinPicture else {
            throw .invalidSetting(
                name: "regionOfInterest",
                found: "x \(region.x), y \(region.y), width \(region.width), height \(region.height)",
                expected: "a part of the picture, in shares of its sides: from 0 to 1 in sum, neither side 0")
        }
    }

    /// The short side of a photo to decode at least, so that the region has what is needed of it.
    var shortSideToDecode: Int {
        let share = Double(min(request.regionOfInterest.width, request.regionOfInterest.height))
        // No photo that is read has as many pixels.
        return Int(min((Double(classifier.shortSideToDecode) / share).rounded(.up), 1e9))
    }

    /// One observation for each label, best first.
    func all(_ picture: StoredPicture) throws(ImprintError) -> [Classification] {
        try classifier.classify(picture, in: request.regionOfInterest, cropAndScale: request.cropAndScale)
    }

    /// What the rule accepts, best first.
    func accepted(_ picture: StoredPicture) throws(ImprintError) -> [Classification] {
        try all(picture).filter(request.rule.accepts)
    }
}
