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

    private func object(_ x: Float, _ y: Float, _ width: Float, _ height: Float, logo: Int = 0) -> KnownObject {
        KnownObject(logo: logo, NormalizedRectangle(x: x, y: y, width: width, height: height), in: source)
    }

    @Test("An object has the position and the size of its box in the cells of a window") func box() {
        // 40 x 20 pixels around (100, 50), in a window of 80 pixels, whose cells are 80 / 6 pixels apart.
        let box = object(0.4, 0.4, 0.2, 0.2).box(in: PatchWindow(x: 99.5, y: 49.5, side: 80))
        let cell: Float = 80.0 / 6
        #expect(abs(box.width - 40 / cell) < 1e-3 && abs(box.height - 20 / cell) < 1e-3)
        // The middle of the patch lies between the centres of the third and fourth cell, which are 16 pixels apart from 0.
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
        let image = KnownImage(source: source, objects: [object(0.4, 0.4, 0.2, 0.2, logo: 1)])
        let targets = image.targets(in: window)
        #expect(targets.map(\.isIgnored) == [isIgnored].compactMap { $0 })
        #expect(targets.allSatisfy { $0.logo == 1 && $0.box != nil })
    }

    @Test("A detection close to an object is not a hard negative") func nearObjects() {
        let image = KnownImage(source: source, objects: [object(0.4, 0.4, 0.2, 0.2, logo: 1)])
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
        let center = window.cell(of: SIMD2(pooled.location.x, pooled.location.y))
        #expect(abs(center.y * stride - rowSum / sum) < 0.1 && abs(center.x * stride - columnSum / sum) < 0.1)
    }

    // MARK: Training

    /// Writes noise photos with 0 to 2 bright frames or discs, and returns their annotations.
    private func annotations(in folder: URL, count: Int, seed: UInt64) throws -> BoxAnnotations {
        let photos = try (0..<count).map { index in
            var random = RandomStream(seed: seed, "boxes", index)
            var image = RasterImage(width: 140, height: 100, channels: 3)
            for sample in image.samples.indices { image.samples[sample] = UInt8(90 + random.index(below: 60)) }
            let objects = (0..<(index % 3)).map { number in
                let side = 30 + random.index(below: 12)
                let (left, top) = (5 + 68 * number + random.index(below: 20), 5 + random.index(below: 45))
                let isFrame = random.chance(0.5)
                for row in 0..<side {
                    for column in 0..<side {
                        let (dx, dy) = (2 * column - side, 2 * row - side)
                        let isPainted =
                            isFrame ? max(abs(dx), abs(dy)) > side / 2 : dx * dx + dy * dy < side * side
                        guard isPainted else { continue }
                        for channel in 0..<3 {
                            image.samples[((top + row) * 140 + left + column) * 3 + channel] = isFrame ? 250 : 10
                        }
                    }
                }
                return AnnotatedPhoto.Object(
                    label: isFrame ? "frame" : "disc",
                    box: NormalizedRectangle(
                        x: Float(left) / 140, y: Float(top) / 100, width: Float(side) / 140, height: Float(side) / 100))
            }
            let url = folder.appending(path: "\(seed)-\(index).png")
            try ImageFile.write(image, to: url)
            return AnnotatedPhoto(url: url, width: 140, height: 100, objects: objects)
        }
        return BoxAnnotations(labels: ["disc", "frame"], photos: photos)
    }

    private func configuration(steps: Int) -> DetectorConfiguration {
        var configuration = DetectorConfiguration()
        configuration.keepsGroupsTogether = false
        configuration.rehearsalImages = 0
        configuration.phases = [
            DetectorPhase(
                steps: steps, learningRate: 3e-3, composites: 0, hardNegatives: 0, background: 0.4, mined: 0,
                located: 0.6),
            DetectorPhase(
                steps: steps, learningRate: 2e-3, composites: 0, hardNegatives: 0, background: 0.3, mined: 0.2,
                located: 0.5),
        ]
        return configuration
    }

    @Test("A detector that is trained on boxes only finds several objects in new photos") func boxesOnly() throws {
        try withTemporaryFolder { folder in
            let trainer = DetectorTrainer(
                artwork: [:], photos: nil, annotations: try annotations(in: folder, count: 45, seed: 1),
                configuration: configuration(steps: 120))
            var recipe: TrainingRecipe?
            let result = try trainer.train(
                onEvent: { if case .started(let event) = $0 { recipe = event.recipe } }, shouldStop: { false })
            #expect(recipe == .boxes && result.model.labels == ["disc", "frame", "none"])
            let test = try annotations(in: folder, count: 30, seed: 2)
            #expect(result.model.head.logos.allSatisfy { $0.threshold != nil })
            let evaluation = try ImageClassifier(result.model).evaluate(on: test)
            #expect(evaluation.metrics.objectCount == 30)
            #expect((evaluation.metrics.meanAveragePrecision50 ?? 0) > 0.8)
        }
    }

    @Test("Boxes change the fingerprint of a run, and a validation folder is rejected") func settings() throws {
        try withTemporaryFolder { folder in
            let annotations = try annotations(in: folder, count: 6, seed: 1)
            func task(
                _ annotations: BoxAnnotations, _ change: (inout DetectorConfiguration) -> Void = { _ in }
            ) throws
                -> DetectorTask
            {
                var configuration = configuration(steps: 1)
                change(&configuration)
                return try DetectorTask(
                    artwork: [:], photos: nil, annotations: annotations, backgrounds: nil, configuration: configuration)
            }
            let fewer = BoxAnnotations(labels: annotations.labels, photos: Array(annotations.photos.dropLast()))
            #expect(try task(annotations).fingerprint == task(annotations).fingerprint)
            #expect(try task(annotations).fingerprint["boxes"] != task(fewer).fingerprint["boxes"])
            #expect(throws: ImprintError.self) { _ = try task(annotations) { $0.validationFolder = folder } }
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
