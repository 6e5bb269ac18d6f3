import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

/// Tests of runs that are interrupted and resume from their checkpoint.
@Suite("Checkpoints") struct CheckpointTests {
    /// Configurations with different kinds of state to save.
    enum Variant: String, CaseIterable {
        case plain, augmented, averaged, rangeTest, uncached, dropout, clipped, head, headFirst, gradual
    }

    private static func configuration(_ variant: Variant) throws -> ClassifierConfiguration {
        try quickTraining(epochs: 3) {
            $0.validation = .fraction(0.25)
            $0.batchSize = 5
            switch variant {
            case .plain: $0.threads = 2
            case .augmented: $0.augmentation = Augmentation([.flipVertical, .rotate, .noise])
            case .averaged:
                $0.emaDecay = 0.9
                $0.classWeights = .automatic
            case .rangeTest: $0.learningRate = nil
            case .uncached:
                $0.memoryLimit = 0
                $0.schedule = .step(every: 3, factor: 0.5)
            case .dropout: $0.start = .base(try baseWithDropout(), trainableLayers: .all)
            case .clipped: $0.gradientClipping = 0.5
            case .head:
                $0.start = .base(try baseOfThreeBlocks(), trainableLayers: .head)
                $0.learningRate = nil
                $0.emaDecay = 0.9
                $0.memoryLimit = 0
            case .headFirst:
                $0.start = .base(try baseOfThreeBlocks(), trainableLayers: .headFirst)
                $0.learningRate = nil
                $0.fineTuning.stageEpochs = 2
            case .gradual:
                $0.start = .base(try baseOfThreeBlocks(), trainableLayers: .gradual)
                $0.augmentation = Augmentation([.flip])
                $0.fineTuning.freezesStatistics = false
            }
        }
    }

    private static func baseWithDropout() throws -> ModelFile {
        try base(named: "drops") { builder in
            builder.add(Convolution(outputChannels: 8, kernelSize: 3, stride: 2))
            builder.add(ReLU())
        }
    }

    private static func baseOfThreeBlocks() throws -> ModelFile {
        try base(named: "blocks") { builder in
            for block in 1...2 {
                builder.add(Convolution(outputChannels: 8, kernelSize: 3, stride: 2), named: "conv\(block)")
                builder.add(BatchNormalization(), named: "norm\(block)")
                builder.add(ReLU())
            }
        }
    }

