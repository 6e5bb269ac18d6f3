import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

/// Tests of when a run ends, and of the epoch whose model it returns.
@Suite("The end of training") struct TrainingEndTests {
    /// Trains a classifier and returns the result.
    private func result(
        _ folder: URL, _ configuration: ClassifierConfiguration, onEvent: @escaping (TrainingEvent) -> Void = { _ in }
    ) throws -> TrainingResult {
        try ClassifierTrainer(photos: ImageFolder(at: folder), configuration: configuration).train(onEvent: onEvent)
    }

    @Test("The model and the evaluation are from the epoch with the lowest validation loss") func best() throws {
        try withImages(perLabel: 12) { folder in
            // The learning rate is so high that the loss rises and falls.
            let configuration = quickTraining(epochs: 12) {
                $0.validation = .fraction(0.5)
                $0.learningRate = 2
                $0.schedule = .constant
                $0.calibrates = false
            }
            let result = try result(folder, configuration)
            let record = try #require(result.model.training)
            let losses = record.history.compactMap(\.validationLoss)
            let best = try #require(losses.indices.min { losses[$0] < losses[$1] })
            #expect(record.keptEpoch == best + 1)
            #expect(best + 1 < 12, "the learning rate of the test is too low")
            #expect(record.accuracy == record.history[best].validationAccuracy)
            #expect(Float(try #require(result.evaluation).accuracy) == record.accuracy)
            // The parameters equal those of a run that ends after this epoch.
            var shorter = configuration
            shorter.epochs = best + 1
            let expected = try self.result(folder, shorter).model
            #expect(expected.training?.keptEpoch == best + 1)
            for entry in expected.parameters.layout.entries {
                #expect(result.model.parameters[entry.name] == expected.parameters[entry.name])
            }
        }
    }

    @Test("Without a validation set, the model is from the last epoch") func last() throws {
        try withImages(perLabel: 4) { folder in
            let result = try result(folder, quickTraining(epochs: 3))
            #expect(result.model.training?.keptEpoch == 3)
            #expect(result.evaluation == nil)
            #expect(result.ending == .completed)
        }
    }

    @Test("Early stopping ends training if the validation loss does not improve for some epochs", arguments: [1, 2])
    func patience(_ patience: Int) throws {
        try withImages(perLabel: 12) { folder in
            let result = try result(
                folder,
                quickTraining(epochs: 60) {
                    $0.validation = .fraction(0.5)
                    $0.learningRate = 0.5
                    $0.schedule = .constant
                    $0.patience = patience
                })
            let record = try #require(result.model.training)
            #expect(result.ending == .noImprovement)
            #expect(record.history.count == (try #require(record.keptEpoch)) + patience)
            #expect(record.history.count < 60)
        }
    }

    @Test("Training with a time limit returns a model, even if the limit passes in the first epoch")
    func timeLimit() throws {
        try withImages(perLabel: 8) { folder in
            let result = try result(folder, quickTraining(epochs: 100_000) { $0.timeLimit = .seconds(0.4) })
            #expect(result.ending == .timeLimit && !result.isRepeatable)
            let count = try #require(result.model.training).history.count
            #expect(count >= 1 && count < 100_000)
            let shortest = try self.result(folder, quickTraining(epochs: 5) { $0.timeLimit = .nanoseconds(1) })
            #expect(shortest.ending == .timeLimit)
            #expect(shortest.model.training?.history.count == 1)
        }
    }

    @Test("The time limit is checked within an epoch, and during the learning-rate range test")
    func limitWithinEpoch() throws {
        try withImages(perLabel: 8) { folder in
            var batches = 0
            let result = try result(
                folder,
                quickTraining(epochs: 5) {
                    $0.timeLimit = .nanoseconds(1)
                    $0.batchSize = 1
                }, onEvent: { if case .batch = $0 { batches += 1 } })
            #expect(batches == 1 && result.model.training?.history.count == 1)
            // The range test takes as many steps as a learning rate needs, so that there is a model.
            var steps = 0
            var searches: [LearningRateSearch] = []
            let searched = try self.result(
                folder,
                quickTraining(epochs: 5) {
                    $0.timeLimit = .nanoseconds(1)
                    $0.learningRate = nil
                },
                onEvent: { event in
                    if case .searching = event { steps += 1 }
                    if case .learningRate(let search) = event { searches.append(search) }
                })
            #expect(steps == 10 && searched.ending == .timeLimit && searches.map(\.endedEarly) == [true])
            #expect(searched.model.training?.history.count == 1)
            let rate = try #require(searched.model.training?.foundLearningRate)
            #expect(rate > 0 && rate < 1e-4)
        }
    }

