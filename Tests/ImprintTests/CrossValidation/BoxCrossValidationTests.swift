import Foundation
import Imprint
import ImprintImages
import TestSupport
import Testing

@testable import ImprintTraining

@Suite("Cross-validation of detectors on photos with boxes", .timeLimit(.minutes(5))) struct BoxCrossValidationTests {
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
            let first = try validation(annotations) { $0.keptFolds = kept }.run(onEvent: { event in
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
            #expect(estimate.interval.lowerBound <= estimate.interval.upperBound && metrics.foldDeviation != nil)
            #expect(metrics.recall?.value == pooled.operatingPoint.total.recall)
            // The second run reads both folds.
            let second = try validation(annotations) { $0.keptFolds = kept }.run()
            #expect(second.folds.allSatisfy(\.isKept) && second.detectorMetrics == metrics)
            let html = Report(second, threads: 1).html
            #expect(html.contains("mean average precision (mAP@.5) of 12 objects in 12 photos"))
            let fewer = BoxAnnotations(
                uncheckedLabels: annotations.labels, photos: Array(annotations.photos.dropLast()))
            #expect(throws: CrossValidationError.self) { try validation(fewer) { $0.keptFolds = kept }.run() }
        }
    }

    @Test("Kept folds with different labels are an error, not a trap", arguments: [true, false])
    func differentLabels(addsLabel: Bool) throws {
        try withTemporaryFolder { folder in
            let annotations = try annotatedFramesAndDiscs(in: folder.appending(path: "photos"), count: 12, seed: 1)
            let kept = folder.appending(path: "kept")
            _ = try validation(annotations) { $0.keptFolds = kept }.run()
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
            #expect(throws: error) { try validation(annotations) { $0.keptFolds = kept }.run() }
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

    @Test("A label with fewer groups than folds is an error") func fewGroups() throws {
        try withTemporaryFolder { folder in
            let annotations = try annotatedFramesAndDiscs(in: folder, count: 6, seed: 1)
            #expect(throws: CrossValidationError.self) { try validation(annotations) { $0.folds = 6 }.run() }
        }
    }
}
