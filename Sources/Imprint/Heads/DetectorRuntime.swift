internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import Synchronization

/// Runs a logo detector.
///
/// Its features are those of the `DetectorFeatures.places` positions of an image that look most like a logo.
final class DetectorRuntime: HeadRuntime {
    let model: ModelFile
    private let detector: DetectorHead
    private let idle = Mutex<[Idle]>([])

    /// A feature extractor that no thread uses at the moment.
    private struct Idle: @unchecked Sendable {
        let extractor: DetectorFeatures
    }

    init(_ model: ModelFile, _ detector: DetectorHead) {
        self.model = model
        self.detector = detector
    }

    func predictor(with personalization: Personalization?, averagesMirrored: Bool) throws -> any HeadPredictor {
        guard let personalization else { return DetectorPool(model, detector) }
        let personalized = try model.personalized(with: personalization)
        return DetectorPool(personalized, personalized.detector ?? detector)
    }

    var positions: Int { DetectorFeatures.places }

    func featureCount(blocks: Int) throws -> Int {
        try positions * model.split(blocks: blocks).features.output.channels
    }

    /// An image that the detector sees in many sizes has one view.
    func features(of source: ImageSource, blocks: Int, views: ImageViews) throws -> [[Float]] {
        let picture = try source.stored(coveringShortSide: PatchSource.shortSideToDecode)
        let extractor = try idle.withLock { $0.popLast() }?.extractor ?? DetectorFeatures(model, detector)
        defer {
            let extractor = Idle(extractor: extractor)
            idle.withLock { $0.append(extractor) }
        }
        let features = try extractor.features(of: PatchSource.shrunk(picture.upright))
        try checkFinite(features)
        return [features]
    }

    func confidences(blocks: Int, with personalization: Personalization?) throws -> ([Float]) -> [Float] {
        let personalized = try personalization.map(model.personalized) ?? model
        let extractor = try DetectorFeatures(personalized, detector)
        let (detector, labels) = (detector, personalized.labels)
        return { detector.confidences(extractor.highest($0), in: labels) }
    }
}
