public import Foundation
internal import ImprintCore
public import ImprintFormats
public import ImprintImages
internal import ImprintNetwork
internal import Synchronization

/// A trained model, ready to say what is in an image.
///
/// ```swift
/// let classifier = try ImageClassifier(contentsOf: URL(filePath: "logo.imprint"))
/// let best = try classifier.classify(URL(filePath: "photo.jpg"))[0]
/// print(best.label, best.confidence)
/// ```
///
/// It may be used from any number of threads at once. Photos are prepared exactly as in training: the rules are part of
/// the weights file.
public final class ImageClassifier: Sendable {
    /// The model.
    public let weights: WeightsFile
    let workers: Workers
    /// Plans that no thread is using at the moment.
    private let idle = Mutex<[IdlePlan]>([])
    /// What looks for marks, where the model spots some.
    private let spots: SpotPool?

    private struct IdlePlan: @unchecked Sendable {
        let plan: Plan
    }

    /// Makes a classifier of a model.
    /// - Parameters:
    ///   - weights: The model.
    ///   - threads: How many threads one classification may use.
    /// - Throws: `NetworkError` where the network is not a classifier.
    public init(_ weights: WeightsFile, threads: Int = 1) throws {
        self.weights = weights
        workers = Workers(threads)
        spots = weights.spotting.map { SpotPool(weights, $0) }
        if spots == nil { try give(back: makePlan()) }
    }

    /// Reads a weights file and makes a classifier of it.
    /// - Throws: What reading a weights file throws; see `WeightsFile`.
    public convenience init(contentsOf url: URL, threads: Int = 1) throws {
        try self.init(WeightsFile(contentsOf: url), threads: threads)
    }

    /// Trains a classifier from a folder of images, one sub-folder per label; see `Trainer` for progress and more.
    /// - Throws: What reading the folder and training throw, and `CancellationError` where the task is cancelled.
    public static func train(
        on folder: URL, configuration: TrainingConfiguration = TrainingConfiguration()
    ) async throws -> ImageClassifier {
        let run = Trainer(folder: try ImageFolder(at: folder), configuration: configuration).start()
        for try await case .finished(let result) in run { return try ImageClassifier(result.weights) }
        throw CancellationError()
    }

    /// The labels, in the order of the network's outputs.
    public var labels: [String] { weights.labels }

    /// What is in the image in a file, best first; one observation per label.
    /// - Throws: `ImageError` where the file cannot be read as an image, `ImprintError.noConfidence` where the model cannot
    ///   be used.
    public func classify(_ url: URL, cropAndScale: CropAndScale? = nil) throws -> [Observation] {
        if let spots { return try observations(PatchSource.read(url), spots) }
        return observations(try confidences(prepared: try preprocessing(cropAndScale).prepare(url)))
    }

    /// What is in an image in memory (upright, sRGB), best first; one observation per label.
    ///
    /// Of a large JPEG file, `classify(_:cropAndScale:)` of its URL decodes no more than it needs, so that the confidences may differ a
    /// little from those of the same photo decoded whole.
    /// - Throws: `ImprintError.noConfidence` where the model cannot be used.
    public func classify(_ image: Image, cropAndScale: CropAndScale? = nil) throws(ImprintError) -> [Observation] {
        if let spots { return try observations(PatchSource.shrunk(image), spots) }
        return observations(try confidences(prepared: preprocessing(cropAndScale).prepare(image)))
    }

    /// The confidence in every label, in the order of `labels`, for the image in a file.
    func confidences(of url: URL) throws -> [Float] {
        guard let spots else { return try confidences(prepared: weights.preprocessing.prepare(url)) }
        return try spots.spot(PatchSource.read(url)).confidences
    }

    private func observations(_ picture: Image, _ spots: SpotPool) throws(ImprintError) -> [Observation] {
        let sight = try spots.spot(picture)
        return observations(sight.confidences, sight.boxes)
    }

    private func preprocessing(_ cropAndScale: CropAndScale?) -> Preprocessing {
        var preprocessing = weights.preprocessing
        if let cropAndScale { preprocessing.cropAndScale = cropAndScale }
        return preprocessing
    }

    /// The confidence in every label, in the order of `labels`, for an image that has the size of the network's input.
    func confidences(prepared image: Image) throws(ImprintError) -> [Float] {
        let confidences = withPlan { plan in
            weights.preprocessing.normalize(image, into: plan.input)
            plan.forward(count: 1)
            return Array(plan.output)
        }
        // Finite parameters may still overflow on the way.
        guard confidences.allSatisfy(\.isFinite) else { throw .noConfidence(network: weights.network.name) }
        return confidences
    }

    private func observations(_ confidences: [Float], _ boxes: [Observation.Box?]? = nil) -> [Observation] {
        Observation.ranked(
            labels.indices.map { place in
                Observation(
                    label: labels[place], confidence: confidences[place],
                    precisionRecallCurve: weights.training?.precisionRecall[labels[place]] ?? [],
                    threshold: weights.training?.thresholds?[labels[place]], box: boxes?[place])
            })
    }

    private func withPlan<Result>(_ body: (Plan) -> Result) -> Result {
        let plan = idle.withLock { $0.popLast() }?.plan
        // The network compiled in `init`, so only memory can be short.
        guard let plan = plan ?? (try? makePlan()) else {
            preconditionFailure("there is no memory for one more classification at the same time")
        }
        defer { give(back: plan) }
        return body(plan)
    }

    private func makePlan() throws(NetworkError) -> Plan {
        try Plan(
            weights.network, parameters: weights.parameters, options: Plan.Options(batchSize: 1, workers: workers))
    }

    private func give(back plan: Plan) {
        let plan = IdlePlan(plan: plan)
        idle.withLock { $0.append(plan) }
    }
}
