import Foundation
import Imprint
import ImprintImages
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

@Suite("Trainer") struct TrainerTests {
    // MARK: Learning

    @Test("A seeded run learns which side is brighter", arguments: ["lenet", "logonet"]) func learns(
        network: String
    ) throws {
        try withPictures(perLabel: 32) { folder in
            let configuration = quickTraining(epochs: 5) {
                $0.start = .network(network, width: 0.25)
                $0.validation = .fraction(0.25)
                $0.seed = 5
            }
            let weights = try train(folder, configuration)
            let history = try #require(weights.training?.history)
            #expect(history.map(\.epoch) == [1, 2, 3, 4, 5])
            #expect(history[4].loss < history[0].loss / 2)
            #expect(try #require(weights.training?.accuracy) >= 0.9)
            try withPictures(perLabel: 10, seed: 99) { unseen in
                let evaluation = try ImageClassifier(weights).evaluate(on: ImageFolder(at: unseen))
                #expect(evaluation.accuracy >= 0.9)
                #expect(evaluation.results.count == 20)
            }
        }
    }

    @Test("The record tells how the run went") func record() throws {
        try withPictures(perLabel: 10) { folder in
            let configuration = quickTraining(epochs: 2) {
                $0.validation = .fraction(0.2)
                $0.seed = 7
                $0.augmentation = Augmentation([.flipVertical, .exposure])
            }
            var events: [TrainingEvent] = []
            let weights = try train(folder, configuration, onEvent: { events.append($0) })
            let record = try #require(weights.training)
            #expect(weights.labels == ["left", "right"])
            #expect(weights.base == nil)
            #expect((record.seed, record.epochs) == (7, 2))
            #expect(record.hyperparameters == .classifier(configuration.hyperparameters))
            #expect(record.trainingImages == ["left": 8, "right": 8])
            #expect(record.validationImages == ["left": 2, "right": 2])
            #expect(try record.dataDigest == ImageFolder(at: folder).digest)

            let comparing = events.prefix { if case .comparing = $0 { true } else { false } }
            let reading = events.dropFirst(comparing.count).prefix { if case .reading = $0 { true } else { false } }
            guard case .comparing(20, 20) = comparing.last, case .reading(20, 20) = reading.last,
                case .started(let start) = events[reading.endIndex]
            else {
                Issue.record("the events do not begin with comparing and reading all images: \(events.prefix(4))")
                return
            }
            #expect((start.trainingImages, start.validationImages, start.network) == (16, 4, "logonet"))
            #expect(start.labels == weights.labels)
            let steps = events.compactMap { if case .batch(let step) = $0 { step } else { nil } }
            #expect(steps.map(\.epoch) == [1, 1, 2, 2])
            #expect(steps.map(\.imagesSeen) == [8, 16, 8, 16])
            let epochs = events.compactMap { if case .epoch(let metrics, _) = $0 { metrics } else { nil } }
            #expect(epochs == record.history)
            #expect(epochs.allSatisfy { $0.validationLoss != nil && $0.validationAccuracy != nil })
            #expect(record.precisionRecall.keys.sorted() == weights.labels)
            // At the least confidence everything is a hit: half of the images bear either label.
            let least = try #require(record.precisionRecall["left"]?.first)
            #expect(least.precision == 0.5 && least.recall == 1)
        }
    }

    @Test("Without validation the history has none") func noValidation() throws {
        try withPictures(perLabel: 4) { folder in
            let record = try #require(try train(folder, quickTraining(epochs: 1)).training)
            #expect(record.validationImages.isEmpty)
            #expect(record.history.allSatisfy { $0.validationLoss == nil && $0.validationAccuracy == nil })
        }
    }

    // MARK: Determinism

    @Test("Two runs give the same file, byte for byte, on any number of threads", arguments: [1, 2, 4])
    func deterministic(threads: Int) throws {
        try withPictures(perLabel: 9) { folder in
            let configuration = quickTraining(epochs: 2) {
                $0.augmentation = Augmentation([.flipVertical, .rotate, .crop, .exposure, .blur])
                $0.validation = .fraction(0.2)
            }
            var threaded = configuration
            threaded.threads = threads
            let expected = try bytes(of: train(folder, configuration))
            #expect(try bytes(of: train(folder, threaded)) == expected)
        }
    }

