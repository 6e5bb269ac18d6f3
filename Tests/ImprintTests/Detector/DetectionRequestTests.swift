import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@testable import Imprint

/// Detection of several objects in a photo.
@Suite struct DetectionRequestTests {
    /// Returns a peak whose box is a square with a corner at (x, y).
    private func peak(_ score: Float, _ x: Float, _ y: Float, _ side: Float) -> PyramidScanner.Peak {
        PyramidScanner.Peak(
            score: score, x: x, y: y, side: 96, box: .init(x: x, y: y, width: side, height: side))
    }

    private let detector = DetectorHead(
        levels: [96], stride: 16, span: 44, logos: [.init(label: "crest"), .init(label: "leaf")], regressesBoxes: true)

    /// Returns the objects of both logos.
    private func objects(
        _ scans: [PyramidScanner.Scan], thresholds: [Double] = [0.5, 0.5]
    ) -> [ObjectPeaks.Object] {
        ObjectPeaks.objects(scans, detector, thresholds: thresholds)
    }

    @Test("Non-maximum suppression keeps all objects that do not overlap, and logos in logos")
    func selection() {
        let scans = [
            PyramidScanner.Scan(
                score: 3,
                peaks: [
                    peak(3, 0, 0, 100), peak(2, 10, 5, 100), peak(1, 200, 0, 50), peak(-6, 400, 0, 50),
                ]),
            // Inside of the first crest, and a weaker label for nearly the same box.
            PyramidScanner.Scan(score: 2.5, peaks: [peak(2.5, 30, 30, 30), peak(0.5, 201, 0, 50)]),
        ]
        let objects = objects(scans)
        #expect(objects.map(\.logo) == [0, 1, 0])
        // The boxes of the first two peaks are averaged with their confidences as weights.
        let (first, second) = (detector.logos[0].confidence(3), detector.logos[0].confidence(2))
        #expect(abs(objects[0].box.x - 10 * second / (first + second)) < 1e-4)
        for (found, expected) in zip(objects.map(\.box.width), [100, 30, 50] as [Float]) {
            #expect(abs(found - expected) < 1e-3)
        }
        for (found, expected) in zip(objects.dropFirst().map(\.box.x), [30, 200] as [Float]) {
            #expect(abs(found - expected) < 1e-3)
        }
        #expect(objects.map(\.confidence) == objects.map(\.confidence).sorted(by: >))
    }

    @Test(
        "An object below its threshold does not suppress one of another logo that reaches its own",
        arguments: [([0.5, 0.5], [0]), ([0.9, 0.5], [0, 1]), ([0.9, 0.9], [0]), ([0.5, 0.9], [0])])
    func thresholdsOfLogos(thresholds: [Double], logos: [Int]) {
        // Confidences of .73 and .62 for nearly the same box.
        let scans = [
            PyramidScanner.Scan(score: 1, peaks: [peak(1, 0, 0, 100)]),
            PyramidScanner.Scan(score: 0.5, peaks: [peak(0.5, 2, 0, 100)]),
        ]
        #expect(objects(scans, thresholds: thresholds).map(\.logo) == logos)
    }

    @Test(
        "A weaker box is suppressed if it is inside a better box of the same logo",
        arguments: [(2, 20, 0, [0]), (2, 70, 0, [0]), (2, 30, 1, [0, 1]), (2, 90, 0, [0, 0]), (4, 20, 0, [0, 0])]
            as [(Float, Float, Int, [Int])])
    func containment(score: Float, x: Float, logo: Int, expected: [Int]) {
        // The better box is at 0 to 100. At x = 90, half of the smaller box is outside of it.
        let small = peak(score, x, 10, 20)
        let scans = [
            PyramidScanner.Scan(score: 3, peaks: [peak(3, 0, 0, 100)] + (logo == 0 ? [small] : [])),
            PyramidScanner.Scan(score: 2, peaks: logo == 1 ? [small] : []),
        ]
        #expect(objects(scans).map(\.logo) == expected)
    }

    @Test("At most 100 objects of a label are returned") func limit() {
        let peaks = (0..<150).map { peak(1 - Float($0) / 150, Float($0) * 20, 0, 10) }
        let objects = objects(
            [PyramidScanner.Scan(score: 1, peaks: peaks), PyramidScanner.Scan(score: -9, peaks: [])])
        #expect(objects.count == 100 && objects.first?.box.x == 0)
    }

    @Test("Without box regression, boxes are squares of the typical size")
    func squares() {
        let plain = PyramidScanner.Peak(score: 1, x: 100, y: 60, side: 96)
        #expect(ObjectPeaks.box(of: plain, detector) == .init(x: 78.5, y: 38.5, width: 44, height: 44))
    }

    @Test("Without a minimum confidence, each label has its own threshold") func thresholds() throws {
        let all = try model(boxes: true).detect(image, minimumConfidence: 0)
        let crest = try #require(all.filter { $0.label == "crest" }.map(\.confidence).sorted().dropFirst().last)
        let detector = try model(boxes: true, thresholds: [Double(crest), 1])
        let found = try detector.detect(image)
        let candidates = try detector.detect(image, minimumConfidence: 0)
        #expect(found == candidates.filter { $0.label == "crest" && $0.confidence >= crest } && !found.isEmpty)
    }

