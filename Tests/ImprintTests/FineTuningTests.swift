import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

/// Training that goes on from a base, beyond its head.
@Suite("Fine-tuning") struct FineTuningTests {
    /// A base that knows left from right.
    private func base() throws -> ModelFile {
        try withPictures(perLabel: 8, seed: 1) { try train($0, quickTraining(epochs: 2)) }
    }

    private func tuning(
        _ base: ModelFile, _ trains: FineTuning.Trains, epochs: Int,
        change: (inout ClassifierConfiguration) -> Void = { _ in }
    ) -> ClassifierConfiguration {
        quickTraining(epochs: epochs) {
            $0.start = .base(base, trains: trains)
            change(&$0)
        }
    }

    /// The nodes whose parameters differ, by what these are for.
    private func moved(
        _ before: Parameters, _ after: Parameters, _ isMeant: (ParameterDescription.Role) -> Bool
    ) -> Set<String> {
        Set(
            before.layout.entries.filter { isMeant($0.parameter.role) && before[$0.name] != after[$0.name] }.map(\.node)
        )
    }

    @Test(
        "Statistics of norms are those of the base, bit for bit, unless they are to follow", arguments: [true, false])
    func statistics(keeps: Bool) throws {
        let base = try base()
        try withPictures(["down", "up"], perLabel: 8) { folder in
            let tuned = try train(folder, tuning(base, .all, epochs: 2) { $0.fineTuning.keepsStatistics = keeps })
            let norms: Set = ["norm1", "norm2", "norm3", "norm4"]
            #expect(moved(base.parameters, tuned.parameters) { $0 == .statistic } == (keeps ? [] : norms))
            #expect(moved(base.parameters, tuned.parameters) { $0 == .bias }.isSuperset(of: norms))
            // What a file says of its layers does not depend on how they were trained.
            #expect(tuned.network == base.network)
        }
    }

