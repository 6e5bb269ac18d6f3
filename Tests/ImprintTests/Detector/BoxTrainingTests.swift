import Foundation
import ImprintCore
import ImprintImages
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintSynthesis
@testable import ImprintTraining

/// Training of a detector on photos with boxes.
@Suite struct BoxTrainingTests {
    // MARK: Targets

    private let source = PatchSource(RasterImage(width: 200, height: 100))

    private func object(_ x: Float, _ y: Float, _ width: Float, _ height: Float, logo: Int = 0) -> GroundTruthObject {
        GroundTruthObject(logo: logo, NormalizedRectangle(x: x, y: y, width: width, height: height), in: source)
    }

    @Test("An object has the position and the size of its box in the positions of a window") func box() {
        // 40 x 20 pixels around (100, 50), in a window of 80 pixels, whose positions are 80 / 6 pixels apart.
        let box = object(0.4, 0.4, 0.2, 0.2).box(in: PatchWindow(x: 99.5, y: 49.5, side: 80))
        let distance: Float = 80.0 / 6
        #expect(abs(box.width - 40 / distance) < 1e-3 && abs(box.height - 20 / distance) < 1e-3)
        // The middle of the patch lies between the third and fourth position, which are 16 pixels apart from 0.
        #expect(abs(box.row - 47.5 / 16) < 1e-3 && abs(box.column - 47.5 / 16) < 1e-3)
    }

    @Test(
        "An object counts if the network detects it at this scale; otherwise it is ignored or absent",
        arguments: [
            (PatchWindow(x: 100, y: 50, side: 90), false), (PatchWindow(x: 100, y: 50, side: 45), true),
            (PatchWindow(x: 100, y: 50, side: 400), true), (PatchWindow(x: 135, y: 50, side: 90), false),
            (PatchWindow(x: 142, y: 50, side: 90), true), (PatchWindow(x: 170, y: 50, side: 90), nil),
            (PatchWindow(x: 100, y: 50, side: 90, angle: .pi / 2, isMirrored: true), false),
        ] as [(PatchWindow, Bool?)])
    func targets(window: PatchWindow, isIgnored: Bool?) {
        let image = GroundTruthImage(source: source, objects: [object(0.4, 0.4, 0.2, 0.2, logo: 1)])
        let targets = image.targets(in: window)
        #expect(targets.map(\.isIgnored) == [isIgnored].compactMap { $0 })
        #expect(targets.allSatisfy { $0.logo == 1 && $0.box != nil })
    }

    @Test("A crowd is an ignored region: neither an object nor background, also in a window that shows little of it")
    func crowd() throws {
        let box = NormalizedRectangle(x: 0.1, y: 0.1, width: 0.8, height: 0.8)
        let image = GroundTruthImage(
            source: source, objects: [GroundTruthObject(logo: 0, box, in: source, isCrowd: true)])
        for side in [45, 90, 400] as [Float] {
            let targets = image.targets(in: PatchWindow(x: 100, y: 50, side: side))
            #expect(targets.map(\.isCrowd) == [true] && targets.map(\.isIgnored) == [false])
        }
        #expect(image.targets(in: PatchWindow(x: 100, y: 200, side: 90)).isEmpty)
        #expect(image.hasObject(at: PyramidScanner.Peak(score: 1, x: 110, y: 45, side: 90)))
        let photo = DetectorPhotos.Item(
            photo: TrainingPhoto(url: URL(filePath: "a.png"), label: 0), label: "disc", logos: [0],
            objects: image.objects, source: source, original: nil)
        let peaks = [(1, 110), (0, 400)].map { PyramidScanner.Peak(score: $0, x: $1, y: 45, side: 90) }
        let scores = photo.scores(of: 0, in: PyramidScanner.Scan(score: 1, peaks: peaks))
        #expect(scores.map(\.score) == [0] && scores.map(\.hasLogo) == [false])
    }

