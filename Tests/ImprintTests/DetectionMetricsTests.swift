import Foundation
import Imprint
import ImprintImages
import TestSupport
import Testing

@testable import ImprintTraining

/// Random detections with the metrics that pycocotools computed, from Fixtures/make_detection_metrics.py.
private struct ReferenceCase: Decodable, CustomTestStringConvertible, Sendable {
    struct Photo: Decodable, Sendable {
        let width, height: Int
        /// Each object: label, x, y, width, height, and 1 for a crowd.
        let objects: [[Float]]
        /// Each detection: label, confidence, x, y, width, height.
        let detections: [[Float]]

        init(from decoder: any Decoder) throws {
            var values = try decoder.unkeyedContainer()
            (width, height) = (try values.decode(Int.self), try values.decode(Int.self))
            (objects, detections) = (try values.decode([[Float]].self), try values.decode([[Float]].self))
        }
    }

    struct Point: Decodable, Sendable {
        let thresholds: [Double]
        let counts: [[Int]]
        let perEmptyPhoto: Double?
    }

    let name: String
    let labels: Int
    let photos: [Photo]
    let perLabel: [[Double?]]
    let overall: [Double?]
    let points: [Point]
    let weights: [Int]
    let resampled: Double?

    var testDescription: String { name }

    var labelNames: [String] { (0..<labels).map { "label-\($0)" } }

    var predictions: [DetectionMetrics.Prediction] {
        photos.enumerated().map { index, photo in
            let objects = photo.objects.map {
                AnnotatedPhoto.Object(label: "label-\(Int($0[0]))", box: box($0[1...4]), isCrowd: $0[5] == 1)
            }
            let annotated = AnnotatedPhoto(
                url: URL(filePath: "/photos/\(index).jpg"), width: photo.width, height: photo.height, objects: objects)
            let detections = photo.detections.map {
                DetectedObject(label: "label-\(Int($0[0]))", confidence: $0[1], box: box($0[2...5]))
            }
            return (annotated, detections)
        }
    }

    var metrics: DetectionMetrics { DetectionMetrics(labels: labelNames, predictions: predictions) }

    static let all = loadAll()

    private static func loadAll() -> [ReferenceCase] {
        let file = packageFolder.appending(path: "Tests/ImprintTests/Fixtures/detection_metrics.json")
        do {
            return try JSONDecoder().decode([ReferenceCase].self, from: Data(contentsOf: file))
        } catch {
            fatalError("\(file.path) cannot be read: \(error). Create it again with the script in its folder.")
        }
    }
}

private func box(_ sides: ArraySlice<Float>) -> NormalizedRectangle {
    let sides = Array(sides)
    return NormalizedRectangle(x: sides[0], y: sides[1], width: sides[2], height: sides[3])
}

private func expectEqual(
    _ found: [Double?], _ expected: [Double?], _ name: String, sourceLocation: SourceLocation = #_sourceLocation
) {
    let isClose =
        found.count == expected.count
        && zip(found, expected).allSatisfy { found, expected in
            guard let found, let expected else { return found == nil && expected == nil }
            return abs(found - expected) <= 1e-6
        }
    #expect(isClose, "\(name): \(found), pycocotools: \(expected)", sourceLocation: sourceLocation)
}

@Suite("Detection metrics equal those of pycocotools") struct DetectionMetricsReferenceTests {
    @Test("mAP and AR of all labels", arguments: ReferenceCase.all)
    private func overall(_ reference: ReferenceCase) {
        let metrics = reference.metrics
        expectEqual(
            [metrics.meanAveragePrecision, metrics.meanAveragePrecision50, metrics.meanAveragePrecision75],
            Array(reference.overall[..<3]), "mAP at IoU .5:.95, .5 and .75")
        expectEqual(
            [metrics.averageRecall1, metrics.averageRecall10, metrics.averageRecall100],
            Array(reference.overall[3...]), "AR with 1, 10 and 100 detections")
    }

    @Test("AP and AR of each label", arguments: ReferenceCase.all)
    private func perLabel(_ reference: ReferenceCase) {
        let metrics = reference.metrics
        #expect(metrics.perLabel.map(\.label) == reference.labelNames)
        for (found, expected) in zip(metrics.perLabel, reference.perLabel) {
            expectEqual(
                [found.averagePrecision, found.averagePrecision50, found.averagePrecision75, found.averageRecall],
                expected, found.label)
        }
    }

