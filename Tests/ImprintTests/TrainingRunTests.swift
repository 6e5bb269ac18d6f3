import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintTraining
import TestSupport
import Testing

/// The events of a run as an asynchronous sequence.
@Suite("Training run", .timeLimit(.minutes(5))) struct TrainingRunTests {
    private func withPictures(_ body: (URL) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            try ImprintTests.withPictures(perLabel: 8) { pictures in
                try FileManager.default.copyItem(at: pictures, to: folder.appending(path: "photos"))
            }
            try await body(folder.appending(path: "photos"))
        }
    }

    @Test("Events come in order and end with the model") func events() async throws {
        try await withPictures { folder in
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
            let weights = try #require(result).weights
            #expect(result?.evaluation?.results.count == 4)
            #expect(try bytes(of: weights) == bytes(of: try trainer.train().weights))
        }
    }

    @Test("Stopping a run ends it with the model of the whole epochs") func stop() async throws {
        try await withPictures { folder in
            let run = try ClassifierTrainer(
                photos: ImageFolder(at: folder), configuration: quickTraining(epochs: 100_000)
            )
            .start()
            var ending: TrainingResult.Ending?
            for try await event in run {
                if case .epoch(let metrics, _) = event, metrics.epoch == 2 { run.stop() }
                if case .finished(let result) = event {
                    ending = result.ending
                    #expect(try #require(result.weights.training).history.count >= 2)
                }
            }
            #expect(ending == .stopped)
        }
    }

    @Test("Cancelling the reader ends the run, with a checkpoint, before the loop is left") func cancel() async throws {
        try await withPictures { folder in
            let place = folder.deletingLastPathComponent().appending(path: "run")
            let trainer = try ClassifierTrainer(
                photos: ImageFolder(at: folder), configuration: quickTraining(epochs: 100_000),
                checkpoints: CheckpointOptions(folder: place, interval: .seconds(1000)))
            let (begun, signal) = AsyncStream<Void>.makeStream()
            let reader = Task {
                var isFinished = false
                for try await event in trainer.start() {
                    if case .epoch = event { signal.yield() }
                    if case .finished = event { isFinished = true }
                }
                return isFinished
            }
            for await _ in begun { break }
            reader.cancel()
            #expect(try await reader.value == false)
            let checkpoint = try Checkpoint(contentsOf: place.appending(path: "checkpoint.safetensors"))
            #expect(!checkpoint.state.progress.history.isEmpty && !checkpoint.state.progress.isFinished)
        }
    }

    @Test("A reader that is far behind misses batches, but no epoch and not the end") func slowReader() async throws {
        try await withPictures { folder in
            let configuration = quickTraining(epochs: 800) { $0.batchSize = 8 }
            let place = folder.deletingLastPathComponent().appending(path: "run")
            let trainer = try ClassifierTrainer(
                photos: ImageFolder(at: folder), configuration: configuration,
                checkpoints: CheckpointOptions(folder: place, interval: .seconds(1000)))
            var events = 0
            var epochs = 0
            var isFinished = false
            for try await event in trainer.start() {
                // The run goes on to its end, when it is saved, while the first event is looked at.
                while !FileManager.default.fileExists(atPath: place.appending(path: "checkpoint.safetensors").path) {
                    try await Task.sleep(for: .milliseconds(20))
                }
                events += 1
                if case .epoch = event { epochs += 1 }
                if case .finished = event { isFinished = true }
            }
            #expect(epochs == 800 && isFinished)
            #expect(events < 3 * 800, "two batches and an epoch, 800 times, would be all")
        }
    }

    @Test("A cancelled reader hears of a checkpoint that could not be written") func cancelledWithoutCheckpoint()
        async throws
    {
        try await withPictures { folder in
            let place = folder.deletingLastPathComponent().appending(path: "run")
            let trainer = try ClassifierTrainer(
                photos: ImageFolder(at: folder), configuration: quickTraining(epochs: 100_000),
                checkpoints: CheckpointOptions(folder: place, interval: .seconds(1000)))
            let (begun, signal) = AsyncStream<Void>.makeStream()
            let reader = Task {
                for try await event in trainer.start() {
                    if case .epoch = event { signal.yield() }
                }
            }
            for await _ in begun { break }
            try FileManager.default.removeItem(at: place)
            reader.cancel()
            await #expect(throws: FileError.self) { try await reader.value }
        }
    }

    @Test("An error of the run is thrown to its reader") func error() async throws {
        try await withPictures { folder in
            let trainer = try ClassifierTrainer(
                photos: ImageFolder(at: folder), configuration: quickTraining { $0.learningRate = 1e20 })
            await #expect(throws: ImprintError.self) {
                for try await _ in trainer.start() {}
            }
        }
    }

    @Test("One call trains; cancelled, it says so") func oneCall() async throws {
        try await withPictures { folder in
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
