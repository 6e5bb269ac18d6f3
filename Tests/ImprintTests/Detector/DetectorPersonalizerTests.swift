import Foundation
import ImprintCore
import ImprintImages
import ImprintSynthesis
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintTraining

/// Adding logos to a detector; its features are random, because only the head is trained.
@Suite("New logos of a detector", .timeLimit(.minutes(10))) struct DetectorPersonalizerTests {
    /// Returns a detector with random parameters, and "none" as the label of photos without a logo.
    private func model(
        logos: [String] = ["crest", "leaf"], boxes: Bool = true, rehearsal: Rehearsal? = nil
    ) throws -> ModelFile {
        let network = try Network.logoDetector(logos: logos.count, regressesBoxes: boxes)
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 7), labels: logos + ["none"],
            preprocessing: .logoDetector,
            detector: DetectorHead(
                levels: [96, 136], stride: 16, span: 44,
                logos: logos.map { DetectorHead.Logo(label: $0, slope: 0.5, offset: -1) }, regressesBoxes: boxes),
            rehearsal: rehearsal)
    }

    /// Returns a detector with heat maps of a stride of 8 pixels.
    private func fineModel() throws -> ModelFile {
        let network = try Network(
            name: "fine", input: TensorShape(height: 96, width: 96, channels: 3),
            nodes: [
                Network.Node(
                    name: "features", layer: Convolution(outputChannels: 4, kernelSize: 8, stride: 8),
                    inputs: ["input"]),
                Network.Node(
                    name: "head", layer: Convolution(outputChannels: 1, kernelSize: 1), inputs: ["features"]),
            ])
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 7), labels: ["crest", "none"],
            preprocessing: .logoDetector,
            detector: DetectorHead(levels: [96], stride: 8, span: 44, logos: [DetectorHead.Logo(label: "crest")]))
    }

    private func noise(_ seed: UInt64, width: Int = 140, height: Int = 100) -> RasterImage {
        var random = RandomStream(seed: seed, "noise")
        return RasterImage(
            width: width, height: height, channels: 3,
            samples: (0..<(width * height * 3)).map { _ in UInt8(90 + random.index(below: 60)) })
    }

    /// Writes photos of noise, every second one with a dark disc, and returns their boxes.
    private func annotations(
        in folder: URL, count: Int, seed: UInt64, label: String = "disc", others: [String] = []
    ) throws -> BoxAnnotations {
        let photos = try (0..<count).map { index in
            var random = RandomStream(seed: seed, "photo", index)
            var image = noise(seed &* 100 &+ UInt64(index))
            var objects: [AnnotatedPhoto.Object] = []
            if index % 2 == 0 {
                let side = 34 + random.index(below: 10)
                let (left, top) = (5 + random.index(below: 90), 5 + random.index(below: 45))
                for row in 0..<side {
                    for column in 0..<side {
                        let (dx, dy) = (2 * column - side, 2 * row - side)
                        guard dx * dx + dy * dy < side * side else { continue }
                        for channel in 0..<3 { image.samples[((top + row) * 140 + left + column) * 3 + channel] = 10 }
                    }
                }
                let box = NormalizedRectangle(
                    x: Float(left) / 140, y: Float(top) / 100, width: Float(side) / 140, height: Float(side) / 100)
                objects = [AnnotatedPhoto.Object(label: label, box: box)]
                objects += others.map {
                    AnnotatedPhoto.Object(label: $0, box: NormalizedRectangle(x: 0, y: 0, width: 0.1, height: 0.1))
                }
            }
            let url = folder.appending(path: "\(seed)-\(index).png")
            try ImageFile.write(image, to: url)
            return AnnotatedPhoto(url: url, width: 140, height: 100, objects: objects)
        }
        return BoxAnnotations(uncheckedLabels: ([label] + others).sorted(), photos: photos)
    }

    private func configuration(threads: Int = 2) -> DetectorPersonalizer.Configuration {
        var configuration = DetectorPersonalizer.Configuration()
        (configuration.threads, configuration.scale) = (threads, 0.04)
        return configuration
    }

    private func leaf() throws -> [Artwork] {
        [
            try Artwork(
                contentsOf: packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/artwork-leaf.png"))
        ]
    }

    private func column(_ label: String) -> Personalization.Column {
        var random = RandomStream(seed: 5, label)
        return Personalization.Column(
            label: label, weights: (0..<128).map { _ in random.uniform(in: -0.2...0.2) }, bias: 0.5)
    }

    // MARK: Prediction

    @Test(
        "Added logos leave the heat maps and boxes of the others bitwise equal",
        arguments: [["crest"], ["crest", "leaf"], ["a", "b", "c", "d", "e"]], [true, false])
    func heatMaps(logos: [String], boxes: Bool) throws {
        let model = try model(logos: logos, boxes: boxes)
        for added in [["mine"], ["x", "y", "z"]] {
            let personalization = Personalization(
                baseDigest: try model.identity, addedLabels: added, columns: added.map(column),
                record: Personalization.Record(examples: [:]))
            let (predictor, whole) = (
                try model.predictor(with: personalization), try model.personalized(with: personalization)
            )
            func scan(_ model: ModelFile) throws -> [PyramidScanner.Scan] {
                let detector = try #require(model.detector)
                return try PyramidScanner(
                    model.network, parameters: model.parameters, preprocessing: .logoDetector, detector: detector
                ).scan(noise(1), peaks: 20)
            }
            let (before, after, merged) = (try scan(model), try scan(predictor), try scan(whole))
            #expect(Array(after.prefix(logos.count)) == before)
            #expect(after.count == logos.count + added.count && merged.count == after.count)
            for (one, other) in zip(after, merged) { #expect(abs(one.score - other.score) < 1e-4) }
            #expect(whole.detector == predictor.detector && whole.labels == model.labels + added)
            #expect(whole.detector?.logos.suffix(added.count).allSatisfy { $0.slope == 1 && $0.offset == 0 } == true)
        }
    }

    @Test("A model with an added logo can be saved, read, and get another logo") func wholeModel() throws {
        try withTemporaryFolder { folder in
            let model = try model()
            let personalization = Personalization(
                baseDigest: try model.identity, addedLabels: ["mine"], columns: [column("mine")],
                record: Personalization.Record(examples: [:]))
            let file = folder.appending(path: "m.imprint")
            try model.personalized(with: personalization).write(to: file)
            let read = try ModelFile(contentsOf: file)
            #expect(read.labels == ["crest", "leaf", "none", "mine"])
            #expect(read.detector?.logos.map(\.label) == ["crest", "leaf", "mine"])
            #expect(read.network.headChannels == 128)
            let second = Personalization(
                baseDigest: try read.identity, addedLabels: ["second"], columns: [column("second")],
                record: Personalization.Record(examples: [:]))
            let classifier = try ImageClassifier(read).personalized(with: second)
            #expect(Set(try classifier.classify(noise(2)).map(\.label)) == Set(read.labels + ["second"]))
            let merge = try model.merging([personalization])
            #expect(merge.model.detector?.logos.map(\.label) == ["crest", "leaf", "mine"])
        }
    }

    @Test(
        "Photos personalize a detector with an added logo further, with replay features of any number of positions",
        arguments: [nil, 1, 5, 24, 30] as [Int?])
    func photosAfterwards(positions: Int?) throws {
        var random = RandomStream(seed: 11, "rehearsal")
        let rehearsal = positions.map { positions in
            Rehearsal(
                features: (0..<(6 * positions * 128)).map { _ in random.uniform(in: 0...1) }, positions: positions,
                labels: [Int](repeating: 2, count: 6))
        }
        let model = try model(rehearsal: rehearsal)
        let personalization = Personalization(
            baseDigest: try model.identity, addedLabels: ["mine"], columns: [column("mine")],
            record: Personalization.Record(examples: [:]))
        let session = try PersonalizationSession(ImageClassifier(model).personalized(with: personalization))
        let before = try session.classifier.classify(noise(3)).first { $0.label == "mine" }?.confidence ?? 1
        for seed in 3..<6 { try session.teach(noise(UInt64(seed)), as: "mine") }
        let after = try session.classifier.classify(noise(3)).first { $0.label == "mine" }?.confidence ?? 0
        #expect(after > before)
        #expect(session.personalization?.addedLabels == ["mine"])
    }

    // MARK: Training

    @Test("The head of a new logo learns where the logo is, despite features of different scales") func head() throws {
        let shape = TensorShape(height: 6, width: 6, channels: 4)
        var samples = HeadSamples(shape)
        var random = RandomStream(seed: 1, "features")
        for index in 0..<200 {
            var features = (0..<shape.count).map { _ in random.uniform(in: 0...1) }
            // Channel 2 is rare and weak, and shows the logo.
            for cell in 0..<36 { features[cell * 4 + 2] *= 0.01 }
            var targets: [HeatMapLoss.Target] = []
            if index % 2 == 0 {
                let (row, column) = (random.index(below: 6), random.index(below: 6))
                features[(row * 6 + column) * 4 + 2] = 0.2
                targets = [HeatMapLoss.Target(logo: 0, row: Float(row), column: Float(column))]
            }
            samples.add(features, [targets])
        }
        let head = try LogoHeadObjective(
            logos: 1, samples, replay: HeadSamples(shape), seed: 0, workers: Workers(1)
        ).run(steps: 300) { false }
        func logit(_ features: [Float]) -> Float {
            zip(features, head.weight).reduce(head.bias[0]) { $0 + $1.0 * $1.1 }
        }
        #expect(logit([0.5, 0.5, 0.2, 0.5]) > 0 && logit([0.5, 0.5, 0.005, 0.5]) < 0)
    }

    @Test("A few photos with boxes add a logo; the same photos give a bitwise equal file for any number of threads")
    func boxes() throws {
        try withTemporaryFolder { folder in
            let model = try model()
            let detector = try ImageClassifier(model)
            let annotations = try annotations(in: folder, count: 12, seed: 1, others: ["leaf"])
            let results = try [1, 2].map { threads in
                try DetectorPersonalizer(
                    detector, artwork: [:], annotations: annotations, configuration: configuration(threads: threads)
                ).run()
            }
            let result = results[0]
            #expect(result.personalization == results[1].personalization)
            #expect(result.personalization.addedLabels == ["disc"] && result.exampleCount == 6)
            #expect(result.personalization.record.examples == ["disc": 6] && result.skipped.isEmpty)
            #expect(result.uncalibratedLabels.isEmpty)
            let file = folder.appending(path: "mine")
            try result.personalization.write(to: file)
            let personalized = try detector.personalized(with: try Personalization(contentsOf: file))
            #expect(personalized.personalization == result.personalization)
            let test = try self.annotations(in: folder, count: 20, seed: 2)
            let confidences = try test.photos.map { photo in
                try personalized.detect(photo.url, minimumConfidence: 0).filter { $0.label == "disc" }
                    .map(\.confidence).max() ?? 0
            }
            let (shown, hidden) = (0..<20).reduce(into: ([Float](), [Float]())) {
                if $1 % 2 == 0 { $0.0.append(confidences[$1]) } else { $0.1.append(confidences[$1]) }
            }
            let correct = shown.flatMap { one in hidden.map { one > $0 } }.count { $0 }
            #expect(correct >= 95, "AUC \(Double(correct) / 100)")
        }
    }

    @Test("Artwork adds a logo to a detector that already has an added one, which does not change")
    func artwork() throws {
        let model = try model(boxes: false)
        let first = Personalization(
            baseDigest: try model.identity, addedLabels: ["mine"], columns: [column("mine")],
            record: Personalization.Record(examples: ["mine": 1]))
        let detector = try ImageClassifier(model).personalized(with: first)
        var (done, total) = (0, 0)
        let result = try DetectorPersonalizer(
            detector, artwork: ["oak": leaf()], configuration: configuration()
        ).run { (done, total) = ($0, $1) }
        #expect(done == total && done > 0)
        #expect(result.personalization.addedLabels == ["mine", "oak"])
        #expect(result.personalization.columns.first == first.columns.first)
        #expect(result.personalization.record.examples == ["mine": 1, "oak": 1])
        #expect(result.uncalibratedLabels.isEmpty)
        #expect(
            try detector.personalized(with: result.personalization).labels == ["crest", "leaf", "none", "mine", "oak"])
    }

    @Test("An added logo has few false positives in scenes without it") func falsePositives() throws {
        let detector = try ImageClassifier(model())
        var configuration = configuration()
        configuration.scale = 0.2
        let result = try DetectorPersonalizer(
            detector, artwork: ["oak": leaf()], configuration: configuration
        ).run()
        let personalized = try detector.personalized(with: result.personalization)
        let backdrops = try Backdrops([], size: 224, workers: Workers(2))
        let patches = DetectorPatches(
            compositors: [(logo: 0, compositor: Compositor(artworks: try leaf(), backdrops: backdrops, seed: 9))],
            negatives: [], positives: [], unreadable: UnreadablePhotos(training: [], validation: [], labels: []),
            seed: 9, workers: Workers(2), batchSize: 1, poolSize: 1)
        let scenes = try patches.heldOutScenes(0..<40, of: 0, backdrops).map { try $0.image() }
        #expect(scenes.allSatisfy { $0.width == 400 && $0.height == 400 } && Set(scenes.map(\.samples)).count == 40)
        let found = try scenes.map { scene in
            try personalized.detect(scene, minimumConfidence: 0.5).contains { $0.label == "oak" }
        }
        #expect(found.count { $0 } <= 8)
    }

    @Test("A logo without scores is reported as not calibrated, even if a limit of false positives changes its curve")
    func uncalibrated() throws {
        let model = try model()
        let evaluator = DetectorEvaluator(
            labels: model.labels, logos: ["crest", "leaf"], photos: DetectorPhotos(), workers: Workers(1),
            compositeCount: 2, detector: try #require(model.detector))
        let compositor = Compositor(
            artworks: try leaf(), backdrops: try Backdrops([], size: 224, workers: Workers(1)), seed: 9)
        let patches = DetectorPatches(
            compositors: [(logo: 1, compositor: compositor)], negatives: [], positives: [],
            unreadable: UnreadablePhotos(training: [], validation: [], labels: []), seed: 9, workers: Workers(1),
            batchSize: 1, poolSize: 1)
        var limit = FalsePositiveLimit()
        limit.add([[1, 2, 3]])
        let calibrated = try evaluator.calibrated(
            model.network, model.parameters, patches, [], limits: [limit, limit])
        #expect(calibrated.uncalibratedLabels == ["crest"])
        #expect(calibrated.head.logos.map(\.label) == ["crest", "leaf"])
        #expect(calibrated.head.logos.allSatisfy { $0.isCalibrated })
    }

    @Test("A cancelled run on another thread throws") func cancelled() async throws {
        let control = PersonalizationControl()
        control.cancel()
        let personalizer = try DetectorPersonalizer(
            ImageClassifier(model()), artwork: ["oak": leaf()], configuration: configuration())
        await #expect(throws: CancellationError.self) {
            try await onDedicatedThread { try personalizer.run(control: control) }
        }
    }

    @Test("A run can be cancelled while it reads photos") func cancelledWhileReading() throws {
        try withTemporaryFolder { folder in
            let control = PersonalizationControl()
            let personalizer = try DetectorPersonalizer(
                ImageClassifier(model()), artwork: [:], annotations: annotations(in: folder, count: 4, seed: 1),
                configuration: configuration())
            var done: [Int] = []
            #expect(throws: CancellationError.self) {
                try personalizer.run(control: control) { count, _ in
                    done.append(count)
                    if count == 0 { control.cancel() }
                }
            }
            #expect(done == [0])
        }
    }

    @Test("A scan reports each portion of photos, and can end after it") func scanPortions() throws {
        let model = try model()
        var evaluator = DetectorEvaluator(
            labels: model.labels, logos: ["crest", "leaf"], photos: DetectorPhotos(), workers: Workers(1),
            compositeCount: 1, detector: try #require(model.detector))
        let images = (0..<20).map { PatchSource(noise(UInt64($0), width: 70 + $0 % 2, height: 50)) }
        let all = try evaluator.scan(images, model.network, model.parameters, peaks: 1)
        #expect(all.count == 20 && all.allSatisfy { $0 != nil })
        var portions: [[Int]] = []
        evaluator.onPortion = { done, total in
            portions.append([done, total])
            if portions.count == 2 { throw CancellationError() }
        }
        #expect(throws: CancellationError.self) {
            try evaluator.scan(images, model.network, model.parameters, peaks: 1)
        }
        #expect(portions == [[8, 20], [16, 20]])
    }

    @Test("An annotated photo with a new logo does not also count as a background") func annotatedBackgrounds() throws {
        try withTemporaryFolder { folder in
            let detector = try ImageClassifier(model())
            let annotations = try annotations(in: folder, count: 4, seed: 1)
            let others = (0..<3).map { folder.appending(path: "other-\($0).png") }
            for (index, file) in others.enumerated() { try ImageFile.write(noise(UInt64(1000 + index)), to: file) }
            let shown = annotations.photos.filter { !$0.objects.isEmpty }.map(\.url)
            let results = try [others, others + shown].map { backgrounds in
                try DetectorPersonalizer(
                    detector, artwork: [:], annotations: annotations, backgrounds: backgrounds,
                    configuration: configuration()
                ).run()
            }
            #expect(results[0].personalization == results[1].personalization)
        }
    }

    // MARK: Errors

    @Test("Known labels, classifiers, other networks and missing data are errors") func errors() throws {
        try withTemporaryFolder { folder in
            let detector = try ImageClassifier(model())
            let known = ["crest", "leaf", "none"]
            func personalizer(
                _ detector: ImageClassifier, _ labels: [String], _ annotations: BoxAnnotations? = nil, threads: Int = 1
            ) throws {
                let artwork = try Dictionary(uniqueKeysWithValues: labels.map { ($0, try leaf()) })
                _ = try DetectorPersonalizer(
                    detector, artwork: artwork, annotations: annotations,
                    configuration: configuration(threads: threads))
            }
            for label in known {
                #expect(throws: ImprintError.labelExists(label, known: known)) {
                    try personalizer(detector, [label, "new"])
                }
            }
            let annotations = try annotations(in: folder, count: 2, seed: 1, label: "leaf")
            #expect(throws: ImprintError.labelExists("leaf", known: known)) {
                try personalizer(detector, [], annotations)
            }
            let noLogo = ImprintError.invalidSetting(
                name: "artwork", found: "empty", expected: "artwork of a new logo, or photos with its boxes")
            #expect(throws: noLogo) { try personalizer(detector, []) }
            #expect(throws: ImprintError.self) { try personalizer(detector, ["new"], threads: 0) }
            let other = try ImageClassifier(fineModel())
            let error = #expect(throws: ImprintError.self) { try personalizer(other, ["new"]) }
            #expect(error?.description.contains("a stride of 8 pixels") == true, "\(String(describing: error))")
            let network = try Network.logonet(labels: 2)
            let classifier = try ImageClassifier(
                ModelFile(
                    network: network, parameters: Parameters(network, seed: 1), labels: ["a", "b"],
                    preprocessing: Preprocessing(width: 96, height: 96)))
            #expect(throws: ImprintError.notADetector(network: network.name)) { try personalizer(classifier, ["new"]) }
        }
    }
}