    @Test("Counts at thresholds, and false positives in photos without objects", arguments: ReferenceCase.all)
    private func operatingPoints(_ reference: ReferenceCase) {
        for expected in reference.points {
            let point = reference.metrics.operatingPoint(thresholds: expected.thresholds)
            let counts = point.perLabel.map { [$0.truePositives, $0.falsePositives, $0.falseNegatives] }
            #expect(counts == expected.counts)
            expectEqual([point.falsePositivesPerEmptyPhoto], [expected.perEmptyPhoto], "per photo")
        }
    }

    @Test(
        "Each point of a precision–recall curve is the operating point of its threshold", arguments: ReferenceCase.all)
    private func curves(_ reference: ReferenceCase) {
        let metrics = reference.metrics
        let curves = metrics.precisionRecall
        #expect(Set(curves.keys) == Set(metrics.perLabel.filter { $0.objectCount > 0 }.map(\.label)))
        for (index, label) in metrics.labels.enumerated() {
            let curve = curves[label] ?? []
            #expect(curve.map(\.threshold) == curve.map(\.threshold).sorted() && curve.count <= 100)
            for point in curve where metrics.predictions.allSatisfy({ $0.detections.count <= 100 }) {
                let counts = metrics.operatingPoint(threshold: point.threshold).perLabel[index]
                #expect(counts.precision == point.precision && counts.recall == point.recall)
            }
        }
    }

    @Test("mAP@.5 of a resample", arguments: ReferenceCase.all.filter { $0.resampled != nil })
    private func resampled(_ reference: ReferenceCase) {
        let found = reference.metrics.meanAveragePrecision50(weights: reference.weights)
        expectEqual([found], [reference.resampled], "mAP@.5 of the resample")
    }

    @Test("The lists of mistakes agree with the counts", arguments: ReferenceCase.all)
    private func consistent(_ reference: ReferenceCase) {
        let metrics = reference.metrics
        let thresholds = reference.labelNames.map { _ in 0.5 }
        let total = metrics.operatingPoint(threshold: 0.5).total
        let missed = metrics.missedObjects(thresholds: thresholds, limit: .max)
        let wrong = metrics.falsePositives(thresholds: thresholds, limit: .max)
        #expect(missed.count == total.falseNegatives)
        #expect(wrong.count == total.falsePositives)
        #expect(missed.allSatisfy { ($0.confidence ?? 0) < 0.5 && !$0.object.isCrowd })
        let confidences = wrong.map(\.detection.confidence)
        #expect(confidences == confidences.sorted(by: >) && confidences.allSatisfy { $0 >= 0.5 })
    }
}

@Suite("Detection metrics") struct DetectionMetricsTests {
    private func photo(_ name: String, _ objects: [AnnotatedPhoto.Object]) -> AnnotatedPhoto {
        AnnotatedPhoto(url: URL(filePath: "/photos/\(name)"), width: 100, height: 50, objects: objects)
    }

    private func object(_ label: String, _ sides: [Float]) -> AnnotatedPhoto.Object {
        AnnotatedPhoto.Object(label: label, box: box(sides[...]))
    }

    private func detection(_ label: String, _ confidence: Float, _ sides: [Float]) -> DetectedObject {
        DetectedObject(label: label, confidence: confidence, box: box(sides[...]))
    }

    /// Two cats, one of them detected twice; a dog with a low confidence; and a false cat in an empty photo.
    private var metrics: DetectionMetrics {
        let (left, right): ([Float], [Float]) = ([0, 0, 0.25, 0.5], [0.5, 0, 0.25, 0.5])
        return DetectionMetrics(
            labels: ["cat", "dog"],
            predictions: [
                (
                    photo("a", [object("cat", left), object("cat", [0.5, 0.5, 0.5, 0.5])]),
                    [detection("cat", 0.9, left), detection("cat", 0.8, left)]
                ),
                (photo("b", [object("dog", right)]), [detection("dog", 0.25, right)]),
                (photo("c", []), [detection("cat", 0.5, right)]),
            ])
    }