    @Test("Another seed gives other numbers") func seeds() throws {
        try withPictures(perLabel: 4) { folder in
            let first = try train(folder, quickTraining(epochs: 1))
            let second = try train(folder, quickTraining(epochs: 1) { $0.seed = 1 })
            #expect(first.parameters["head.weight"] != second.parameters["head.weight"])
        }
    }

    // MARK: Validation

    @Test("A folder to validate on is matched by label, and none of its images is trained on") func validationFolder()
        throws
    {
        try withPictures(["down", "left", "up"], perLabel: 6) { folder in
            try withPictures(["up"], perLabel: 3, seed: 9) { other in
                let weights = try train(folder, quickTraining(epochs: 3) { $0.validationFolder = other })
                let record = try #require(weights.training)
                #expect(record.trainingImages == ["down": 6, "left": 6, "up": 6])
                #expect(record.validationImages == ["up": 3])
                let evaluation = try ImageClassifier(weights).evaluate(on: ImageFolder(at: other, minimumClasses: 1))
                #expect(evaluation.results.map(\.label) == [2, 2, 2])
                #expect(record.accuracy == Float(evaluation.accuracy))
            }
        }
    }

    @Test("Labels that the training images do not have are refused by name") func unknownLabels() throws {
        try withPictures(perLabel: 2) { folder in
            try withPictures(["left", "up", "down"], perLabel: 1) { other in
                let error = ImprintError.labelMismatch(
                    folder: other.path(percentEncoded: false), unknown: ["down", "up"], labels: ["left", "right"])
                #expect(throws: error) { try train(folder, quickTraining { $0.validationFolder = other }) }
                let classifier = try ImageClassifier(train(folder, quickTraining(epochs: 1)))
                #expect(throws: error) { try classifier.evaluate(on: ImageFolder(at: other)) }
                for word in ["down, up", "left, right", other.lastPathComponent] { #expect("\(error)".contains(word)) }
            }
        }
    }

    @Test("Copies stay on one side of the split, and what that avoided is told", arguments: [true, false])
    func groups(keepsTogether: Bool) throws {
        try withPictures(perLabel: 4) { folder in
            for label in ["left", "right"] {
                for index in 0..<4 {
                    for copy in 1...4 {
                        try FileManager.default.copyItem(
                            at: folder.appending(path: "\(label)/\(index).png"),
                            to: folder.appending(path: "\(label)/\(index), copy \(copy)a.png"))
                    }
                }
            }
            var start: TrainingStart?
            var compared = 0
            let weights = try train(
                folder,
                quickTraining(epochs: 1) {
                    $0.validation = .fraction(0.25)
                    $0.keepsGroupsTogether = keepsTogether
                },
                onEvent: { event in
                    if case .started(let event) = event { start = event }
                    if case .comparing(let done, of: 40) = event { compared = done }
                })
            let leakage = try #require(start).leakage
            #expect(compared == (keepsTogether ? 40 : 0))
            let avoided: TrainingStart.Leakage? = if case .avoided(10, of: 10, _) = leakage { leakage } else { nil }
            #expect((avoided != nil) == keepsTogether && avoided == leakage)
            #expect(weights.training?.validationImages.values.reduce(0, +) == 10)
        }
    }

    @Test("Images to validate on that are trained on too are told") func leakingFolder() throws {
        try withPictures(perLabel: 4) { folder in
            try withPictures(perLabel: 3, seed: 9) { other in
                try FileManager.default.copyItem(
                    at: folder.appending(path: "left/2.png"), to: other.appending(path: "left/copy.png"))
                var leakage: TrainingStart.Leakage?
                _ = try train(
                    folder, quickTraining(epochs: 1) { $0.validationFolder = other },
                    onEvent: { if case .started(let start) = $0 { leakage = start.leakage } })
                #expect(leakage == .found(images: 1, of: 7))
            }
        }
    }

    // MARK: Ends

    @Test("Stopping in a later epoch gives the model of the last whole one") func stops() throws {
        try withPictures(perLabel: 8) { folder in
            var steps = 0
            let weights = try train(
                folder, quickTraining(epochs: 50), shouldStop: { steps >= 5 },
                onEvent: { if case .batch = $0 { steps += 1 } })
            #expect(steps == 5)
            let record = try #require(weights.training)
            #expect(record.history.map(\.epoch) == [1, 2])
            #expect(record.epochs == 50)
            // Of the half epoch nothing is left: the file is the one of a run that stops at the end of the second.
            steps = 0
            let whole = try train(
                folder, quickTraining(epochs: 50), shouldStop: { steps == 4 },
                onEvent: { if case .batch = $0 { steps += 1 } })
            #expect(try bytes(of: weights) == bytes(of: whole))
        }
    }

    @Test("Stopping at the end of an epoch counts it") func stopsAtEnd() throws {
        try withPictures(perLabel: 8) { folder in
            var steps = 0
            let weights = try train(
                folder, quickTraining(epochs: 50), shouldStop: { steps == 2 },
                onEvent: { if case .batch = $0 { steps += 1 } })
            #expect(weights.training?.history.map(\.epoch) == [1])
        }
    }

    @Test("Stopping before the first epoch is done is an error") func stopsTooEarly() throws {
        try withPictures(perLabel: 8) { folder in
            #expect(throws: ImprintError.stoppedTooEarly(checkpoint: nil)) {
                try train(folder, quickTraining(), shouldStop: { true })
            }
        }
    }

