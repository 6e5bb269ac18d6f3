import Foundation
import Imprint
import ImprintImages
import TestSupport
import Testing

@testable import ImprintTraining

@Suite("Cross-validation of detectors on photos with boxes", .timeLimit(.minutes(10))) struct BoxCrossValidationTests {
    private func validation(
        _ annotations: BoxAnnotations, _ change: (inout CrossValidation.Options) -> Void = { _ in }
    ) -> CrossValidation {
        var configuration = boxConfiguration(steps: 1)
        configuration.validation = .none
        var options = CrossValidation.Options()
        options.folds = 2
        change(&options)
        return CrossValidation(annotations: annotations, configuration: configuration, options: options)
    }

    @Test("Each photo is evaluated once, by the detector of the other fold, and a kept fold is read again")
    func folds() throws {
        try withTemporaryFolder { folder in
            let annotations = try annotatedFramesAndDiscs(in: folder.appending(path: "photos"), count: 12, seed: 1)
            let kept = folder.appending(path: "kept")
            var trained: [Int: Int] = [:]
            let first = try validation(annotations) { $0.foldsFolder = kept }.run(onEvent: { event in
                if case .training(let fold, _, .started(let start)) = event {
                    trained[fold] = start.trainingImages
                }
            })
            #expect(first.isComplete && first.evaluation == nil && first.metrics == nil)
            let folds = first.folds.compactMap(\.detectionEvaluation)
            #expect(folds.map(\.metrics.photoCount) == [trained[2], trained[1]])
            let pooled = try #require(first.detectionEvaluation)
            #expect(Set(pooled.metrics.predictions.map(\.photo)) == Set(annotations.photos))
            #expect(pooled.metrics.objectCount == 12 && pooled.metrics.labels == ["disc", "frame"])
            let counts = folds.map(\.operatingPoint.total)
            #expect(pooled.operatingPoint.total.falseNegatives == counts.map(\.falseNegatives).reduce(0, +))
            let metrics = try #require(first.detectorMetrics)
            let estimate = try #require(metrics.meanAveragePrecision50)
            #expect(estimate.value == pooled.metrics.meanAveragePrecision50)
            #expect(
                estimate.interval.lowerBound <= estimate.interval.upperBound && metrics.foldStandardDeviation != nil)
            #expect(metrics.recall?.value == pooled.operatingPoint.total.recall)
            // The second run reads both folds.
            let second = try validation(annotations) { $0.foldsFolder = kept }.run()
            #expect(second.folds.allSatisfy(\.wasRestored) && second.detectorMetrics == metrics)
            let html = Report(second, threads: 1).html
            #expect(html.contains("mean average precision (mAP@.5) of 12 objects in 12 photos"))
            let fewer = BoxAnnotations(
                uncheckedLabels: annotations.labels, photos: Array(annotations.photos.dropLast()))
            #expect(throws: CrossValidationError.self) { try validation(fewer) { $0.foldsFolder = kept }.run() }
        }
    }

    @Test("Kept folds with different labels are an error, not a trap", arguments: [true, false])
    func differentLabels(addsLabel: Bool) throws {
        try withTemporaryFolder { folder in
            let annotations = try annotatedFramesAndDiscs(in: folder.appending(path: "photos"), count: 12, seed: 1)
            let kept = folder.appending(path: "kept")
            _ = try validation(annotations) { $0.foldsFolder = kept }.run()
            let file = kept.appending(path: "seed-0-fold-1.json")
            var fold = try #require(
                try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
            let labels = try #require(fold["labels"] as? [String])
            fold["labels"] = addsLabel ? labels + ["extra"] : labels.reversed()
            fold["thresholds"] = try #require(fold["thresholds"] as? [Double]) + (addsLabel ? [0.5] : [])
            let images = try #require(fold["images"] as? [[String: Any]])
            fold["images"] = images.map { image in
                let extra: [String: Any] = ["label": "extra", "confidence": 0]
                let found = image["observations"] as? [[String: Any]] ?? []
                return image.merging(["observations": found + [extra]]) { $1 }
            }
            try JSONSerialization.data(withJSONObject: fold).write(to: file)
            let first = addsLabel ? ["disc", "frame", "extra"] : ["frame", "disc"]
            let error = CrossValidationError.differentLabels(
                fold: 2, seed: 0, found: ["disc", "frame"], expected: first)
            #expect(throws: error) { try validation(annotations) { $0.foldsFolder = kept }.run() }
        }
    }

    @Test("The interval resamples groups: photos of one group have the same weight") func groups() throws {
        let box = NormalizedRectangle(x: 0.1, y: 0.1, width: 0.2, height: 0.2)
        func evaluation(_ found: [Bool]) -> DetectionEvaluation {
            let predictions = found.enumerated().map { index, isFound in
                (
                    photo: AnnotatedPhoto(
                        url: URL(filePath: "/\(index).png"), width: 10, height: 10,
                        objects: [AnnotatedPhoto.Object(label: "cat", box: box)]),
                    detections: isFound ? [DetectedObject(label: "cat", confidence: 0.9, box: box)] : []
                )
            }
            return DetectionEvaluation(
                DetectionMetrics(labels: ["cat"], predictions: predictions), thresholds: [0.5], skipped: [])
        }
        let fold = evaluation([true, true, false, false])
        let grouped = GroupedDetections([fold], pooled: fold.metrics, groups: [0, 0, 1, 1])
        let found = try #require(grouped.metrics(weights: [2, 0]))
        #expect(found.recall == 1 && found.precision == 1 && found.meanAveragePrecision50.map { $0 > 0.999 } == true)
        let missed = try #require(grouped.metrics(weights: [0, 3]))
        #expect(missed.recall == 0 && missed.precision == nil && missed.meanAveragePrecision50 == 0)
        #expect(try #require(grouped.metrics(weights: [1, 3])).recall == 0.25)
        #expect(grouped.metrics(weights: [0, 0]) == nil)
    }

    @Test("Detections of several logos in photos of other things count as false positives of the pooled folds")
    func photosOfOtherThings() throws {
        let box = NormalizedRectangle(x: 0.1, y: 0.1, width: 0.2, height: 0.2)
        /// Returns the evaluation of a fold: a photo of the cat, which is found, and photos of other things with detections.
        func fold(
            _ number: Int, threshold: Double, others: [[(label: String, confidence: Float)]]
        ) -> DetectionEvaluation {
            let objects = [["cat"]] + others.map { _ in [String]() }
            let photos = objects.enumerated().map { index, labels in
                AnnotatedPhoto(
                    url: URL(filePath: "/\(number)/\(index).png"), width: 10, height: 10,
                    objects: labels.map { AnnotatedPhoto.Object(label: $0, box: box) })
            }
            let found: [[(label: String, confidence: Float)]] = [[(label: "cat", confidence: 0.9)]] + others
            let detections = found.map { found in
                found.map { DetectedObject(label: $0.label, confidence: $0.confidence, box: box) }
            }
            let predictions = zip(photos, detections).map { (photo: $0, detections: $1) }
            return DetectionEvaluation(
                DetectionMetrics(labels: ["cat", "dog"], predictions: predictions), thresholds: [threshold, threshold],
                skipped: [])
        }
        let folds = [
            fold(1, threshold: 0.5, others: [[], [("dog", 0.6)], [("cat", 0.4)]]),
            fold(2, threshold: 0.3, others: [[("cat", 0.4), ("dog", 0.95)]]),
        ]
        let pooled = DetectionEvaluation(pooling: folds, labels: ["cat", "dog"], skipped: [])
        // Each fold counts at the threshold of its model: one false positive in three photos, and two in one photo.
        #expect(pooled.operatingPoint.falsePositivesPerEmptyPhoto == 0.75)
        #expect(pooled.operatingPoint.perLabel.map(\.falsePositives) == [1, 2])
        #expect(pooled.operatingPoint.total.precision == 0.4 && pooled.operatingPoint.total.recall == 1)
        #expect(pooled.metrics.emptyPhotoIndices == [1, 2, 3, 5])
        // No photo shows a dog, so its detections do not change the mean average precision.
        #expect(pooled.metrics.meanAveragePrecision50.map { abs($0 - 1) < 1e-9 } == true)
        let grouped = GroupedDetections(folds, pooled: pooled.metrics, groups: [0, 1, 1, 1, 2, 3])
        #expect(try #require(grouped.metrics(weights: [1, 1, 1, 1])).precision == 0.4)
        // Resamples without the other things of the second fold.
        #expect(try #require(grouped.metrics(weights: [2, 1, 1, 0])).precision == 0.75)
    }

    @Test("Photos of other things are negatives of each of several logos, and a label of their own")
    func labelledPhotosOfOtherThings() throws {
        let confidences: [(label: Int, confidences: [Float])] = [
            (0, [0.8, 0.1, 0.1]), (1, [0.2, 0.3, 0.5]), (2, [0.1, 0.2, 0.7]), (2, [0.1, 0.6, 0.3]),
        ]
        let results = confidences.enumerated().map { index, photo in
            Evaluation.Result(
                url: URL(filePath: "/\(index).png"), label: photo.label, confidences: photo.confidences)
        }
        let labels = ["cat", "dog", "other"]
        let evaluation = Evaluation(labels: labels, results: results, skipped: [])
        // The photo of the dog counts as another thing, and one of the two other things as a dog.
        #expect(evaluation.perLabel.map(\.recall) == [1, 0, 0.5])
        let areas = evaluation.perLabel.compactMap(\.auc)
        #expect(areas.count == 3 && zip(areas, [1, 2.0 / 3, 0.75]).allSatisfy { abs($0 - $1) < 1e-12 })
        let grouped = GroupedPredictions(results, groups: [0, 1, 2, 3], labels: labels)
        let metrics = try #require(grouped.metrics(weights: [1, 1, 1, 1]))
        #expect(metrics.accuracy == 0.5 && metrics.auc == nil)
        #expect(try #require(grouped.metrics(weights: [1, 0, 0, 3])).accuracy == 0.25)
    }

    @Test("A label with fewer groups than folds is an error") func fewGroups() throws {
        try withTemporaryFolder { folder in
            let annotations = try annotatedFramesAndDiscs(in: folder, count: 6, seed: 1)
            #expect(throws: CrossValidationError.self) { try validation(annotations) { $0.folds = 6 }.run() }
        }
    }
}
