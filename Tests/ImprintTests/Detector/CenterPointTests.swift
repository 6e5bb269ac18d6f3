import Foundation
import ImprintImages
import ImprintInterop
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintTraining

/// Center-point detectors: decoding, non-maximum suppression, image sizes, and operations that do not apply.
@Suite struct CenterPointTests {
    /// Returns the box at the center of a cell, by the definition.
    private func expectedBox(_ cell: PaintedCell) -> (x: Double, y: Double, width: Double, height: Double) {
        let height = exp(3 * Double(cell.color[1]) / 255) * 4
        let width = exp(3 * Double(cell.color[2]) / 255) * 4
        let (y, x) = ((Double(cell.row) + 0.75) * 4, (Double(cell.column) + 0.25) * 4)
        let (top, left) = (max(y - height / 2, 0), max(x - width / 2, 0))
        let (bottom, right) = (min(y + height / 2, 48), min(x + width / 2, 64))
        return (left / 64, top / 48, (right - left) / 64, (bottom - top) / 48)
    }

    @Test(
        "A box is at the center of its position plus the offset, and clipped to the image",
        arguments: [
            PaintedCell(5, 7, [255, 128, 64]), PaintedCell(0, 0, [255, 100, 200]),
            PaintedCell(11, 15, [255, 255, 255]),
            PaintedCell(11, 0, [255, 0, 0]),
        ])
    func decoding(cell: PaintedCell) throws {
        let detector = try CenterPointSample().detector()
        let image = cellImage([cell])
        let objects = try detector.detect(image)
        try #require(objects.count == 1)
        let (found, expected) = (objects[0].box, expectedBox(cell))
        for (value, wanted) in [
            (found.x, expected.x), (found.y, expected.y), (found.width, expected.width),
            (found.height, expected.height),
        ] {
            #expect(abs(Double(value) - wanted) < 1e-4)
        }
        let confidence = 1 / (1 + exp(-10.0))
        #expect(objects[0].label == "face" && abs(Double(objects[0].confidence) - confidence) < 1e-5)
        let classification = try detector.classify(image)
        #expect(classification.map(\.label) == ["face"] && classification[0].box == found)
        #expect(classification[0].confidence == objects[0].confidence)
        #expect(try CenterPointSample().detector(threads: 2).detect(image) == objects)
    }

    @Test("An image without objects has none, and a low confidence") func nothing() throws {
        let detector = try CenterPointSample().detector()
        #expect(try detector.detect(cellImage([]), minimumConfidence: 0).isEmpty)
        let classification = try detector.classify(cellImage([]))[0]
        #expect(classification.confidence < 1e-4 && classification.box == nil)
        #expect(!detector.confidencesSumToOne && detector.model.head.locatesObjects)
    }

    @Test("Non-maximum suppression keeps the strongest of overlapping boxes, and all others")
    func suppression() throws {
        // The boxes of the first two overlap; the third is far away and weaker.
        let image = cellImage([
            PaintedCell(5, 3, [200, 128, 128]), PaintedCell(5, 4, [255, 128, 128]), PaintedCell(5, 13, [180, 64, 64]),
        ])
        var sample = CenterPointSample()
        let objects = try sample.detector().detect(image)
        #expect(objects.count == 2 && objects[0].box.x < 0.2 && objects[1].box.x > 0.6)
        #expect(objects.map(\.confidence) == objects.map(\.confidence).sorted(by: >))
        sample.head.iouThreshold = 1
        #expect(try sample.detector().detect(image).count == 3)
    }

    @Test("Labels are independent: one position may show objects of several labels") func labels() throws {
        var sample = CenterPointSample()
        (sample.labels, sample.heat) = (["face", "hand"], [[20, 0], [0, 22], [0, 0]])
        let detector = try sample.detector()
        let both = try detector.detect(cellImage([PaintedCell(5, 7, [255, 255, 64])]))
        #expect(both.map(\.label) == ["hand", "face"] && both[0].box == both[1].box)
        let one = try detector.detect(cellImage([PaintedCell(5, 7, [255, 0, 64])]))
        #expect(one.map(\.label) == ["face"])
    }

    // The second region begins and ends within the outer pixels of the first one.
    @Test(
        "Objects of a region of interest have boxes in the whole image",
        arguments: [(0.25, 0.5), (0.26, 0.48)] as [(Float, Float)])
    func region(start: Float, length: Float) async throws {
        let cell = PaintedCell(5, 7, [255, 128, 64])
        var request = DetectionRequest(try CenterPointSample().detector())
        request.regionOfInterest = NormalizedRectangle(x: start, y: start, width: length, height: length)
        let objects = try await request.perform(on: .image(cellImage([cell])))
        try #require(objects.count == 1)
        let expected = expectedBox(cell)
        #expect(abs(Double(objects[0].box.x) - expected.x) < 1e-4)
        // The box is clipped to the region.
        #expect(abs(Double(objects[0].box.y) - max(expected.y, 0.25)) < 1e-4)
    }