    /// Returns an untrained model of the given layers, followed by dropout and a head.
    private static func base(named name: String, layers: (inout NetworkBuilder) -> Void) throws -> ModelFile {
        var builder = NetworkBuilder(name: name, input: TensorShape(height: 16, width: 16, channels: 3))
        layers(&builder)
        builder.add(Dropout(rate: 0.5))
        builder.add(GlobalAveragePool())
        builder.add(Dense(outputChannels: 2), named: "head")
        builder.add(Softmax())
        let network = try builder.network()
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 3), labels: ["left", "right"],
            preprocessing: Preprocessing(width: 16, height: 16, channels: 3))
    }

    /// Trains until the run is complete, interrupting and resuming it after every `steps` steps.
    private func trainInParts(
        _ folder: URL, _ configuration: ClassifierConfiguration, _ checkpoints: URL, every steps: Int
    ) throws -> (model: ModelFile, parts: Int) {
        let options = CheckpointOptions(folder: checkpoints, interval: .seconds(1000), resumes: true)
        for part in 1...1000 {
            var done = 0
            do {
                let model = try train(
                    folder, configuration, checkpoints: options, shouldStop: { done >= steps },
                    onEvent: { if case .batch = $0 { done += 1 } })
                if done < steps { return (model, part) }
            } catch ImprintError.stoppedTooEarly {}
        }
        throw CancellationError()
    }

    @Test(
        "Training resumes bitwise identically after any number of interruptions",
        arguments: Variant.allCases, [1, 2, 5])
    func resumes(variant: Variant, steps: Int) throws {
        try withImages(perLabel: 9) { folder in
            let configuration = try Self.configuration(variant)
            let expected = try bytes(of: train(folder, configuration))
            try withTemporaryFolder { scratch in
                let (model, parts) = try trainInParts(folder, configuration, scratch, every: steps)
                // Three epochs of three steps.
                #expect(parts == 9 / steps + 1)
                #expect(try bytes(of: model) == expected)
                // Resuming a completed run returns its model without training.
                var batches = 0
                let again = try train(
                    folder, configuration, checkpoints: CheckpointOptions(folder: scratch, resumes: true),
                    onEvent: { if case .batch = $0 { batches += 1 } })
                #expect(batches == 0)
                #expect(try bytes(of: again) == expected)
            }
        }
    }

    @Test("A new run replaces the checkpoint of a completed run, but not of an unfinished one")
    func replacement() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch)
                let file = scratch.appending(path: "checkpoint.safetensors")
                #expect(throws: ImprintError.stoppedTooEarly(checkpoint: file.path)) {
                    var hasStarted = false
                    _ = try train(
                        folder, quickTraining(epochs: 3), checkpoints: options, shouldStop: { hasStarted },
                        onEvent: { if case .started = $0 { hasStarted = true } })
                }
                let before = try Data(contentsOf: file)
                #expect(throws: ImprintError.unfinishedCheckpoint(file: file.path, progress: "epoch 1 of 3")) {
                    try train(folder, quickTraining(epochs: 3), checkpoints: options)
                }
                #expect(try Data(contentsOf: file) == before)
                _ = try train(
                    folder, quickTraining(epochs: 3), checkpoints: CheckpointOptions(folder: scratch, resumes: true))
                let model = try train(folder, quickTraining(epochs: 1) { $0.seed = 9 }, checkpoints: options)
                #expect(model.training?.history.count == 1)
            }
        }
    }

    @Test("A truncated or changed checkpoint file is an error that names the file") func damaged() throws {
        try withImages(perLabel: 4) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                let file = scratch.appending(path: "checkpoint.safetensors")
                _ = try train(folder, quickTraining(epochs: 1), checkpoints: options)
                let whole = try Data(contentsOf: file)
                var changed = whole
                changed[whole.count - 5] ^= 0x40
                let batch = try #require(whole.range(of: Data("\\\"batch\\\":0".utf8)))
                var impossible = whole
                impossible[batch.upperBound - 1] = UInt8(ascii: "-")
                // One training step more than were run: all values are valid, but the text differs.
                let passes = try #require(whole.range(of: Data("\\\"passes\\\":1".utf8)))
                var other = whole
                other[passes.upperBound - 1] = UInt8(ascii: "2")
                var cases = [whole.prefix(100), whole.prefix(whole.count - 4)]
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
                    let text = "\(try #require(error))"
                    #expect(text.hasSuffix(". Remove this checkpoint to start a new run."), "\(text)")
                    #expect(
                        !text.contains("Get the file again") && !text.contains("a model or a personalization"),
                        "\(text)")
                    #expect(try Data(contentsOf: file) == data)
                }
            }
        }
    }

    @Test(
        "A file of another kind with the name of the checkpoint is not replaced, and the error states its kind",
        arguments: [true, false])
    func foreign(resumes: Bool) throws {
        try withImages(perLabel: 4) { folder in
            let model = try bytes(of: train(folder, quickTraining(epochs: 1)))
            let photo = try Data(contentsOf: folder.appending(path: "left/0.png"))
            for (content, kind) in [
                (model, "a model"), (photo, "a PNG image"), (Data("no file".utf8), "text"),
                (Data([0xFF, 0xD8, 0xFF, 0xE0, 0, 0x10, 0x4A, 0x46]), "a JPEG image"),
            ] {
                try withTemporaryFolder { scratch in
                    let file = scratch.appending(path: CheckpointOptions.fileName)
                    try content.write(to: file)
                    let error = #expect(throws: ModelFileError.self) {
                        try train(
                            folder, quickTraining(epochs: 2),
                            checkpoints: CheckpointOptions(folder: scratch, resumes: resumes))
                    }
                    #expect(error?.problem == .notACheckpoint(found: kind))
                    #expect(try #require(error).description.contains("Choose another folder for checkpoints"))
                    #expect(try Data(contentsOf: file) == content)
                }
            }
        }
    }

    @Test("Only one run at a time can use a checkpoint folder") func lock() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, interval: .zero)
                var error: (any Error)?
                let model = try train(
                    folder, quickTraining(epochs: 2), checkpoints: options,
                    onEvent: { event in
                        guard case .epoch = event, error == nil else { return }
                        error = #expect(throws: ImprintError.self) {
                            try train(folder, quickTraining(epochs: 1), checkpoints: options)
                        }
                    })
                #expect(error as? ImprintError == .checkpointInUse(folder: scratch.path))
                #expect(model.training?.history.count == 2)
                _ = try train(folder, quickTraining(epochs: 1), checkpoints: options)
            }
        }
    }

    @Test(
        "A run does not start without the lock of its checkpoint folder",
        .disabled(if: geteuid() == 0, "root can open every folder"))
    func unreadableFolder() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                func setPermissions(_ permissions: Int) throws {
                    try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: scratch.path)
                }
                // Files in the folder can be written, but the folder cannot be opened.
                try setPermissions(0o300)
                defer { try? setPermissions(0o700) }
                #expect(throws: FileError.cannotRead(scratch.path, errno: EACCES)) {
                    try train(
                        folder, quickTraining(epochs: 1),
                        checkpoints: CheckpointOptions(folder: scratch, interval: .zero))
                }
            }
        }
    }

    @Test("Training continues if checkpoints cannot be written, and reports the first failure once")
    func failing() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                var failures: [FileError] = []
                let trainer = try ClassifierTrainer(
                    photos: ImageFolder(at: folder), configuration: quickTraining(epochs: 3),
                    checkpoints: CheckpointOptions(folder: scratch, interval: .zero))
                let result = try trainer.train(onEvent: { event in
                    if case .started = event { try? FileManager.default.removeItem(at: scratch) }
                    if case .checkpointFailed(let error) = event { failures.append(error) }
                })
                #expect(failures.count == 1 && result.checkpointFailure == failures.first)
                #expect(result.model.training?.history.count == 3)
            }
        }
    }

    @Test("A checkpoint is written when the interval has passed, and at the end", arguments: [0.0, 1000])
    func interval(seconds: Double) throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                var saved: [Int] = []
                _ = try train(
                    folder, quickTraining(epochs: 2),
                    checkpoints: CheckpointOptions(folder: scratch, interval: .seconds(seconds)),
                    onEvent: { if case .checkpoint(_, let epochs) = $0 { saved.append(epochs) } })
                // The checkpoints at the end are from before and after the model is made.
                #expect(saved == (seconds == 0 ? [0, 0, 1, 1, 1, 2, 2, 2] : [2, 2]))
                #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path) == ["checkpoint.safetensors"])
            }
        }
    }
}
