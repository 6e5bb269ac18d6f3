import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintModel
@testable import ImprintTraining

/// Failures after the last training step, which must not lose the training.
@Suite("Failures after training") struct FailedModelTests {
    /// The task of a classifier whose model cannot be made.
    private struct FailingTask: TrainingTask {
        var task: ClassifierTask
        var labels: [String] { task.labels }
        var network: Network { task.network }
        var fingerprint: [String: String] { task.fingerprint }
        var versionOneFingerprint: [String: String] { task.versionOneFingerprint }
        var processes: ProcessGroup? { task.processes }
        var hasTimeLimit: Bool { task.hasTimeLimit }

        mutating func readPhotos(
            earlier: Checkpoint.Images?, onEvent: (TrainingEvent) -> Void, checkContinues: () throws -> Void
        ) throws -> RunPhotos {
            try task.readPhotos(earlier: earlier, onEvent: onEvent, checkContinues: checkContinues)
        }

        func makeObjective() throws -> (objective: any TrainingObjective, options: TrainingLoop.Options) {
            try task.makeObjective()
        }

        func prepare(
            _ loop: TrainingLoop, onEvent: (TrainingEvent) -> Void, shouldStop: () -> Bool
        ) throws -> Bool { try task.prepare(loop, onEvent: onEvent, shouldStop: shouldStop) }

        func sampleCount(ofRound round: Int) -> Int { task.sampleCount(ofRound: round) }

        func describe() -> (
            recipe: TrainingRecipe, parameterCount: Int, trainableParameterCount: Int, roundCount: Int
        ) { task.describe() }

        func makeModel(
            _ loop: TrainingLoop, _ best: Parameters, isValidated: Bool
        ) throws -> (model: ModelFile, evaluation: Evaluation?) { throw ImprintError.outOfMemory(byteCount: 1) }
    }

    @Test("A checkpoint is saved before the model is made, and a resumed run makes the model") func checkpoint() throws
    {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let configuration = try quickTraining(epochs: 2)
                let task = FailingTask(
                    task: try ClassifierTask(photos: ImageFolder(at: folder), configuration: configuration))
                #expect(throws: ImprintError.outOfMemory(byteCount: 1)) {
                    try TrainingRunner(
                        task,
                        store: CheckpointStore(
                            CheckpointOptions(folder: scratch, interval: .seconds(1000)), processes: nil),
                        onEvent: { _ in }, shouldStop: { false }
                    ).run()
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
                let store = try #require(try CheckpointStore(options, processes: nil))
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
