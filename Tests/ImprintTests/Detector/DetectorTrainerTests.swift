import Foundation
import ImprintCore
import ImprintImages
import ImprintSynthesis
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintTraining

/// Tests of training a detector from artwork, on photos with and without a cross, with a few steps per phase.
@Suite("Detector training", .timeLimit(.minutes(10))) struct DetectorTrainerTests {
    /// Writes photos of noise; those with the label "cross" show a cross.
    private func writePhotos(to folder: URL, labels: [String], count: Int) throws {
        try writeNoise(to: folder, labels: labels, count: count) { label, image, left, top in
            for y in 0..<24 where label == "cross" {
                for x in 0..<24 where (8..<16).contains(x) || (8..<16).contains(y) {
                    let pixel = ((top + y) * 120 + left + x) * 3
                    (image.samples[pixel], image.samples[pixel + 1], image.samples[pixel + 2]) = (200, 0, 0)
                }
            }
        }
    }

    /// Trains a detector of crosses and returns the result.
    private func run(
        _ folder: URL, _ artwork: Artwork, steps: [Int]? = [2, 2], threads: Int = 1, memoryLimit: Int? = nil,
        checkpoints: CheckpointOptions? = nil, backgrounds: [URL]? = nil,
        onEvent: @escaping (TrainingEvent) -> Void = { _ in }, shouldStop: @escaping () -> Bool = { false }
    ) throws -> TrainingResult {
        try trainDetector(
            ["cross": [artwork]], photos: ImageFolder(at: folder, minimumLabels: 1), backgrounds: backgrounds,
            steps: steps, poolSize: 4, checkpoints: checkpoints, onEvent: onEvent, shouldStop: shouldStop
        ) {
            $0.threads = threads
            $0.memoryLimit = memoryLimit
            $0.validation = .fraction(0.34)
        }
    }

    @Test("The model file is bitwise identical for any number of threads, and if training is resumed after every step")
    func deterministic() throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            let whole = try run(photos, artwork)
            let expected = try bytes(of: whole.model)
            #expect(try bytes(of: run(photos, artwork, threads: 2).model) == expected)
            // The memory limit allows two photos, or none. The others are read again each time.
            for memoryLimit in [0, 2 * 120 * 90 * 3] {
                #expect(try bytes(of: run(photos, artwork, threads: 2, memoryLimit: memoryLimit).model) == expected)
            }
            let options = CheckpointOptions(folder: scratch.appending(path: "run"), interval: .zero, resumes: true)
            var result: TrainingResult?
            for _ in 0..<6 where result?.ending != .completed {
                var steps = 0
                do {
                    result = try run(
                        photos, artwork, checkpoints: options, onEvent: { if case .batch = $0 { steps += 1 } },
                        shouldStop: { steps == 1 })
                } catch ImprintError.stoppedTooEarly {}
            }
            #expect(result?.ending == .completed)
            #expect(try bytes(of: #require(result).model) == expected)
        }
    }

    /// Starts a run and stops it before the first step.
    private func stopAtStart(
        _ photos: URL, _ artwork: Artwork, steps: [Int]?, _ checkpoints: CheckpointOptions
    ) throws {
        var hasStarted = false
        _ = try run(
            photos, artwork, steps: steps, checkpoints: checkpoints,
            onEvent: { if case .started = $0 { hasStarted = true } }, shouldStop: { hasStarted })
    }

    @Test("Training can be stopped while the photos are read") func stoppedWhileReading() throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            var portions = 0
            #expect(throws: ImprintError.stoppedTooEarly(checkpoint: nil)) {
                try run(
                    photos, artwork, onEvent: { if case .reading = $0 { portions += 1 } },
                    shouldStop: { portions == 1 })
            }
            #expect(portions == 1)
        }
    }

    @Test("A run does not resume with changed artwork or backgrounds") func otherArtwork() throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["other"], count: 6)
            let options = CheckpointOptions(folder: scratch.appending(path: "run"), interval: .zero, resumes: true)
            #expect(throws: ImprintError.self) {
                try stopAtStart(photos, artwork, steps: [2, 2], options)
            }
            let file = scratch.appending(path: "cross.png")
            var image = try ImageFile.decode(file, keepsAlpha: true)
            for sample in image.samples.indices where sample % 4 == 1 { image.samples[sample] ^= 0x40 }
            try ImageFile.write(image, to: file)
            let other = try Artwork(contentsOf: file)
            #expect(other.name == artwork.name)
            let checkpoint = options.folder.appending(path: CheckpointOptions.fileName).path
            #expect(throws: ImprintError.checkpointOfOtherFiles(file: checkpoint, input: "artwork")) {
                try run(photos, other, checkpoints: options)
            }
            #expect(
                throws: ImprintError.checkpointMismatch(
                    file: checkpoint, setting: "backgrounds", found: "drawn patterns",
                    expected: "the photos without a logo")
            ) { try run(photos, artwork, checkpoints: options, backgrounds: []) }
        }
    }

    @Test("The error about the checkpoint of an unfinished run names its phase") func unfinishedPhase() throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["other"], count: 6)
            var options = CheckpointOptions(folder: scratch.appending(path: "run"), interval: .zero, resumes: true)
            #expect(throws: ImprintError.self) { try stopAtStart(photos, artwork, steps: [2, 2], options) }
            options.resumes = false
            let checkpoint = options.folder.appending(path: CheckpointOptions.fileName).path
            #expect(throws: ImprintError.unfinishedCheckpoint(file: checkpoint, progress: "phase 1 of 2")) {
                try run(photos, artwork, checkpoints: options)
            }
        }
    }

    @Test("Composites use the photos without the logo, given photos or drawn patterns as backgrounds")
    func backgrounds() throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["other"], count: 6)
            try writePhotos(to: scratch.appending(path: "more"), labels: ["drawer"], count: 2)
            let more = try ImageFolder.images(in: scratch.appending(path: "more"))
            let files = try [nil, [], more].map { try bytes(of: run(photos, artwork, backgrounds: $0).model) }
            #expect(Set(files).count == 3)
        }
    }

    @Test("Training ends if all photos without the logo vanish, and resumes bitwise identically once they are back")
    func vanishedNegatives() throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            let expected = try bytes(of: run(photos, artwork).model)
            let options = CheckpointOptions(folder: scratch.appending(path: "run"), interval: .zero, resumes: true)
            let (negatives, away) = (photos.appending(path: "other"), scratch.appending(path: "away"))
            let error = #expect(throws: ImprintError.self) {
                try run(
                    photos, artwork, memoryLimit: 0, checkpoints: options,
                    onEvent: { if case .batch = $0 { try? FileManager.default.moveItem(at: negatives, to: away) } })
            }
            let text = try #require(error).description
            #expect(text.contains("other/") && text.contains(".png cannot be read") && text.contains("resume from"))
            try FileManager.default.moveItem(at: away, to: negatives)
            #expect(try bytes(of: run(photos, artwork, memoryLimit: 0, checkpoints: options).model) == expected)
        }
    }

    @Test("Training ends if more than half of the photos become unreadable") func mostPhotosVanish() throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            let vanishing = (0..<5).flatMap { ["cross/\($0).png", "other/\($0).png"] }
                .map { photos.appending(path: $0) }
            let error = #expect(throws: ImprintError.self) {
                try run(
                    photos, artwork, memoryLimit: 0,
                    onEvent: {
                        if case .batch = $0 { for file in vanishing { try? FileManager.default.removeItem(at: file) } }
                    })
            }
            #expect(try #require(error).description.contains("too many photos became unreadable"))
        }
    }

    @Test("A run with photos of the logo does not resume without them") func otherPhases() throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            let options = CheckpointOptions(folder: scratch.appending(path: "run"), interval: .zero, resumes: true)
            _ = try? stopAtStart(photos, artwork, steps: nil, options)
            try FileManager.default.removeItem(at: photos.appending(path: "cross"))
            let error = #expect(throws: ImprintError.self) {
                try stopAtStart(photos, artwork, steps: nil, options)
            }
            #expect(try #require(error).description.contains("photos of the logo: it was some and is now none"))
        }
    }

    @Test(
        "A photo that vanishes during training is reported once and skipped, and a run resumes without it",
        arguments: [("cross", 1), ("other", 3)])
    func vanishedPhoto(label: String, steps: Int) throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            let options = CheckpointOptions(folder: scratch.appending(path: "run"), interval: .zero, resumes: true)
            let vanishing = photos.appending(path: "\(label)/3.png")
            var reported: [String] = []
            func remove(_ event: TrainingEvent) {
                if case .batch = event { try? FileManager.default.removeItem(at: vanishing) }
                if case .unreadable(let image) = event { reported.append(image.url.lastPathComponent) }
            }
            let result = try run(photos, artwork, memoryLimit: 0, onEvent: remove)
            #expect(result.ending == .completed && reported == ["3.png"])
            #expect(result.unreadable.map(\.url.lastPathComponent) == reported && !result.isRepeatable)
            #expect(try !#require(result.evaluation).results.contains { $0.url.path == vanishing.path })

            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            var done = 0
            _ = try? run(
                photos, artwork, memoryLimit: 0, checkpoints: options, onEvent: { if case .batch = $0 { done += 1 } },
                shouldStop: { done == steps })
            try FileManager.default.removeItem(at: vanishing)
            var resumed: TrainingStart.Resumption?
            let end = try run(photos, artwork, checkpoints: options) {
                if case .started(let start) = $0 { resumed = start.resumed }
            }
            #expect(resumed?.hasSameImages == false && end.ending == .completed && !end.isRepeatable)
        }
    }

    @Test(
        "Classifications have labels and boxes, also after saving and loading; photos of the logo are optional",
        arguments: [true, false])
    func model(hasPhotos: Bool) throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: hasPhotos ? ["cross", "other"] : ["other"], count: 6)
            var start: TrainingStart?
            let result = try run(photos, artwork, onEvent: { if case .started(let event) = $0 { start = event } })
            #expect(start?.labels == ["cross", "other"] && start?.network == "logospot")
            let recipe: TrainingKind = hasPhotos ? .artworkAndPhotos : .artwork
            #expect(start?.kind == recipe && result.model.trainingKind == recipe)
            #expect(Report(result.model).html.contains(recipe.summary))
            let record = try #require(result.model.training)
            #expect(record.seed == 4 && record.epochs == 2)
            if case .detector(let hyperparameters) = record.hyperparameters {
                #expect(hyperparameters.phases?.map(\.learningRate) == [1e-3, 2e-3])
                #expect(hyperparameters.emaDecay == 0.995)
            } else {
                Issue.record("the record of a detector has another trainer's hyperparameters")
            }
            let detector = try #require(result.model.detector)
            #expect(detector.logos.map(\.label) == ["cross"] && detector.logos.allSatisfy { $0.slope > 0 })
            let file = scratch.appending(path: "m.imprint")
            try result.model.write(to: file)
            let classifier = try ImageClassifier(contentsOf: file)
            #expect(classifier.model.detector == detector)
            let photo = photos.appending(path: "other/0.png")
            let classifications = try classifier.classify(photo)
            #expect(Set(classifications.map(\.label)) == ["cross", "other"])
            #expect(abs(classifications.reduce(0) { $0 + $1.confidence } - 1) < 1e-5)
            let box = try #require(classifications.first { $0.label == "cross" }?.box)
            #expect(box.x >= 0 && box.y >= 0 && box.x + box.width <= 1.0001 && box.y + box.height <= 1.0001)
            #expect(classifications.first { $0.label == "other" }?.box == nil)
            // Classification from memory and evaluation give the same classifications.
            #expect(try classifier.classify(ImageFile.decode(photo)) == classifications)
            let gray = RasterImage(width: 90, height: 60, channels: 1, samples: (0..<5400).map { UInt8($0 % 251) })
            let color = RasterImage(width: 90, height: 60, channels: 3, samples: gray.samples.flatMap { [$0, $0, $0] })
            #expect(try classifier.classify(gray) == classifier.classify(color))
            let evaluation = try classifier.evaluate(on: ImageFolder(at: photos, minimumLabels: 1), threads: 2)
            let found = try #require(evaluation.results.first { $0.url.lastPathComponent == "0.png" && $0.label == 1 })
            #expect(found.confidences[0] == classifications.first { $0.label == "cross" }?.confidence)
            #expect(throws: ImprintError.noSaliency(network: "logospot")) {
                try classifier.saliency(of: RasterImage(width: 96, height: 96))
            }
            let report = Report(result.model, evaluation: .singleLabel(evaluation)).html
            #expect(report.contains("the detection, enlarged") && !report.contains("class=\"missing\""))
        }
    }

    @Test(
        "Several logos multiply the standard steps by the sixth root of their number",
        arguments: [(1, 3000), (2, 3367), (64, 6000), (729, 9000)])
    func budget(logos: Int, steps: Int) {
        var hyperparameters = DetectorHyperparameters()
        #expect(hyperparameters.phases(hasLogoPhotos: true, logos: logos)[0].steps == steps)
        hyperparameters.phases = DetectorPhase.standard(hasLogoPhotos: true, scale: 0.5)
        #expect(hyperparameters.phases(hasLogoPhotos: true, logos: logos) == hyperparameters.phases)
    }

    /// Returns a name and hyperparameters of which one value is out of range.
    private static func invalid(
        _ name: String, _ change: (inout DetectorHyperparameters) -> Void
    ) -> (name: String, hyperparameters: DetectorHyperparameters) {
        var hyperparameters = DetectorHyperparameters()
        hyperparameters.phases = DetectorPhase.standard(hasLogoPhotos: false, scale: 1)
        change(&hyperparameters)
        return (name, hyperparameters)
    }

    private static let invalidHyperparameters = [
        invalid("validation") { $0.validation = .fraction(1) },
        invalid("validation") { $0.validation = .fraction(.nan) },
        invalid("poolSize") { $0.poolSize = 0 }, invalid("phases") { $0.phases = [] },
        invalid("steps") { $0.phases?[1].steps = 0 }, invalid("learningRate") { $0.phases?[0].learningRate = -1 },
        invalid("learningRate") { $0.phases?[0].learningRate = .infinity },
        invalid("mined") { $0.phases?[0].mined = -0.5 }, invalid("located") { $0.phases?[0].located = .nan },
        invalid("phases") {
            $0.phases = [
                DetectorPhase(
                    steps: 1, learningRate: 0, composites: 0, hardNegatives: 0, background: 0, mined: 0, located: 0)
            ]
        },
        invalid("beta1") { $0.optimizer.beta1 = 1 }, invalid("beta2") { $0.optimizer.beta2 = -0.1 },
        invalid("epsilon") { $0.optimizer.epsilon = 0 }, invalid("weightDecay") { $0.optimizer.weightDecay = -1 },
        invalid("gradientClipping") { $0.optimizer.gradientClipping = 0 },
    ]

    @Test("A hyperparameter out of range is rejected by name", arguments: invalidHyperparameters)
    func ranges(name: String, hyperparameters: DetectorHyperparameters) throws {
        try withTemporaryFolder { scratch in
            var configuration = DetectorConfiguration()
            configuration.hyperparameters = hyperparameters
            let trainer = DetectorTrainer(
                artwork: ["cross": [try writeCross(to: scratch)]], configuration: configuration)
            let error = #expect(throws: ImprintError.self) { try trainer.train() }
            guard case .invalidSetting(name, _, _) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test(
        "Missing artwork is an error of the run",
        arguments: [
            ([:], "artwork is empty, expected artwork of a logo, or photos with boxes."),
            (
                ["cross": []],
                "artwork is an empty list for the label \"cross\", expected at least one artwork of each logo."
            ),
        ] as [([String: [Artwork]], String)])
    func missingArtwork(artwork: [String: [Artwork]], message: String) {
        let error = #expect(throws: ImprintError.self) { try DetectorTrainer(artwork: artwork).train() }
        #expect(error?.description == message)
    }

    @Test(
        "Validation photos without a logo can be in any sub-folders, like training photos",
        arguments: [["a", "b"], ["c"]])
    func validationFolder(backgrounds: [String]) throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            let validation = scratch.appending(path: "validation")
            try writePhotos(to: photos, labels: ["a", "b", "cross"], count: 3)
            try writePhotos(to: validation, labels: backgrounds + ["cross"], count: 3)
            let result = try trainDetector(
                ["cross": [artwork]], photos: ImageFolder(at: photos, logos: ["cross"]), steps: [1, 1], poolSize: 4
            ) { $0.validationFolder = validation }
            #expect(result.model.labels == ["cross", "none"])
            #expect(result.model.training?.validationImages == ["cross": 3, "none": 3 * backgrounds.count])
        }
    }

    @Test("A label without a logo that is similar to a logo is an error", arguments: [["Cross"], ["CROSS", "b"]])
    func similarLabel(labels: [String]) throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: labels + ["leaf"], count: 2)
            let error = ImageError.similarToLogo(source: photos.path, label: labels[0], logo: "cross")
            #expect(throws: error) { try run(photos, artwork) }
        }
    }

    @Test("Photos must have exactly one label without a logo") func labels() throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross"], count: 2)
            func error(_ found: [String]) -> ImprintError {
                .notOneLabelWithoutLogo(found: found, logos: ["cross"], source: photos.path)
            }
            #expect(throws: error([])) { try run(photos, artwork) }
            try writePhotos(to: photos, labels: ["a", "b"], count: 2)
            #expect(throws: error(["a", "b"])) { try run(photos, artwork) }
        }
    }
}
