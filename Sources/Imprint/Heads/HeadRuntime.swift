internal import ImprintCore
package import ImprintImages
package import ImprintModel
internal import ImprintNetwork

/// Runs a model with one kind of head: predictions, and the features that personalization learns from.
///
/// Any number of threads may use it at once. `ModelHead.runtime` chooses the type; nothing else in this module depends on the kind.
protocol HeadRuntime: Sendable {
    var model: ModelFile { get }

    /// Makes a predictor of the model, with the changes of a personalization if there is one.
    func predictor(with personalization: Personalization?, averagesMirrored: Bool) throws -> any HeadPredictor

    /// The number of positions of an image that have features.
    var positions: Int { get }

    /// The number of values in the features of one view of an image.
    func featureCount(blocks: Int) throws -> Int

    /// Computes the features of a picture for each view: the input of the first layer that personalization may change.
    /// - Parameter blocks: The number of blocks before the head that may change.
    /// - Throws: `ImageError` if the picture cannot be read, `ImprintError.noConfidence` if the features are not finite.
    func features(of source: ImageSource, blocks: Int, views: ImageViews) throws -> [[Float]]

    /// Makes a function that computes the confidences of a personalized model from the features of an image.
    func confidences(blocks: Int, with personalization: Personalization?) throws -> ([Float]) -> [Float]
}

/// Computes the predictions of one kind of head.
package protocol HeadPredictor: Sendable {
    /// The short side, in pixels, to which a large photo may be decoded.
    var shortSideToDecode: Int { get }

    /// Predicts the labels of a picture.
    /// - Throws: `ImprintError.noConfidence` if the outputs are not finite, `ImprintError.outOfMemory`.
    func predict(_ picture: StoredPicture, cropAndScale: CropAndScale?) throws(ImprintError) -> Prediction
}

/// The prediction for one picture.
package struct Prediction: Sendable {
    /// The confidence in each label of the model, in their order.
    package var confidences: [Float]
    /// The most likely box of each label, relative to the picture, or nil for a label without one.
    package var boxes: [NormalizedRectangle?]
}

extension ModelHead {
    /// The runtime of a model with this head.
    func runtime(_ model: ModelFile, workers: Workers) -> any HeadRuntime {
        switch self {
        case .softmax, .sigmoid: ClassifierRuntime(model, workers: workers)
        case .detector(let detector): DetectorRuntime(model, detector)
        }
    }
}

extension HeadRuntime {
    /// Throws if features are not finite: finite parameters may still overflow in the layers.
    func checkFinite(_ features: [Float]) throws(ImprintError) {
        guard features.allSatisfy(\.isFinite) else { throw .noConfidence(network: model.network.name) }
    }
}

extension ModelFile {
    /// Splits the network before the last blocks that personalization may change.
    func split(blocks: Int) throws -> (features: Network, head: Network) {
        let maximum = network.maximumAdaptedBlocks
        guard (0...maximum).contains(blocks) else {
            throw ImprintError.invalidSetting(
                name: "blocks", found: "\(blocks)", expected: "0 to \(maximum) for the network \"\(network.name)\"")
        }
        guard let parts = try network.split(beforeLast: blocks) else {
            throw ImprintError.noHead(network: network.name)
        }
        return parts
    }

    /// The smallest number of blocks before the head that contain every layer that a personalization changes.
    func blocks(changedBy personalization: Personalization) throws -> Int {
        let names = Set(personalization.factors.map(\.parameter))
        for blocks in 0...network.maximumAdaptedBlocks {
            let layout = ParameterLayout(try split(blocks: blocks).head)
            if names.allSatisfy({ layout[$0] != nil }) { return blocks }
        }
        throw ImprintError.invalidSetting(
            name: "personalization", found: "a change of \(names.sorted().joined(separator: ", "))",
            expected: "changes of layers after the first block of \"\(network.name)\"")
    }
}
