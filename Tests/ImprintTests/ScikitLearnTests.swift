import Foundation
import Imprint
import ImprintModel
import TestSupport
import Testing

/// Compares every metric with scikit-learn's for the same predictions.
@Suite(.enabled(if: Python.path != nil, "IMPRINT_PYTHON is not set; ./run test sets it"))
struct ScikitLearnTests {
    private struct Case: Encodable {
        let truth: [Int]
        let confidences: [[Double]]
        let logits: [[Double]]

        init(_ predictions: Predictions) {
            truth = predictions.images.map(\.label)
            confidences = predictions.evaluation.results.map { $0.confidences.map { Double($0) } }
            logits = predictions.images.map { $0.logits.map { Double($0) } }
        }
    }

    private struct Label: Decodable {
        let precision, recall, f1, auc, averagePrecision: Double?
        let count: Int
        let precisionRecallCurve, rocCurve: [[Double]]?
    }

    private struct Metrics: Decodable {
        let accuracy, macroPrecision, macroRecall, macroF1, balancedAccuracy, logLoss, calibrationError: Double
        let temperature, errorBefore, errorAfter: Double
        let accuracyInterval, topAccuracy: [Double]
        let confusion: [[Int]]
        let perLabel: [Label]
    }

    /// The metrics of all predictions, computed in one process because starting Python takes longest.
    private static let expected = Swift.Result {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "predictions.json")
            try JSONEncoder().encode(Predictions.allCases.map(Case.init)).write(to: file)
            let found = try JSONDecoder().decode(
                [Metrics].self,
                from: Python.output(of: "ImprintTests/Fixtures/scikit_learn_metrics.py", [file.path]))
            return Dictionary(uniqueKeysWithValues: zip(Predictions.allCases, found))
        }
    }

    private func close(_ found: Double?, _ expected: Double?) -> Bool {
        guard let found, let expected else { return found == nil && expected == nil }
        return abs(found - expected) <= 1e-6 * max(1, abs(expected))
    }

    private func close(_ found: [Double]?, _ expected: [Double]?) -> Bool {
        guard let found, let expected else { return found == nil && expected == nil }
        return found.count == expected.count && zip(found, expected).allSatisfy { close($0, $1) }
    }

    @Test(
        "Overall metrics: accuracy, interval, top k, confusion matrix, averages, losses",
        arguments: Predictions.allCases)
    func overall(_ predictions: Predictions) throws {
        let expected = try #require(try Self.expected.get()[predictions])
        let evaluation = predictions.evaluation
        #expect(close(evaluation.accuracy, expected.accuracy))
        let interval = evaluation.accuracyInterval
        #expect(close([interval.lowerBound, interval.upperBound], expected.accuracyInterval))
        let ranks = predictions.labels.indices.dropFirst()
        #expect(expected.topAccuracy.isEmpty || close(ranks.map(evaluation.topAccuracy), expected.topAccuracy))
        #expect(evaluation.confusion == expected.confusion)
        let averages = evaluation.macroAverages
        #expect(close(averages.precision, expected.macroPrecision))
        #expect(close(averages.recall, expected.macroRecall))
        #expect(close(averages.f1, expected.macroF1))
        #expect(close(evaluation.balancedAccuracy, expected.balancedAccuracy))
        #expect(close(evaluation.logLoss, expected.logLoss))
        #expect(close(evaluation.calibrationError, expected.calibrationError))
    }

    @Test("Metrics per label: precision, recall, F1, areas and both curves", arguments: Predictions.allCases)
    func labels(_ predictions: Predictions) throws {
        let expected = try #require(try Self.expected.get()[predictions]).perLabel
        let evaluation = predictions.evaluation
        #expect(expected.count == evaluation.perLabel.count)
        for (found, expected) in zip(evaluation.perLabel, expected) {
            #expect(close(found.precision, expected.precision))
            #expect(close(found.recall, expected.recall))
            #expect(close(found.f1, expected.f1))
            #expect(close(found.auc, expected.auc))
            #expect(close(found.averagePrecision, expected.averagePrecision))
            #expect(found.count == expected.count)
            let roc = evaluation.rocCurve(of: found.label)
            #expect(roc == nil || roc?.first?.threshold == .infinity)
            #expect(
                close(
                    roc?.dropFirst().flatMap { [$0.threshold, $0.falsePositiveRate, $0.truePositiveRate] },
                    expected.rocCurve?.flatMap { $0 }))
            #expect(
                close(
                    evaluation.precisionRecallCurve(of: found.label)?
                        .flatMap { [$0.threshold, $0.precision, $0.recall] },
                    expected.precisionRecallCurve?.flatMap { $0 }))
        }
    }

    @Test("The temperature, and the calibration errors before and after calibration", arguments: Predictions.allCases)
    func temperature(_ predictions: Predictions) throws {
        let expected = try #require(try Self.expected.get()[predictions])
        let images = predictions.images
        let calibration = try #require(Calibration(logits: images.map(\.logits), labels: images.map(\.label)))
        #expect(close(calibration.temperature, expected.temperature))
        #expect(close(calibration.errorBefore, expected.errorBefore))
        #expect(close(calibration.errorAfter, expected.errorAfter))
        #expect(calibration.images == images.count)
    }
}
