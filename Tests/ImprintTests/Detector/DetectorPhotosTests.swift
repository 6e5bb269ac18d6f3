import Foundation
import ImprintCore
import ImprintImages
import ImprintModel
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintNetwork
@testable import ImprintTraining

/// The photos of a detector run: their labels, the dataset split, and the photos for the calibration.
@Suite("Photos of detectors") struct DetectorPhotosTests {
    private func box(_ size: Float) -> NormalizedRectangle {
        NormalizedRectangle(x: 0.1, y: 0.1, width: size, height: size)
    }

    /// Returns a photo that does not exist.
    /// - Parameters:
    ///   - objects: The labels and the sizes of the objects.
    ///   - crowds: The labels of crowds, which are larger than any object.
    private func photo(_ index: Int, _ objects: [String: Float], crowds: [String] = []) -> AnnotatedPhoto {
        let found = objects.sorted { $0.key < $1.key }.map { label, size in
            AnnotatedPhoto.Object(label: label, box: box(size))
        }
        return AnnotatedPhoto(
            url: URL(filePath: "/photos/\(index).png"), width: 100, height: 100,
            objects: found + crowds.map { AnnotatedPhoto.Object(label: $0, box: box(0.9), isCrowd: true) })
    }

    /// Returns the source of a detector of cars and plates; their labels have the indices 1 and 2.
    private func source(_ photos: [AnnotatedPhoto]) throws -> DetectorSource {
        try DetectorSource(
            nil, labels: ["none", "car", "plate"], noLogoLabel: "none",
            annotations: BoxAnnotations(uncheckedLabels: ["bus", "car", "plate"], photos: photos))
    }

    private func task(
        _ annotations: BoxAnnotations, photos: ImageFolder? = nil, validation: BoxAnnotations? = nil,
        backgrounds: [URL]? = nil
    ) throws -> DetectorTask {
        try DetectorTask(
            artwork: [:], photos: photos, annotations: annotations, validation: validation, backgrounds: backgrounds,
            configuration: boxConfiguration(steps: 1))
    }

    private func read(_ task: DetectorTask, earlier: Checkpoint.Images? = nil) throws -> RunPhotos {
        var task = task
        return try task.readPhotos(earlier: earlier, onEvent: { _ in }, checkContinues: {})
    }

    // MARK: Labels

    @Test("A photo has the labels of its objects; crowds and unknown labels do not count") func labels() throws {
        let source = try source([
            photo(0, ["car": 0.5]), photo(1, [:]), photo(2, [:], crowds: ["bus"]),
            photo(3, ["plate": 0.1], crowds: ["bus"]), photo(4, [:], crowds: ["car"]),
            photo(5, ["car": 0.5, "plate": 0.1]), photo(6, ["car": 0.1, "plate": 0.5], crowds: ["car"]),
        ])
        #expect(source.items.map(\.labels) == [[1], [0], [0], [2], [0], [1, 2], [1, 2]])
        let main = source.items.map { source.label(of: $0) }
        #expect(main == ["car", "none", "none", "plate", "none", "car", "plate"])
    }

    @Test("A split holds out objects of every label, even of labels whose objects are never the largest")
    func split() throws {
        let photos = (0..<12).map { photo($0, $0 < 2 ? ["car": 0.8, "plate": 0.1] : ["car": 0.8]) }
        let source = try source(photos)
        for seed in 0..<20 {
            let (training, validation) = source.split(.fraction(0.5), seed: UInt64(seed))
            for part in [training, validation] {
                #expect(part.count { $0.labels.contains(2) } == 1, "seed \(seed)")
            }
        }
    }