    @Test("A minimum confidence outside of 0 to 1 is an error", arguments: [-0.1, 1.5, .nan] as [Float])
    func minimumConfidence(value: Float) async throws {
        let detector = try model(boxes: false)
        #expect(throws: ImprintError.self) { _ = try detector.detect(image, minimumConfidence: value) }
        await #expect(throws: ImprintError.self) {
            _ = try await DetectionRequest(detector, minimumConfidence: value).perform(on: .image(image))
        }
    }

    @Test("Categories replace labels, and the grouped confidence is the confidence that any object is present")
    func grouping() throws {
        func object(_ label: String, _ confidence: Float) -> DetectedObject {
            DetectedObject(label: label, confidence: confidence, box: .all)
        }
        let objects = [object("crest", 0.5), object("leaf", 0.5), object("text", 0.9)]
        #expect(objects.groupedConfidence(excluding: ["text"]) == 0.75)
        #expect([DetectedObject]().groupedConfidence() == 0)
        let categories = try Categories(["plant": ["leaf"]])
        #expect(objects.rolledUp(into: categories).map(\.label) == ["crest", "plant", "text"])
    }

    /// Returns a detector with random parameters.
    private func model(boxes: Bool, thresholds: [Double?] = [nil, nil]) throws -> ImageClassifier {
        let network = try Network.logoDetector(logos: 2, regressesBoxes: boxes)
        return try ImageClassifier(
            ModelFile(
                network: network, parameters: try Parameters(network, seed: 2), labels: ["crest", "leaf", "other"],
                preprocessing: .logoDetector,
                detector: .logoDetector(
                    logos: [
                        .init(label: "crest", slope: 0.5, threshold: thresholds[0]),
                        .init(label: "leaf", slope: 0.5, threshold: thresholds[1]),
                    ],
                    regressesBoxes: boxes)))
    }

    private var image: RasterImage {
        let count = 150 * 90 * 3
        return RasterImage(width: 150, height: 90, channels: 3, samples: (0..<count).map { UInt8($0 * 37 % 251) })
    }

    @Test("Detections have boxes within the image and the region of interest", arguments: [false, true])
    func detections(boxes: Bool) async throws {
        let detector = try model(boxes: boxes)
        let all = try detector.detect(image, minimumConfidence: 0)
        #expect(!all.isEmpty && all.allSatisfy { $0.box.isWithinImage && (0...1).contains($0.confidence) })
        #expect(all.map(\.confidence) == all.map(\.confidence).sorted(by: >))
        let threshold = all[all.count / 2].confidence
        let best = try detector.detect(image, minimumConfidence: threshold)
        #expect(best == all.filter { $0.confidence >= threshold })
        var request = DetectionRequest(detector, minimumConfidence: 0)
        #expect(try await request.perform(on: .image(image)) == all)
        request.regionOfInterest = NormalizedRectangle(x: 0.5, y: 0.25, width: 0.4, height: 0.5)
        let inside = try await request.perform(on: .image(image))
        #expect(!inside.isEmpty)
        #expect(
            inside.allSatisfy {
                $0.box.x > 0.49 && $0.box.y > 0.24 && $0.box.x + $0.box.width < 0.92 && $0.box.y + $0.box.height < 0.76
            })
    }

    @Test("A request for a replaceable detector uses the current one") func replaced() async throws {
        let detectors = [try model(boxes: false), try model(boxes: true)]
        let live = LiveClassifier(detectors[0])
        let request = DetectionRequest(live, minimumConfidence: 0)
        for detector in detectors {
            live.replace(with: detector)
            #expect(request.detector === detector)
            #expect(try await request.perform(on: .image(image)) == detector.detect(image, minimumConfidence: 0))
        }
    }

    @Test("A rule that fits images to the network's input is an error for a detector") func cropAndScale() async throws
    {
        let photo = image
        let detectors = [try model(boxes: true), try CenterPointSample().detector()]
        for detector in detectors {
            let classified = #expect(throws: ImprintError.self) {
                _ = try detector.classify(photo, cropAndScale: .scaleFit)
            }
            #expect(classified?.description.contains("cropAndScale") == true)
            let measured = #expect(throws: ImprintError.self) {
                _ = try detector.novelty(of: .image(photo), cropAndScale: .scaleFit)
            }
            #expect(measured?.description.contains("cropAndScale") == true)
            var request = ClassificationRequest(detector)
            request.cropAndScale = .centerCrop
            let invalid = request
            let performed = await #expect(throws: ImprintError.self) {
                _ = try await invalid.perform(on: .image(photo))
            }
            #expect(performed?.description.contains("cropAndScale") == true)
        }
    }

    @Test("A classifier of whole images cannot detect, and invalid settings are rejected") func errors() async throws {
        var builder = NetworkBuilder(name: "mean", input: TensorShape(height: 8, width: 8, channels: 3))
        builder.add(GlobalAveragePool())
        builder.add(Dense(outputChannels: 2))
        builder.add(Softmax())
        let network = try builder.network()
        let classifier = try ImageClassifier(
            ModelFile(
                network: network, parameters: try Parameters(network, seed: 0), labels: ["a", "b"],
                preprocessing: Preprocessing(width: 8, height: 8)))
        let photo = image
        #expect(throws: ImprintError.notADetector(network: "mean")) { _ = try classifier.detect(photo) }
        for change in [
            { (request: inout DetectionRequest) in request.minimumConfidence = .nan },
            { $0.minimumConfidence = 1.5 },
            { $0.regionOfInterest = NormalizedRectangle(x: 0.5, y: 0, width: 0.6, height: 1) },
        ] {
            var request = DetectionRequest(try model(boxes: true))
            change(&request)
            let invalid = request
            await #expect(throws: ImprintError.self) { _ = try await invalid.perform(on: .image(photo)) }
        }
    }
}