    /// The layers before the softmax of a network.
    enum Ending: CaseIterable {
        case denseLayer, averagePool, reLU6

        /// The network to train, and the learning rate.
        func start() throws -> (start: ClassifierConfiguration.Start, learningRate: Float) {
            guard self != .denseLayer else { return (.network("logonet", width: 0.125), 1) }
            var builder = NetworkBuilder(name: "small", input: TensorShape(height: 16, width: 16, channels: 3))
            builder.add(Convolution(outputChannels: 2, kernelSize: 15))
            builder.add(GlobalAveragePool())
            if self == .reLU6 { builder.add(ReLU6()) }
            builder.add(Softmax())
            return (.untrained(try builder.network(), preprocessing: Preprocessing(width: 16, height: 16)), 0.05)
        }
    }

    @Test(
        "The predictions of the saved model equal the evaluation, with and without calibration",
        arguments: Ending.allCases, [true, false])
    func calibrated(ending: Ending, calibrates: Bool) throws {
        let (start, learningRate) = try ending.start()
        try withImages(perLabel: 12) { folder in
            let result = try result(
                folder,
                quickTraining(epochs: 6) {
                    $0.start = start
                    $0.validation = .fraction(0.5)
                    $0.learningRate = learningRate
                    $0.schedule = .constant
                    $0.calibrates = calibrates
                })
            let evaluation = try #require(result.evaluation)
            let record = try #require(result.model.training)
            // A ceiling of the logits does not move with the temperature.
            #expect((record.calibration != nil) == (calibrates && ending != .reLU6))
            #expect(abs((record.calibration?.temperature ?? 2) - 1) > 0.05, "a temperature of 1 changes nothing")
            #expect(record.thresholds == evaluation.thresholds && record.precisionRecall == evaluation.precisionRecall)
            let classifier = try ImageClassifier(result.model)
            for result in evaluation.results {
                for classification in try classifier.classify(result.url) {
                    let label = try #require(evaluation.labels.firstIndex(of: classification.label))
                    #expect(abs(classification.confidence - result.confidences[label]) < 1e-3)
                }
            }
        }
    }

    @Test("Training appends a softmax to a base that outputs logits") func baseOfLogits() throws {
        var builder = NetworkBuilder(name: "logits", input: TensorShape(height: 16, width: 16, channels: 3))
        builder.add(GlobalAveragePool())
        builder.add(Dense(outputChannels: 2), named: "head")
        let network = try builder.network()
        let base = ModelFile(
            network: network, parameters: try Parameters(network, seed: 3), labels: ["left", "right"],
            preprocessing: Preprocessing(width: 16, height: 16, channels: 3))
        try withImages(perLabel: 8) { folder in
            let result = try result(
                folder,
                quickTraining(epochs: 1) {
                    $0.start = .base(base)
                    $0.validation = .fraction(0.25)
                })
            #expect(result.model.training?.calibration != nil)
            let classifications = try ImageClassifier(result.model).classify(folder.appending(path: "left/0.png"))
            #expect(abs(classifications.reduce(0) { $0 + $1.confidence } - 1) < 1e-5)
        }
    }

