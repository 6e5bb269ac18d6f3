internal import ImprintImages
internal import ImprintModel

/// A runtime for imported detectors, which cannot be personalized.
struct ImportedDetectorRuntime: HeadRuntime {
    let model: ModelFile
    /// Makes a predictor.
    let makePredictor: @Sendable () -> any HeadPredictor

    /// The error of all operations of personalization.
    private var cannotPersonalize: ImprintError { .cannotTrainImportedDetector(network: model.network.name) }

    func predictor(with personalization: Personalization?, averagesFlipped: Bool) throws -> any HeadPredictor {
        guard personalization == nil else { throw cannotPersonalize }
        return makePredictor()
    }

    var positions: Int { 0 }

    func featureCount(blocks: Int) throws -> Int { throw cannotPersonalize }

    func features(of source: ImageSource, blocks: Int, views: ImageViews) throws -> [[Float]] {
        throw cannotPersonalize
    }

    func confidences(blocks: Int, with personalization: Personalization?) throws -> ([Float]) -> [Float] {
        throw cannotPersonalize
    }
}