    @Test("A split of a checkpoint that leaves no object of a label to train on is an error")
    func missingObjects() throws {
        try withTemporaryFolder { folder in
            let annotations = try annotatedFramesAndDiscs(in: folder, count: 18, seed: 1)
            let photos = annotations.photos.enumerated().map { index, photo in
                (
                    path: "annotated/\(index)/\(photo.url.lastPathComponent)",
                    showsFrame: photo.objects.contains { $0.label == "frame" }
                )
            }
            let earlier = Checkpoint.Images(
                digests: [], training: photos.filter { !$0.showsFrame }.map(\.path),
                validation: photos.filter(\.showsFrame).map(\.path), leakage: nil)
            let task = try task(annotations)
            let error = #expect(throws: ImprintError.self) { _ = try read(task, earlier: earlier) }
            let text = try #require(error).description
            #expect(text.contains("objects of \"frame\" in the training set of the checkpoint is 0"), "\(text)")
        }
    }

    @Test(
        "A label is missing in the validation set only if no photo shows it; with boxes, no photo without objects is needed",
        arguments: [true, false])
    func labelsWithoutValidation(showsFrame: Bool) throws {
        try withTemporaryFolder { folder in
            let training = try annotatedFramesAndDiscs(in: folder.appending(path: "a"), count: 12, seed: 1)
            let photos = try annotatedFramesAndDiscs(in: folder.appending(path: "b"), count: 2, seed: 2).photos
            // The frame is never the largest object.
            let objects = [("disc", 0.8), ("frame", 0.2)].prefix(showsFrame ? 2 : 1).map { label, size in
                AnnotatedPhoto.Object(label: label, box: box(Float(size)))
            }
            let validation = photos.map { photo in
                AnnotatedPhoto(url: photo.url, width: photo.width, height: photo.height, objects: objects)
            }
            let run = try read(
                task(training, validation: BoxAnnotations(uncheckedLabels: training.labels, photos: validation)))
            #expect(run.labelsWithoutValidation == (showsFrame ? [] : ["frame"]))
        }
    }

    // MARK: Validation photos