    @Test("A second detection of an object is a false positive") func secondDetection() throws {
        let point = metrics.operatingPoint(threshold: 0.5)
        let cat = point.perLabel[0]
        #expect(cat.truePositives == 1 && cat.falsePositives == 2 && cat.falseNegatives == 1)
        #expect(cat.precision == 1.0 / 3 && cat.recall == 0.5 && cat.f1 == 0.4)
        let dog = point.perLabel[1]
        #expect(dog.precision == nil && dog.recall == 0 && dog.f1 == 0)
        #expect(point.falsePositivesPerEmptyPhoto == 1)
        #expect(metrics.operatingPoint(thresholds: [0.6, 0.25]).falsePositivesPerEmptyPhoto == 0)
        #expect(point.total.falseNegatives == 2)
    }

    @Test("The counts leave out crowds and other labels") func leftOut() {
        var photo = photo("a", [object("cat", [0, 0, 1, 1]), object("bird", [0, 0, 1, 1])])
        photo.objects[0].isCrowd = true
        let metrics = DetectionMetrics(
            labels: ["cat"],
            predictions: [
                (photo, [detection("cat", 0.5, [0, 0, 0.1, 0.1]), detection("bird", 0.5, [0, 0, 1, 1])]),
                (self.photo("b", [object("bird", [0, 0, 1, 1])]), []),
            ])
        #expect(metrics.photoCount == 2 && metrics.objectCount == 0 && metrics.crowdCount == 1)
        #expect(metrics.detectionCount == 1 && metrics.emptyPhotoIndices == [1])
        #expect(metrics.meanAveragePrecision50 == nil && metrics.meanAveragePrecision50Interval() == nil)
        #expect(metrics.operatingPoint(threshold: 0).total == DetectionMetrics.Counts())
    }

    @Test("Missed objects without a detection come first") func missedObjects() {
        let missed = metrics.missedObjects(thresholds: [0.5, 0.5], limit: 5)
        #expect(missed.map(\.object.label) == ["cat", "dog"])
        #expect(missed.map(\.confidence) == [nil, 0.25])
        #expect(metrics.missedObjects(thresholds: [0.5, 0.5], limit: 1).count == 1)
    }

    @Test("False positives are listed by descending confidence") func falsePositives() {
        let wrong = metrics.falsePositives(thresholds: [0.5, 0.5], limit: 5)
        #expect(wrong.map(\.detection.confidence) == [0.8, 0.5])
        #expect(wrong.map(\.photo.url.lastPathComponent) == ["a", "c"])
    }

    @Test("Boxes that are not finite match nothing") func invalidBoxes() throws {
        let sides: [Float] = [.nan, 0, 0.5, .infinity]
        let metrics = DetectionMetrics(
            labels: ["cat"],
            predictions: [(photo("a", [object("cat", [0, 0, 1, 1])]), [detection("cat", 0.5, sides)])])
        #expect(metrics.meanAveragePrecision50 == 0)
    }

    @Test("No photos give no metrics") func noPhotos() {
        let metrics = DetectionMetrics(labels: ["cat"], predictions: [])
        #expect(metrics.meanAveragePrecision == nil && metrics.averageRecall100 == nil)
        #expect(metrics.operatingPoint(threshold: 0.5).falsePositivesPerEmptyPhoto == nil)
    }

    @Test("The interval contains the metric and depends only on the seed") func interval() throws {
        let reference = try #require(ReferenceCase.all.first { $0.photos.count == 40 })
        let metrics = reference.metrics
        let interval = try #require(metrics.meanAveragePrecision50Interval())
        #expect(interval.contains(try #require(metrics.meanAveragePrecision50)))
        #expect(interval.upperBound - interval.lowerBound > 0.05)
        #expect(metrics.meanAveragePrecision50Interval() == interval)
        #expect(metrics.meanAveragePrecision50Interval(seed: 1) != interval)
    }

    @Test("The JSON of a label has null for undefined metrics") func json() throws {
        let metrics = DetectionMetrics(labels: ["cat"], predictions: [])
        let json = String(decoding: try JSONEncoder().encode(metrics.perLabel[0]), as: UTF8.self)
        #expect(json.contains("\"averagePrecision\":null"))
        let decoded = try JSONDecoder().decode(DetectionMetrics.LabelMetrics.self, from: Data(json.utf8))
        #expect(decoded == metrics.perLabel[0])
    }
}
