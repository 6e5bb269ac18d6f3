import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintTraining

@Suite("Bootstrap over groups") struct GroupBootstrapTests {
    /// Predictions of two labels in groups of one to six photos; the photos of a group are often all correct or all wrong.
    private struct Case: Encodable {
        var truth: [Int] = []
        var confidences: [[Float]] = []
        var groups: [Int] = []
        var weights: [[Int]] = []
        var percentiles: [Double] = []
        let groupCount = 60

        init() {
            var stream = RandomStream(seed: 3, "bootstrap test")
            for group in 0..<groupCount {
                let shift = stream.uniform(in: -0.2...0.35)
                for _ in 0...stream.index(below: 6) {
                    let label = stream.index(below: 2)
                    // Multiples of 1/32, so that confidences tie.
                    let score = Float(Int(32 * min(max(0.5 + shift + stream.uniform(in: -0.2...0.2), 0), 1))) / 32
                    truth.append(label)
                    confidences.append(label == 1 ? [1 - score, score] : [score, 1 - score])
                    groups.append(group)
                }
            }
            weights = [Array(repeating: 1, count: groupCount)]
            weights += (0..<5).map { _ in (0..<groupCount).map { _ in stream.index(below: 4) } }
            weights.append((0..<groupCount).map { $0 == 7 ? 2 : 0 })
            percentiles = (0..<41).map { _ in Double(stream.uniform()) }
        }

        var results: [Evaluation.Result] {
            zip(truth, confidences).map {
                Evaluation.Result(url: URL(filePath: "/photo.png"), label: $0, confidences: $1)
            }
        }

        var predictions: GroupedPredictions { GroupedPredictions(results, groups: groups, labels: ["a", "b"]) }
    }

    private struct Reference: Decodable {
        struct Metrics: Decodable {
            let accuracy, logLoss, calibrationError: Double
            let auc: Double?
        }

        let metrics: [Metrics]
        let interval: [Double]
        let percentiles: [Double]
        let deviation: Double
    }

    @Test(
        "Weighted metrics, percentiles and the standard deviation equal those of scikit-learn and NumPy; the interval is near that of scipy",
        .enabled(if: Python.has("sklearn", "scipy"), "IMPRINT_PYTHON has no scikit-learn"))
    func reference() throws {
        let example = Case()
        let expected = try withTemporaryFolder { folder in
            let file = folder.appending(path: "case.json")
            try JSONEncoder().encode(example).write(to: file)
            return try JSONDecoder().decode(
                Reference.self, from: Python.output(of: "ImprintTests/Fixtures/grouped_bootstrap.py", [file.path]))
        }
        #expect(expected.metrics.count == example.weights.count)
        for (weights, expected) in zip(example.weights, expected.metrics) {
            let found = try #require(example.predictions.metrics(weights: weights))
            #expect(abs(found.accuracy - expected.accuracy) < 1e-9)
            #expect(abs(found.logLoss - expected.logLoss) < 1e-6)
            #expect(abs(found.calibrationError - expected.calibrationError) < 1e-6)
            #expect((found.auc == nil) == (expected.auc == nil))
            if let auc = found.auc, let reference = expected.auc { #expect(abs(auc - reference) < 1e-9) }
        }
        let interval = GroupBootstrap.interval(example.percentiles, 0)
        #expect(abs(interval.lowerBound - expected.percentiles[0]) < 1e-12)
        #expect(abs(interval.upperBound - expected.percentiles[1]) < 1e-12)
        #expect(abs((GroupBootstrap.standardDeviation(example.percentiles) ?? 0) - expected.deviation) < 1e-12)
        let estimates = CrossValidationResult.Metrics(
            [example.predictions], groupCount: example.groupCount, foldAccuracies: [], seedAccuracies: [])
        let accuracy = try #require(estimates).accuracy
        #expect(abs(accuracy.value - expected.metrics[0].accuracy) < 1e-9)
        // The standard error of a percentile over 1,000 resamples is about a twentieth of the width of the interval.
        #expect(abs(accuracy.interval.lowerBound - expected.interval[0]) < 0.02)
        #expect(abs(accuracy.interval.upperBound - expected.interval[1]) < 0.02)
    }

    @Test("Unweighted metrics equal those of the evaluation, and the interval is wider for correlated photos")
    func evaluation() throws {
        let example = Case()
        let evaluation = Evaluation(labels: ["a", "b"], results: example.results, skipped: [])
        let found = try #require(
            CrossValidationResult.Metrics(
                [example.predictions], groupCount: example.groupCount, foldAccuracies: [0.5], seedAccuracies: []))
        #expect(abs(found.accuracy.value - evaluation.accuracy) < 1e-12)
        #expect(abs(found.logLoss.value - evaluation.logLoss) < 1e-9)
        #expect(abs(found.calibrationError.value - evaluation.calibrationError) < 1e-9)
        #expect(abs((found.auc?.value ?? 0) - (evaluation.auc ?? 1)) < 1e-12)
        #expect(found.foldStandardDeviation == nil && found.seedStandardDeviation == nil)
        #expect(found.accuracy.interval.contains(found.accuracy.value))
        let wilson = evaluation.accuracyInterval
        let width = found.accuracy.interval.upperBound - found.accuracy.interval.lowerBound
        #expect(width > wilson.upperBound - wilson.lowerBound)
    }

