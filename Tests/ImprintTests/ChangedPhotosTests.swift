import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

/// Tests of runs that resume with other photos than those of their checkpoint.
@Suite("Runs with changed photos") struct ChangedPhotosTests {
    @Test("A run does not resume if most of its photos are missing or edited", arguments: [true, false])
    func otherPhotos(renames: Bool) throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                let file = scratch.appending(path: CheckpointOptions.fileName)
                _ = try train(folder, quickTraining(epochs: 1), checkpoints: options)
                let checkpoint = try Data(contentsOf: file)
                func replace(_ name: String) throws {
                    let photo = folder.appending(path: name)
                    if renames {
                        try FileManager.default.moveItem(at: photo, to: photo.appendingPathExtension("png"))
                    } else {
                        try ImageFile.write(RasterImage(width: 40, height: 30, filledWith: 90), to: photo)
                    }
                }
                // With half of its photos, the run resumes.
                for index in 0..<8 { try replace("left/\(index).png") }
                let half = try train(folder, quickTraining(epochs: 2), checkpoints: options)
                #expect(half.training?.history.count == 2)
                try checkpoint.write(to: file)
                try replace("right/0.png")
                var portions = 0
                #expect(throws: ImprintError.checkpointOfOtherPhotos(file: file.path, kept: 7, of: 16)) {
                    try train(
                        folder, quickTraining(epochs: 2), checkpoints: options,
                        onEvent: { if case .reading = $0 { portions += 1 } })
                }
                #expect(portions == 0)
                #expect(try Data(contentsOf: file) == checkpoint)
            }
        }
    }

    @Test("A run knows photos in memory by their content, because their sizes and identifiers are often equal")
    func otherPhotosInMemory() throws {
        try withTemporaryFolder { scratch in
            let file = scratch.appending(path: CheckpointOptions.fileName)
            func edited(_ count: Int, epochs: Int) throws -> Int? {
                var source = InMemorySource(labels: ["dark", "bright"])
                for index in 0..<8 {
                    let value = UInt8(20 * index + (index < count ? 90 : 0))
                    let image = RasterImage(width: 40, height: 30, filledWith: value)
                    try source.append(image, labels: [index < 4 ? "dark" : "bright"])
                }
                var resumed: TrainingStart.Resumption?
                _ = try ClassifierTrainer(
                    photos: source, configuration: quickTraining(epochs: epochs),
                    checkpoints: CheckpointOptions(folder: scratch, resumes: true)
                ).train(onEvent: { if case .started(let start) = $0 { resumed = start.resumed } })
                return resumed?.editedImages
            }
            let (first, same) = (try edited(0, epochs: 1), try edited(0, epochs: 2))
            #expect(first == nil && same == 0)
            #expect(throws: ImprintError.checkpointOfOtherPhotos(file: file.path, kept: 0, of: 8)) {
                try edited(8, epochs: 3)
            }
            let three = try edited(3, epochs: 3)
            #expect(three == 3)
        }
    }

    @Test("A finished run resumes with other photos only if it trains longer", arguments: [true, false])
    func finishedRun(addsPhoto: Bool) throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                let file = scratch.appending(path: CheckpointOptions.fileName)
                _ = try train(folder, quickTraining(epochs: 2), checkpoints: options)
                let checkpoint = try Data(contentsOf: file)
                let photo = folder.appending(path: "left/0.png")
                if addsPhoto {
                    try FileManager.default.copyItem(at: photo, to: folder.appending(path: "left/new.png"))
                } else {
                    try FileManager.default.removeItem(at: photo)
                }
                #expect(
                    throws: ImprintError.finishedWithOtherPhotos(
                        file: file.path, change: addsPhoto ? "1 new" : "1 missing", canTrainLonger: true)
                ) { try train(folder, quickTraining(epochs: 2), checkpoints: options) }
                #expect(try Data(contentsOf: file) == checkpoint)
                let longer = try train(folder, quickTraining(epochs: 3), checkpoints: options)
                #expect(longer.training?.dataDigest == (try ImageFolder(at: folder).digest))
                #expect(longer.training?.trainingImages["left"] == (addsPhoto ? 9 : 7))
            }
        }
    }

    @Test(
        "A photo that cannot be read since the checkpoint is named, and does not count as missing",
        arguments: [false, true])
    func unreadablePhoto(isFinished: Bool) throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                _ = try train(folder, quickTraining(epochs: 2), checkpoints: options)
                let photo = folder.appending(path: "left/0.png")
                let content = try Data(contentsOf: photo)
                try content.prefix(content.count / 2).write(to: photo)
                var resumed: TrainingStart.Resumption?
                func resume(epochs: Int) throws {
                    _ = try train(
                        folder, quickTraining(epochs: epochs), checkpoints: options,
                        onEvent: { if case .started(let start) = $0 { resumed = start.resumed } })
                }
                let change = "1 unreadable: left/0.png"
                if isFinished {
                    let file = scratch.appending(path: CheckpointOptions.fileName)
                    #expect(
                        throws: ImprintError.finishedWithOtherPhotos(
                            file: file.path, change: change, canTrainLonger: true)
                    ) { try resume(epochs: 2) }
                } else {
                    try resume(epochs: 3)
                    #expect(resumed?.unreadableImages == ["left/0.png"] && resumed?.missingImages == 0)
                    #expect(resumed?.changeDescription == change)
                }
            }
        }
    }

    @Test("The error about a finished run of a detector with other photos does not advise to train longer")
    func finishedDetector() throws {
        try withTemporaryFolder { folder in
            let artwork = try writeCross(to: folder)
            let photos = folder.appending(path: "photos")
            try writeNoise(to: photos, labels: ["cross", "other"], count: 6) { _, _, _, _ in }
            let scratch = folder.appending(path: "run")
            func run() throws {
                _ = try trainDetector(
                    ["cross": [artwork]], photos: ImageFolder(at: photos), steps: [1, 1], poolSize: 2,
                    checkpoints: CheckpointOptions(folder: scratch, resumes: true)
                ) { $0.validation = .none }
            }
            try run()
            let photo = photos.appending(path: "other/0.png")
            try FileManager.default.copyItem(at: photo, to: photos.appending(path: "other/new.png"))
            let file = scratch.appending(path: CheckpointOptions.fileName)
            let error = ImprintError.finishedWithOtherPhotos(file: file.path, change: "1 new", canTrainLonger: false)
            #expect(throws: error) { try run() }
            #expect(!error.description.contains("more epochs"))
        }
    }

    @Test("The error about a finished run of the recipe head with other photos does not advise to train longer")
    func finishedHead() throws {
        let base = try withImages(["down", "up"], perLabel: 4, seed: 1) { try train($0, quickTraining(epochs: 1)) }
        try withImages(perLabel: 4) { folder in
            try withTemporaryFolder { scratch in
                let configuration = quickTraining { $0.start = .pretrained(base, recipe: .head) }
                let options = CheckpointOptions(folder: scratch, resumes: true)
                _ = try train(folder, configuration, checkpoints: options)
                let photo = folder.appending(path: "left/0.png")
                try FileManager.default.copyItem(at: photo, to: folder.appending(path: "left/new.png"))
                let file = scratch.appending(path: CheckpointOptions.fileName)
                #expect(
                    throws: ImprintError.finishedWithOtherPhotos(
                        file: file.path, change: "1 new", canTrainLonger: false)
                ) { try train(folder, configuration, checkpoints: options) }
            }
        }
    }

    @Test(
        "A run that early stopping ended trains on if its photos have changed, otherwise only writes its model again"
    )
    func stoppedEarly() throws {
        try withImages(perLabel: 12) { folder in
            try withTemporaryFolder { scratch in
                func result(onEvent: @escaping (TrainingEvent) -> Void = { _ in }) throws -> TrainingResult {
                    try ClassifierTrainer(
                        photos: ImageFolder(at: folder),
                        configuration: quickTraining(epochs: 60) {
                            $0.validation = .fraction(0.5)
                            $0.learningRate = 0.5
                            $0.schedule = .constant
                            $0.patience = 1
                        }, checkpoints: CheckpointOptions(folder: scratch, resumes: true)
                    ).train(onEvent: onEvent)
                }
                let stopped = try result()
                let count = try #require(stopped.model.training?.history.count)
                #expect(stopped.ending == .noImprovement && count < 60)
                #expect(try result().model.training?.history.count == count)
                try FileManager.default.copyItem(
                    at: folder.appending(path: "left/0.png"), to: folder.appending(path: "left/new.png"))
                var resumed: TrainingStart.Resumption?
                let longer = try result { if case .started(let start) = $0 { resumed = start.resumed } }
                #expect(resumed?.hasSameImages == false && resumed?.newImages == 1)
                #expect(try #require(longer.model.training?.history.count) > count)
            }
        }
    }

    @Test("A run that resumed with other photos does not end with the model of the earlier ones, unless they are back")
    func earlierModelAtTheEnd() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                let file = scratch.appending(path: CheckpointOptions.fileName)
                let expected = try bytes(of: train(folder, quickTraining(epochs: 2), checkpoints: options))
                let new = folder.appending(path: "left/new.png")
                try FileManager.default.copyItem(at: folder.appending(path: "left/0.png"), to: new)
                var batches = 0
                let stopped = try train(
                    folder, quickTraining(epochs: 3), checkpoints: options, shouldStop: { batches == 1 },
                    onEvent: { if case .batch = $0 { batches += 1 } })
                #expect(batches == 1 && stopped.training?.history.count == 2)
                #expect(
                    throws: ImprintError.finishedWithOtherPhotos(
                        file: file.path, change: "1 new", canTrainLonger: true)
                ) {
                    try train(folder, quickTraining(epochs: 2), checkpoints: options)
                }
                try FileManager.default.removeItem(at: new)
                let model = try train(folder, quickTraining(epochs: 2), checkpoints: options)
                #expect(try bytes(of: model) == expected)
            }
        }
    }
}