    @Test("A learning rate that is too high is an error that says so", arguments: ["lenet", "logonet"])
    func diverges(network: String) throws {
        try withPictures(perLabel: 8) { folder in
            let configuration = quickTraining(epochs: 6) {
                $0.start = .network(network, width: 0.125)
                $0.learningRate = 1e20
            }
            let error = #expect(throws: ImprintError.self) { try train(folder, configuration) }
            guard case .diverged(_, let learningRate) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(learningRate == 1e20)
            #expect(error.map { "\($0)".contains("lower") } == true)
        }
    }

    @Test("A last step that goes too far is an error, with and without validation", arguments: [0, 0.5])
    func divergesAtTheEnd(fraction: Double) throws {
        try withPictures(perLabel: 8) { folder in
            let configuration = quickTraining(epochs: 1) {
                $0.batchSize = 16
                $0.learningRate = 1e38
                // With validation the loss on it tells, without it the numbers themselves do.
                $0.weightDecay = fraction > 0 ? 0 : 1e6
                $0.validation = .fraction(fraction)
            }
            #expect(throws: ImprintError.diverged(epoch: 1, learningRate: 1e38)) { try train(folder, configuration) }
        }
    }

    @Test("A setting out of range is refused by name") func settings() throws {
        try withPictures(perLabel: 2) { folder in
            func expectRefusal(_ name: String, _ change: (inout ClassifierConfiguration) -> Void) {
                let error = #expect(throws: ImprintError.self) {
                    try train(folder, quickTraining(change: change))
                }
                guard case .invalidSetting(name, _, _) = error else {
                    Issue.record("\(name): \(String(describing: error))")
                    return
                }
            }
            expectRefusal("epochs") { $0.epochs = 0 }
            expectRefusal("batchSize") { $0.batchSize = 0 }
            expectRefusal("learningRate") { $0.learningRate = -1 }
            expectRefusal("learningRate") { $0.learningRate = .nan }
            expectRefusal("momentum") { $0.momentum = 1 }
            expectRefusal("weightDecay") { $0.weightDecay = .infinity }
            expectRefusal("labelSmoothing") { $0.labelSmoothing = 1 }
            expectRefusal("threads") { $0.threads = 0 }
            expectRefusal("inputSize") { $0.inputSize = 0 }
        }
    }

    @Test("Images that cannot be read are left out and told") func unreadable() throws {
        try withPictures(perLabel: 4) { folder in
            let bad = folder.appending(path: "left/bad.png")
            try Data("no picture".utf8).write(to: bad)
            var skipped: [SkippedImage] = []
            let weights = try train(
                folder, quickTraining(epochs: 1),
                onEvent: { if case .started(let start) = $0 { skipped = start.skipped } })
            #expect(skipped.map(\.url.lastPathComponent) == ["bad.png"])
            #expect(weights.training?.trainingImages == ["left": 4, "right": 4])
            let evaluation = try ImageClassifier(weights).evaluate(on: ImageFolder(at: folder))
            #expect(evaluation.skipped == skipped)
            #expect(evaluation.results.count == 8)
        }
    }
}
