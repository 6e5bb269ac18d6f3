import Foundation
import Imprint
import ImprintFormats
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

/// A run that ends in between and goes on from its checkpoint.
@Suite("Checkpoints") struct CheckpointTests {
    /// What a run may depend on besides its parameters.
    enum Variant: String, CaseIterable {
        case plain, varied, averaged, searched, unkept, dropout, clipped
    }

    private static func configuration(_ variant: Variant) throws -> TrainingConfiguration {
        try quickTraining(epochs: 3) {
            $0.validation = .split(.fraction(0.25))
            $0.batchSize = 5
            switch variant {
            case .plain: $0.threads = 2
            case .varied: $0.augmentation = Augmentation([.flipVertical, .rotate, .noise])
            case .averaged:
                $0.averageDecay = 0.9
                $0.labelWeights = .automatic
            case .searched: $0.learningRate = nil
            case .unkept:
                $0.memoryLimit = 0
                $0.schedule = .step(every: 3, factor: 0.5)
            case .dropout: $0.start = .base(try baseWithDropout(), trains: .all)
            case .clipped: $0.gradientClipping = 0.5
            }
        }
    }

    private static func baseWithDropout() throws -> WeightsFile {
        var builder = NetworkBuilder(name: "drops", input: Shape(height: 16, width: 16, channels: 3))
        builder.add(Convolution(outputChannels: 8, kernelSize: 3, stride: 2))
        builder.add(ReLU())
        builder.add(Dropout(rate: 0.5))
        builder.add(GlobalAveragePool())
        builder.add(Dense(outputChannels: 2), named: "head")
        builder.add(Softmax())
        let network = try builder.network()
        return WeightsFile(
            network: network, parameters: try Parameters(network, seed: 3), labels: ["left", "right"],
            preprocessing: Preprocessing(width: 16, height: 16, channels: 3))
    }

    /// Trains until the run has ended, asking it to stop after every `steps` steps.
    private func trainInParts(
        _ folder: URL, _ configuration: TrainingConfiguration, _ checkpoints: URL, every steps: Int
    ) throws -> (weights: WeightsFile, parts: Int) {
        let options = CheckpointOptions(folder: checkpoints, interval: .seconds(1000), resumes: true)
        for part in 1...1000 {
            var done = 0
            do {
                let weights = try train(
                    folder, configuration, checkpoints: options, shouldStop: { done >= steps },
                    onEvent: { if case .batch = $0 { done += 1 } })
                if done < steps { return (weights, part) }
            } catch ImprintError.stoppedTooEarly {}
        }
        throw CancellationError()
    }

    @Test(
        "A run that is stopped again and again gives the file of one that is not, byte for byte",
        arguments: Variant.allCases, [1, 2, 5])
    func sameBits(variant: Variant, steps: Int) throws {
        try withPictures(perLabel: 9) { folder in
            let configuration = try Self.configuration(variant)
            let expected = try bytes(of: train(folder, configuration))
            try withTemporaryFolder { place in
                let (weights, parts) = try trainInParts(folder, configuration, place, every: steps)
                // Three epochs of three steps.
                #expect(parts == 9 / steps + 1)
                #expect(try bytes(of: weights) == expected)
                // A run that has ended gives its model again, without training.
                var batches = 0
                let again = try train(
                    folder, configuration, checkpoints: CheckpointOptions(folder: place, resumes: true),
                    onEvent: { if case .batch = $0 { batches += 1 } })
                #expect(batches == 0)
                #expect(try bytes(of: again) == expected)
            }
        }
    }

