internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import Synchronization

/// Computes the features of images, which no personalization changes, for any number of threads.
///
/// A feature is what the first layer that may change reads: a vector where that is the head. Where the model spots marks, it is one for
/// each of the `DetectorFeatures.places` that are most like a mark.
final class FeaturePool: Sendable {
    private let weights: ModelFile
    private let workers: Workers
    /// What computes them, by how many blocks before the head change; made when they are asked for.
    private let pools = Mutex<[Int: ExecutionPlanPool]>([:])
    private let spotters = Mutex<[Idle]>([])

    private struct Idle: @unchecked Sendable {
        let spotter: DetectorFeatures
    }

    init(_ weights: ModelFile, workers: Workers) {
        self.weights = weights
        self.workers = workers
    }

    /// How many places of an image have features.
    var places: Int { weights.detector == nil ? 1 : DetectorFeatures.places }

    /// How many numbers the features of one view of an image have.
    func length(blocks: Int) throws -> Int {
        let result = try parts(blocks: blocks).features.output
        return weights.detector == nil ? result.count : places * result.channels
    }

    /// The network up to the last blocks that change, and those with the head.
    func parts(blocks: Int) throws -> (features: Network, head: Network) {
        let network = weights.network
        let greatest = network.greatestAdaptedBlocks
        guard (0...greatest).contains(blocks) else {
            throw ImprintError.invalidSetting(
                name: "blocks", found: "\(blocks)", expected: "0 to \(greatest) for the network \"\(network.name)\"")
        }
        guard let parts = try network.split(beforeLast: blocks) else {
            throw ImprintError.noHead(network: network.name)
        }
        return parts
    }

    private func pool(blocks: Int) throws -> ExecutionPlanPool {
        try pools.withLock { pools in
            if let pool = pools[blocks] { return pool }
            let network = try parts(blocks: blocks).features
            let parameters = try Parameters(ParameterLayout(network))
            parameters.load(from: weights.parameters)
            let pool = try ExecutionPlanPool(network, parameters: parameters, workers: workers)
            pools[blocks] = pool
            return pool
        }
    }

    /// What computes confidences with a personalization of the model.
    func stages(with personalization: Personalization) throws -> [ExecutionPlanPool] {
        try weights.check(personalization)
        let blocks = try blocks(changedBy: personalization)
        return [try pool(blocks: blocks), try head(blocks: blocks, with: personalization)]
    }

    /// What computes confidences of features.
    private func head(blocks: Int, with personalization: Personalization?) throws -> ExecutionPlanPool {
        let head = try parts(blocks: blocks).head
        guard let personalization else {
            let parameters = try Parameters(ParameterLayout(head))
            parameters.load(from: weights.parameters)
            return try ExecutionPlanPool(head, parameters: parameters, workers: workers)
        }
        let changed =
            personalization.addedLabels.isEmpty
            ? head : try head.replacingHead(outputs: weights.labels.count + personalization.addedLabels.count)
        return try ExecutionPlanPool(
            changed, parameters: weights.parameters(of: changed, with: personalization), workers: workers)
    }

    /// What says how sure a classifier with a personalization is of each label, by the features of an image.
    func judge(blocks: Int, with personalization: Personalization?) throws -> ([Float]) -> [Float] {
        guard let detector = weights.detector else {
            return try head(blocks: blocks, with: personalization).callAsFunction
        }
        let model = try personalization.map(weights.personalized) ?? weights
        let spotter = try DetectorFeatures(model, detector)
        return { detector.confidences(spotter.highest($0), in: model.labels) }
    }

    /// The least number of blocks that hold all layers that change.
    func blocks(changedBy personalization: Personalization) throws -> Int {
        let names = Set(personalization.factors.map(\.parameter))
        for blocks in 0...weights.network.greatestAdaptedBlocks {
            let layout = ParameterLayout(try parts(blocks: blocks).head)
            if names.allSatisfy({ layout[$0] != nil }) { return blocks }
        }
        throw ImprintError.invalidSetting(
            name: "personalization", found: "a change of \(names.sorted().joined(separator: ", "))",
            expected: "of layers after the first block of \"\(weights.network.name)\"")
    }

    /// The features of a picture, for each view.
    /// - Throws: `ImageError` if it cannot be read, `ImprintError.noConfidence` where the features are no numbers.
    func features(of source: ImageSource, blocks: Int, views: ImageViews) throws -> [[Float]] {
        guard let detector = weights.detector else {
            let picture = try source.stored(coveringShortSide: weights.preprocessing.shortSideToDecode)
            return try features(prepared: weights.preprocessing.prepare(picture), blocks: blocks, views: views)
        }
        let picture = try source.stored(coveringShortSide: PatchSource.shortSideToDecode)
        return try features(detector, PatchSource.shrunk(picture.upright))
    }

    private func features(prepared image: RasterImage, blocks: Int, views: ImageViews) throws -> [[Float]] {
        let pool = try pool(blocks: blocks)
        return try views.of(image).map { view in
            let features = pool.withPlan { plan in
                weights.preprocessing.normalize(view, into: plan.input)
                plan.forward(count: 1)
                return Array(plan.output)
            }
            try checkFinite(features)
            return features
        }
    }

    /// Pictures that are looked at in several sizes have one view.
    private func features(_ detector: DetectorHead, _ picture: RasterImage) throws -> [[Float]] {
        let spotter = try spotters.withLock { $0.popLast() }?.spotter ?? DetectorFeatures(weights, detector)
        defer {
            let spotter = Idle(spotter: spotter)
            spotters.withLock { $0.append(spotter) }
        }
        let features = try spotter.features(of: picture)
        try checkFinite(features)
        return [features]
    }

    private func checkFinite(_ features: [Float]) throws {
        // Finite parameters may still overflow on the way.
        guard features.allSatisfy(\.isFinite) else {
            throw ImprintError.noConfidence(network: weights.network.name)
        }
    }
}

/// The ways in which a photo is shown: as it is, and a little varied, so that a few photos stand for more.
struct ImageViews: Hashable, Sendable {
    /// How many there are, the photo itself included.
    var count: Int

    /// Nothing that could change what a photo shows: a logo is not mirrored, nor taken out of the picture.
    private static let augmentation = Augmentation([.crop, .exposure, .color])

    /// The views of an image that has the size of the network's input; the same for the same image, whenever it is shown.
    func of(_ image: RasterImage) throws -> [RasterImage] {
        // FNV-1a: chance has to differ from image to image, no more.
        let seed = image.samples.reduce(UInt64(0xcbf2_9ce4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return try [image]
            + (1..<max(count, 1)).map { view in
                var stream = RandomStream(seed: seed, "view", view)
                return try Self.augmentation.apply(to: image, using: &stream)
            }
    }
}