    @Test("A label that only crowds have is not learned, and photos of only crowds are an error")
    func onlyCrowds() throws {
        func photos(_ labels: [(String, isCrowd: Bool)]) -> BoxAnnotations {
            let objects = labels.map { AnnotatedPhoto.Object(label: $0, box: .all, isCrowd: $1) }
            let photo = AnnotatedPhoto(url: URL(filePath: "a.png"), width: 9, height: 9, objects: objects)
            return BoxAnnotations(uncheckedLabels: ["disc", "frame"], photos: [photo])
        }
        let both = photos([("disc", false), ("disc", true), ("frame", true)])
        #expect(both.usedLabels == ["disc"])
        #expect(both.withoutUnusedLabels.photos[0].objects.map(\.isCrowd) == [false, true])
        #expect(AnnotatedSource(both).items.map(\.labels) == [[0]])
        #expect(throws: ImprintError.self) {
            _ = try DetectorTask(
                artwork: [:], photos: nil, annotations: photos([("disc", true)]), backgrounds: nil,
                configuration: boxConfiguration(steps: 1))
        }
    }

    @Test(
        "The error about an annotated object with a reserved label names the annotations",
        arguments: ["none", "None", "none of these"])
    func reservedLabel(label: String) throws {
        let categories = "{\"id\": 1, \"name\": \"\(label)\"}"
        try withAnnotatedPhotos(["set.json": cocoText(cocoBox("60, 10, 40, 40"), categories: categories)]) { folder in
            let file = folder.appending(path: "set.json")
            let annotations = try BoxAnnotations(contentsOf: file)
            let error = ImprintError.reservedLabel(label, source: file.path(percentEncoded: false))
            #expect(throws: error) {
                _ = try DetectorTask(
                    artwork: [:], photos: nil, annotations: annotations, backgrounds: nil,
                    configuration: boxConfiguration(steps: 1))
            }
            #expect(error.description.contains("set.json has the label \"\(label)\", which is reserved for photos"))
        }
    }

    @Test("Random crops of photos with objects are not rotated by quarter turns", arguments: [false, true])
    func randomCrops(hasObjects: Bool) {
        let image = GroundTruthImage(source: source, objects: hasObjects ? [object(0.4, 0.4, 0.2, 0.2)] : [])
        let patches = DetectorPatches(
            compositors: [], negatives: [image], positives: [],
            unreadable: UnreadablePhotos(training: [], validation: [], labels: []), seed: 1, workers: Workers(1),
            batchSize: 1, poolSize: 1)
        let angles = (0..<200).map { index in
            var random = RandomStream(seed: 1, "crop", index)
            return patches.randomNegative(&random).1.angle
        }
        #expect(angles.contains { $0 != 0 } == !hasObjects)
    }

    @Test("A detection close to an object is not a hard negative") func nearObjects() {
        let image = GroundTruthImage(source: source, objects: [object(0.4, 0.4, 0.2, 0.2, logo: 1)])
        func peak(_ x: Float, _ y: Float) -> PyramidScanner.Peak { PyramidScanner.Peak(score: 1, x: x, y: y, side: 90) }
        #expect(image.hasObject(at: peak(110, 45)) && image.hasObject(at: peak(110, 45), logo: 1))
        #expect(!image.hasObject(at: peak(110, 45), logo: 0) && !image.hasObject(at: peak(10, 45)))
    }

    @Test("The target of a composite is where the logo is painted", arguments: [20, 32, 48] as [Float])
    func composite(side: Float) {
        // A white rectangle of 10 x 6 pixels.
        var image = RasterImage(width: 48, height: 48, channels: 3)
        for row in 17..<23 {
            for column in 12..<22 {
                for channel in 0..<3 { image.samples[(row * 48 + column) * 3 + channel] = 255 }
            }
        }
        let location = Composite.Location(x: 17, y: 20, span: 11.7)
        let pooled = DetectorPatches.PooledComposite(
            Composite(
                image: image, logo: location, subject: location, outline: [SIMD2(12, 17), SIMD2(22, 23)], kind: ""),
            logo: 0)
        let window = PatchWindow(x: 20, y: 21, side: side)
        let patchSide = DetectorHead.patchSide
        var patch = [UInt8](repeating: 0, count: patchSide * patchSide * 3)
        patch.withUnsafeMutableBufferPointer {
            do { try pooled.source.read(window, side: patchSide, into: $0) } catch { Issue.record("\(error)") }
        }
        var (sum, rowSum, columnSum): (Float, Float, Float) = (0, 0, 0)
        for row in 0..<patchSide {
            for column in 0..<patchSide {
                let value = Float(patch[(row * patchSide + column) * 3])
                sum += value
                rowSum += value * Float(row)
                columnSum += value * Float(column)
            }
        }
        let box = window.box(around: pooled.outline)
        let stride = Float(DetectorHead.heatMapStride)
        #expect(abs((box?.row ?? 0) * stride - rowSum / sum) < 0.1)
        #expect(abs((box?.column ?? 0) * stride - columnSum / sum) < 0.1)
        let center = window.heatMapPosition(of: SIMD2(pooled.location.x, pooled.location.y))
        #expect(abs(center.y * stride - rowSum / sum) < 0.1 && abs(center.x * stride - columnSum / sum) < 0.1)
    }

    // MARK: Training

    @Test("A detector that is trained on boxes only finds several objects in new photos") func boxesOnly() throws {
        try withTemporaryFolder { folder in
            let trainer = DetectorTrainer(
                annotations: try annotatedFramesAndDiscs(in: folder, count: 45, seed: 1),
                configuration: boxConfiguration(steps: 120))
            var recipe: TrainingKind?
            let result = try trainer.train(
                onEvent: { if case .started(let event) = $0 { recipe = event.kind } }, shouldStop: { false })
            #expect(recipe == .boxes && result.model.labels == ["disc", "frame", "none"])
            #expect(result.model.head.logos.allSatisfy { $0.threshold != nil })
            let test = try annotatedFramesAndDiscs(in: folder, count: 30, seed: 2)
            let evaluation = try ImageClassifier(result.model).evaluate(on: test)
            #expect(evaluation.metrics.objectCount == 30)
            #expect((evaluation.metrics.meanAveragePrecision50 ?? 0) > 0.8)
        }
    }

    @Test("Annotations of an app train and evaluate a detector; their order does not matter") func annotationsOfApp()
        throws
    {
        try withTemporaryFolder { folder in
            let all = try annotatedFramesAndDiscs(in: folder, count: 12, seed: 1)
            let annotations = try BoxAnnotations(labels: ["frame", "disc"], photos: all.photos.reversed())
            #expect(annotations.labels == all.labels && annotations.warnings.isEmpty)
            #expect(Set(annotations.photos) == Set(all.photos))
            #expect(try BoxAnnotations(labels: all.labels, photos: all.photos).photos == annotations.photos)
            let trainer = DetectorTrainer(annotations: annotations, configuration: boxConfiguration(steps: 1))
            let detector = try ImageClassifier(trainer.train().model)
            #expect(try detector.evaluate(on: annotations).metrics.objectCount == 12)
        }
    }

    @Test("A photo that was edited changes the digest of its annotations, also with the same size in pixels")
    func editedPhoto() throws {
        try withTemporaryFolder { folder in
            let annotations = try annotatedFramesAndDiscs(in: folder, count: 6, seed: 1)
            func digests() throws -> [String?] {
                let task = try DetectorTask(
                    artwork: [:], photos: nil, annotations: annotations, backgrounds: nil,
                    configuration: boxConfiguration(steps: 1))
                return [AnnotatedSource(annotations).digest, task.fingerprint["boxes"]]
            }
            let first = try digests()
            let photo = annotations.photos[0]
            try ImageFile.write(RasterImage(width: photo.width, height: photo.height, filledWith: 90), to: photo.url)
            let second = try digests()
            #expect(first[0] != second[0] && first[1] != second[1] && first[1] != nil)
        }
    }

    @Test("Boxes change the fingerprint of a run, and a validation folder is rejected") func settings() throws {
        try withTemporaryFolder { folder in
            let annotations = try annotatedFramesAndDiscs(in: folder, count: 6, seed: 1)
            func task(
                _ annotations: BoxAnnotations, _ change: (inout DetectorConfiguration) -> Void = { _ in }
            ) throws
                -> DetectorTask
            {
                var configuration = boxConfiguration(steps: 1)
                change(&configuration)
                return try DetectorTask(
                    artwork: [:], photos: nil, annotations: annotations, backgrounds: nil, configuration: configuration)
            }
            let fewer = BoxAnnotations(
                uncheckedLabels: annotations.labels, photos: Array(annotations.photos.dropLast()))
            #expect(try task(annotations).fingerprint == task(annotations).fingerprint)
            #expect(try task(annotations).fingerprint["boxes"] != task(fewer).fingerprint["boxes"])
            #expect(throws: ImprintError.self) { _ = try task(annotations) { $0.validationFolder = folder } }
        }
    }

    @Test("Annotated validation photos are validated on, and their labels must be known") func validation() throws {
        try withTemporaryFolder { folder in
            let all = try annotatedFramesAndDiscs(in: folder, count: 12, seed: 1)
            let other = try annotatedFramesAndDiscs(in: folder.appending(path: "val"), count: 6, seed: 2)
            let joined = BoxAnnotations(uncheckedLabels: all.labels, photos: all.photos + other.photos)
            let (training, validation) = joined.split(validationFolder: folder.appending(path: "val"))
            #expect(training.photos == all.photos && validation.photos == other.photos)
            func result(_ validation: BoxAnnotations) throws -> TrainingResult {
                try DetectorTrainer(
                    annotations: training, validation: validation,
                    configuration: boxConfiguration(steps: 1)
                ).train(onEvent: { _ in }, shouldStop: { false })
            }
            let evaluation = try #require(try result(validation).evaluation)
            #expect(Set(evaluation.results.map(\.url)) == Set(other.photos.map(\.url)))
            let record = try #require(try result(validation).model.training)
            let precisions = record.history.compactMap(\.validationAveragePrecision)
            #expect(precisions.count == 2 && precisions.allSatisfy { (0...1).contains($0) })
            #expect(record.bestEpochMetrics?.validationAveragePrecision == precisions.max())
            let foreign = AnnotatedPhoto.Object(
                label: "x", box: NormalizedRectangle(x: 0, y: 0, width: 0.5, height: 0.5))
            var photo = other.photos[0]
            photo.objects.append(foreign)
            let error = ImprintError.labelMismatch(source: "the data set", unknown: ["x"], labels: ["disc", "frame"])
            #expect(throws: error) { try result(BoxAnnotations(uncheckedLabels: ["x"] + all.labels, photos: [photo])) }
            let missing = (0..<7).map {
                let url = folder.appending(path: "missing-\($0).png")
                return SkippedImage(url: url, reason: .unreadable(file: url, reason: "it is missing"))
            }
            #expect(throws: ImageError.tooManyUnreadable(images: 13, skipped: missing)) {
                try result(BoxAnnotations(uncheckedLabels: all.labels, photos: other.photos, skipped: missing))
            }
        }
    }

    @Test("Standard phases replace composites by annotated objects if there is no artwork")
    func phases() {
        let plain = DetectorPhase.standard(hasLogoPhotos: false, scale: 1)
        let boxes = DetectorPhase.standard(hasLogoPhotos: false, hasBoxes: true, hasArtwork: false, scale: 1)
        let both = DetectorPhase.standard(hasLogoPhotos: false, hasBoxes: true, hasArtwork: true, scale: 1)
        #expect(boxes.allSatisfy { $0.composites == 0 && $0.hardNegatives == 0 && $0.located > 0.5 })
        #expect(both.allSatisfy { $0.located == 0.2 && $0.composites > $0.hardNegatives })
        for phases in [plain, boxes, both] {
            for phase in phases {
                let sum = phase.composites + phase.hardNegatives + phase.background + phase.mined + phase.located
                #expect(abs(sum - 1) < 1e-5)
            }
        }
    }
}