    @Test("More epochs go on from the last; with a constant rate they give what a longer run gives") func extended()
        throws
    {
        try withPictures(perLabel: 8) { folder in
            var configuration = quickTraining(epochs: 2) { $0.schedule = .constant }
            try withTemporaryFolder { place in
                let options = CheckpointOptions(folder: place, resumes: true)
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

    @Test("Images that are added are trained on, but not those that show what an image kept back shows")
    func addedImages() throws {
        try withPictures(perLabel: 8) { folder in
            let configuration = quickTraining(epochs: 2) { $0.validation = .split(.fraction(0.25)) }
            try withTemporaryFolder { place in
                let options = CheckpointOptions(folder: place, resumes: true)
                _ = try train(folder, configuration, checkpoints: options)
                let before = try Checkpoint(contentsOf: place.appending(path: "checkpoint.safetensors")).images
                // One copy of an image from either side.
                let (known, keptBack) = (try #require(before.training.first), try #require(before.validation.first))
                for (path, name) in [(known, "new-a.png"), (keptBack, "new-b.png")] {
                    try FileManager.default.copyItem(
                        at: folder.appending(path: path), to: folder.appending(path: "left/\(name)"))
                }
                var longer = configuration
                longer.epochs = 4
                var start: TrainingStart?
                let weights = try train(
                    folder, longer, checkpoints: options,
                    onEvent: { if case .started(let event) = $0 { start = event } })
                #expect(start?.resumed?.hasSameImages == false)
                #expect(start?.trainingImages == 13 && start?.validationImages == 5)
                let after = try Checkpoint(contentsOf: place.appending(path: "checkpoint.safetensors")).images
                #expect(Set(after.training) == Set(before.training + ["left/new-a.png"]))
                #expect(Set(after.validation) == Set(before.validation + ["left/new-b.png"]))
                // Losses on other images do not compare: the best is one of those after.
                #expect(try #require(weights.training?.keptEpoch) > 2)
                #expect(weights.training?.history.count == 4)
            }
        }
    }

    @Test("With other images the epoch begins anew, and the model of before is kept until a new epoch is done")
    func changedImages()
        throws
    {
        try withPictures(perLabel: 8) { folder in
            try withTemporaryFolder { place in
                let configuration = quickTraining(epochs: 6) {
                    $0.validation = .split(.fraction(0.25))
                    $0.batchSize = 2
                    $0.learningRate = 0.5
                    $0.schedule = .constant
                }
                let options = CheckpointOptions(folder: place, resumes: true)
                var batches = 0
                // Six batches an epoch: stops within the fifth.
                let before = try train(
                    folder, configuration, checkpoints: options, shouldStop: { batches == 27 },
                    onEvent: { if case .batch = $0 { batches += 1 } })
                try FileManager.default.copyItem(
                    at: folder.appending(path: "left/0.png"), to: folder.appending(path: "left/new.png"))
                // Stopped again before an epoch is done, the run still gives the epoch of before.
                batches = 0
                let still = try train(
                    folder, configuration, checkpoints: options, shouldStop: { batches == 2 },
                    onEvent: { if case .batch = $0 { batches += 1 } })
                #expect(still.training?.keptEpoch == before.training?.keptEpoch)
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

    @Test("The time of all parts counts") func time() throws {
        try withPictures(perLabel: 8) { folder in
            try withTemporaryFolder { place in
                func result(limit: Duration?) throws -> TrainingResult {
                    try Trainer(
                        folder: ImageFolder(at: folder),
                        configuration: quickTraining(epochs: limit == nil ? 3 : 100_000) { $0.timeLimit = limit },
                        checkpoints: CheckpointOptions(folder: place, resumes: true)
                    ).train()
                }
                let first = try result(limit: .seconds(1))
                #expect(first.ending == .timeLimit && first.seconds >= 0.8)
                let again = try result(limit: .seconds(1))
                #expect(again.ending == .timeLimit && again.seconds > first.seconds)
                #expect(again.weights.training?.history.count == first.weights.training?.history.count)
                let progress = try Checkpoint(contentsOf: place.appending(path: CheckpointOptions.fileName)).progress
                #expect(progress.secondsInEpochs > 0.3 && progress.secondsInEpochs < progress.seconds)
            }
        }
    }

    @Test("A checkpoint of other settings is refused, and says which") func otherSettings() throws {
        try withPictures(["left", "right", "up"], perLabel: 4) { folder in
            try withTemporaryFolder { place in
                let options = CheckpointOptions(folder: place, resumes: true)
                let file = place.appending(path: "checkpoint.safetensors").path
                _ = try train(folder, quickTraining(epochs: 1), checkpoints: options)
                func expectRefusal(_ setting: String, _ change: (inout TrainingConfiguration) -> Void) {
                    let error = #expect(throws: ImprintError.self) {
                        try train(folder, quickTraining(epochs: 2, change: change), checkpoints: options)
                    }
                    guard case .checkpointMismatch(file, setting, _, _) = error else {
                        Issue.record("\(setting): \(String(describing: error))")
                        return
                    }
                }
                expectRefusal("seed") { $0.seed = 1 }
                expectRefusal("batch size") { $0.batchSize = 3 }
                expectRefusal("learning rate") { $0.learningRate = 0.5 }
                expectRefusal("learning rate") { $0.learningRate = nil }
                expectRefusal("augmentation") { $0.augmentation = Augmentation([.blur]) }
                expectRefusal("average") { $0.averageDecay = 0.9 }
                expectRefusal("class weights") { $0.labelWeights = .automatic }
                expectRefusal("input size") { $0.inputSize = 32 }
                expectRefusal("network") { $0.start = .network("logonet", width: 0.25) }
                expectRefusal("validation") { $0.validation = .split(.fraction(0.5)) }
                try FileManager.default.removeItem(at: folder.appending(path: "up"))
                expectRefusal("labels") { _ in }
                // What does not make the run another one may change.
                _ = try withPictures(["left", "right", "up"], perLabel: 4) { same in
                    try train(
                        same,
                        quickTraining(epochs: 2) {
                            $0.threads = 2
                            $0.memoryLimit = 0
                            $0.patience = 5
                        }, checkpoints: options)
                }
            }
        }
    }

    @Test("A new run never takes the place of one that has not ended, but of one that has") func notLost() throws {
        try withPictures(perLabel: 8) { folder in
            try withTemporaryFolder { place in
                let options = CheckpointOptions(folder: place)
                let file = place.appending(path: "checkpoint.safetensors")
                #expect(throws: ImprintError.stoppedTooEarly(checkpoint: file.path)) {
                    var begins = false
                    try train(
                        folder, quickTraining(epochs: 3), checkpoints: options, shouldStop: { begins },
                        onEvent: { if case .started = $0 { begins = true } })
                }
                let before = try Data(contentsOf: file)
                #expect(throws: ImprintError.unfinishedCheckpoint(file: file.path, epoch: 1, of: 3)) {
                    try train(folder, quickTraining(epochs: 3), checkpoints: options)
                }
                #expect(try Data(contentsOf: file) == before)
                _ = try train(
                    folder, quickTraining(epochs: 3), checkpoints: CheckpointOptions(folder: place, resumes: true))
                let weights = try train(folder, quickTraining(epochs: 1) { $0.seed = 9 }, checkpoints: options)
                #expect(weights.training?.history.count == 1)
            }
        }
    }

    @Test("A checkpoint that is cut short, changed or something else is one error that names it") func damaged() throws
    {
        try withPictures(perLabel: 4) { folder in
            try withTemporaryFolder { place in
                let options = CheckpointOptions(folder: place, resumes: true)
                let file = place.appending(path: "checkpoint.safetensors")
                let weights = try train(folder, quickTraining(epochs: 1), checkpoints: options)
                let whole = try Data(contentsOf: file)
                var changed = whole
                changed[whole.count - 5] ^= 0x40
                var impossible = Data(
                    String(decoding: whole, as: UTF8.self).replacing("\\\"batch\\\":0", with: "\\\"batch\\\":-").utf8)
                impossible.replaceSubrange(0..<8, with: whole[0..<8])
                // One step more than were done: the numbers are whole, the text is not what was written.
                let passes = try #require(whole.range(of: Data("\\\"passes\\\":1".utf8)))
                var other = whole
                other[passes.upperBound - 1] = UInt8(ascii: "2")
                var cases = [
                    Data(), Data("no file".utf8), whole.prefix(7), whole.prefix(100), whole.prefix(whole.count - 4),
                ]
                cases += [changed, impossible, other]
                for data in cases {
                    try data.write(to: file)
                    let error = #expect(throws: ImprintError.self) {
                        try train(folder, quickTraining(epochs: 2), checkpoints: options)
                    }
                    guard case .unusableCheckpoint(let reason) = error else {
                        Issue.record("\(data.count) bytes: \(String(describing: error))")
                        continue
                    }
                    #expect(reason.contains(file.path))
                    #expect(try Data(contentsOf: file) == data)
                }
                try weights.write(to: file)
                #expect(throws: ImprintError.self) {
                    try train(folder, quickTraining(epochs: 2), checkpoints: options)
                }
            }
        }
    }

    @Test("A folder serves one run at a time") func lock() throws {
        try withPictures(perLabel: 8) { folder in
            try withTemporaryFolder { place in
                let options = CheckpointOptions(folder: place, interval: .zero)
                var error: (any Error)?
                let weights = try train(
                    folder, quickTraining(epochs: 2), checkpoints: options,
                    onEvent: { event in
                        guard case .epoch = event, error == nil else { return }
                        error = #expect(throws: ImprintError.self) {
                            try train(folder, quickTraining(epochs: 1), checkpoints: options)
                        }
                    })
                #expect(error as? ImprintError == .checkpointInUse(folder: place.path))
                #expect(weights.training?.history.count == 2)
                _ = try train(folder, quickTraining(epochs: 1), checkpoints: options)
            }
        }
    }

    @Test("A run whose images to measure on are all gone is not resumed") func renamedImages() throws {
        try withPictures(perLabel: 8) { folder in
            try withTemporaryFolder { place in
                let configuration = quickTraining(epochs: 2) { $0.validation = .split(.fraction(0.25)) }
                let options = CheckpointOptions(folder: place, resumes: true)
                _ = try train(folder, configuration, checkpoints: options)
                for label in ["left", "right"] {
                    for index in 0..<8 {
                        let file = folder.appending(path: "\(label)/\(index).png")
                        try FileManager.default.moveItem(
                            at: file, to: folder.appending(path: "\(label)/new-\(index).png"))
                    }
                }
                #expect(throws: ImprintError.validationImagesLost(count: 4)) {
                    try train(folder, configuration, checkpoints: options)
                }
            }
        }
    }

