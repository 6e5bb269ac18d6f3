import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

/// Tests of fine-tuning a base model: training more layers than its head.
@Suite("Fine-tuning") struct FineTuningTests {
    /// Returns a base model that distinguishes left from right.
    private func base() throws -> ModelFile {
        try withImages(perLabel: 8, seed: 1) { try train($0, quickTraining(epochs: 2)) }
    }

    private func tuning(
        _ base: ModelFile, _ trainableLayers: FineTuning.TrainableLayers, epochs: Int,
        change: (inout ClassifierConfiguration) -> Void = { _ in }
    ) -> ClassifierConfiguration {
        quickTraining(epochs: epochs) {
            $0.start = .base(base, trainableLayers: trainableLayers)
            change(&$0)
        }
    }

    /// Returns the nodes whose parameters of the given roles differ.
    private func moved(
        _ before: Parameters, _ after: Parameters, _ hasRole: (ParameterDescription.Role) -> Bool
    ) -> Set<String> {
        Set(
            before.layout.entries.filter { hasRole($0.parameter.role) && before[$0.name] != after[$0.name] }.map(\.node)
        )
    }

    @Test(
        "Batch-norm statistics stay bitwise identical to the base's, unless freezesStatistics is off",
        arguments: [true, false])
    func statistics(keeps: Bool) throws {
        let base = try base()
        try withImages(["down", "up"], perLabel: 8) { folder in
            let tuned = try train(folder, tuning(base, .all, epochs: 2) { $0.fineTuning.freezesStatistics = keeps })
            let norms: Set = ["norm1", "norm2", "norm3", "norm4"]
            #expect(moved(base.parameters, tuned.parameters) { $0 == .statistic } == (keeps ? [] : norms))
            #expect(moved(base.parameters, tuned.parameters) { $0 == .bias }.isSuperset(of: norms))
            // The network in the model file does not depend on the training settings.
            #expect(tuned.network == base.network)
        }
    }

    @Test("The layer decay scales the update of each block relative to the next one") func layerDecay() throws {
        let base = try base()
        try withImages(perLabel: 8) { folder in
            // One step without warm-up, because the base has the same labels.
            func moves(decay: Float) throws -> [String: [Float]] {
                let model = try train(
                    folder,
                    tuning(base, .all, epochs: 1) {
                        $0.batchSize = 16
                        $0.fineTuning.layerDecay = decay
                    })
                let entries = base.parameters.layout.entries.filter { $0.parameter.role != .statistic }
                return Dictionary(
                    uniqueKeysWithValues: try entries.map { entry in
                        let old = try #require(base.parameters[entry.name])
                        let new = try #require(model.parameters[entry.name])
                        return (entry.name, zip(old, new).map { $0 - $1 })
                    })
            }
            let (even, decayed) = (try moves(decay: 1), try moves(decay: 0.5))
            for (name, moves) in even {
                let block = try #require(
                    base.network.blocks.firstIndex { $0.contains(String(name.prefix { $0 != "." })) })
                let factor = powf(0.5, Float(4 - block))
                let found = try #require(decayed[name])
                #expect(moves.contains { $0 != 0 })
                for (one, other) in zip(moves, found) { #expect(abs(other - factor * one) < 1e-6, "\(name)") }
            }
        }
    }