    @Test(
        "An image is scaled down to fit, and its sides are rounded up to multiples",
        arguments: [
            (64, 48, 64, 48), (1, 1, 8, 8), (9, 17, 16, 24), (65, 48, 64, 48), (6400, 48, 64, 8), (48, 6400, 8, 48),
            (128, 96, 64, 48), (100_000, 100_000, 48, 48), (57, 41, 64, 48),
        ])
    func sizes(width: Int, height: Int, expectedWidth: Int, expectedHeight: Int) {
        let head = CenterPointHead(stride: 4, sideMultiple: 8, iouThreshold: 0.3)
        let found = head.inputSize(
            width: width, height: height, input: TensorShape(height: 48, width: 64, channels: 3))
        #expect(found.width == expectedWidth && found.height == expectedHeight)
    }

    @Test(
        "Images of other sizes and channels give the same box",
        arguments: [(128, 96, 8), (63, 47, 4), (192, 144, 12)])
    func otherSizes(width: Int, height: Int, side: Int) throws {
        let detector = try CenterPointSample().detector()
        let cell = PaintedCell(5, 7, [255, 90, 90])
        let image = cellImage(width: width, height: height, cell: side, [cell])
        let (x, y) = ((7.25 * Float(side)) / Float(width), (5.75 * Float(side)) / Float(height))
        for input in [image, image.converted(toChannels: 1)] {
            // Scaling blurs the cell.
            let box = try #require(try detector.detect(input, minimumConfidence: 0.02).first?.box)
            #expect(abs(box.x + box.width / 2 - x) < 0.07 && abs(box.y + box.height / 2 - y) < 0.09)
            #expect(box.width < 0.4 && box.height < 0.5)
        }
        #expect(try detector.detect(cellImage(width: 1, height: 1, [])).isEmpty)
        #expect(try detector.detect(cellImage(width: 3000, height: 1, [])).isEmpty)
    }

    @Test("A box outside of the image, or one whose size overflows, is never returned with invalid values")
    func extremes() throws {
        let image = cellImage([PaintedCell(5, 7, [255, 255, 255])])
        var sample = CenterPointSample()
        sample.offset = [0, 100]
        #expect(try sample.detector().detect(image).isEmpty)
        let classification = try sample.detector().classify(image)[0]
        #expect(classification.confidence > 0.9 && classification.box == nil)
        sample.offset = [3e38, -3e38]
        #expect(try sample.detector().detect(image).isEmpty)
        sample = CenterPointSample()
        sample.logSize = 1e30
        #expect(try sample.detector().detect(image).map(\.box) == [.all])
        sample.logSize = -1e30
        #expect(try sample.detector().detect(image).isEmpty)
        sample.offset = [.infinity, 0]
        #expect(throws: ImprintError.nonFiniteOutput(network: "points")) { _ = try sample.detector().detect(image) }
    }

    @Test("Operations that do not apply to an imported detector are errors") func errors() throws {
        let detector = try CenterPointSample().detector()
        let cannotTrain = ImprintError.cannotTrainImportedDetector(network: "points")
        #expect(throws: cannotTrain) { _ = try PersonalizationSession(detector) }
        #expect(throws: cannotTrain) { _ = try detector.model.merging([]) }
        #expect(throws: ImprintError.self) { _ = try ImageClassifier(detector.model, averagesFlipped: true) }
        var configuration = ClassifierConfiguration()
        configuration.start = .base(detector.model, trainableLayers: .head)
        #expect(throws: cannotTrain) { _ = try configuration.startingPoint(labels: ["a", "b"]) }
        var photos = InMemorySource(labels: ["face"])
        try photos.append(cellImage([]), labels: ["face"])
        #expect(throws: ImprintError.needsBoxes(network: "points")) { _ = try detector.evaluate(on: photos) }
        #expect(throws: ImprintError.noSaliency(network: "points")) { _ = try detector.saliency(of: cellImage([])) }
        try withTemporaryFolder { folder in
            for ending in ["onnx", "mlmodel"] {
                let file = folder.appending(path: "m.\(ending)")
                let error = #expect(throws: ExportError.self) {
                    if ending == "onnx" {
                        try detector.model.writeONNX(to: file)
                    } else {
                        try detector.model.writeCoreML(to: file)
                    }
                }
                #expect(error?.problem == .detector)
            }
        }
    }
}
