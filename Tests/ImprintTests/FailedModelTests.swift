import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintModel
@testable import ImprintTraining

/// Failures of a step, and after the last step, which must not lose the training.
@Suite("Failures of training") struct FailedModelTests {
    /// A failure of a run.
    private enum Failure: Equatable {
        /// The model cannot be made.
        case model
        /// There is too little memory for the second step of an epoch (from 0).
        case step(epoch: Int)
        /// The loss of the second step of an epoch (from 0) is not finite.
        case divergence(epoch: Int)
    }

    /// The objective of a classifier, with a failure.
    private final class FailingObjective: TrainingObjective {
        private let objective: any TrainingObjective
        private let failure: Failure

        init(_ objective: any TrainingObjective, _ failure: Failure) {
            self.objective = objective
            self.failure = failure
        }

        var plan: ExecutionPlan { objective.plan }
        var validationVersion: Int { objective.validationVersion }

        func beginRound(_ round: Int, at step: Int, evaluationParameters: Parameters) throws {
            try objective.beginRound(round, at: step, evaluationParameters: evaluationParameters)
        }

        func trainingStep(round: Int, step: Int) throws -> StepLoss? {
            if step == 1, failure == .step(epoch: round) { throw NetworkError.outOfMemory(bytes: 1) }
            var loss = try objective.trainingStep(round: round, step: step)
            if step == 1, failure == .divergence(epoch: round) { loss?.loss = .nan }
            return loss
        }

        func endRound() { objective.endRound() }

        func validate(_ parameters: Parameters) throws -> ValidationLoss? { try objective.validate(parameters) }
    }

    /// The task of a classifier, with a failure.
    private struct FailingTask: TrainingTask {
        var task: ClassifierTask
        let failure: Failure
        var labels: [String] { task.labels }
        var network: Network { task.network }
        var fingerprint: [String: String] { task.fingerprint }
        var photoSource: (any TrainingSource)? { task.photoSource }
        var versionOneFingerprint: [String: String] { task.versionOneFingerprint }
        var processes: ProcessGroup? { task.processes }
        var hasTimeLimit: Bool { task.hasTimeLimit }

        mutating func readPhotos(
            earlier: Checkpoint.Images?, onEvent: (TrainingEvent) -> Void, checkContinues: () throws -> Void
        ) throws -> RunPhotos {
            try task.readPhotos(earlier: earlier, onEvent: onEvent, checkContinues: checkContinues)
        }

        func makeObjective(
            onScan: @escaping (_ done: Int, _ of: Int) throws -> Void
        ) throws -> (objective: any TrainingObjective, options: TrainingLoop.Options) {
            let (objective, options) = try task.makeObjective(onScan: onScan)
            return (FailingObjective(objective, failure), options)
        }

        func prepare(
            _ loop: TrainingLoop, onEvent: (TrainingEvent) -> Void, shouldStop: () -> Bool
        ) throws -> Bool { try task.prepare(loop, onEvent: onEvent, shouldStop: shouldStop) }

        func sampleCount(ofRound round: Int) -> Int { task.sampleCount(ofRound: round) }

        func describe() -> (
            kind: TrainingKind, parameterCount: Int, trainableParameterCount: Int, roundCount: Int
        ) { task.describe() }

        func makeModel(
            _ loop: TrainingLoop, _ best: Parameters, isValidated: Bool, trainedOn earlier: Checkpoint.Images?
        ) throws -> (model: ModelFile, evaluation: Evaluation?) {
            if failure == .model { throw ImprintError.outOfMemory(byteCount: 1) }
            return try task.makeModel(loop, best, isValidated: isValidated, trainedOn: earlier)
        }
    }

    /// Trains a classifier with a failure.
    private func run(
        _ folder: URL, _ configuration: ClassifierConfiguration, _ failure: Failure, checkpoints: URL,
        onEvent: @escaping (TrainingEvent) -> Void = { _ in }
    ) throws -> TrainingResult {
        let task = try ClassifierTask(photos: ImageFolder(at: folder), configuration: configuration)
        return try TrainingRunner(
            FailingTask(task: task, failure: failure),
            store: CheckpointStore.open(
                CheckpointOptions(folder: checkpoints, interval: .seconds(1000)), processes: nil),
            onEvent: onEvent, shouldStop: { false }
        ).run()
    }

