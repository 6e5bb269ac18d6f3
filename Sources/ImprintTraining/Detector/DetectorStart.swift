internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The network that the training of a detector starts from: new, or with a pretrained backbone.
struct DetectorStart {
    let network: Network
    /// The preprocessing of patches and photos.
    let preprocessing: Preprocessing
    /// The digest of the base model; nil without one.
    let baseDigest: String?
    private let base: ModelFile?
    private let logos: Int

    /// - Throws: `ImprintError.unsupportedBackbone` if the base model cannot be the backbone of a detector.
    init(base: ModelFile?, logos: Int) throws {
        (self.base, self.logos) = (base, logos)
        guard let base else {
            network = try Network.logoDetector(logos: logos, regressesBoxes: true)
            preprocessing = .logoDetector
            baseDigest = nil
            return
        }
        guard base.preprocessing.channels == 3,
            let network = try Network.logoDetector(
                logos: logos, backbone: base.network, side: DetectorHead.patchSide),
            network.output.height == DetectorHead.patchSide / DetectorHead.heatMapStride
        else { throw ImprintError.unsupportedBackbone(network: base.network.name) }
        self.network = network
        var preprocessing = Preprocessing.logoDetector
        (preprocessing.mean, preprocessing.scale) = (base.preprocessing.mean, base.preprocessing.scale)
        self.preprocessing = preprocessing
        baseDigest = try base.identity
    }

    /// Returns the initial parameters: those of the base model, and random ones for the other layers.
    func parameters(seed: UInt64) throws -> Parameters {
        let parameters = try Parameters(network, seed: seed)
        if let base { parameters.load(from: base.parameters) }
        // A negative bias, so that the network initially detects no logos.
        guard let head = network.headIndex.map({ network.nodes[$0].name }) else {
            preconditionFailure("the network \(network.name) has no heat maps")
        }
        parameters["\(head).bias"] = Array(repeating: -2, count: logos)
        return parameters
    }

    /// The learning-rate factor of each node: lower for the pretrained layers, so that they keep what they have learned.
    var learningRateFactors: [String: Float] {
        guard let base else { return [:] }
        let names = Set(base.network.nodes.map(\.name)).intersection(network.nodes.map(\.name))
        return Dictionary(uniqueKeysWithValues: names.map { ($0, Self.backboneFactor) })
    }

    private static let backboneFactor: Float = 0.3
}
