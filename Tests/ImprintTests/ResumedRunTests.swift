import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintTraining

/// Tests of runs that resume with more epochs, different images or different settings.
@Suite("Resumed runs") struct ResumedRunTests {
    @Test("With a constant learning rate, resuming with more epochs equals one longer run") func extended() throws {
        try withImages(perLabel: 8) { folder in
            var configuration = quickTraining(epochs: 2) { $0.schedule = .constant }
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                _ = try train(folder, configuration, checkpoints: options)
                configuration.epochs = 5
                var resumed: TrainingStart.Resumption?
                let extended = try train(
                    folder, configuration, checkpoints: options,
                    onEvent: { if case .started(let start) = $0 { resumed = start.resumed } })
                #expect(resumed?.history.count == 2)
                #expect(resumed?.hasSameImages == true)
                #expect(try bytes(of: extended) == bytes(of: train(folder, configuration)))
            }
        }
    }

    @Test("New images join the training set, but not near-duplicates of validation images")
    func addedImages() throws {
        try withImages(perLabel: 8) { folder in
            let configuration = quickTraining(epochs: 2) { $0.validation = .fraction(0.25) }
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                _ = try train(folder, configuration, checkpoints: options)
                let before = try Checkpoint(contentsOf: scratch.appending(path: "checkpoint.safetensors")).images
                // Copies one training image and one validation image.
                let (trained, heldOut) = (try #require(before.training.first), try #require(before.validation.first))
                for (path, name) in [(trained, "new-a.png"), (heldOut, "new-b.png")] {
                    try FileManager.default.copyItem(
                        at: folder.appending(path: path), to: folder.appending(path: "left/\(name)"))
                }
                var longer = configuration
                longer.epochs = 4
                var start: TrainingStart?
                let model = try train(
                    folder, longer, checkpoints: options,
                    onEvent: { if case .started(let event) = $0 { start = event } })
                #expect(start?.resumed?.hasSameImages == false)
                #expect(start?.trainingImages == 13 && start?.validationImages == 5)
                let after = try Checkpoint(contentsOf: scratch.appending(path: "checkpoint.safetensors")).images
                #expect(Set(after.training) == Set(before.training + ["left/new-a.png"]))
                #expect(Set(after.validation) == Set(before.validation + ["left/new-b.png"]))
                // Losses on different images are not comparable, so the best epoch is one of the new ones.
                #expect(try #require(model.training?.keptEpoch) > 2)
                #expect(model.training?.history.count == 4)
                #expect(start?.incomparableEpochs == 2)
                // Without another change, the first epochs stay incomparable.
                longer.epochs = 5
                _ = try train(
                    folder, longer, checkpoints: options,
                    onEvent: { if case .started(let event) = $0 { start = event } })
                #expect(start?.resumed?.hasSameImages == true && start?.incomparableEpochs == 2)
            }
        }
    }

    @Test("If the images changed, the epoch restarts, and the earlier model is kept until a new epoch is complete")
    func changedImages() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let configuration = quickTraining(epochs: 6) {
                    $0.validation = .fraction(0.25)
                    $0.batchSize = 2
                    $0.learningRate = 0.5
                    $0.schedule = .constant
                }
                let options = CheckpointOptions(folder: scratch, resumes: true)
                var batches = 0
                // Six batches per epoch: stops within the fifth epoch.
                let before = try train(
                    folder, configuration, checkpoints: options, shouldStop: { batches == 27 },
                    onEvent: { if case .batch = $0 { batches += 1 } })
                try FileManager.default.copyItem(
                    at: folder.appending(path: "left/0.png"), to: folder.appending(path: "left/new.png"))
                // Stopped again before an epoch is complete, the run returns the model of the earlier epoch.
                batches = 0
                let still = try train(
                    folder, configuration, checkpoints: options, shouldStop: { batches == 2 },
                    onEvent: { if case .batch = $0 { batches += 1 } })
                #expect(still.training?.keptEpoch == before.training?.keptEpoch)
                #expect(still.training?.dataDigest == before.training?.dataDigest)
                #expect(still.parameters["conv1.weight"] == before.parameters["conv1.weight"])
                var first: TrainingBatch?
                let after = try train(
                    folder, configuration, checkpoints: options,
                    onEvent: { if case .batch(let batch) = $0, first == nil { first = batch } })
                #expect(first?.epoch == 5 && first?.imagesSeen == 6)
                #expect(try #require(after.training?.keptEpoch) >= 5)
            }
        }
    }

    @Test(
        "The model of an earlier epoch has the record of its photos, however often the run is resumed with other ones")
    func recordOfEarlierModel() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let configuration = quickTraining(epochs: 6) {
                    $0.validation = .fraction(0.25)
                    $0.batchSize = 2
                    $0.classWeights = .automatic
                }
                let options = CheckpointOptions(folder: scratch, resumes: true)
                func record(after steps: Int) throws -> TrainingRecord {
                    var batches = 0
                    let model = try train(
                        folder, configuration, checkpoints: options, shouldStop: { batches == steps },
                        onEvent: { if case .batch = $0 { batches += 1 } })
                    return try #require(model.training)
                }
                // Six batches per epoch: stops within the third epoch.
                let before = try record(after: 15)
                let checkpoint = try Checkpoint(contentsOf: scratch.appending(path: CheckpointOptions.fileName))
                let trained = try #require(checkpoint.images.training.first)
                for name in ["new.png", nil, "newer.png"] {
                    if let name {
                        try FileManager.default.copyItem(
                            at: folder.appending(path: trained), to: folder.appending(path: "left/\(name)"))
                    }
                    let record = try record(after: 2)
                    #expect(record.history == before.history && record.dataDigest == before.dataDigest)
                    #expect(
                        record.trainingImages == before.trainingImages && record.classWeights == before.classWeights)
                }
                let after = try record(after: .max)
                #expect(after.dataDigest == (try ImageFolder(at: folder).digest))
                #expect(after.classWeights != before.classWeights)
                #expect(after.trainingImages["left"] == before.trainingImages["left"].map { $0 + 2 })
            }
        }
    }

    @Test(
        "A run reports how many photos are new, missing and edited; an older checkpoint does not know the edited ones",
        arguments: [false, true])
    func change(isOlder: Bool) throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                let file = scratch.appending(path: CheckpointOptions.fileName)
                _ = try train(folder, quickTraining(epochs: 1), checkpoints: options)
                if isOlder {
                    let checkpoint = try Checkpoint(contentsOf: file)
                    var images = checkpoint.images
                    #expect(images.identities?.count == 16 * 16)
                    images.identities = nil
                    try Checkpoint(
                        network: checkpoint.network, labels: checkpoint.labels, settings: checkpoint.settings,
                        images: images, state: checkpoint.state
                    ).write(to: file)
                }
                try FileManager.default.copyItem(
                    at: folder.appending(path: "left/0.png"), to: folder.appending(path: "left/new.png"))
                for name in ["left/1.png", "right/1.png"] {
                    try FileManager.default.removeItem(at: folder.appending(path: name))
                }
                let edited = RasterImage(width: 40, height: 30, filledWith: 90)
                try ImageFile.write(edited, to: folder.appending(path: "right/0.png"))
                var resumed: TrainingStart.Resumption?
                _ = try train(
                    folder, quickTraining(epochs: 2), checkpoints: options,
                    onEvent: { if case .started(let start) = $0 { resumed = start.resumed } })
                #expect(resumed?.hasSameImages == false && resumed?.newImages == 1 && resumed?.missingImages == 2)
                #expect(resumed?.editedImages == (isOlder ? 0 : 1))
            }
        }
    }

    @Test("The time limit includes the time before a run was resumed") func time() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                func result(epochs: Int, limit: Duration) throws -> TrainingResult {
                    try ClassifierTrainer(
                        photos: ImageFolder(at: folder),
                        configuration: quickTraining(epochs: epochs) { $0.timeLimit = limit },
                        checkpoints: CheckpointOptions(folder: scratch, resumes: true)
                    ).train()
                }
                let first = try result(epochs: 3, limit: .nanoseconds(1))
                #expect(first.ending == .timeLimit && first.model.training?.history.count == 1)
                // The checkpoint of a run that has taken 1000 s.
                let file = scratch.appending(path: CheckpointOptions.fileName)
                let checkpoint = try Checkpoint(contentsOf: file)
                var state = checkpoint.state
                state.progress.seconds = 1000
                try Checkpoint(
                    network: checkpoint.network, labels: checkpoint.labels, settings: checkpoint.settings,
                    images: checkpoint.images, state: state
                ).write(to: file)
                let again = try result(epochs: 3, limit: .seconds(999))
                #expect(again.ending == .timeLimit && again.model.training?.history.count == 1)
                #expect(again.seconds >= 1000 && again.seconds < 100_000)
                let longer = try result(epochs: 3, limit: .seconds(1_000_000))
                #expect(longer.ending == .completed && longer.model.training?.history.count == 3)
                #expect(longer.seconds > 1000)
            }
        }
    }

    @Test("The time limit includes the time to read photos, in each part of a run") func readingTime() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                // Reading the photos takes 1000 s.
                func result(limit: Duration) throws -> TrainingResult {
                    let clock = ManualClock()
                    let end = clock.now.advanced(by: .seconds(1000))
                    return try TrainingRunner(
                        ClassifierTask(
                            photos: ImageFolder(at: folder),
                            configuration: quickTraining(epochs: 3) { $0.timeLimit = limit }),
                        store: CheckpointStore.open(CheckpointOptions(folder: scratch, resumes: true), processes: nil),
                        onEvent: { if case .reading = $0 { clock.advance(to: end) } }, shouldStop: { false },
                        now: { clock.now }
                    ).run()
                }
                let first = try result(limit: .seconds(1000))
                #expect(first.ending == .timeLimit && first.model.training?.history.count == 1)
                #expect(first.seconds >= 1000)
                let again = try result(limit: .seconds(2000))
                #expect(again.ending == .timeLimit && again.model.training?.history.count == 1)
                #expect(again.seconds >= 2000)
                let longer = try result(limit: .seconds(1_000_000))
                #expect(longer.ending == .completed && longer.model.training?.history.count == 3)
                #expect(longer.seconds >= 3000)
            }
        }
    }

    @Test("A result is repeatable only if a new run with the same images and settings returns the same model")
    func repeatable() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                func result(epochs: Int, stops: Bool = false) throws -> TrainingResult {
                    var epochsDone = 0
                    return try ClassifierTrainer(
                        photos: ImageFolder(at: folder), configuration: quickTraining(epochs: epochs),
                        checkpoints: CheckpointOptions(folder: scratch, resumes: true)
                    ).train(
                        onEvent: { if case .epoch = $0 { epochsDone += 1 } }, shouldStop: { stops && epochsDone > 0 })
                }
                let stopped = try result(epochs: 2, stops: true)
                #expect(stopped.ending == .stopped && !stopped.isRepeatable)
                let whole = try result(epochs: 2)
                #expect(whole.ending == .completed && whole.isRepeatable)
                #expect(try !result(epochs: 3).isRepeatable)
                #expect(try !result(epochs: 3).isRepeatable)
            }
        }
    }
}
