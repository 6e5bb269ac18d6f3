internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// A runtime for logo detectors.
///
/// The features of an image are the features at the `DetectorFeatures.positions` positions of its heat maps with the highest scores.
final class DetectorRuntime: HeadRuntime {
    let model: ModelFile
    private let detector: DetectorHead
    private let threads: Int
    private let precision: Precision
    private let shapes: Int
    private let extractors = IdlePool<DetectorFeatures>()

    /// - Parameter shapes: The number of image shapes whose plans a feature extractor caches.
    init(_ model: ModelFile, _ detector: DetectorHead, threads: Int, precision: Precision, shapes: Int) {
        self.model = model
        self.threads = threads
        self.precision = precision
        self.shapes = shapes
        self.detector = detector
    }

    func predictor(with personalization: Personalization?, averagesFlipped: Bool) throws -> any HeadPredictor {
        guard let personalization else { return pool(model, detector) }
        let personalized = try model.predictor(with: personalization)
        return pool(personalized, personalized.detector ?? detector)
    }

    private func pool(_ model: ModelFile, _ detector: DetectorHead) -> DetectorPool {
        DetectorPool(model, detector, threads: threads, precision: precision)
    }

    var positions: Int { DetectorFeatures.positions }

    func featureCount(blocks: Int) throws -> Int {
        try positions * model.split(blocks: blocks).features.output.channels
    }

    /// Computes the features of the image; detectors ignore `views` and use one view.
    func features(of source: ImageSource, blocks: Int, views: ImageViews) throws -> [[Float]] {
        let image = try source.stored(coveringShortSide: PatchSource.shortSideToDecode)
        let features = try extractors.withValue {
            try DetectorFeatures(model, detector, shapes: shapes)
        } _: { extractor in
            try extractor.features(of: PatchSource.shrunk(image.upright))
        }
        try checkFinite(features)
        return [features]
    }

    func confidences(blocks: Int, with personalization: Personalization?) throws -> ([Float]) -> [Float] {
        let personalized = try personalization.map(model.personalized) ?? model
        let (detector, labels) = (personalized.detector ?? detector, personalized.labels)
        let extractor = try DetectorFeatures(personalized, detector, shapes: 1)
        return { detector.confidences(extractor.maximumLogits($0), in: labels) }
    }
}