    @Test("A checkpoint that cannot be written is told once; training goes on, and its result says so") func failing()
        throws
    {
        try withPictures(perLabel: 8) { folder in
            try withTemporaryFolder { place in
                var failures: [FileError] = []
                let trainer = try Trainer(
                    folder: ImageFolder(at: folder), configuration: quickTraining(epochs: 3),
                    checkpoints: CheckpointOptions(folder: place, interval: .zero))
                let result = try trainer.train(onEvent: { event in
                    if case .started = event { try? FileManager.default.removeItem(at: place) }
                    if case .checkpointFailed(let error) = event { failures.append(error) }
                })
                #expect(failures.count == 1 && result.checkpointFailure == failures.first)
                #expect(result.weights.training?.history.count == 3)
            }
        }
    }

    @Test("A model that other settings or images led to is told from one that a new run would give") func repeatable()
        throws
    {
        try withPictures(perLabel: 8) { folder in
            try withTemporaryFolder { place in
                func result(epochs: Int, stops: Bool = false) throws -> TrainingResult {
                    var epochsDone = 0
                    return try Trainer(
                        folder: ImageFolder(at: folder), configuration: quickTraining(epochs: epochs),
                        checkpoints: CheckpointOptions(folder: place, resumes: true)
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

    @Test("A checkpoint comes after every step, or not before the interval has passed", arguments: [0.0, 1000])
    func interval(seconds: Double) throws {
        try withPictures(perLabel: 8) { folder in
            try withTemporaryFolder { place in
                var saved: [Int] = []
                _ = try train(
                    folder, quickTraining(epochs: 2),
                    checkpoints: CheckpointOptions(folder: place, interval: .seconds(seconds)),
                    onEvent: { if case .checkpoint(_, let epochs) = $0 { saved.append(epochs) } })
                #expect(saved == (seconds == 0 ? [0, 0, 1, 1, 1, 2, 2] : [2]))
                #expect(try FileManager.default.contentsOfDirectory(atPath: place.path) == ["checkpoint.safetensors"])
            }
        }
    }

    @Test("Losing most images ends the run with its checkpoint, from which it goes on once they are back")
    func lostImages()
        throws
    {
        try withPictures(perLabel: 8) { folder in
            try withTemporaryFolder { place in
                let away = place.appending(path: "away")
                let configuration = quickTraining(epochs: 4) { $0.memoryLimit = 0 }
                let options = CheckpointOptions(
                    folder: place.appending(path: "run"), interval: .seconds(1000), resumes: true)
                var lost = 0
                #expect(throws: ImageError.self) {
                    try train(
                        folder, configuration, checkpoints: options,
                        onEvent: { event in
                            if case .epoch(let metrics, _) = event, metrics.epoch == 2 {
                                try? FileManager.default.moveItem(at: folder, to: away)
                            }
                            if case .lost = event { lost += 1 }
                        })
                }
                #expect((9...16).contains(lost))
                try FileManager.default.moveItem(at: away, to: folder)
                var start: TrainingStart?
                let weights = try train(
                    folder, configuration, checkpoints: options,
                    onEvent: { if case .started(let event) = $0 { start = event } })
                #expect(start?.resumed?.history.count == 2)
                #expect(weights.training?.history.count == 4)
            }
        }
    }
}
