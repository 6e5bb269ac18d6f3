import Foundation
import Imprint
import ImprintImages
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

@Suite("Trainer") struct TrainerTests {
    // MARK: Learning

    @Test("Training learns which side of an image is brighter", arguments: ["lenet", "logonet"])
    func learns(network: String) throws {
        try withImages(perLabel: 32) { folder in
            let configuration = quickTraining(epochs: 5) {
                $0.start = .network(network, width: 0.25)
                $0.validation = .fraction(0.25)
                $0.seed = 5
            }
            let model = try train(folder, configuration)
            let history = try #require(model.training?.history)
            #expect(history.map(\.epoch) == [1, 2, 3, 4, 5])
            #expect(history[4].loss < history[0].loss / 2)
            #expect(try #require(model.training?.accuracy) >= 0.9)
            try withImages(perLabel: 10, seed: 99) { unseen in
                let evaluation = try ImageClassifier(model).evaluate(on: ImageFolder(at: unseen))
                #expect(evaluation.accuracy >= 0.9)
                #expect(evaluation.results.count == 20)
            }
        }
    }

    @Test("The training record and the events describe the run") func record() throws {
        try withImages(perLabel: 10) { folder in
            let configuration = quickTraining(epochs: 2) {
                $0.validation = .fraction(0.2)
                $0.seed = 7
                $0.augmentation = Augmentation([.flipVertical, .exposure])
            }
            var events: [TrainingEvent] = []
            let model = try train(folder, configuration, onEvent: { events.append($0) })
            let record = try #require(model.training)
            #expect(model.labels == ["left", "right"])
            #expect(model.baseDigest == nil)
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
                Issue.record("the first events are not comparing and reading all images: \(events.prefix(4))")
                return
            }
            #expect((start.trainingImages, start.validationImages, start.network) == (16, 4, "logonet"))
            #expect(start.labels == model.labels)
            let steps = events.compactMap { if case .batch(let step) = $0 { step } else { nil } }
            #expect(steps.map(\.epoch) == [1, 1, 2, 2])
            #expect(steps.map(\.imagesSeen) == [8, 16, 8, 16])
            let epochs = events.compactMap { if case .epoch(let metrics, _) = $0 { metrics } else { nil } }
            #expect(epochs == record.history)
            #expect(epochs.allSatisfy { $0.validationLoss != nil && $0.validationAccuracy != nil })
            #expect(record.precisionRecall.keys.sorted() == model.labels)
            // At the lowest threshold every image is predicted positive, and half of the images have each label.
            let lowest = try #require(record.precisionRecall["left"]?.first)
            #expect(lowest.precision == 0.5 && lowest.recall == 1)
        }
    }

    @Test("Without a validation set the history has no validation metrics") func noValidation() throws {
        try withImages(perLabel: 4) { folder in
            let record = try #require(try train(folder, quickTraining(epochs: 1)).training)
            #expect(record.validationImages.isEmpty)
            #expect(record.history.allSatisfy { $0.validationLoss == nil && $0.validationAccuracy == nil })
        }
    }

    // MARK: Determinism

    @Test("The model file is bitwise identical for any number of threads", arguments: [1, 2, 4])
    func deterministic(threads: Int) throws {
        try withImages(perLabel: 9) { folder in
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

    @Test("Mixed precision changes the parameters") func mixedPrecision() throws {
        try withImages(perLabel: 5) { folder in
            func model(usesMixedPrecision: Bool) throws -> Data {
                try bytes(
                    of: train(
                        folder,
                        quickTraining(epochs: 1) {
                            $0.start = .network("mobilenet-v1", width: 0.25)
                            $0.inputSize = 64
                            $0.usesMixedPrecision = usesMixedPrecision
                        }))
            }
            let mixed = try model(usesMixedPrecision: true)
            #expect(try model(usesMixedPrecision: true) == mixed)
            #expect(try model(usesMixedPrecision: false) != mixed)
        }
    }

    @Test("A different seed leads to different parameters") func seeds() throws {
        try withImages(perLabel: 4) { folder in
            let first = try train(folder, quickTraining(epochs: 1))
            let second = try train(folder, quickTraining(epochs: 1) { $0.seed = 1 })
            #expect(first.parameters["head.weight"] != second.parameters["head.weight"])
        }
    }

    // MARK: Validation

    @Test("A validation folder is matched by label, and its images are not trained on")
    func validationFolder() throws {
        try withImages(["down", "left", "up"], perLabel: 6) { folder in
            try withImages(["up"], perLabel: 3, seed: 9) { other in
                let model = try train(folder, quickTraining(epochs: 3) { $0.validationFolder = other })
                let record = try #require(model.training)
                #expect(record.trainingImages == ["down": 6, "left": 6, "up": 6])
                #expect(record.validationImages == ["up": 3])
                let evaluation = try ImageClassifier(model).evaluate(on: ImageFolder(at: other, minimumLabels: 1))
                #expect(evaluation.results.map(\.label) == [2, 2, 2])
                #expect(record.accuracy == Float(evaluation.accuracy))
            }
        }
    }

    @Test("Labels that the training images do not have are rejected by name") func unknownLabels() throws {
        try withImages(perLabel: 2) { folder in
            try withImages(["left", "up", "down"], perLabel: 1) { other in
                let error = ImprintError.labelMismatch(
                    source: other.path(percentEncoded: false), unknown: ["down", "up"], labels: ["left", "right"])
                #expect(throws: error) { try train(folder, quickTraining { $0.validationFolder = other }) }
                let classifier = try ImageClassifier(train(folder, quickTraining(epochs: 1)))
                #expect(throws: error) { try classifier.evaluate(on: ImageFolder(at: other)) }
                for word in ["down, up", "left, right", other.lastPathComponent] { #expect("\(error)".contains(word)) }
            }
        }
    }

    @Test(
        "Errors about unknown labels name the labels that they probably mean",
        arguments: [
            (
                .labelMismatch(source: "photos", unknown: ["Left", "dusk"], labels: ["left", "right"]),
                "does not have: \"Left\" (similar to \"left\"), dusk. Expected left, right."
            ),
            (
                .labelMismatch(source: "photos", unknown: ["a", "b", "c", "d", "e", "f"], labels: ["left"]),
                "does not have: a, b, c, d, e and 1 more label. Expected left."
            ),
            (
                .labelMismatch(source: "photos", unknown: ["up\u{200B}"], labels: ["Cat", "Cat\u{FEFF}"]),
                "does not have: up\\u{200B}. Expected Cat, Cat\\u{FEFF}."
            ),
            (.labelsDiffer(first: ["Left"], second: ["left"]), "only the first has \"Left\" (similar to \"left\")"),
            (.unknownLabel("lift", known: ["left"]), "\"lift\" (similar to \"left\") is not a label"),
            (.cannotAddLabel("left ", known: ["left"]), "\"left \" (similar to \"left\") is not a label"),
            (
                .cannotAddLabel("right", known: ["left"]),
                "\"right\" is not a label of the logo detector, which knows left."
            ),
        ] as [(ImprintError, String)])
    func similarLabels(error: ImprintError, text: String) {
        #expect("\(error)".contains(text), "\(error)")
    }

    @Test("Copies stay on one side of the split, and the avoided leakage is reported", arguments: [true, false])
    func groups(keepsTogether: Bool) throws {
        try withImages(perLabel: 4) { folder in
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
            let model = try train(
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
            #expect(model.training?.validationImages.values.reduce(0, +) == 10)
        }
    }

    @Test("Validation images that are also training images are reported") func leakingFolder() throws {
        try withImages(perLabel: 4) { folder in
            try withImages(perLabel: 3, seed: 9) { other in
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

    @Test("Stopping within an epoch returns the model of the last complete epoch") func stops() throws {
        try withImages(perLabel: 8) { folder in
            var steps = 0
            let model = try train(
                folder, quickTraining(epochs: 50), shouldStop: { steps >= 5 },
                onEvent: { if case .batch = $0 { steps += 1 } })
            #expect(steps == 5)
            let record = try #require(model.training)
            #expect(record.history.map(\.epoch) == [1, 2])
            #expect(record.epochs == 50)
            // The incomplete epoch has no effect: the file equals that of a run that stops at the end of the second epoch.
            steps = 0
            let whole = try train(
                folder, quickTraining(epochs: 50), shouldStop: { steps == 4 },
                onEvent: { if case .batch = $0 { steps += 1 } })
            #expect(try bytes(of: model) == bytes(of: whole))
        }
    }

    @Test("Stopping at the end of an epoch keeps that epoch") func stopsAtEnd() throws {
        try withImages(perLabel: 8) { folder in
            var steps = 0
            let model = try train(
                folder, quickTraining(epochs: 50), shouldStop: { steps == 2 },
                onEvent: { if case .batch = $0 { steps += 1 } })
            #expect(model.training?.history.map(\.epoch) == [1])
        }
    }

    @Test("Stopping before the end of the first epoch is an error") func stopsTooEarly() throws {
        try withImages(perLabel: 8) { folder in
            #expect(throws: ImprintError.stoppedTooEarly(checkpoint: nil)) {
                try train(folder, quickTraining(), shouldStop: { true })
            }
        }
    }

    @Test("Stopping while photos are compared ends the run after the current portion") func stopsComparing() throws {
        try withImages(perLabel: 20) { folder in
            var compared: [Int] = []
            #expect(throws: ImprintError.stoppedTooEarly(checkpoint: nil)) {
                try train(
                    folder, quickTraining { $0.validation = .fraction(0.5) }, shouldStop: { !compared.isEmpty },
                    onEvent: { if case .comparing(let done, _) = $0 { compared.append(done) } })
            }
            #expect(compared == [32])
        }
    }

    @Test("Divergence is an error that recommends a lower learning rate", arguments: ["lenet", "logonet"])
    func diverges(network: String) throws {
        try withImages(perLabel: 8) { folder in
            let configuration = quickTraining(epochs: 6) {
                $0.start = .network(network, width: 0.125)
                $0.learningRate = 1e20
            }
            let error = #expect(throws: ImprintError.self) { try train(folder, configuration) }
            guard case .diverged(_, let learningRate, false) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(learningRate == 1e20)
            #expect(error.map { "\($0)".contains("lower") } == true)
        }
    }

    @Test("Divergence in the last step is an error, with and without validation", arguments: [0, 0.5])
    func divergesAtTheEnd(fraction: Double) throws {
        try withImages(perLabel: 8) { folder in
            let configuration = quickTraining(epochs: 1) {
                $0.batchSize = 16
                $0.learningRate = 1e38
                // With a validation set the validation loss shows the divergence, without one the parameters do.
                $0.weightDecay = fraction > 0 ? 0 : 1e6
                $0.validation = .fraction(fraction)
            }
            #expect(throws: ImprintError.diverged(epoch: 1, learningRate: 1e38, isDetector: false)) {
                try train(folder, configuration)
            }
        }
    }

    @Test("A setting out of range is rejected by name") func settings() throws {
        try withImages(perLabel: 2) { folder in
            func expectError(_ name: String, _ change: (inout ClassifierConfiguration) -> Void) {
                let error = #expect(throws: ImprintError.self) {
                    try train(folder, quickTraining(change: change))
                }
                guard case .invalidSetting(name, _, _) = error else {
                    Issue.record("\(name): \(String(describing: error))")
                    return
                }
            }
            expectError("epochs") { $0.epochs = 0 }
            expectError("batchSize") { $0.batchSize = 0 }
            expectError("learningRate") { $0.learningRate = -1 }
            expectError("learningRate") { $0.learningRate = .nan }
            expectError("momentum") { $0.momentum = 1 }
            expectError("weightDecay") { $0.weightDecay = .infinity }
            expectError("labelSmoothing") { $0.labelSmoothing = 1 }
            expectError("threads") { $0.threads = 0 }
            expectError("inputSize") { $0.inputSize = 0 }
        }
    }

    @Test(
        "A validation fraction or schedule out of range is rejected",
        arguments: [
            ("validation", .fraction(1), .constant), ("validation", .fraction(-0.1), .constant),
            ("validation", .fraction(.nan), .constant), ("schedule", .none, .cosine(final: -1)),
            ("schedule", .none, .step(every: 1, factor: -1)), ("schedule", .none, .exponential(from: .min, to: 1)),
        ] as [(String, ValidationRule, LearningRateSchedule.Shape)])
    func ranges(name: String, validation: ValidationRule, schedule: LearningRateSchedule.Shape) throws {
        try withImages(perLabel: 2) { folder in
            let configuration = quickTraining {
                $0.validation = validation
                $0.schedule = schedule
            }
            let error = #expect(throws: ImprintError.self) { try train(folder, configuration) }
            guard case .invalidSetting(name, _, _) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test("Unreadable images are skipped and reported") func unreadable() throws {
        try withImages(perLabel: 4) { folder in
            let bad = folder.appending(path: "left/bad.png")
            try Data("no image".utf8).write(to: bad)
            var skipped: [SkippedImage] = []
            let model = try train(
                folder, quickTraining(epochs: 1),
                onEvent: { if case .started(let start) = $0 { skipped = start.skipped } })
            #expect(skipped.map(\.url.lastPathComponent) == ["bad.png"])
            #expect(model.training?.trainingImages == ["left": 4, "right": 4])
            let evaluation = try ImageClassifier(model).evaluate(on: ImageFolder(at: folder))
            #expect(evaluation.skipped == skipped)
            #expect(evaluation.results.count == 8)
        }
    }
}
