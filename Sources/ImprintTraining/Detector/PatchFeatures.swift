internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// Computes the inputs of a detector's head for training patches.
final class PatchFeatures {
    /// The number of patches of a batch.
    static let batchSize = 64

    private let plan: ExecutionPlan
    private let batches: PatchBatches

    /// The shape of the features of a patch, [rows, columns, channels].
    var shape: TensorShape { plan.network.output }

    /// Compiles the layers before the head.
    /// - Parameter patches: The patches, in batches of `batchSize`.
    /// - Throws: `ImprintError.noHead` if the network has no head, and `NetworkError` if its layers before the head cannot be compiled.
    init(_ model: ModelFile, _ patches: DetectorPatches, workers: Workers) throws {
        precondition(patches.batchSize == Self.batchSize, "there are \(patches.batchSize) patches in a batch")
        guard let features = try model.network.patchFeatures() else {
            throw ImprintError.noHead(network: model.network.name)
        }
        let parameters = try Parameters(ParameterLayout(features))
        parameters.load(from: model.parameters)
        plan = try ExecutionPlan(
            features, parameters: parameters,
            options: ExecutionPlan.Options(batchSize: Self.batchSize, workers: workers).limitingThreads(for: features))
        batches = PatchBatches(patches, model.preprocessing, workers: workers)
    }

    /// Adds the features of a batch of patches.
    /// - Throws: The errors of `PatchBatches.fill(_:of:step:)`, and `ImprintError.nonFiniteOutput` if a feature is not finite.
    func add(_ phase: DetectorPhase, step: Int, to samples: inout HeadSamples) throws {
        let targets = try batches.fill(plan.input, of: phase, step: step)
        plan.forward(count: Self.batchSize)
        guard plan.output.allSatisfy(\.isFinite) else {
            throw ImprintError.nonFiniteOutput(network: plan.network.name)
        }
        samples.add(plan.output, targets)
    }
}

extension Network {
    /// Returns the layers before the head, for training patches; nil without a head.
    fileprivate func patchFeatures() throws(NetworkError) -> Network? {
        guard let features = try splitAtHead()?.features else { return nil }
        let side = DetectorHead.patchSide
        return try Network(
            name: name, input: TensorShape(height: side, width: side, channels: 3), nodes: features.nodes)
    }
}

extension DetectorHead {
    /// Checks that new heat maps of a network can be trained on patches.
    /// - Throws: `ImprintError.unsupportedDetector` if not, `NetworkError` if the network does not accept patches.
    func checkLearnsLogos(_ network: Network) throws {
        func unsupported(_ found: String, _ expected: String) -> ImprintError {
            .unsupportedDetector(network: network.name, found: found, expected: expected)
        }
        let positions = Self.patchSide / Self.heatMapStride
        guard let features = try network.patchFeatures(), let head = network.headIndex.map({ network.nodes[$0] }) else {
            throw unsupported("no heat maps", "a convolution with a kernel of 1x1 that computes them")
        }
        guard stride == Self.heatMapStride, (features.output.height, features.output.width) == (positions, positions)
        else {
            let (height, width) = (features.output.height, features.output.width)
            throw unsupported(
                "a stride of \(stride) pixels and heat maps of \(height)x\(width) for a patch of "
                    + "\(Self.patchSide)x\(Self.patchSide)",
                "a stride of \(Self.heatMapStride) and \(positions)x\(positions)")
        }
        guard (head.layer as? Convolution)?.hasBias == true else {
            throw unsupported("heat maps without a bias", "a bias for each logo")
        }
    }
}
