import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import ImprintSynthesis
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintTraining

/// Tests of training a detector of two logos on synthetic photos, with a few steps per phase.
@Suite("Detectors of several logos", .timeLimit(.minutes(10))) struct SeveralLogosTests {
    private static func file(_ name: String) -> URL {
        packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/artwork-\(name).png")
    }

    private static func artwork() throws -> [String: [Artwork]] {
        [
            "leaf": [try Artwork(contentsOf: file("leaf"))],
            "crest": [try Artwork(contentsOf: file("crest")), try Artwork(contentsOf: file("crest"))],
        ]
    }

    /// Writes photos of noise; those with the label of a logo show it, 28 pixels wide.
    private func writePhotos(to folder: URL, labels: [String], count: Int = 4) throws {
        try writeNoise(to: folder, labels: labels, count: count) { label, image, left, top in
            guard label != "other" else { return }
            let logo = try ImageFile.decode(Self.file(label), keepsAlpha: true)
            for y in 0..<28 {
                for x in 0..<28 {
                    let from = ((y * logo.height / 28) * logo.width + x * logo.width / 28) * 4
                    guard logo.samples[from + 3] > 127 else { continue }
                    let to = ((top + y) * 120 + left + x) * 3
                    for channel in 0..<3 { image.samples[to + channel] = logo.samples[from + channel] }
                }
            }
        }
    }

    /// Trains a detector and returns the result.
    private func run(
        _ folder: URL, artwork: [String: [Artwork]]? = nil, threads: Int = 1, validation: URL? = nil,
        checkpoints: CheckpointOptions? = nil, onEvent: @escaping (TrainingEvent) -> Void = { _ in },
        shouldStop: @escaping () -> Bool = { false }
    ) throws -> TrainingResult {
        try trainDetector(
            artwork ?? Self.artwork(), photos: ImageFolder(at: folder, minimumLabels: 1), steps: [1, 2], poolSize: 2,
            checkpoints: checkpoints, onEvent: onEvent, shouldStop: shouldStop
        ) {
            $0.threads = threads
            $0.validationFolder = validation
            $0.validation = .fraction(0.25)
        }
    }

    @Test("The model file is bitwise identical for any number of threads, and if training is resumed after every step")
    func deterministic() throws {
        try withTemporaryFolder { scratch in
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["crest", "leaf", "other"])
            let expected = try bytes(of: run(photos).model)
            for threads in [2, 4] {
                #expect(try bytes(of: run(photos, threads: threads).model) == expected)
            }
            let options = CheckpointOptions(folder: scratch.appending(path: "run"), interval: .zero, resumes: true)
            var result: TrainingResult?
            for _ in 0..<6 where result?.ending != .completed {
                var steps = 0
                do {
                    result = try run(
                        photos, checkpoints: options, onEvent: { if case .batch = $0 { steps += 1 } },
                        shouldStop: { steps == 1 })
                } catch ImprintError.stoppedTooEarly {}
            }
            #expect(result?.ending == .completed)
            #expect(try bytes(of: #require(result).model) == expected)
            let other = ["crest": try #require(Self.artwork()["crest"]), "leaf": try #require(Self.artwork()["crest"])]
            #expect(throws: ImprintError.self) { try run(photos, artwork: other, checkpoints: options) }
        }
    }

    @Test("Classifications have labels and boxes, also after saving and loading; a logo may have no photos")
    func model() throws {
        try withTemporaryFolder { scratch in
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["crest", "other"])
            var start: TrainingStart?
            let result = try run(photos, onEvent: { if case .started(let event) = $0 { start = event } })
            #expect(start?.labels == ["crest", "leaf", "other"] && start?.labelsWithoutValidation == ["leaf"])
            let detector = try #require(result.model.detector)
            #expect(detector.logos.map(\.label) == ["crest", "leaf"])
            #expect(result.model.network.output.channels == 2 + BoxCode.count && detector.regressesBoxes)
            let file = scratch.appending(path: "m.imprint")
            try result.model.write(to: file)
            let classifier = try ImageClassifier(contentsOf: file)
            let photo = photos.appending(path: "crest/0.png")
            let classifications = try classifier.classify(photo)
            #expect(Set(classifications.map(\.label)) == ["crest", "leaf", "other"])
            #expect(abs(classifications.reduce(0) { $0 + $1.confidence } - 1) < 1e-5)
            for classification in classifications {
                #expect((classification.box == nil) == (classification.label == "other"), "\(classification.label)")
            }
            let evaluation = try classifier.evaluate(on: ImageFolder(at: photos, minimumLabels: 1), threads: 2)
            let found = try #require(evaluation.results.first { $0.url.lastPathComponent == "0.png" && $0.label == 0 })
            for (label, confidence) in zip(evaluation.labels, found.confidences) {
                #expect(classifications.first { $0.label == label }?.confidence == confidence)
            }
            // The evaluation of the saved model equals that of training.
            for expected in try #require(result.evaluation).results {
                let found = evaluation.results.first { $0.url.path == expected.url.path }
                #expect(found?.confidences == expected.confidences)
            }
            let report = Report(result.model, evaluation: .singleLabel(evaluation)).html
            #expect(report.contains("the detection, enlarged") && !report.contains("class=\"missing\""))
            #expect(report.contains("There are no training photos of <bdi>leaf</bdi>"))
            #expect(report.contains("Platt scaling, crest: slope"))
        }
    }

    @Test(
        "Several logos without photos get thresholds from composites, and a run counts the steps of its phases",
        arguments: [1, 2])
    func thresholds(logos: Int) throws {
        let artwork = try Self.artwork().filter { logos == 2 || $0.key == "leaf" }
        var fractions: [Double] = []
        var configuration = DetectorConfiguration()
        (configuration.seed, configuration.poolSize, configuration.batchSize) = (4, 2, 4)
        configuration.rehearsalImages = 0
        configuration.pyramidLevels = shortPyramidLevels
        configuration.phases = [1, 3].map {
            DetectorPhase(
                steps: $0, learningRate: 1e-3, composites: 0.5, hardNegatives: 0.25, background: 0.25, mined: 0,
                located: 0)
        }
        let result = try DetectorTrainer(artwork: artwork, configuration: configuration).train(
            onEvent: { if case .batch(let batch) = $0 { fractions.append(batch.fractionOfRun) } }, shouldStop: { false }
        )
        #expect(fractions == [0.25, 0.5, 0.75, 1])
        for logo in try #require(result.model.detector).logos {
            #expect((logo.threshold != nil) == (logos == 2), "\(logo.label)")
            #expect((0...1).contains(logo.threshold ?? 0))
        }
    }

    @Test("The scores for a threshold contain the composites of all logos, and each set is scanned once")
    func heldOutScores() throws {
        var scanned: [String] = []
        let scores = HeldOutScores { logo, isPositive in
            scanned.append("\(logo) \(isPositive)")
            let values = [Float(10 * logo), Float(10 * logo + 1)]
            return [isPositive ? values : values.map { -$0 }]
        }
        for logo in 0..<2 {
            let all = try scores.scores(of: logo, among: 2)
            #expect(all.map(\.hasLogo) == [logo == 0, false, logo == 1, false])
            #expect(all.map(\.score) == [Float(logo), -Float(logo), Float(10 + logo), -Float(10 + logo)])
        }
        #expect(scanned == ["0 true", "0 false", "1 true", "1 false"])
    }

    @Test("The validation folder may contain logos that the training photos lack, and vice versa")
    func validationFolder() throws {
        try withTemporaryFolder { scratch in
            let (photos, validation) = (scratch.appending(path: "photos"), scratch.appending(path: "validation"))
            try writePhotos(to: photos, labels: ["crest", "other"], count: 2)
            try writePhotos(to: validation, labels: ["leaf", "other"], count: 2)
            let result = try run(photos, validation: validation)
            let labels = try #require(result.evaluation).results.map { result.model.labels[$0.label] }
            #expect(labels == ["leaf", "leaf", "other", "other"])
            #expect(result.model.training?.trainingImages == ["crest": 2, "other": 2])
            #expect(result.model.training?.validationImages == ["leaf": 2, "other": 2])

            try writePhotos(to: scratch.appending(path: "unknown"), labels: ["other"], count: 1)
            try FileManager.default.moveItem(
                at: scratch.appending(path: "unknown/other"), to: scratch.appending(path: "unknown/elsewhere"))
            // As in the folder of training photos, photos of other sub-folders show no logo.
            let other = try run(photos, validation: scratch.appending(path: "unknown"))
            #expect(other.model.training?.validationImages == ["other": 1])
        }
    }

    @Test("Exactly one label must have no artwork, otherwise the error lists the labels") func labels() throws {
        try withTemporaryFolder { scratch in
            let photos = scratch.appending(path: "photos")
            try writePhotos(to: photos, labels: ["crest", "leaf"], count: 1)
            let path = photos.path
            let none = #expect(throws: ImprintError.self) { try run(photos) }
            #expect(none == .notOneLabelWithoutLogo(found: [], logos: ["crest", "leaf"], source: path))
            #expect(none?.description.contains("no label besides crest, leaf. Expected one more") == true)
            #expect(none?.description.hasSuffix("in a photo folder, put them into a separate sub-folder.") == true)
            let leaf = ["leaf": try #require(Self.artwork()["leaf"])]
            try writePhotos(to: photos, labels: ["other"], count: 1)
            let two = #expect(throws: ImprintError.self) { try run(photos, artwork: leaf) }
            #expect(two == .notOneLabelWithoutLogo(found: ["crest", "other"], logos: ["leaf"], source: path))
            #expect(two?.description.contains("the labels crest, other without artwork. Expected one") == true)
        }
    }

    @Test("Composites show every logo equally often, photos the logo of their label, hard negatives no logo")
    func patches() throws {
        let backdrops = try Backdrops([], size: 96, workers: Workers(1))
        let compositors = try ["crest", "leaf"].map { label in
            Compositor(
                artworks: try #require(Self.artwork()[label]), backdrops: backdrops, seed: 1, label: label)
        }
        let photo = PatchSource(RasterImage(width: 120, height: 120))
        let patches = DetectorPatches(
            compositors: Array(zip(0..., compositors)).map { (logo: $0, compositor: $1) },
            negatives: [GroundTruthImage(source: photo)],
            positives: [DetectorPatches.Positive(source: photo, logo: 1)],
            unreadable: UnreadablePhotos(training: [], validation: [], labels: []), seed: 1,
            workers: Workers(1), batchSize: 64, poolSize: 4)
        patches.located = [
            DetectorPatches.Detection(imageIndex: 0, peak: PyramidScanner.Peak(score: 1, x: 60, y: 60, side: 100))
        ]
        var memory = [UInt8](
            repeating: 0, count: 64 * DetectorHead.patchSide * DetectorHead.patchSide * 3)
        func logos(_ composites: Float, _ hardNegatives: Float, _ located: Float, step: Int) throws -> [Int?] {
            let phase = DetectorPhase(
                steps: 1, learningRate: 0, composites: composites, hardNegatives: hardNegatives, background: 0,
                mined: 0, located: located)
            return try memory.withUnsafeMutableBufferPointer { try patches.fill($0, of: phase, step: step) }
                .map { $0.first?.logo }
        }
        let composites = try logos(1, 0, 0, step: 0)
        #expect((16...48).contains(composites.count { $0 == 0 }))
        #expect(composites.count { $0 == 0 } + composites.count { $0 == 1 } == 64)
        #expect(try logos(0, 1, 0, step: 1).allSatisfy { $0 == nil })
        #expect(try logos(0, 0, 1, step: 2).allSatisfy { $0 == 1 })
    }

    @Test("With several logos, some hard negatives are parts of a logo", arguments: [1, 2]) func parts(
        logos: Int
    ) throws {
        let backdrops = try Backdrops([], size: 320, workers: Workers(1))
        let compositors = try ["crest", "leaf"].prefix(logos).map { label in
            Compositor(
                artworks: try #require(Self.artwork()[label]), backdrops: backdrops, seed: 1, label: label)
        }
        let patches = DetectorPatches(
            compositors: Array(zip(0..., compositors)).map { (logo: $0, compositor: $1) }, negatives: [], positives: [],
            unreadable: UnreadablePhotos(training: [], validation: [], labels: []), seed: 1, workers: Workers(1),
            batchSize: 1, poolSize: 16)
        var memory = [UInt8](repeating: 0, count: DetectorHead.patchSide * DetectorHead.patchSide * 3)
        let phase = DetectorPhase(
            steps: 1, learningRate: 0, composites: 0, hardNegatives: 1, background: 0, mined: 0, located: 0)
        let targets = try memory.withUnsafeMutableBufferPointer { try patches.fill($0, of: phase, step: 0) }
        #expect(targets == [[]])

        let windows = (0..<400).compactMap { index -> PatchWindow? in
            var random = RandomStream(seed: 1, "part", index)
            return patches.logoPart(&random)?.1
        }
        #expect(logos == 1 ? windows.isEmpty : (80...160).contains(windows.count), "\(windows.count) of 400")
        for window in windows {
            // A composite has 320 pixels, and a logo at most 60 % of it.
            #expect((48...128).contains(window.side) && (0...320).contains(window.x) && (0...320).contains(window.y))
        }
    }

    @Test("Each heat map of a detector equals that of a detector with only this logo") func scan() throws {
        let network = try Network.logoDetector(logos: 2)
        let parameters = try Parameters(network, seed: 1)
        let head = try #require(parameters["head.weight"])
        var random = RandomStream(seed: 1, "picture")
        let image = RasterImage(
            width: 100, height: 70, channels: 3, samples: (0..<21_000).map { _ in UInt8(random.index(below: 256)) })
        func scan(_ parameters: Parameters, _ network: Network) throws -> [PyramidScanner.Scan] {
            try PyramidScanner(
                network, parameters: parameters, preprocessing: .logoDetector,
                detector: DetectorHead(levels: [96, 136], stride: 16, span: 44, logos: [])
            ).scan(image, peaks: 3)
        }
        let both = try scan(parameters, network)
        #expect(both.count == 2 && both[0] != both[1])
        for logo in 0..<2 {
            let singleNetwork = try Network.logoDetector()
            let singleParameters = try Parameters(singleNetwork, seed: 1)
            for entry in singleParameters.layout.entries where !entry.name.hasPrefix("head") {
                singleParameters[entry.name] = parameters[entry.name]
            }
            singleParameters["head.weight"] = stride(from: logo, to: head.count, by: 2).map { head[$0] }
            let expected = try #require(scan(singleParameters, singleNetwork).first)
            #expect(abs(both[logo].score - expected.score) < 1e-4)
            #expect(both[logo].peaks.map(\.x) == expected.peaks.map(\.x))
            #expect(both[logo].peaks.map(\.y) == expected.peaks.map(\.y))
        }
    }

    @Test("A training result names the labels whose confidences are not calibrated")
    func uncalibratedLabels() throws {
        func result(_ logos: [DetectorHead.Logo]) throws -> TrainingResult {
            let network = try Network.logoDetector(logos: logos.count)
            return TrainingResult(
                model: ModelFile(
                    network: network, parameters: try Parameters(network, seed: 2),
                    labels: logos.map(\.label) + ["none"], preprocessing: .logoDetector,
                    detector: DetectorHead(levels: [96], stride: 16, span: 44, logos: logos)))
        }
        let calibrated = DetectorHead.Logo(label: "crest", slope: 0.5, offset: -1)
        #expect(try result([calibrated, DetectorHead.Logo(label: "leaf")]).uncalibratedLabels == ["leaf"])
        #expect(try result([calibrated]).uncalibratedLabels == [])
        // The calibration of a label without any score with the logo, or without any other score.
        for (positives, negatives) in [([], [1, 2]), ([1, 2], [])] as [([Float], [Float])] {
            let curve = PlattScaling(positives: positives, negatives: negatives)
            let logo = DetectorHead.Logo(label: "leaf", slope: Float(curve.slope), offset: Float(curve.offset))
            #expect(try result([logo]).uncalibratedLabels == ["leaf"])
        }
    }
}
