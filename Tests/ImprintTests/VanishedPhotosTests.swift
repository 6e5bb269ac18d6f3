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

/// Photos that could be read when training began and cannot be read any more.
@Suite("Vanished photos") struct VanishedPhotosTests {
    private func run(
        _ folder: URL, _ configuration: ClassifierConfiguration, checkpoints: CheckpointOptions? = nil,
        afterEpoch epoch: Int = .max, _ change: @escaping () -> Void = {}
    ) throws -> TrainingResult {
        try ClassifierTrainer(photos: ImageFolder(at: folder), configuration: configuration, checkpoints: checkpoints)
            .train(
                onEvent: { if case .epoch(let metrics, _) = $0, metrics.epoch == epoch { change() } })
    }

    /// Reads photos again in each epoch.
    private func configuration(
        epochs: Int = 6, _ change: (inout ClassifierConfiguration) -> Void = { _ in }
    ) -> ClassifierConfiguration {
        quickTraining(epochs: epochs) {
            $0.memoryLimit = 0
            $0.validation = .fraction(0.25)
            change(&$0)
        }
    }

    @Test("If the folder vanishes, training ends with the best model up to then, and a resumed run continues")
    func folder() throws {
        try withPictures(perLabel: 12) { folder in
            try withTemporaryFolder { place in
                let away = place.appending(path: "away")
                let expected = try run(folder, configuration())
                let checkpoints = CheckpointOptions(
                    folder: place.appending(path: "run"), interval: .seconds(1000), resumes: true)
                let result = try run(folder, configuration(), checkpoints: checkpoints, afterEpoch: 3) {
                    try? FileManager.default.moveItem(at: folder, to: away)
                }
                #expect(result.ending == .photosLost && !result.isRepeatable)
                let record = try #require(result.weights.training)
                #expect(record.history.count == 3 && result.evaluation == nil && record.calibration == nil)
                let reason = try #require(result.photosLost)
                #expect("\(reason)".contains("cannot be read") && "\(reason)".contains(folder.lastPathComponent))
                let shorter = try self.run(away, configuration(epochs: 3))
                #expect(shorter.weights.training?.history.map(\.epoch) == [1, 2, 3])

                try FileManager.default.moveItem(at: away, to: folder)
                let end = try run(folder, configuration(), checkpoints: checkpoints)
                #expect(end.ending == .completed && end.weights.training?.history.count == 6)
                #expect(end.evaluation != nil && expected.evaluation != nil)
                // Steps of the epoch that was interrupted are in the model, but not in another run.
                #expect(expected.isRepeatable && !end.isRepeatable)
            }
        }
    }

    @Test("If the folder vanishes before the first epoch is done, there is no model and the reason is an error")
    func noModel() throws {
        try withPictures(perLabel: 8) { folder in
            let trainer = try ClassifierTrainer(photos: ImageFolder(at: folder), configuration: configuration())
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
        "If all photos of a label vanish, training ends with the best model from before and no evaluation of the rest",
        arguments: [0.5, 0.25])
    func label(validation: Double) throws {
        // The other label has more photos: those that are left are more than half.
        try withPictures(perLabel: 12) { folder in
            for index in 4..<12 {
                try FileManager.default.removeItem(at: folder.appending(path: "right/\(index).png"))
            }
            let result = try run(
                folder, configuration { $0.validation = .fraction(validation) }, afterEpoch: 2
            ) { try? FileManager.default.removeItem(at: folder.appending(path: "right")) }
            #expect(result.ending == .photosLost && result.weights.training?.history.count == 2)
            #expect(result.evaluation == nil)
            #expect("\(try #require(result.photosLost))".contains("label \"right\""))
        }
    }

    @Test("If only training photos vanish, the model is still calibrated and evaluated") func trainingOnly() throws {
        try withPictures(perLabel: 8) { folder in
            try withPictures(perLabel: 8, seed: 1) { validation in
                let result = try run(folder, configuration { $0.validationFolder = validation }, afterEpoch: 2) {
                    try? FileManager.default.removeItem(at: folder)
                }
                #expect(result.ending == .photosLost && result.weights.training?.history.count == 2)
                #expect(result.evaluation?.results.count == 16 && result.weights.training?.calibration != nil)
            }
        }
    }

    @Test("An epoch does not become the best one because hard validation photos have vanished") func comparison() throws
    {
        try withPictures(perLabel: 12) { folder in
            // Validation photos of the wrong label: no epoch gets them right.
            try withPictures(perLabel: 6, seed: 1) { validation in
                let hard = try (0..<3).map { index in
                    let file = validation.appending(path: "right/hard \(index).png")
                    try FileManager.default.copyItem(at: folder.appending(path: "left/\(index).png"), to: file)
                    return file
                }
                // A rate at which the second half only makes the model worse.
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
                #expect(result.ending == .completed && result.lost.count == 3)
                // The same choice as a run that never had these photos: the losses are those on the same photos.
                let expected = try run(folder, configuration)
                let losses = try #require(expected.weights.training).history.compactMap(\.validationLoss)
                let best = try #require(losses.indices.min { losses[$0] < losses[$1] })
                let kept = try #require(result.weights.training?.keptEpoch)
                #expect(kept == best + 1 || (best < 2 && kept <= 2), "kept \(kept), losses \(losses)")
            }
        }
    }

    @Test("A resumed run compares epochs on the validation photos that are back") func comparisonAfterResuming() throws
    {
        try withPictures(perLabel: 12) { folder in
            try withPictures(perLabel: 8, seed: 1) { validation in
                // No epoch gets the photos of this label right: without them, the loss is far lower.
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
                    // A rate at which the fourth epoch is better than the third, but not than the third without the hard photos.
                    $0.learningRate = 0.001
                    $0.schedule = .constant
                    $0.calibrates = false
                }
                try withTemporaryFolder { place in
                    let checkpoints = CheckpointOptions(
                        folder: place.appending(path: "run"), interval: .seconds(1000), resumes: true)
                    let away = place.appending(path: "away")
                    let result = try run(folder, configuration, checkpoints: checkpoints, afterEpoch: 3) {
                        try? FileManager.default.moveItem(at: hard, to: away)
                    }
                    #expect(result.ending == .photosLost)
                    try FileManager.default.moveItem(at: away, to: hard)
                    let end = try run(folder, configuration, checkpoints: checkpoints)
                    let record = try #require(end.weights.training)
                    let losses = record.history.compactMap(\.validationLoss)
                    let best = try #require(losses.indices.min { losses[$0] < losses[$1] })
                    #expect(
                        losses.count == 5 && record.keptEpoch == best + 1, "kept \(record.keptEpoch ?? 0) of \(losses)")
                }
            }
        }
    }

    @Test("A photo that comes back is not measured on again, so that all later epochs compare") func returning() throws
    {
        try withPictures(perLabel: 8) { folder in
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

    @Test("A resumed run counts the leaks that it avoids among the photos of now") func leaksAfterResume() throws {
        try withPictures(perLabel: 12) { folder in
            try withTemporaryFolder { place in
                let checkpoints = CheckpointOptions(
                    folder: place.appending(path: "run"), interval: .zero, resumes: true)
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
                    Issue.record("the photos of the test are to differ")
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
                    Issue.record("the resumed run has no leakage")
                    return
                }
                #expect(images > 0 && total == 24 && groups == 24)
            }
        }
    }
}
