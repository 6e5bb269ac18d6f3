import Foundation
import ImprintImages
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintSynthesis
@testable import ImprintTraining

/// Tests of photos that become unreadable during training.
@Suite("Vanished photos") struct VanishedPhotosTests {
    /// Trains a classifier, and calls `change` after an epoch.
    private func run(
        _ folder: URL, _ configuration: ClassifierConfiguration, checkpoints: CheckpointOptions? = nil,
        afterEpoch epoch: Int = .max, _ change: @escaping () -> Void = {}
    ) throws -> TrainingResult {
        try ClassifierTrainer(photos: ImageFolder(at: folder), configuration: configuration, checkpoints: checkpoints)
            .train(
                onEvent: { if case .epoch(let metrics, _) = $0, metrics.epoch == epoch { change() } })
    }

    /// Returns a configuration without an image cache, so that photos are read again in each epoch.
    private func configuration(
        epochs: Int = 6, _ change: (inout ClassifierConfiguration) -> Void = { _ in }
    ) -> ClassifierConfiguration {
        quickTraining(epochs: epochs) {
            $0.memoryLimit = 0
            $0.validation = .fraction(0.25)
            change(&$0)
        }
    }

    @Test("If the folder vanishes, training returns the best model so far, and the run can be resumed later")
    func folder() throws {
        try withImages(perLabel: 12) { folder in
            try withTemporaryFolder { scratch in
                let away = scratch.appending(path: "away")
                let expected = try run(folder, configuration())
                let checkpoints = CheckpointOptions(
                    folder: scratch.appending(path: "run"), interval: .seconds(1000), resumes: true)
                let result = try run(folder, configuration(), checkpoints: checkpoints, afterEpoch: 3) {
                    try? FileManager.default.moveItem(at: folder, to: away)
                }
                #expect(result.ending == .tooFewReadablePhotos && !result.isRepeatable)
                let record = try #require(result.model.training)
                #expect(record.history.count == 3 && result.evaluation == nil && record.calibration == nil)
                let reason = try #require(result.photoError)
                #expect("\(reason)".contains("cannot be read") && "\(reason)".contains(folder.lastPathComponent))
                let shorter = try self.run(away, configuration(epochs: 3))
                #expect(shorter.model.training?.history.map(\.epoch) == [1, 2, 3])

                try FileManager.default.moveItem(at: away, to: folder)
                let end = try run(folder, configuration(), checkpoints: checkpoints)
                #expect(end.ending == .completed && end.model.training?.history.count == 6)
                #expect(end.evaluation != nil && expected.evaluation != nil)
                // The model includes steps of the interrupted epoch, which another run would not.
                #expect(expected.isRepeatable && !end.isRepeatable)
            }
        }
    }

