package import ImprintCore
package import ImprintImages
package import ImprintModel
internal import ImprintNetwork

/// A runtime for models with one kind of head: it makes predictors, and extracts the features that personalization trains on.
///
/// A runtime is thread-safe. `ModelHead.runtime` chooses the type; no other code in this module depends on the kind of head.
protocol HeadRuntime: Sendable {
    var model: ModelFile { get }

    /// Makes a predictor of the model, with a personalization if there is one.
    func predictor(with personalization: Personalization?, averagesFlipped: Bool) throws -> any HeadPredictor

    /// The number of positions per image that have features.
    var positions: Int { get }

    /// Returns the number of values in the features of one view of an image.
    func featureCount(blocks: Int) throws -> Int

    /// Computes the features of each view of an image: the input of the first layer that personalization may change.
    /// - Parameter blocks: The number of blocks before the head that personalization may change.
    /// - Throws: `ImageError` if the image cannot be read, `ImprintError.nonFiniteOutput` if a feature is not finite.
    func features(of source: ImageSource, blocks: Int, views: ImageViews) throws -> [[Float]]

    /// Makes a function that computes the confidences of the personalized model from the features of an image.
    func confidences(blocks: Int, with personalization: Personalization?) throws -> ([Float]) -> [Float]
}

/// A predictor for models with one kind of head.
package protocol HeadPredictor: Sendable {
    /// The short side, in pixels, to which a large photo may be decoded.
    var shortSideToDecode: Int { get }

    /// The rule that rejects images unlike the training photos, or nil if there is none or if it does not fit the personalization.
    var noveltyRule: NoveltyRule? { get }

    /// Predicts the labels of an image.
    /// - Throws: `ImprintError.nonFiniteOutput` if an output is not finite, `ImprintError.unsupportedImageSize`, `ImprintError.outOfMemory`.
    func predict(_ image: StoredImage, cropAndScale: CropAndScale?) throws(ImprintError) -> Prediction

    /// Makes a predictor that runs the network once for a whole batch; nil if the network runs on one image at a time.
    func batchPredictor(maximumBatchSize: Int, workers: Workers) throws -> (any BatchPredictor)?
}

/// The prediction for one image.
package struct Prediction: Sendable {
    /// The confidence in each label, in the order of the labels.
    package var confidences: [Float]
    /// The most likely bounding box of each label, relative to the image; nil for a label without one.
    package var boxes: [NormalizedRectangle?]
    /// The novelty of the image, as `ImageClassifier.novelty(of:cropAndScale:)` returns it; nil if it is unknown.
    package var novelty: Float?
    /// All objects in the image, by descending confidence, relative to the image; empty for a classifier of whole images.
    package var objects: [DetectedObject] = []
}

extension Prediction {
    /// Creates the prediction of an imported detector, whose labels are independent of each other.
    /// - Parameter labels: For each label, its highest confidence at any position, and its objects by descending confidence.
    init(labels: [(confidence: Float, objects: [DetectedObject])]) {
        confidences = labels.map(\.confidence)
        // The strongest position has no object if its box lies outside the image.
        boxes = labels.map { $0.objects.first?.box }
        // Objects with equal confidences keep the order of their labels.
        objects = labels.flatMap(\.objects).enumerated().sorted {
            ($1.element.confidence, $0.offset) < ($0.element.confidence, $1.offset)
        }.map(\.element)
    }
}

extension HeadPredictor {
    /// The rule that rejects images unlike the training photos, or nil if there is none.
    package var noveltyRule: NoveltyRule? { nil }

    /// Makes a predictor that runs the network once for a whole batch; nil, because the networks of detectors run on one image at a time.
    package func batchPredictor(maximumBatchSize: Int, workers: Workers) throws -> (any BatchPredictor)? { nil }
}

extension ModelHead {
    /// Makes the runtime of a model with this head.
    /// - Parameter shapes: The number of image shapes whose plans a feature extractor of a logo detector caches.
    func runtime(
        _ model: ModelFile, workers: Workers, precision: Precision = .automatic, shapes: Int = 4
    ) -> any HeadRuntime {
        switch self {
        case .softmax, .sigmoid: ClassifierRuntime(model, workers: workers, precision: precision)
        case .detector(let detector):
            DetectorRuntime(model, detector, threads: workers.count, precision: precision, shapes: shapes)
        case .centerPoints(let head):
            ImportedDetectorRuntime(model: model) {
                CenterPointPool(model, head, threads: workers.count, precision: precision)
            }
        case .anchors(let head):
            ImportedDetectorRuntime(model: model) {
                AnchorPool(model, head, threads: workers.count, precision: precision)
            }
        }
    }
}

extension HeadRuntime {
    /// Throws if a feature is not finite; activations can overflow even though the parameters are finite.
    func checkFinite(_ features: [Float]) throws(ImprintError) {
        guard features.allSatisfy(\.isFinite) else { throw .nonFiniteOutput(network: model.network.name) }
    }
}

extension ModelFile {
    /// Splits the network into the feature extractor and the tail that personalization may change: the last blocks and the head.
    /// - Parameter blocks: The number of blocks before the head that belong to the tail.
    /// - Throws: `ImprintError.noHead` if the network has no head with an output for each label, `ImprintError.invalidSetting` for other blocks.
    func split(blocks: Int) throws -> (features: Network, tail: Network) {
        let maximum = network.maximumAdaptedBlocks
        guard (0...maximum).contains(blocks) else {
            throw ImprintError.invalidSetting(
                name: "blocks", found: "\(blocks)", expected: "0 to \(maximum) for the network \"\(network.name)\"")
        }
        guard head.problem(headOf: network, labels: labels) == nil,
            let parts = try network.split(beforeLast: blocks)
        else {
            throw ImprintError.noHead(network: network.name)
        }
        return parts
    }

    /// Returns the smallest number of blocks before the head that contain every layer that a personalization changes.
    func blocks(changedBy personalization: Personalization) throws -> Int {
        let names = Set(personalization.adapters.map(\.parameter))
        for blocks in 0...network.maximumAdaptedBlocks {
            let layout = ParameterLayout(try split(blocks: blocks).tail)
            if names.allSatisfy({ layout[$0] != nil }) { return blocks }
        }
        throw ImprintError.invalidSetting(
            name: "personalization", found: "a change of \(names.sorted().joined(separator: ", "))",
            expected: "changes to layers after the first block of \"\(network.name)\"")
    }
}