    @Test(
        "Each stage trains only the layers that are unfrozen in it",
        arguments: [FineTuning.TrainableLayers.headFirst, .gradual], [1, 2])
    func stages(trainableLayers: FineTuning.TrainableLayers, stageEpochs: Int) throws {
        let base = try base()
        let blocks: [Set<String>] = [
            ["conv4", "norm4"], ["conv3", "norm3"], ["conv2", "norm2"], ["conv1", "norm1"],
        ]
        let count = trainableLayers == .gradual ? 5 : 2
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                var earlier = try base.parameters.copy()
                var epochs = 0
                _ = try train(
                    folder,
                    tuning(base, trainableLayers, epochs: count * stageEpochs) {
                        $0.batchSize = 16
                        $0.fineTuning.stageEpochs = stageEpochs
                    }, checkpoints: CheckpointOptions(folder: scratch, interval: .zero),
                    onEvent: { event in
                        guard case .checkpoint(let file, let done) = event, done == epochs + 1,
                            let checkpoint = try? Checkpoint(contentsOf: file),
                            let now = try? Parameters(base.parameters.layout)
                        else { return }
                        now.withValues { _ = $0.update(from: checkpoint.state.parameters) }
                        let stage = epochs / stageEpochs
                        let open = trainableLayers == .gradual ? stage : stage * 4
                        let expected = blocks.prefix(open).reduce(into: Set(["head"])) { $0.formUnion($1) }
                        #expect(moved(earlier, now) { $0 != .statistic } == expected, "epoch \(done)")
                        #expect(moved(earlier, now) { $0 == .statistic } == [])
                        (earlier, epochs) = (now, done)
                    })
                #expect(epochs == count * stageEpochs)
            }
        }
    }

    @Test("The learning rate warms up in the first epoch of each stage") func warmUps() throws {
        let base = try base()
        try withImages(perLabel: 16) { folder in
            /// Returns the head's weights after a number of steps. An epoch has four steps.
            func head(_ trainableLayers: FineTuning.TrainableLayers, steps: Int) throws -> [Float] {
                try withTemporaryFolder { scratch in
                    var done = 0
                    _ = try? train(
                        folder,
                        tuning(base, trainableLayers, epochs: 5) {
                            $0.schedule = .constant
                            $0.momentum = 0
                        }, checkpoints: CheckpointOptions(folder: scratch), shouldStop: { done == steps },
                        onEvent: { if case .batch = $0 { done += 1 } })
                    let checkpoint = try Checkpoint(contentsOf: scratch.appending(path: CheckpointOptions.fileName))
                    let entry = try #require(ParameterLayout(checkpoint.network)["head.weight"])
                    return Array(checkpoint.state.parameters[entry.range])
                }
            }
            func move(_ trainableLayers: FineTuning.TrainableLayers, step: Int) throws -> [Float] {
                zip(try head(trainableLayers, steps: step), try head(trainableLayers, steps: step - 1)).map { $0 - $1 }
            }
            // Both runs are identical up to the second stage, so its first step has the same gradient at a quarter of the rate.
            let (whole, quarter) = (try move(.head, step: 5), try move(.headFirst, step: 5))
            #expect(whole.contains { abs($0) > 1e-4 })
            for (one, other) in zip(whole, quarter) { #expect(abs(other - one / 4) < 1e-6) }
        }
    }

    @Test("Early stopping counts epochs from the start of the last stage") func patience() throws {
        let base = try base()
        try withImages(perLabel: 16) { folder in
            let model = try train(
                folder,
                tuning(base, .headFirst, epochs: 12) {
                    $0.validation = .fraction(0.25)
                    $0.learningRate = 0
                    $0.fineTuning.stageEpochs = 3
                    $0.patience = 2
                })
            // The loss never improves: three epochs of the first stage, and two of the next.
            #expect(model.training?.history.count == 5)
        }
    }

    @Test(
        "The model file is bitwise identical for any number of threads",
        arguments: [FineTuning.TrainableLayers.head, .all, .headFirst, .gradual])
    func threads(trainableLayers: FineTuning.TrainableLayers) throws {
        let base = try base()
        try withImages(perLabel: 9) { folder in
            let files = try [1, 2, 4].map { threads in
                try bytes(
                    of: train(
                        folder,
                        tuning(base, trainableLayers, epochs: 5) {
                            $0.threads = threads
                            $0.validation = .fraction(0.25)
                            $0.emaDecay = 0.9
                        }))
            }
            #expect(files[1] == files[0] && files[2] == files[0])
        }
    }

    @Test("The training record contains the fine-tuning settings, also after saving and loading")
    func record() throws {
        let base = try base()
        #expect(base.training?.trainableLayers == nil && base.training?.fineTuning == nil)
        try withImages(perLabel: 4) { folder in
            try withTemporaryFolder { scratch in
                for trainableLayers in FineTuning.TrainableLayers.allCases {
                    let tuned = try train(
                        folder, tuning(base, trainableLayers, epochs: 5) { $0.fineTuning.layerDecay = 0.25 })
                    let url = scratch.appending(path: "\(trainableLayers.rawValue).imprint")
                    try tuned.write(to: url)
                    let record = try #require(try ModelFile(contentsOf: url).training)
                    #expect(record.trainableLayers == trainableLayers)
                    #expect(record.fineTuning == (trainableLayers == .head ? nil : FineTuning(layerDecay: 0.25)))
                }
            }
        }
    }

    @Test("Settings out of range are rejected by name, as are stages that do not fit into the epochs")
    func settings() throws {
        let base = try base()
        try withImages(perLabel: 2) { folder in
            func expectError(
                _ name: String, _ trainableLayers: FineTuning.TrainableLayers = .all, epochs: Int = 2, of value: String,
                _ change: (inout ClassifierConfiguration) -> Void = { _ in }
            ) {
                let error = #expect(throws: ImprintError.self) {
                    try train(folder, tuning(base, trainableLayers, epochs: epochs, change: change))
                }
                guard case .invalidSetting(name, value, _) = error else {
                    Issue.record("\(name): \(String(describing: error))")
                    return
                }
            }
            expectError("layerDecay", of: "0") { $0.fineTuning.layerDecay = 0 }
            expectError("layerDecay", of: "1.5") { $0.fineTuning.layerDecay = 1.5 }
            expectError("layerDecay", of: "nan") { $0.fineTuning.layerDecay = .nan }
            expectError("stageEpochs", of: "0") { $0.fineTuning.stageEpochs = 0 }
            expectError("epochs", .gradual, epochs: 4, of: "4")
            expectError("epochs", .headFirst, epochs: 3, of: "3") { $0.fineTuning.stageEpochs = 3 }
        }
    }

    @Test("A checkpoint with other settings is rejected, and the error names the setting")
    func otherSettings() throws {
        let base = try base()
        try withImages(perLabel: 4) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                _ = try train(folder, tuning(base, .headFirst, epochs: 3), checkpoints: options)
                func expectError(
                    _ setting: String, _ trainableLayers: FineTuning.TrainableLayers = .headFirst,
                    _ change: (inout ClassifierConfiguration) -> Void = { _ in }
                ) {
                    let error = #expect(throws: ImprintError.self) {
                        try train(
                            folder, tuning(base, trainableLayers, epochs: 4, change: change), checkpoints: options)
                    }
                    guard case .checkpointMismatch(_, setting, _, _) = error else {
                        Issue.record("\(setting): \(String(describing: error))")
                        return
                    }
                }
                expectError("network", .all)
                expectError("fine tuning.layer decay") { $0.fineTuning.layerDecay = 0.9 }
                expectError("fine tuning.stage epochs") { $0.fineTuning.stageEpochs = 2 }
                expectError("fine tuning.freezes statistics") { $0.fineTuning.freezesStatistics = false }
            }
        }
    }
}