    @Test("Repeats are averaged, and no predictions have no metrics") func repeats() throws {
        func predictions(_ correct: Int) -> GroupedPredictions {
            let results = (0..<10).map {
                Evaluation.Result(
                    url: URL(filePath: "/photo.png"), label: 0,
                    confidences: $0 < correct ? [0.75, 0.25] : [0.25, 0.75])
            }
            return GroupedPredictions(results, groups: Array(0..<10), labels: ["a", "b"])
        }
        let found = CrossValidationResult.Metrics(
            [predictions(10), predictions(5)], groupCount: 10, foldAccuracies: [1, 0.5], seedAccuracies: [1, 0.5])
        #expect(found?.accuracy.value == 0.75)
        #expect(found?.auc == nil, "all photos have one label")
        #expect(abs((found?.seedStandardDeviation ?? 0) - 0.125.squareRoot()) < 1e-12)
        #expect(CrossValidationResult.Metrics([], groupCount: 0, foldAccuracies: [], seedAccuracies: []) == nil)
        #expect(predictions(3).metrics(weights: Array(repeating: 0, count: 10)) == nil)
    }

    // MARK: Multi-label models

    /// Predictions of three labels in groups of one to four photos; the third label is rare.
    private static let multiLabel: (evaluation: MultiLabelEvaluation, groups: [Int]) = {
        var stream = RandomStream(seed: 5, "multi-label bootstrap test")
        var results: [MultiLabelEvaluation.Result] = []
        var groups: [Int] = []
        for group in 0..<30 {
            for _ in 0...stream.index(below: 4) {
                let labels = [2, 3, 20].indices.filter { stream.index(below: [2, 3, 20][$0]) == 0 }
                // Multiples of 1/16, so that confidences tie.
                let confidences = (0..<3).map { label in
                    Float(stream.index(below: 12) + (labels.contains(label) ? 4 : 0)) / 16
                }
                results.append(
                    MultiLabelEvaluation.Result(
                        url: URL(filePath: "/\(results.count).png"), labels: labels, confidences: confidences))
                groups.append(group)
            }
        }
        let labels = ["a", "b", "c"]
        return (
            MultiLabelEvaluation(labels: labels, thresholds: [0.5, 0.4, 0.6], results: results, skipped: []), groups
        )
    }()

    @Test("Weighted metrics of a multi-label model equal those of an evaluation with repeated photos")
    func multiLabelWeights() throws {
        let (evaluation, groups) = Self.multiLabel
        let predictions = GroupedMultiLabelPredictions(evaluation, groups: groups)
        var stream = RandomStream(seed: 6, "weights")
        let weights =
            [Array(repeating: 1, count: 30)] + (0..<5).map { _ in (0..<30).map { _ in stream.index(below: 4) } }
            + [(0..<30).map { $0 == 7 ? 2 : 0 }]
        for weights in weights {
            let repeated = zip(evaluation.results, groups).flatMap { Array(repeating: $0, count: weights[$1]) }
            let expected = MultiLabelEvaluation(
                labels: evaluation.labels, thresholds: evaluation.thresholds, results: repeated, skipped: [])
            let found = try #require(predictions.metrics(weights: weights))
            #expect(abs((found.meanAveragePrecision ?? -1) - (expected.meanAveragePrecision ?? -1)) < 1e-12)
            #expect(abs(found.microF1 - expected.microF1) < 1e-12)
            #expect(abs(found.macroF1 - expected.macroF1) < 1e-12)
        }
        #expect(predictions.metrics(weights: Array(repeating: 0, count: 30)) == nil)
    }

    @Test("The estimates of multi-label models are means over the repeats, with intervals over groups")
    func multiLabelEstimates() throws {
        let (evaluation, groups) = Self.multiLabel
        let predictions = GroupedMultiLabelPredictions(evaluation, groups: groups)
        let one = try #require(
            CrossValidationResult.MultiLabelMetrics([predictions], groupCount: 30, foldValues: [], seedValues: []))
        let precision = try #require(one.meanAveragePrecision)
        #expect(abs(precision.value - (evaluation.meanAveragePrecision ?? -1)) < 1e-12)
        for estimate in [precision, one.microF1, one.macroF1] {
            #expect(estimate.interval.contains(estimate.value))
            #expect(estimate.interval.lowerBound < estimate.interval.upperBound)
        }
        #expect(one.foldStandardDeviation == nil && one.seedStandardDeviation == nil)
        let strict = MultiLabelEvaluation(
            labels: evaluation.labels, thresholds: [1, 1, 1], results: evaluation.results, skipped: [])
        let two = try #require(
            CrossValidationResult.MultiLabelMetrics(
                [predictions, GroupedMultiLabelPredictions(strict, groups: groups)], groupCount: 30,
                foldValues: [1, 0.5], seedValues: [1, 0.5]))
        #expect(two.microF1.value == (evaluation.microF1 + strict.microF1) / 2)
        #expect(two.meanAveragePrecision?.value == precision.value, "thresholds do not change the precision")
        #expect(abs((two.foldStandardDeviation ?? 0) - 0.125.squareRoot()) < 1e-12)
        #expect(
            CrossValidationResult.MultiLabelMetrics([], groupCount: 0, foldValues: [], seedValues: []) == nil)
        let unlabelled = MultiLabelEvaluation(
            labels: ["a"], results: [.init(url: URL(filePath: "/x.png"), labels: [], confidences: [0.75])], skipped: [])
        let none = CrossValidationResult.MultiLabelMetrics(
            [GroupedMultiLabelPredictions(unlabelled, groups: [0])], groupCount: 1, foldValues: [], seedValues: [])
        #expect(none?.meanAveragePrecision == nil && none?.microF1.value == 0)
    }
}