    @Test("An error of a step saves a checkpoint, from which the run resumes bitwise identically", arguments: [0, 1])
    func step(epoch: Int) throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let configuration = try quickTraining(epochs: 2)
                #expect(throws: NetworkError.outOfMemory(bytes: 1)) {
                    try run(folder, configuration, .step(epoch: epoch), checkpoints: scratch)
                }
                let progress = try Checkpoint(contentsOf: scratch.appending(path: CheckpointOptions.fileName)).state
                    .progress
                #expect(progress.round == epoch && progress.batch == 1)
                let resumed = try train(
                    folder, configuration, checkpoints: CheckpointOptions(folder: scratch, resumes: true))
                #expect(try bytes(of: resumed) == bytes(of: train(folder, configuration)))
            }
        }
    }

    @Test("A run that diverges after validated epochs returns the best model and the error") func divergence() throws {
        try withImages(perLabel: 12) { folder in
            try withTemporaryFolder { scratch in
                let configuration = quickTraining(epochs: 4) {
                    $0.validation = .fraction(0.25)
                    $0.learningRate = 0.02
                }
                var saved = 0
                let result = try run(
                    folder, configuration, .divergence(epoch: 2), checkpoints: scratch,
                    onEvent: { if case .checkpoint = $0 { saved += 1 } })
                #expect(result.ending == .diverged && result.isRepeatable)
                #expect(result.divergence == .diverged(epoch: 3, learningRate: 0.02, isDetector: false))
                #expect(result.modelEvaluation?.singleLabel?.results.count == result.evaluation?.results.count)
                #expect(result.evaluation != nil && result.model.training?.history.map(\.epoch) == [1, 2])
                // The state after the divergence is not saved.
                #expect(saved == 0)
                // The model is that of a run that is stopped in the third epoch.
                var epochs = 0
                let expected = try train(
                    folder, configuration, shouldStop: { epochs == 2 },
                    onEvent: { if case .epoch = $0 { epochs += 1 } })
                #expect(try bytes(of: result.model) == bytes(of: expected))
            }
        }
    }

    @Test(
        "A run that diverges before it has a validated epoch throws the error",
        arguments: [(0, 0.25), (2, 0)] as [(Int, Double)])
    func divergenceWithoutModel(epoch: Int, fraction: Double) throws {
        try withImages(perLabel: 12) { folder in
            try withTemporaryFolder { scratch in
                let configuration = quickTraining(epochs: 4) {
                    $0.validation = .fraction(fraction)
                    $0.learningRate = 0.02
                }
                #expect(throws: ImprintError.diverged(epoch: epoch + 1, learningRate: 0.02, isDetector: false)) {
                    try run(folder, configuration, .divergence(epoch: epoch), checkpoints: scratch)
                }
            }
        }
    }

    @Test("A checkpoint is saved before the model is made, and a resumed run makes the model") func checkpoint() throws
    {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let configuration = try quickTraining(epochs: 2)
                #expect(throws: ImprintError.outOfMemory(byteCount: 1)) {
                    try run(folder, configuration, .model, checkpoints: scratch)
                }
                let error = #expect(throws: ImprintError.self) {
                    try train(folder, configuration, checkpoints: CheckpointOptions(folder: scratch))
                }
                #expect(error?.description.contains("a run in epoch 2 of 2") == true, "\(String(describing: error))")
                let resumed = try train(
                    folder, configuration, checkpoints: CheckpointOptions(folder: scratch, resumes: true))
                #expect(try bytes(of: resumed) == bytes(of: train(folder, configuration)))
            }
        }
    }

    @Test("A resumed run releases the tensors of its checkpoint") func released() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let configuration = try quickTraining(epochs: 1)
                var options = CheckpointOptions(folder: scratch)
                _ = try train(folder, configuration, checkpoints: options)
                options.resumes = true
                let store = try #require(try CheckpointStore.open(options, processes: nil))
                #expect(store.resumed != nil)
                let task = try ClassifierTask(photos: ImageFolder(at: folder), configuration: configuration)
                _ = try TrainingRunner(task, store: store, onEvent: { _ in }, shouldStop: { false }).run()
                #expect(store.resumed == nil)
            }
        }
    }

    @Test("Without memory for replay features, the model has none, and the reason is known") func rehearsal() throws {
        let network = try Network(
            name: "maps", input: TensorShape(height: 96, width: 96, channels: 3), nodes: nodesBeyondMemory(channels: 59)
        )
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["logo", "other"],
            preprocessing: .logoDetector,
            detector: DetectorHead(levels: [6000], stride: 16, span: 44, logos: [.init(label: "logo")]))
        let (same, failure) = try model.addingRehearsal(
            [TrainingPhoto(identifier: "photo", labels: [0], content: .decoded(RasterImage(width: 60, height: 60)))],
            count: 1, seed: 0, workers: Workers(1))
        #expect(same.rehearsal == nil)
        guard case .outOfMemory(let byteCount) = failure else {
            Issue.record("unexpected: \(String(describing: failure))")
            return
        }
        #expect(byteCount > 300 * 8_000_000_000)
    }

    @Test("Replay features of photos of several shapes keep the order of the photos, for any number of threads")
    func shapes() throws {
        let model = try detectorModel(logos: ["logo"])
        let sizes = [(40, 60), (60, 40), (50, 50), (60, 40), (40, 60)]
        let photos = sizes.enumerated().map { index, size in
            var random = RandomStream(seed: 3, "photo", index)
            let image = RasterImage(
                width: size.0, height: size.1, channels: 3,
                samples: (0..<(size.0 * size.1 * 3)).map { _ in UInt8(random.index(below: 256)) })
            return TrainingPhoto(identifier: "\(index)", labels: [index % 2], content: .decoded(image))
        }
        let expected = try photos.map { try model.headFeatures(of: [$0], workers: Workers(1))[0].features }
        for threads in 1...2 {
            let found = try model.headFeatures(of: photos, workers: Workers(threads))
            #expect(found.map(\.label) == photos.map(\.label) && found.map(\.features) == expected)
        }
    }
}