    @Test("The exponential moving average follows its formula") func average() throws {
        try withImages(perLabel: 8) { folder in
            // An epoch is one step, so the parameters after N steps are the same as after a run of N epochs.
            func parameters(epochs: Int, decay: Float?) throws -> [Float] {
                let model = try train(
                    folder,
                    quickTraining(epochs: epochs) {
                        $0.batchSize = 16
                        $0.emaDecay = decay
                        $0.schedule = .constant
                    })
                return try #require(model.parameters["head.weight"])
            }
            let start = try Parameters(Network.named("logonet", labels: 2, inputSize: 16, width: 0.125), seed: 0)
            var expected = try #require(start["head.weight"])
            // A run of one epoch has no warm-up, so the steps are taken from one run of three epochs.
            for step in 0..<3 {
                let rate = 1 - min(0.15, (1 + Float(step)) / (10 + Float(step)))
                let target = try trajectory(folder)[step]
                for i in expected.indices { expected[i] += rate * (target[i] - expected[i]) }
            }
            let averaged = try parameters(epochs: 3, decay: 0.15)
            for (found, expected) in zip(averaged, expected) { #expect(abs(found - expected) < 1e-6) }
            #expect(averaged != (try parameters(epochs: 3, decay: nil)))
        }
    }

    /// Returns the head's weights after each of three steps.
    private func trajectory(_ folder: URL) throws -> [[Float]] {
        try (1...3).map { steps in
            try withTemporaryFolder { scratch in
                var done = 0
                _ = try? train(
                    folder,
                    quickTraining(epochs: 3) {
                        $0.batchSize = 16
                        $0.schedule = .constant
                    }, checkpoints: CheckpointOptions(folder: scratch), shouldStop: { done == steps },
                    onEvent: { if case .batch = $0 { done += 1 } })
                let checkpoint = try Checkpoint(contentsOf: scratch.appending(path: "checkpoint.safetensors"))
                let parameters = try Parameters(checkpoint.network, seed: 0)
                parameters.withValues { _ = $0.update(from: checkpoint.state.parameters) }
                return try #require(parameters["head.weight"])
            }
        }
    }

    @Test("Automatic label model are larger for labels with fewer images, in the loss and in the record")
    func classWeights() throws {
        try withImages(perLabel: 8) { folder in
            for index in 2..<8 {
                try FileManager.default.removeItem(at: folder.appending(path: "right/\(index).png"))
            }
            let even = try train(folder, quickTraining(epochs: 1))
            let weighted = try train(folder, quickTraining(epochs: 1) { $0.classWeights = .automatic })
            #expect(even.training?.classWeights == nil)
            #expect(weighted.training?.classWeights == ["left": 0.625, "right": 2.5])
            #expect(even.training?.history[0].loss != weighted.training?.history[0].loss)
        }
    }

    @Test("Training with the learning-rate range test equals training with the rate that the test finds")
    func rangeTest() throws {
        try withImages(perLabel: 16) { folder in
            let configuration = quickTraining(epochs: 6) { $0.learningRate = nil }
            var searches: [LearningRateSearch] = []
            var steps = 0
            let model = try train(
                folder, configuration,
                onEvent: { event in
                    if case .learningRate(let search) = event { searches.append(search) }
                    if case .searching = event { steps += 1 }
                })
            let search = try #require(searches.first)
            #expect(searches.count == 1 && steps == search.points.count && !search.endedEarly)
            let rate = try #require(search.learningRate)
            #expect(rate > 1e-4 && rate < 4)
            #expect(model.training?.foundLearningRate == rate)
            #expect(try #require(model.training?.accuracy) > 0.9)
            // The range test affects only the learning rate.
            let given = try train(folder, quickTraining(epochs: 6) { $0.learningRate = rate })
            #expect(try given.tensorDigest() == model.tensorDigest())
        }
    }

    @Test("A range test that is interrupted ends the run without a learning rate and without a checkpoint")
    func interruptedRangeTest() throws {
        try withImages(perLabel: 16) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                var steps = 0
                var hasFoundRate = false
                #expect(throws: ImprintError.stoppedTooEarly(checkpoint: nil)) {
                    // After half of its steps, the test has a result, but not the one of the whole test.
                    _ = try train(
                        folder, quickTraining(epochs: 6) { $0.learningRate = nil }, checkpoints: options,
                        shouldStop: { steps >= LearningRateSearch.stepCount / 2 },
                        onEvent: { event in
                            if case .searching = event { steps += 1 }
                            if case .learningRate = event { hasFoundRate = true }
                        })
                }
                #expect(!hasFoundRate)
                let file = scratch.appending(path: CheckpointOptions.fileName)
                #expect(!FileManager.default.fileExists(atPath: file.path))
            }
        }
    }
}
