internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import Synchronization

/// A runtime for classifiers of whole images, with a softmax or sigmoid head.
final class ClassifierRuntime: HeadRuntime {
    let model: ModelFile
    private let workers: Workers
    private let precision: Precision
    /// The execution plans of the feature extractor.
    private let pools = Mutex<[PoolKey: ExecutionPlanPool]>([:])

    private struct PoolKey: Hashable {
        /// The number of blocks in the tail.
        let blocks: Int
        let precision: Precision
    }

    init(_ model: ModelFile, workers: Workers, precision: Precision) {
        self.model = model
        self.workers = workers
        self.precision = precision
    }

    func predictor(with personalization: Personalization?, averagesFlipped: Bool) throws -> any HeadPredictor {
        // Adapters change the features that the rule was calibrated on.
        let keepsFeatures = personalization?.adapters.isEmpty ?? true
        return ClassifierPredictor(
            parts: try parts(with: personalization), preprocessing: model.preprocessing, network: model.network.name,
            confidencesSumToOne: model.head.confidencesSumToOne, averagesFlipped: averagesFlipped,
            noveltyRule: keepsFeatures ? model.noveltyRule : nil)
    }

    private func parts(with personalization: Personalization?) throws -> [ExecutionPlanPool] {
        guard let personalization else {
            return [
                try ExecutionPlanPool(
                    model.network, parameters: model.parameters, workers: workers, precision: precision,
                    keepsHeadInput: model.noveltyRule != nil)
            ]
        }
        try model.check(personalization)
        let blocks = try model.blocks(changedBy: personalization)
        return [
            try extractor(blocks: blocks, precision), try tail(blocks: blocks, with: personalization, precision),
        ]
    }

    // Personalization trains in float32, so its features do not depend on the precision of predictions.

    var positions: Int { 1 }

    func featureCount(blocks: Int) throws -> Int { try model.split(blocks: blocks).features.output.count }

    func features(of source: ImageSource, blocks: Int, views: ImageViews) throws -> [[Float]] {
        let image = try source.stored(coveringShortSide: model.preprocessing.shortSideToDecode)
        let extractor = try extractor(blocks: blocks, .float32)
        return try views.of(model.preprocessing.prepare(image)).map { view in
            let features = extractor.withPlan { plan in
                model.preprocessing.normalize(view, into: plan.input)
                plan.forward(count: 1)
                return Array(plan.output)
            }
            try checkFinite(features)
            return features
        }
    }

    func confidences(blocks: Int, with personalization: Personalization?) throws -> ([Float]) -> [Float] {
        try tail(blocks: blocks, with: personalization, .float32).callAsFunction
    }

    /// Returns execution plans of the feature extractor.
    private func extractor(blocks: Int, _ precision: Precision) throws -> ExecutionPlanPool {
        try pools.withLock { pools in
            let key = PoolKey(blocks: blocks, precision: precision)
            if let pool = pools[key] { return pool }
            let network = try model.split(blocks: blocks).features
            let parameters = try Parameters(ParameterLayout(network))
            parameters.load(from: model.parameters)
            // The tail computes in float32: its input is not that of the quantized network, and its weights may change.
            parameters.quantization = model.parameters.quantization
            let pool = try ExecutionPlanPool(
                network, parameters: parameters, workers: workers, precision: precision)
            pools[key] = pool
            return pool
        }
    }

    /// Returns execution plans of the tail: the last blocks and the head.
    private func tail(
        blocks: Int, with personalization: Personalization?, _ precision: Precision
    ) throws -> ExecutionPlanPool {
        let tail = try model.split(blocks: blocks).tail
        let precision = precision == .int8 ? .float32 : precision
        guard let personalization else {
            let parameters = try Parameters(ParameterLayout(tail))
            parameters.load(from: model.parameters)
            return try ExecutionPlanPool(tail, parameters: parameters, workers: workers, precision: precision)
        }
        let changed =
            personalization.addedLabels.isEmpty
            ? tail : try tail.resizingHead(outputs: model.labels.count + personalization.addedLabels.count)
        return try ExecutionPlanPool(
            changed, parameters: model.parameters(of: changed, with: personalization), workers: workers,
            precision: precision)
    }
}
