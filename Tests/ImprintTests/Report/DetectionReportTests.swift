import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintTraining

@Suite("Report of a detector") struct DetectionReportTests {
    private func count(_ part: String, in html: String) -> Int { html.components(separatedBy: part).count - 1 }

    private func object(_ label: String, _ x: Float, _ side: Float = 0.2) -> AnnotatedPhoto.Object {
        AnnotatedPhoto.Object(label: label, box: NormalizedRectangle(x: x, y: 0.1, width: side, height: side))
    }

    /// Returns the page of an evaluation on one photo.
    /// - Parameter isPooled: Whether the evaluation is that of the only fold of a cross-validation.
    private func page(
        _ objects: [AnnotatedPhoto.Object], _ detections: [DetectedObject], photo: URL, labels: [String],
        isPooled: Bool = false
    ) throws -> String {
        let network = try Network.logoDetector(logos: labels.count)
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["none"] + labels,
            preprocessing: .logoDetector,
            detector: .logoDetector(logos: labels.map { .init(label: $0, slope: 1, offset: 0) }))
        let annotated = AnnotatedPhoto(url: photo, width: 200, height: 100, objects: objects)
        let metrics = DetectionMetrics(labels: labels, predictions: [(annotated, detections)])
        var evaluation = DetectionEvaluation(metrics, thresholds: labels.map { _ in 0.5 }, skipped: [])
        if isPooled { evaluation = DetectionEvaluation(pooling: [evaluation], labels: labels, skipped: []) }
        return Report(model, evaluation: .detection(evaluation), command: "imprint evaluate <m>", workers: Workers(2))
            .html
    }

    private func detection(_ label: String, _ confidence: Float, _ x: Float) -> DetectedObject {
        DetectedObject(label: label, confidence: confidence, box: object(label, x).box)
    }

    @Test("The accuracy of a detector without training photos is that of composites") func artworkOnly() throws {
        let network = try Network.logoDetector(logos: 1)
        func html(_ photos: [String: Int]) throws -> String {
            let record = TrainingRecord(
                .detector(DetectorHyperparameters()), trainingImages: photos,
                history: [EpochMetrics(epoch: 1, loss: 0.5, accuracy: 0.75, learningRate: 0.1)])
            let model = ModelFile(
                network: network, parameters: try Parameters(network, seed: 1), labels: ["none", "cat"],
                preprocessing: .logoDetector,
                detector: .logoDetector(logos: [.init(label: "cat", slope: 1, offset: 0)]), training: record)
            return Report(model).html
        }
        let artwork = try html([:])
        #expect(artwork.contains("<p>of the composites of the artwork classified correctly<br>"))
        #expect(
            artwork.contains("The accuracy on other photos is unknown.") && !artwork.contains("training photos</dt>"))
        let photos = try html(["none": 3, "cat": 2])
        #expect(photos.contains("<p>of 5 photos of the training set classified correctly<br>"))
        #expect(photos.contains("<dt>training photos</dt><dd>5</dd>"))
    }

    @Test("Without thresholds, the page shows the curves with the lowest F1 scores") func worstCurves() {
        let labels = (0..<20).map { "label \($0)" }
        let curves = labels.enumerated().map { index, label in
            (label, [TrainingRecord.PrecisionRecallPoint(threshold: 0.5, precision: 1 - Double(index) / 40, recall: 1)])
        }
        let html = LabelMetricsTable.curves(
            Dictionary(uniqueKeysWithValues: curves), thresholds: [:], labels: labels, threshold: nil)
        #expect(html.contains("The 12 labels of 20 with the lowest F1."))
        #expect(labels.filter { html.contains("<bdi>\($0)</bdi>") } == Array(labels.suffix(12)))
    }

    @Test("The page has a table, curves and the mistakes with their boxes, and loads no other resources")
    func parts() throws {
        try withTemporaryFolder { folder in
            let photo = folder.appending(path: "a<b>.png")
            try writeAnnotatedPhoto(photo)
            let html = try page(
                [object("cat", 0.1), object("cat", 0.4), object("d<b>", 0.7)],
                [detection("cat", 0.9, 0.1), detection("cat", 0.8, 0.11), detection("d<b>", 0.4, 0.7)], photo: photo,
                labels: ["cat", "d<b>"])
            for part in ["labels", "mistakes", "settings", "repeat"] {
                #expect(html.contains("<section id=\"\(part)\"") && html.contains("href=\"#\(part)\""), "\(part)")
            }
            #expect(html.contains("<p>mean average precision (mAP@.5) of 3 objects in 1 photo"))
            #expect(count("Precision–recall curve of ", in: html) == 2)
            // Two missed objects and one false positive, each as a whole photo and enlarged.
            #expect(count("<img src=\"data:image/jpeg;base64,", in: html) == 6)
            #expect(count("<rect class=\"mistake\"", in: html) == 6)
            #expect(html.contains("</strong>, not found") && html.contains("below the threshold"))
            #expect(html.contains("found twice") && html.contains("d&lt;b&gt;"))
            #expect(html.contains("a&lt;b&gt;.png") && !html.contains("<b>.png"))
            for word in ["<script", "http:", "https:", "url(", "@import"] { #expect(!html.contains(word), "\(word)") }
        }
    }

    @Test("Without mistakes the page says so; an unreadable photo is replaced by the error") func extremes() throws {
        try withTemporaryFolder { folder in
            let photo = folder.appending(path: "a.png")
            let perfect = try page([object("cat", 0.1)], [detection("cat", 0.9, 0.1)], photo: photo, labels: ["cat"])
            #expect(perfect.contains("No mistakes: all objects (1) were found"))
            let missing = try page([object("cat", 0.1)], [], photo: photo, labels: ["cat"])
            #expect(missing.contains("class=\"missing\""))
            let nothing = try page([], [], photo: photo, labels: ["cat"])
            #expect(!nothing.contains("id=\"mistakes\""))
        }
    }

    @Test("The page of pooled detections, which have no thresholds, has neither mistakes nor rings") func pooled()
        throws
    {
        try withTemporaryFolder { folder in
            let (objects, detections) = ([object("cat", 0.1), object("cat", 0.4)], [detection("cat", 0.9, 0.1)])
            func html(isPooled: Bool) throws -> String {
                try page(
                    objects, detections, photo: folder.appending(path: "a.png"), labels: ["cat"], isPooled: isPooled)
            }
            let (single, pooled) = (try html(isPooled: false), try html(isPooled: true))
            #expect(single.contains("id=\"mistakes\"") && single.contains("The ring is"))
            #expect(!pooled.contains("id=\"mistakes\"") && !pooled.contains("The ring is"))
            #expect(pooled.contains("Precision–recall curve of cat") && pooled.contains("in 1 photo"))
        }
    }

    @Test("At most 24 mistakes are shown, half of them missed objects if there are enough of both") func limit() throws
    {
        try withTemporaryFolder { folder in
            let photo = folder.appending(path: "a.png")
            try writeAnnotatedPhoto(photo)
            let objects = (0..<20).map { object("cat", Float($0) * 0.04, 0.01) }
            let wrong = (0..<30).map { detection("cat", 0.9, Float($0) * 0.02) }
            let html = try page(objects, wrong, photo: photo, labels: ["cat"])
            #expect(count("<figure><div class=\"pair\">", in: html) == 24)
            #expect(html.contains("These are the 12 worst of 20.") && html.contains("These are the 12 worst of 30."))
            let missed = try page(objects, [], photo: photo, labels: ["cat"])
            #expect(count("<figure><div class=\"pair\">", in: missed) == 20)
        }
    }
}