    @Test(
        "If the folder vanishes before the first epoch or in the learning-rate range test, training throws the reason",
        arguments: [0.02, nil] as [Float?])
    func noModel(learningRate: Float?) throws {
        try withImages(perLabel: 8) { folder in
            let trainer = try ClassifierTrainer(
                photos: ImageFolder(at: folder), configuration: configuration { $0.learningRate = learningRate })
            let error = #expect(throws: ImprintError.self) {
                try trainer.train(onEvent: {
                    if case .started = $0 { try? FileManager.default.removeItem(at: folder) }
                })
            }
            guard case .tooFewReadablePhotos(let reason, nil) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(reason.contains("cannot be read"))
        }
    }

    @Test(
        "If all photos of a label vanish, training returns the best model so far without an evaluation",
        arguments: [0.5, 0.25])
    func label(validation: Double) throws {
        // The other label has so many photos that more than half of all photos remain.
        try withImages(perLabel: 12) { folder in
            for index in 4..<12 {
                try FileManager.default.removeItem(at: folder.appending(path: "right/\(index).png"))
            }
            let result = try run(
                folder, configuration { $0.validation = .fraction(validation) }, afterEpoch: 2
            ) { try? FileManager.default.removeItem(at: folder.appending(path: "right")) }
            #expect(result.ending == .tooFewReadablePhotos && result.model.training?.history.count == 2)
            #expect(result.evaluation == nil)
            #expect("\(try #require(result.photoError))".contains("label \"right\""))
        }
    }

    @Test("The number of unreadable photos may be large", .timeLimit(.minutes(1))) func many() {
        let photos = (0..<40_000).map { index in
            TrainingPhoto(url: URL(filePath: "/photos/\(index).png", directoryHint: .notDirectory), label: index % 2)
        }
        let unreadable = UnreadablePhotos(training: photos, validation: [], labels: ["even", "odd"])
        for photo in photos {
            unreadable.add(SkippedImage(url: photo.url, reason: .unreadable(file: photo.url, reason: "gone")))
        }
        #expect(unreadable.all.count == photos.count && !unreadable.affectsValidation)
        // The first problem is kept: one photo more than half of them.
        guard case .tooManyUnreadable(let count, let skipped) = unreadable.problem else {
            Issue.record("unexpected: \(String(describing: unreadable.problem))")
            return
        }
        #expect(count == photos.count && skipped.count == photos.count / 2 + 1)
    }

    @Test("If only training photos vanish, the model is still calibrated and evaluated") func trainingOnly() throws {
        try withImages(perLabel: 8) { folder in
            try withImages(perLabel: 8, seed: 1) { validation in
                let result = try run(folder, configuration { $0.validationFolder = validation }, afterEpoch: 2) {
                    try? FileManager.default.removeItem(at: folder)
                }
                #expect(result.ending == .tooFewReadablePhotos && result.model.training?.history.count == 2)
                #expect(result.evaluation?.results.count == 16 && result.model.training?.calibration != nil)
            }
        }
    }

    @Test("The evaluation lists a validation photo that vanishes during training") func skipped() throws {
        try withImages(perLabel: 8) { folder in
            try withImages(perLabel: 8, seed: 1) { validation in
                let configuration = configuration(epochs: 3) {
                    $0.validationFolder = validation
                    $0.keepsGroupsTogether = false
                }
                let result = try run(folder, configuration, afterEpoch: 1) {
                    try? FileManager.default.removeItem(at: validation.appending(path: "left/3.png"))
                }
                let evaluation = try #require(result.evaluation)
                #expect(result.ending == .completed && evaluation.results.count == 15)
                #expect(evaluation.skipped.map(\.url.lastPathComponent) == ["3.png"])
            }
        }
    }

    @Test("An epoch does not become the best because hard validation photos have vanished") func comparison() throws {
        try withImages(perLabel: 12) { folder in
            // Validation photos with the wrong label, which every epoch misclassifies.
            try withImages(perLabel: 6, seed: 1) { validation in
                let hard = try (0..<3).map { index in
                    let file = validation.appending(path: "right/hard \(index).png")
                    try FileManager.default.copyItem(at: folder.appending(path: "left/\(index).png"), to: file)
                    return file
                }
                // A learning rate at which the second half of training makes the model worse.
                let configuration = configuration(epochs: 6) {
                    $0.validationFolder = validation
                    $0.keepsGroupsTogether = false
                    $0.learningRate = 0.5
                    $0.schedule = .constant
                    $0.calibrates = false
                }
                let result = try run(folder, configuration, afterEpoch: 2) {
                    for file in hard { try? FileManager.default.removeItem(at: file) }
                }
                #expect(result.ending == .completed && result.unreadable.count == 3)
                // A run without these photos chooses the same epoch, because losses are compared on the same photos.
                let expected = try run(folder, configuration)
                let losses = try #require(expected.model.training).history.compactMap(\.validationLoss)
                let best = try #require(losses.indices.min { losses[$0] < losses[$1] })
                let kept = try #require(result.model.training?.keptEpoch)
                #expect(kept == best + 1 || (best < 2 && kept <= 2), "kept \(kept), losses \(losses)")
            }
        }
    }

    @Test("A resumed run compares epochs on the validation photos that are readable again")
    func comparisonAfterResuming() throws {
        try withImages(perLabel: 12) { folder in
            try withImages(perLabel: 8, seed: 1) { validation in
                // Every epoch misclassifies the photos of this label, so the loss is far lower without them.
                let hard = validation.appending(path: "left")
                try FileManager.default.removeItem(at: hard)
                try FileManager.default.createDirectory(at: hard, withIntermediateDirectories: true)
                for index in 0..<4 {
                    try FileManager.default.copyItem(
                        at: folder.appending(path: "right/\(index).png"), to: hard.appending(path: "\(index).png"))
                }
                let configuration = configuration(epochs: 5) {
                    $0.validationFolder = validation
                    $0.keepsGroupsTogether = false
                    // At this rate the fourth epoch is better than the third, but not better than the third without the hard photos.
                    $0.learningRate = 0.001
                    $0.schedule = .constant
                    $0.calibrates = false
                }
                try withTemporaryFolder { scratch in
                    let checkpoints = CheckpointOptions(
                        folder: scratch.appending(path: "run"), interval: .seconds(1000), resumes: true)
                    let away = scratch.appending(path: "away")
                    let result = try run(folder, configuration, checkpoints: checkpoints, afterEpoch: 3) {
                        try? FileManager.default.moveItem(at: hard, to: away)
                    }
                    #expect(result.ending == .tooFewReadablePhotos)
                    try FileManager.default.moveItem(at: away, to: hard)
                    let end = try run(folder, configuration, checkpoints: checkpoints)
                    let record = try #require(end.model.training)
                    let losses = record.history.compactMap(\.validationLoss)
                    let best = try #require(losses.indices.min { losses[$0] < losses[$1] })
                    #expect(
                        losses.count == 5 && record.keptEpoch == best + 1, "kept \(record.keptEpoch ?? 0) of \(losses)")
                }
            }
        }
    }

    @Test("A photo that becomes readable again stays excluded, so that later epochs remain comparable")
    func returning() throws {
        try withImages(perLabel: 8) { folder in
            let items = try ImageFolder(at: folder).items
            let loader = try BatchLoader(
                items: items, labels: ["left", "right"], preprocessing: Preprocessing(width: 16, height: 16),
                batchSize: 4, shuffles: false, seed: 0, workers: .init(2), memoryLimit: 0)
            let photo = items[3].url
            let bytes = try Data(contentsOf: photo)
            func indices(_ epoch: Int) throws -> [Int] {
                var indices: [Int] = []
                try loader.forEachBatch(epoch: epoch, onUnreadable: { _ in }) { indices += $0.indices }
                return indices
            }
            try FileManager.default.removeItem(at: photo)
            #expect(try indices(0).count == 15)
            try bytes.write(to: photo)
            #expect(try !indices(1).contains(3))
        }
    }

    @Test("Unreadable photos are sorted by path, because threads find them in any order") func order() {
        let photos = UnreadablePhotos(training: [], validation: [], labels: [])
        func add(_ names: [String]) {
            for url in names.map({ URL(filePath: "/\($0).png") }) {
                photos.add(SkippedImage(url: url, reason: .unreadable(file: url, reason: "it is missing")))
            }
        }
        add(["d", "b"])
        #expect(photos.takeNew().map(\.url.lastPathComponent) == ["b.png", "d.png"])
        add(["c", "a", "d"])
        #expect(photos.all.map(\.url.lastPathComponent) == ["b.png", "d.png", "a.png", "c.png"])
    }

    @Test("A resumed run counts avoided leaks among the current photos") func leaksAfterResume() throws {
        try withImages(perLabel: 12) { folder in
            try withTemporaryFolder { scratch in
                let checkpoints = CheckpointOptions(
                    folder: scratch.appending(path: "run"), interval: .zero, resumes: true)
                func leakage(epochs: Int) throws -> TrainingStart.Leakage? {
                    var found: TrainingStart.Leakage?
                    let trainer = try ClassifierTrainer(
                        photos: ImageFolder(at: folder),
                        configuration: quickTraining(epochs: epochs) { $0.validation = .fraction(0.5) },
                        checkpoints: checkpoints)
                    _ = try trainer.train(onEvent: { if case .started(let start) = $0 { found = start.leakage } })
                    return found
                }
                guard case .avoided(images: 0, _, _) = try leakage(epochs: 1) else {
                    Issue.record("the test photos contain near-duplicates")
                    return
                }
                for label in ["left", "right"] {
                    for index in 0..<12 {
                        try FileManager.default.copyItem(
                            at: folder.appending(path: "\(label)/\(index).png"),
                            to: folder.appending(path: "\(label)/copy \(index).png"))
                    }
                }
                guard case .avoided(let images, let total, let groups)? = try leakage(epochs: 2) else {
                    Issue.record("the resumed run reports no leakage")
                    return
                }
                #expect(images > 0 && total == 24 && groups == 24)
            }
        }
    }
}