    @Test("Each block before the head moves by the layer decay less than the one after it") func layerDecay() throws {
        let base = try base()
        try withPictures(perLabel: 8) { folder in
            // One step, without a warm-up, for the labels of the base.
            func moves(decay: Float) throws -> [String: [Float]] {
                let weights = try train(
                    folder,
                    tuning(base, .all, epochs: 1) {
                        $0.batchSize = 16
                        $0.fineTuning.layerDecay = decay
                    })
                let entries = base.parameters.layout.entries.filter { $0.parameter.role != .statistic }
                return Dictionary(
                    uniqueKeysWithValues: try entries.map { entry in
                        let old = try #require(base.parameters[entry.name])
                        let new = try #require(weights.parameters[entry.name])
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
        "Each stage trains what it says and leaves the rest",
        arguments: [FineTuning.Trains.headFirst, .gradual], [1, 2])
    func stages(trains: FineTuning.Trains, stageEpochs: Int) throws {
        let base = try base()
        let blocks: [Set<String>] = [
            ["conv4", "norm4"], ["conv3", "norm3"], ["conv2", "norm2"], ["conv1", "norm1"],
        ]
        let count = trains == .gradual ? 5 : 2
        try withPictures(perLabel: 8) { folder in
            try withTemporaryFolder { place in
                var earlier = try base.parameters.copy()
                var epochs = 0
                _ = try train(
                    folder,
                    tuning(base, trains, epochs: count * stageEpochs) {
                        $0.batchSize = 16
                        $0.fineTuning.stageEpochs = stageEpochs
                    }, checkpoints: CheckpointOptions(folder: place, interval: .zero),
                    onEvent: { event in
                        guard case .checkpoint(let file, let done) = event, done == epochs + 1,
                            let checkpoint = try? Checkpoint(contentsOf: file),
                            let now = try? Parameters(base.parameters.layout)
                        else { return }
                        now.withValues { _ = $0.update(from: checkpoint.state.parameters) }
                        let stage = epochs / stageEpochs
                        let open = trains == .gradual ? stage : stage * 4
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
        try withPictures(perLabel: 16) { folder in
            /// The head's weights after so many steps, of which an epoch has four.
            func head(_ trains: FineTuning.Trains, steps: Int) throws -> [Float] {
                try withTemporaryFolder { place in
                    var done = 0
                    _ = try? train(
                        folder,
                        tuning(base, trains, epochs: 5) {
                            $0.schedule = .constant
                            $0.momentum = 0
                        }, checkpoints: CheckpointOptions(folder: place), shouldStop: { done == steps },
                        onEvent: { if case .batch = $0 { done += 1 } })
                    let checkpoint = try Checkpoint(contentsOf: place.appending(path: CheckpointOptions.fileName))
                    let entry = try #require(ParameterLayout(checkpoint.network)["head.weight"])
                    return Array(checkpoint.state.parameters[entry.range])
                }
            }
            func move(_ trains: FineTuning.Trains, step: Int) throws -> [Float] {
                zip(try head(trains, steps: step), try head(trains, steps: step - 1)).map { $0 - $1 }
            }
            // Up to the second stage both runs are one, so its first step has the same gradient, at a quarter of the rate.
            let (whole, quarter) = (try move(.head, step: 5), try move(.headFirst, step: 5))
            #expect(whole.contains { abs($0) > 1e-4 })
            for (one, other) in zip(whole, quarter) { #expect(abs(other - one / 4) < 1e-6) }
        }
    }

    @Test("Patience counts from the last stage on") func patience() throws {
        let base = try base()
        try withPictures(perLabel: 16) { folder in
            let weights = try train(
                folder,
                tuning(base, .headFirst, epochs: 12) {
                    $0.validation = .fraction(0.25)
                    $0.learningRate = 0
                    $0.fineTuning.stageEpochs = 3
                    $0.patience = 2
                })
            // Nothing ever improves: three epochs of the first stage, and two of the next.
            #expect(weights.training?.history.count == 5)
        }
    }

    @Test(
        "The file is the same, byte for byte, on any number of threads",
        arguments: [FineTuning.Trains.head, .all, .headFirst, .gradual])
    func threads(trains: FineTuning.Trains) throws {
        let base = try base()
        try withPictures(perLabel: 9) { folder in
            let files = try [1, 2, 4].map { threads in
                try bytes(
                    of: train(
                        folder,
                        tuning(base, trains, epochs: 5) {
                            $0.threads = threads
                            $0.validation = .fraction(0.25)
                            $0.averageDecay = 0.9
                        }))
            }
            #expect(files[1] == files[0] && files[2] == files[0])
        }
    }

    @Test("The record tells how a base was trained, and a file keeps it") func record() throws {
        let base = try base()
        #expect(base.training?.trains == nil && base.training?.fineTuning == nil)
        try withPictures(perLabel: 4) { folder in
            try withTemporaryFolder { place in
                for trains in FineTuning.Trains.allCases {
                    let tuned = try train(folder, tuning(base, trains, epochs: 5) { $0.fineTuning.layerDecay = 0.25 })
                    let url = place.appending(path: "\(trains.rawValue).imprint")
                    try tuned.write(to: url)
                    let record = try #require(try ModelFile(contentsOf: url).training)
                    #expect(record.trains == trains)
                    #expect(record.fineTuning == (trains == .head ? nil : FineTuning(layerDecay: 0.25)))
                }
            }
        }
    }

    @Test("Settings out of range are refused by name, and stages that do not fit into the epochs") func settings()
        throws
    {
        let base = try base()
        try withPictures(perLabel: 2) { folder in
            func expectRefusal(
                _ name: String, _ trains: FineTuning.Trains = .all, epochs: Int = 2, of value: String,
                _ change: (inout ClassifierConfiguration) -> Void = { _ in }
            ) {
                let error = #expect(throws: ImprintError.self) {
                    try train(folder, tuning(base, trains, epochs: epochs, change: change))
                }
                guard case .invalidSetting(name, value, _) = error else {
                    Issue.record("\(name): \(String(describing: error))")
                    return
                }
            }
            expectRefusal("layerDecay", of: "0.0") { $0.fineTuning.layerDecay = 0 }
            expectRefusal("layerDecay", of: "1.5") { $0.fineTuning.layerDecay = 1.5 }
            expectRefusal("layerDecay", of: "nan") { $0.fineTuning.layerDecay = .nan }
            expectRefusal("stageEpochs", of: "0") { $0.fineTuning.stageEpochs = 0 }
            expectRefusal("epochs", .gradual, epochs: 4, of: "4")
            expectRefusal("epochs", .headFirst, epochs: 3, of: "3") { $0.fineTuning.stageEpochs = 3 }
        }
    }

    @Test("A checkpoint of other settings is refused, and says which") func otherSettings() throws {
        let base = try base()
        try withPictures(perLabel: 4) { folder in
            try withTemporaryFolder { place in
                let options = CheckpointOptions(folder: place, resumes: true)
                _ = try train(folder, tuning(base, .headFirst, epochs: 3), checkpoints: options)
                func expectRefusal(
                    _ setting: String, _ trains: FineTuning.Trains = .headFirst,
                    _ change: (inout ClassifierConfiguration) -> Void = { _ in }
                ) {
                    let error = #expect(throws: ImprintError.self) {
                        try train(folder, tuning(base, trains, epochs: 4, change: change), checkpoints: options)
                    }
                    guard case .checkpointMismatch(_, setting, _, _) = error else {
                        Issue.record("\(setting): \(String(describing: error))")
                        return
                    }
                }
                expectRefusal("network", .all)
                expectRefusal("layer decay") { $0.fineTuning.layerDecay = 0.9 }
                expectRefusal("stage epochs") { $0.fineTuning.stageEpochs = 2 }
                expectRefusal("keeps statistics") { $0.fineTuning.keepsStatistics = false }
            }
        }
    }
}