    @Test("Annotated validation photos in the folder of photos are not trained on", arguments: [false, true])
    func validationInFolder(isLinked: Bool) throws {
        try withTemporaryFolder { scratch in
            let folder = scratch.appending(path: "photos")
            let training = try annotatedFramesAndDiscs(in: folder.appending(path: "a"), count: 12, seed: 1)
            let validation = try annotatedFramesAndDiscs(in: folder.appending(path: "b"), count: 6, seed: 2)
            _ = try annotatedFramesAndDiscs(in: folder.appending(path: "c"), count: 3, seed: 3)
            let link = scratch.appending(path: "link")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder)
            let photos = try ImageFolder(at: isLinked ? link : folder, logos: ["disc", "frame"])
            let run = try read(task(training, photos: photos, validation: validation))
            #expect(run.trainingCount == 15 && run.validationCount == 6)
            #expect(run.checkpointImages.training.allSatisfy { !$0.hasPrefix("b/") })
            // Without validation photos in the folder, the digest of the photos does not change.
            let others = try ImageFolder(at: folder.appending(path: "c"), logos: ["disc", "frame"])
            let digests = try [nil, validation].map {
                try DetectorSource(
                    others, labels: ["none"] + training.labels, noLogoLabel: "none", annotations: training,
                    validation: $0
                ).digest
            }
            #expect(digests[0] == digests[1])
        }
    }

    @Test("If the validation photos cannot be read, training throws instead of continuing without a validation set")
    func unreadableValidation() throws {
        try withTemporaryFolder { folder in
            let training = try annotatedFramesAndDiscs(in: folder.appending(path: "a"), count: 12, seed: 1)
            let validation = try annotatedFramesAndDiscs(in: folder.appending(path: "b"), count: 6, seed: 2)
            let task = try task(training, validation: validation)
            try FileManager.default.removeItem(at: folder.appending(path: "b"))
            let error = #expect(throws: ImageError.self) { _ = try read(task) }
            #expect(try #require(error).description.contains("cannot be read"))
        }
    }

    @Test("An annotated photo that became unreadable since the checkpoint is named by its file path")
    func unreadableSinceCheckpoint() throws {
        try withTemporaryFolder { folder in
            let annotations = try annotatedFramesAndDiscs(in: folder, count: 18, seed: 1)
            let task = try task(annotations)
            let earlier = try read(task).checkpointImages
            let photo = annotations.photos[3].url
            let content = try Data(contentsOf: photo)
            try content.prefix(content.count / 2).write(to: photo)
            let images = try read(task, earlier: earlier).checkpointImages
            #expect(earlier.change(to: images).description == "1 unreadable: \(photo.path)")
        }
    }

    @Test("Validation photos among the annotated photos are not trained on") func validationAmongAnnotations() throws {
        try withTemporaryFolder { folder in
            let all = try annotatedFramesAndDiscs(in: folder, count: 18, seed: 1)
            let validation = BoxAnnotations(uncheckedLabels: all.labels, photos: Array(all.photos.prefix(6)))
            let run = try read(task(all, validation: validation))
            #expect(run.trainingCount == 12 && run.validationCount == 6)
            // Only validation photos are removed.
            #expect(all.removing(validation.locations).photos == Array(all.photos.dropFirst(6)))
            #expect(all.removing([]).photos == all.photos)
        }
    }

    @Test("The photos that the split holds out are not backgrounds of composites") func heldOutBackgrounds() throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writeNoise(to: photos, labels: ["cross", "other"], count: 6) { _, _, _, _ in }
            func result(_ backgrounds: [URL]) throws -> TrainingResult {
                try trainDetector(
                    ["cross": [artwork]], photos: ImageFolder(at: photos), backgrounds: backgrounds, steps: [1, 1],
                    poolSize: 4
                ) { $0.validation = .fraction(0.34) }
            }
            let all = try ImageFolder.images(in: photos.appending(path: "other"))
            let first = try result(all)
            let heldOut = Set(try #require(first.evaluation).results.map(\.url.path))
            let others = all.filter { !heldOut.contains($0.path) }
            try #require(!others.isEmpty && others.count < all.count)
            #expect(try bytes(of: result(others).model) == bytes(of: first.model))
        }
    }

    @Test("A photo whose boxes were all dropped is not a photo without objects of the folder")
    func droppedBoxes() throws {
        try withTemporaryFolder { folder in
            let all = try annotatedFramesAndDiscs(in: folder.appending(path: "a"), count: 12, seed: 1)
            let annotations = BoxAnnotations(
                uncheckedLabels: all.labels, photos: Array(all.photos.dropFirst()),
                withoutUsableBoxes: [all.photos[0].url])
            let photos = try ImageFolder(at: folder, logos: all.labels)
            let run = try read(task(annotations, photos: photos))
            #expect(run.trainingCount + run.validationCount == 11)
            #expect(annotations.selecting([]).withoutUsableBoxes == [all.photos[0].url])
        }
    }

    @Test("Annotated photos with objects, and validation photos, are not backgrounds of composites")
    func backgrounds() throws {
        try withTemporaryFolder { folder in
            let training = try annotatedFramesAndDiscs(in: folder.appending(path: "a"), count: 12, seed: 1)
            let validation = try annotatedFramesAndDiscs(in: folder.appending(path: "b"), count: 6, seed: 2)
            let files = (training.photos + validation.photos).map(\.url)
            let task = try task(training, validation: validation, backgrounds: files)
            // Every third training photo has no objects.
            #expect(task.fingerprint["backgrounds"]?.hasPrefix("4 photos") == true)
        }
    }

    // MARK: Phases

    @Test("An untrained network does not locate logos in photos without boxes") func firstPhase() throws {
        try withTemporaryFolder { scratch in
            let annotations = try annotatedFramesAndDiscs(in: scratch.appending(path: "a"), count: 12, seed: 1)
            let folder = scratch.appending(path: "photos")
            try writeNoise(to: folder, labels: ["disc", "other"], count: 3) { _, _, _, _ in }
            var task = try task(annotations, photos: ImageFolder(at: folder, logos: annotations.labels))
            _ = try task.readPhotos(earlier: nil, onEvent: { _ in }, checkContinues: {})
            let objective = try #require(try task.makeObjective(onScan: { _, _ in }).objective as? DetectorObjective)
            try #require(!objective.patches.positives.isEmpty)
            try objective.beginRound(0, at: 0, evaluationParameters: objective.plan.parameters)
            #expect(objective.patches.located.isEmpty)
            try objective.beginRound(1, at: 0, evaluationParameters: objective.plan.parameters)
            #expect(objective.patches.located.count == objective.patches.positives.count)
        }
    }

    // MARK: Calibration

    /// Returns photos that show at most one logo.
    private func items(_ count: Int, logo: Int?, isAnnotated: Bool = true) -> [DetectorPhotos.Item] {
        (0..<count).map { index in
            let photo = TrainingPhoto(url: URL(filePath: "/\(logo ?? -1)/\(isAnnotated)/\(index).png"), label: 0)
            let source = PatchSource(photo, width: 100, height: 100)
            let objects = logo.map { [GroundTruthObject(logo: $0, box(0.3), in: source)] } ?? []
            return DetectorPhotos.Item(
                photo: photo, label: "", logos: logo.map { [$0] } ?? [], objects: isAnnotated ? objects : nil,
                source: source, original: nil)
        }
    }

    @Test("The photos for a calibration are balanced over the logos, with annotated photos first") func balanced() {
        let photos = items(300, logo: 0) + items(50, logo: 1) + items(40, logo: nil, isAnnotated: false)
        let chosen = photos.balanced(over: [0, 1], count: 200)
        #expect(chosen.count { $0.shows(0) } == 110 && chosen.count { $0.shows(1) } == 50 && chosen.count == 200)
        #expect(chosen.map(\.url) == photos.map(\.url).filter(Set(chosen.map(\.url)).contains))
        #expect(chosen.map(\.url) == photos.balanced(over: [0, 1], count: 200).map(\.url))
        // A few photos are all used, in their order.
        let few = Array(photos.suffix(200))
        #expect(few.balanced(over: [0, 1], count: 200).map(\.url) == few.map(\.url))
        let mixed = items(10, logo: 0, isAnnotated: false) + items(10, logo: 0)
        #expect(mixed.balanced(over: [0], count: 10).allSatisfy { $0.objects != nil })
    }

    @Test("A label that no validation photo shows is calibrated with training photos") func calibration() throws {
        try withTemporaryFolder { folder in
            let training = try annotatedFramesAndDiscs(in: folder.appending(path: "a"), count: 12, seed: 1)
            let others = try annotatedFramesAndDiscs(in: folder.appending(path: "b"), count: 18, seed: 2).photos
            let validation = BoxAnnotations(
                uncheckedLabels: training.labels,
                photos: others.filter { photo in !photo.objects.contains { $0.label == "frame" } })
            try #require(validation.usedLabels == ["disc"])
            let result = try DetectorTrainer(
                annotations: training, validation: validation,
                configuration: boxConfiguration(steps: 1)
            ).train()
            for logo in try #require(result.model.detector).logos {
                #expect(logo.slope != 1 && logo.offset != 0 && logo.threshold != nil, "\(logo.label)")
            }
        }
    }

    @Test(
        "If most photos vanish, the detector has the calibration of those in memory, or none; it is not lost",
        arguments: [0, 4])
    func vanishedPhotos(inMemory count: Int) throws {
        try withTemporaryFolder { scratch in
            let folder = scratch.appending(path: "photos")
            let annotations = try annotatedFramesAndDiscs(in: folder, count: 12, seed: 1)
            var configuration = boxConfiguration(steps: 1)
            configuration.validation = .none
            configuration.memoryLimit = count * 140 * 100 * 3
            let result = try DetectorTrainer(annotations: annotations, configuration: configuration).train(
                onEvent: { if case .epoch = $0 { try? FileManager.default.removeItem(at: folder) } },
                shouldStop: { false })
            #expect(result.ending == .tooFewReadablePhotos && result.photoError != nil)
            let logos = try #require(result.model.detector).logos
            #expect(logos.contains(where: \.isCalibrated) == (count > 0))
        }
    }
}
