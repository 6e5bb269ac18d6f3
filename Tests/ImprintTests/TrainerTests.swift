import Foundation
import Imprint
import ImprintCore
import ImprintFormats
import ImprintImages
import ImprintNetwork
import Synchronization
import TestSupport
import Testing

@Suite("Trainer") struct TrainerTests {
    /// Training on small pictures that takes a second.
    private func configuration(
        epochs: Int = 3, change: (inout TrainingConfiguration) -> Void = { _ in }
    )
        -> TrainingConfiguration
    {
        var configuration = TrainingConfiguration()
        configuration.start = .network("logonet", width: 0.125)
        configuration.inputSize = 16
        configuration.batchSize = 8
        configuration.epochs = epochs
        configuration.threads = 1
        configuration.validation = .split(.none)
        change(&configuration)
        return configuration
    }

    private func train(
        _ folder: URL, _ configuration: TrainingConfiguration, shouldStop: () -> Bool = { false },
        onEvent: (TrainingEvent) -> Void = { _ in }
    ) throws -> WeightsFile {
        try Trainer(folder: ImageFolder(at: folder), configuration: configuration)
            .train(onEvent: onEvent, shouldStop: shouldStop)
    }

    private func bytes(_ weights: WeightsFile) throws -> Data {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "x.imprint")
            try weights.write(to: url)
            return try Data(contentsOf: url)
        }
    }

    // MARK: Learning

    @Test("A seeded run learns which side is brighter", arguments: ["lenet", "logonet"]) func learns(
        network: String
    ) throws {
        try withPictures(perLabel: 32) { folder in
            let configuration = configuration(epochs: 5) {
                $0.start = .network(network, width: 0.25)
                $0.validation = .split(.fraction(0.25))
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
            let configuration = configuration(epochs: 2) {
                $0.validation = .split(.fraction(0.2))
                $0.seed = 7
                $0.augmentation = Augmentation([.flipVertical, .exposure])
            }
            var events: [TrainingEvent] = []
            let weights = try train(folder, configuration, onEvent: { events.append($0) })
            let record = try #require(weights.training)
            #expect(weights.labels == ["left", "right"])
            #expect(weights.base == nil)
            #expect((record.seed, record.epochs, record.batchSize) == (7, 2, 8))
            #expect(record.augmentations == ["flip-vertical", "exposure"])
            #expect(record.trainingImages == ["left": 8, "right": 8])
            #expect(record.validationImages == ["left": 2, "right": 2])
            #expect(try record.dataDigest == ImageFolder(at: folder).digest)

            guard case .started(let start) = events.first else {
                Issue.record("the first event is \(String(describing: events.first))")
                return
            }
            #expect((start.trainingImages, start.validationImages, start.network) == (16, 4, "logonet"))
            #expect(start.labels == weights.labels)
            let steps = events.compactMap { if case .step(let step) = $0 { step } else { nil } }
            #expect(steps.map(\.epoch) == [1, 1, 2, 2])
            #expect(steps.map(\.imagesSeen) == [8, 16, 8, 16])
            let epochs = events.compactMap { if case .epoch(let metrics, _) = $0 { metrics } else { nil } }
            #expect(epochs == record.history)
            #expect(epochs.allSatisfy { $0.validationLoss != nil && $0.validationAccuracy != nil })
        }
    }

    @Test("Without validation the history has none") func noValidation() throws {
        try withPictures(perLabel: 4) { folder in
            let record = try #require(try train(folder, configuration(epochs: 1)).training)
            #expect(record.validationImages.isEmpty)
            #expect(record.history.allSatisfy { $0.validationLoss == nil && $0.validationAccuracy == nil })
        }
    }

    // MARK: Determinism

    @Test("Two runs give the same file, byte for byte, on any number of threads", arguments: [1, 2, 4])
    func deterministic(threads: Int) throws {
        try withPictures(perLabel: 9) { folder in
            let configuration = configuration(epochs: 2) {
                $0.augmentation = Augmentation([.flipVertical, .rotate, .crop, .exposure, .blur])
                $0.validation = .split(.fraction(0.2))
            }
            var threaded = configuration
            threaded.threads = threads
            let expected = try bytes(train(folder, configuration))
            #expect(try bytes(train(folder, threaded)) == expected)
        }
    }

    @Test("Another seed gives other numbers") func seeds() throws {
        try withPictures(perLabel: 4) { folder in
            let first = try train(folder, configuration(epochs: 1))
            let second = try train(folder, configuration(epochs: 1) { $0.seed = 1 })
            #expect(first.parameters["head.weight"] != second.parameters["head.weight"])
        }
    }

    // MARK: Transfer

    @Test("A base with other labels gets a new head; nothing else changes where the head is trained") func head() throws
    {
        let base = try withPictures(perLabel: 8) { try train($0, configuration(epochs: 2)) }
        try withPictures(["down", "left", "up"], perLabel: 8) { folder in
            let tuned = try train(folder, configuration(epochs: 2) { $0.start = .base(base, trains: .head) })
            #expect(tuned.labels == ["down", "left", "up"])
            #expect(tuned.network.output.channels == 3)
            #expect(tuned.preprocessing == base.preprocessing)
            for entry in base.parameters.layout.entries where entry.node != "head" {
                #expect(tuned.parameters[entry.name] == base.parameters[entry.name], "\(entry.name)")
            }
            let head = try #require(tuned.parameters["head.weight"])
            #expect(head.count == 3 * 32)
            let drawn = Parameters(tuned.network, seed: 0)
            #expect(head != drawn["head.weight"])
            let observations = try ImageClassifier(tuned).classify(Image(width: 16, height: 16))
            #expect(Set(observations.map(\.label)) == ["down", "left", "up"])
        }
    }

    @Test("The same labels go on from the head that was; all layers are trained where that is asked for") func all()
        throws
    {
        try withPictures(perLabel: 8) { folder in
            let base = try train(folder, configuration(epochs: 2))
            let before = base.parameters.copy()
            func tuned(learningRate: Float) throws -> WeightsFile {
                try train(
                    folder,
                    configuration(epochs: 1) {
                        $0.start = .base(base, trains: .all)
                        $0.learningRate = learningRate
                    })
            }
            let still = try tuned(learningRate: 0)
            let moved = try tuned(learningRate: 0.01)
            for entry in base.parameters.layout.entries {
                // The base is a value: training from it leaves it as it was.
                #expect(base.parameters[entry.name] == before[entry.name])
                #expect(moved.parameters[entry.name] != before[entry.name], "\(entry.name)")
                if entry.parameter.role != .statistic {
                    #expect(still.parameters[entry.name] == before[entry.name], "\(entry.name)")
                }
            }
        }
    }

    @Test("A run names the base that it began from") func lineage() throws {
        try withPictures(perLabel: 4) { folder in
            try withTemporaryFolder { place in
                let url = place.appending(path: "base.imprint")
                let digest = try train(folder, configuration(epochs: 1)).write(to: url)
                let base = try WeightsFile(contentsOf: url)
                let tuned = try train(folder, configuration(epochs: 1) { $0.start = .base(base) })
                #expect(tuned.base == digest)
            }
        }
    }

    @Test("A base without a dense layer at its end is refused") func noHead() throws {
        var builder = NetworkBuilder(name: "headless", input: Shape(height: 16, width: 16, channels: 3))
        builder.add(Convolution(outputChannels: 2, kernelSize: 3), named: "conv")
        builder.add(GlobalAveragePool())
        let network = try builder.network()
        let base = WeightsFile(
            network: network, parameters: Parameters(network, seed: 0), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 16, height: 16))
        try withPictures(perLabel: 2) { folder in
            #expect(throws: ImprintError.noHead(network: "headless")) {
                try train(folder, configuration { $0.start = .base(base) })
            }
        }
    }

    // MARK: Validation

    @Test("A folder to validate on is matched by label, and none of its images is trained on") func validationFolder()
        throws
    {
        try withPictures(["down", "left", "up"], perLabel: 6) { folder in
            try withPictures(["up"], perLabel: 3, seed: 9) { other in
                let weights = try train(folder, configuration(epochs: 3) { $0.validation = .folder(other) })
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
                #expect(throws: error) { try train(folder, configuration { $0.validation = .folder(other) }) }
                let classifier = try ImageClassifier(train(folder, configuration(epochs: 1)))
                #expect(throws: error) { try classifier.evaluate(on: ImageFolder(at: other)) }
                for word in ["down, up", "left, right", other.lastPathComponent] { #expect("\(error)".contains(word)) }
            }
        }
    }

    // MARK: Ends

    @Test("Stopping in a later epoch gives what was learned so far") func stops() throws {
        try withPictures(perLabel: 8) { folder in
            var steps = 0
            let weights = try train(
                folder, configuration(epochs: 50), shouldStop: { steps >= 5 },
                onEvent: { if case .step = $0 { steps += 1 } })
            #expect(steps == 5)
            let record = try #require(weights.training)
            #expect(record.history.map(\.epoch) == [1, 2])
            #expect(record.epochs == 50)
            _ = try bytes(weights)
        }
    }

    @Test("Stopping at the end of an epoch counts it") func stopsAtEnd() throws {
        try withPictures(perLabel: 8) { folder in
            var steps = 0
            let weights = try train(
                folder, configuration(epochs: 50), shouldStop: { steps == 2 },
                onEvent: { if case .step = $0 { steps += 1 } })
            #expect(weights.training?.history.map(\.epoch) == [1])
        }
    }

    @Test("Stopping before the first epoch is done is an error") func stopsTooEarly() throws {
        try withPictures(perLabel: 8) { folder in
            #expect(throws: ImprintError.stoppedTooEarly) {
                try train(folder, configuration(), shouldStop: { true })
            }
        }
    }

    @Test("A learning rate that is too high is an error that says so", arguments: ["lenet", "logonet"])
    func diverges(network: String) throws {
        try withPictures(perLabel: 8) { folder in
            let configuration = configuration(epochs: 6) {
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
            let configuration = configuration(epochs: 1) {
                $0.batchSize = 16
                $0.learningRate = 1e38
                // With validation the loss on it tells, without it the numbers themselves do.
                $0.weightDecay = fraction > 0 ? 0 : 1e6
                $0.validation = .split(.fraction(fraction))
            }
            #expect(throws: ImprintError.diverged(epoch: 1, learningRate: 1e38)) { try train(folder, configuration) }
        }
    }

    @Test("A setting out of range is refused by name") func settings() throws {
        try withPictures(perLabel: 2) { folder in
            func expectRefusal(_ name: String, _ change: (inout TrainingConfiguration) -> Void) {
                let error = #expect(throws: ImprintError.self) {
                    try train(folder, configuration(change: change))
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
                folder, configuration(epochs: 1),
                onEvent: { if case .started(let start) = $0 { skipped = start.skipped } })
            #expect(skipped.map(\.url.lastPathComponent) == ["bad.png"])
            #expect(weights.training?.trainingImages == ["left": 4, "right": 4])
            let evaluation = try ImageClassifier(weights).evaluate(on: ImageFolder(at: folder))
            #expect(evaluation.skipped == skipped)
            #expect(evaluation.results.count == 8)
        }
    }

    // MARK: Using the model

    @Test("Evaluating says of a file what classifying says, and both what the file read back says") func consistent()
        throws
    {
        try withPictures(["down", "left", "up"], perLabel: 4) { folder in
            let weights = try train(folder, configuration(epochs: 2))
            let images = try ImageFolder(at: folder)
            try withTemporaryFolder { place in
                let url = place.appending(path: "x.imprint")
                try weights.write(to: url)
                let classifier = try ImageClassifier(weights)
                let readBack = try ImageClassifier(contentsOf: url)
                for threads in [1, 3] {
                    let evaluation = try classifier.evaluate(on: images, threads: threads)
                    #expect(evaluation.results.map(\.url) == images.items.map(\.url))
                    for (result, item) in zip(evaluation.results, images.items) {
                        let observations = try classifier.classify(item.url)
                        #expect(try readBack.classify(item.url) == observations)
                        #expect(result.label == item.label)
                        #expect(observations[0].label == weights.labels[result.predicted])
                        for observation in observations {
                            let place = try #require(weights.labels.firstIndex(of: observation.label))
                            #expect(result.confidences[place] == observation.confidence)
                        }
                        #expect(observations.map(\.confidence) == result.confidences.sorted(by: >))
                        #expect(abs(result.confidences.reduce(0, +) - 1) < 1e-5)
                    }
                }
            }
        }
    }

    @Test("A classifier may be used from several threads at once") func concurrent() throws {
        try withPictures(perLabel: 8) { folder in
            let classifier = try ImageClassifier(train(folder, configuration(epochs: 1)))
            let files = try ImageFolder(at: folder).items.map(\.url)
            let expected = try files.map { try classifier.classify($0) }
            let results = Mutex([[[Observation]]?](repeating: nil, count: 4))
            DispatchQueue.concurrentPerform(iterations: 4) { thread in
                let observations = try? files.map { try classifier.classify($0) }
                results.withLock { $0[thread] = observations }
            }
            #expect(results.withLock { $0 } == Array(repeating: expected, count: 4))
        }
    }
}

/// Makes a folder of 20x20 noise pictures, each brighter on the side that its label names.
@discardableResult
private func withPictures<Result>(
    _ labels: [String] = ["left", "right"], perLabel: Int, seed: UInt64 = 0, _ body: (URL) throws -> Result
) throws -> Result {
    try withTemporaryFolder { folder in
        for label in labels {
            let place = folder.appending(path: label)
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            for index in 0..<perLabel {
                var stream = RandomStream(seed: seed, label, index)
                var image = Image(width: 20, height: 20)
                for y in 0..<20 {
                    for x in 0..<20 {
                        let isBright =
                            switch label {
                            case "left": x < 10
                            case "right": x >= 10
                            case "up": y < 10
                            default: y >= 10
                            }
                        for channel in 0..<3 {
                            let sample = stream.index(below: 120) + (isBright ? 120 : 0)
                            image.samples[(y * 20 + x) * 3 + channel] = UInt8(sample)
                        }
                    }
                }
                try ImageFile.write(image, to: place.appending(path: "\(index).png"))
            }
        }
        return try body(folder)
    }
}
