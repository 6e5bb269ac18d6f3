import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

/// Tests of the asynchronous sequence of training events.
@Suite("Training run", .timeLimit(.minutes(10))) struct TrainingRunTests {
    private func withImages(_ body: (URL) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            try ImprintTests.withImages(perLabel: 8) { images in
                try FileManager.default.copyItem(at: images, to: folder.appending(path: "photos"))
            }
            try await body(folder.appending(path: "photos"))
        }
    }

    @Test("Events arrive in order, and the last one has the model") func events() async throws {
        try await withImages { folder in
            let trainer = try ClassifierTrainer(
                photos: ImageFolder(at: folder),
                configuration: quickTraining(epochs: 2) { $0.validation = .fraction(0.25) },
                checkpoints: CheckpointOptions(folder: folder.deletingLastPathComponent().appending(path: "run")))
            var kinds: [String] = []
            var result: TrainingResult?
            for try await event in trainer.start() {
                let kind = "\(event)".prefix { $0.isLetter }
                if kinds.last != String(kind) { kinds.append(String(kind)) }
                if case .finished(let finished) = event { result = finished }
            }
            #expect(
                kinds == [
                    "comparing", "reading", "started", "batch", "epoch", "batch", "epoch", "checkpoint", "finished",
                ])
            let model = try #require(result).model
            #expect(result?.evaluation?.results.count == 4)
            #expect(try bytes(of: model) == bytes(of: try trainer.train().model))
        }
    }

    @Test("A stopped run returns the model of the complete epochs") func stop() async throws {
        try await withImages { folder in
            let run = try ClassifierTrainer(
                photos: ImageFolder(at: folder), configuration: quickTraining(epochs: 100_000)
            )
            .start()
            var ending: TrainingResult.Ending?
            for try await event in run {
                if case .epoch(let metrics, _) = event, metrics.epoch == 2 { run.stop() }
                if case .finished(let result) = event {
                    ending = result.ending
                    #expect(try #require(result.model.training).history.count >= 2)
                }
            }
            #expect(ending == .stopped)
        }
    }

    @Test("Cancelling the reader's task writes a checkpoint before the reader's loop ends")
    func cancel() async throws {
        try await withImages { folder in
            let runFolder = folder.deletingLastPathComponent().appending(path: "run")
            let trainer = try ClassifierTrainer(
                photos: ImageFolder(at: folder), configuration: quickTraining(epochs: 100_000),
                checkpoints: CheckpointOptions(folder: runFolder, interval: .seconds(1000)))
            let (firstEpoch, signal) = AsyncStream<Void>.makeStream()
            let reader = Task {
                var isFinished = false
                for try await event in trainer.start() {
                    if case .epoch = event { signal.yield() }
                    if case .finished = event { isFinished = true }
                }
                return isFinished
            }
            for await _ in firstEpoch { break }
            reader.cancel()
            #expect(try await reader.value == false)
            let checkpoint = try Checkpoint(contentsOf: runFolder.appending(path: "checkpoint.safetensors"))
            #expect(!checkpoint.state.progress.history.isEmpty && !checkpoint.state.progress.isFinished)
        }
    }

    @Test("A slow reader misses batch events, but receives all epoch events and the last event")
    func slowReader() async throws {
        try await withImages { folder in
            let configuration = quickTraining(epochs: 800) { $0.batchSize = 8 }
            let runFolder = folder.deletingLastPathComponent().appending(path: "run")
            let checkpoint = runFolder.appending(path: "checkpoint.safetensors")
            let trainer = try ClassifierTrainer(
                photos: ImageFolder(at: folder), configuration: configuration,
                checkpoints: CheckpointOptions(folder: runFolder, interval: .seconds(1000)))
            var events = 0
            var epochs = 0
            var isFinished = false
            for try await event in trainer.start() {
                // Holds the first event until the run ends and writes its checkpoint.
                while !FileManager.default.fileExists(atPath: checkpoint.path) {
                    try await Task.sleep(for: .milliseconds(20))
                }
                events += 1
                if case .epoch = event { epochs += 1 }
                if case .finished = event { isFinished = true }
            }
            #expect(epochs == 800 && isFinished)
            #expect(events < 3 * 800, "all events would be two batches and an epoch, 800 times")
        }
    }

    @Test("A cancelled reader receives the error if the checkpoint cannot be written")
    func cancelledWithoutCheckpoint() async throws {
        try await withImages { folder in
            let runFolder = folder.deletingLastPathComponent().appending(path: "run")
            let trainer = try ClassifierTrainer(
                photos: ImageFolder(at: folder), configuration: quickTraining(epochs: 100_000),
                checkpoints: CheckpointOptions(folder: runFolder, interval: .seconds(1000)))
            let (firstEpoch, signal) = AsyncStream<Void>.makeStream()
            let reader = Task {
                for try await event in trainer.start() {
                    if case .epoch = event { signal.yield() }
                }
            }
            for await _ in firstEpoch { break }
            try FileManager.default.removeItem(at: runFolder)
            reader.cancel()
            await #expect(throws: FileError.self) { try await reader.value }
        }
    }

    /// A trainer that only sends events.
    private struct CustomTrainer: Trainer {
        let model: ModelFile
        let epochs: Int

        func start() -> TrainingRun {
            TrainingRun { onEvent, shouldStop in
                onEvent(
                    .started(
                        TrainingStart(
                            kind: .fromScratch, labels: model.labels, trainingImages: 8, network: model.network.name,
                            parameterCount: 1, trainableParameterCount: 1, epochs: epochs)))
                for epoch in 1...epochs {
                    if shouldStop() { return TrainingResult(model: model, ending: .stopped) }
                    Thread.sleep(forTimeInterval: 0.001)
                    onEvent(
                        .batch(
                            TrainingBatch(
                                epoch: epoch, epochs: epochs, imagesSeen: 8, imagesPerEpoch: 8,
                                imagesSeenInRun: 8 * epoch, imagesPerRun: 8 * epochs, loss: 1, accuracy: 0.5)))
                    let metrics = EpochMetrics(epoch: epoch, loss: 1, accuracy: 0.5, learningRate: 0.1)
                    onEvent(.epoch(metrics, seconds: 0.001))
                }
                return TrainingResult(model: model, seconds: 0.001 * Double(epochs))
            }
        }
    }

    @Test("The events of a custom trainer arrive in order, and the last one has its result") func custom() async throws
    {
        let trainer = CustomTrainer(model: try smallModel().model, epochs: 2)
        var kinds: [Substring] = []
        var result: TrainingResult?
        for try await event in trainer.start() {
            kinds.append("\(event)".prefix { $0.isLetter })
            if case .finished(let finished) = event { result = finished }
        }
        #expect(kinds == ["started", "batch", "epoch", "batch", "epoch", "finished"])
        #expect(result?.ending == .completed && result?.model.labels == ["a", "b", "c"])
    }

    @Test("A custom trainer can be stopped") func stopsCustom() async throws {
        let run = CustomTrainer(model: try smallModel().model, epochs: 1_000_000).start()
        var ending: TrainingResult.Ending?
        for try await event in run {
            if case .epoch(let metrics, _) = event, metrics.epoch == 2 { run.stop() }
            if case .finished(let result) = event { ending = result.ending }
        }
        #expect(ending == .stopped)
    }

    @Test("The reader receives the error of a custom trainer") func customError() async throws {
        let error = ImprintError.stoppedTooEarly(checkpoint: nil)
        await #expect(throws: error) {
            for try await _ in TrainingRun({ _, _ in throw error }) {}
        }
    }

    @Test("The reader receives an error of the run") func error() async throws {
        try await withImages { folder in
            let trainer = try ClassifierTrainer(
                photos: ImageFolder(at: folder), configuration: quickTraining { $0.learningRate = 1e20 })
            await #expect(throws: ImprintError.self) {
                for try await _ in trainer.start() {}
            }
        }
    }

    @Test("ImageClassifier.train(on:) trains in one call, and throws CancellationError if cancelled")
    func oneCall() async throws {
        try await withImages { folder in
            let classifier = try await ImageClassifier.train(on: folder, configuration: quickTraining(epochs: 1))
            #expect(classifier.labels == ["left", "right"])
            let task = Task {
                try await ImageClassifier.train(on: folder, configuration: quickTraining(epochs: 100_000))
            }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }
}
