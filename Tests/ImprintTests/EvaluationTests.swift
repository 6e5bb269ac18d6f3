import Foundation
import Imprint
import ImprintModel
import ImprintTraining
import Testing

@Suite struct EvaluationTests {
    /// Returns an evaluation from pairs of (true label, confidence in the second label).
    private func evaluation(_ pairs: [(Int, Float)]) -> Evaluation {
        evaluation(labels: 2, pairs.map { ($0, [1 - $1, $1]) })
    }

    private func evaluation(labels: Int, _ images: [(label: Int, confidences: [Float])]) -> Evaluation {
        Evaluation(
            labels: labels == 2 ? ["no", "yes"] : (0..<labels).map { "\($0)" },
            results: images.enumerated().map { index, image in
                Evaluation.Result(
                    url: URL(filePath: "/\(index).png"), label: image.label, confidences: image.confidences)
            }, skipped: [])
    }

    @Test("Accuracy, confusion, precision and recall follow their definitions")
    func definitions() {
        let evaluation = evaluation([(0, 0.1), (0, 0.7), (0, 0.2), (1, 0.9), (1, 0.4)])
        #expect(evaluation.accuracy == 0.6)
        #expect(evaluation.confusion == [[2, 1], [1, 1]])
        #expect(evaluation.perLabel[0].precision == 2.0 / 3)
        #expect(evaluation.perLabel[0].recall == 2.0 / 3)
        #expect(evaluation.perLabel[0].f1 == 2.0 / 3)
        #expect(evaluation.perLabel[1].precision == 0.5)
        #expect(evaluation.perLabel[1].count == 2)
        #expect(abs(evaluation.balancedAccuracy - (2.0 / 3 + 0.5) / 2) < 1e-15)
    }

    @Test("The area under the ROC curve is the share of correctly ordered pairs, with ties counted half")
    func auc() {
        // Three of the four pairs (yes, no) are in order: .9 > .1, .9 > .7, .4 > .1, but .4 < .7.
        #expect(evaluation([(0, 0.1), (0, 0.7), (1, 0.9), (1, 0.4)]).auc == 0.75)
        #expect(evaluation([(0, 0.5), (1, 0.5)]).auc == 0.5)
        #expect(evaluation([(0, 0.2), (1, 0.8)]).auc == 1)
        #expect(evaluation([(1, 0.8)]).auc == nil)
        #expect(evaluation(labels: 3, [(0, [1, 0, 0]), (1, [0, 1, 0])]).auc == nil)
    }

    @Test("A label that is never predicted has no precision, and a label without images has no recall")
    func missingLabel() {
        let evaluation = evaluation([(0, 0.1)])
        let yes = evaluation.perLabel[1]
        #expect(yes.precision == nil && yes.recall == nil && yes.f1 == nil)
        #expect(yes.auc == nil && yes.averagePrecision == nil && yes.count == 0)
        #expect(evaluation.perLabel[0].recall == 1)
        #expect(evaluation.perLabel[0].averagePrecision == 1)
        #expect(evaluation.rocCurve(of: "no") == nil && evaluation.rocCurve(of: "yes") == nil)
        #expect(evaluation.precisionRecallCurve(of: "yes") == nil)
        #expect(evaluation.precisionRecall.keys.sorted() == ["no"])
        #expect(evaluation.thresholds.keys.sorted() == ["no"])
        // Averages skip a label that has no images and is never predicted.
        #expect(evaluation.macroAverages.f1 == 1 && evaluation.balancedAccuracy == 1)
    }

    @Test("All metrics are defined without images")
    func empty() {
        let evaluation = evaluation([])
        #expect(evaluation.accuracy == 0 && evaluation.topAccuracy(1) == 0 && evaluation.accuracyInterval == 0...1)
        #expect(evaluation.calibrationError == 0 && evaluation.logLoss == 0 && evaluation.balancedAccuracy == 0)
        #expect(evaluation.macroAverages.precision == 0)
        #expect(evaluation.thresholds.isEmpty && evaluation.precisionRecall.isEmpty)
        #expect(evaluation.worstMistakes(3).isEmpty)
        #expect(evaluation.reliability.count == 15 && evaluation.reliability.allSatisfy { $0.accuracy == nil })
    }

    /// The bounds are the roots s of (right / count − s)² = 1.96² · s · (1 − s) / count, computed with numpy.
    @Test(
        "The accuracy interval is the Wilson score interval",
        arguments: [
            (8, 10, 0.4901624715, 0.9433178485), (0, 10, 0, 0.2775327999), (10, 10, 0.7224672001, 1),
            (1, 1, 0.2065493144, 1), (900, 1000, 0.8798480368, 0.9170905564),
        ])
    func interval(right: Int, count: Int, low: Double, high: Double) {
        let evaluation = evaluation((0..<count).map { (1, $0 < right ? 0.75 : 0.25) })
        #expect(abs(evaluation.accuracyInterval.lowerBound - low) < 1e-9)
        #expect(abs(evaluation.accuracyInterval.upperBound - high) < 1e-9)
    }

    @Test("Among equal confidences the first label ranks first in every metric")
    func ties() {
        let evaluation = evaluation(
            labels: 3, [(0, [0.4, 0.4, 0.2]), (1, [0.4, 0.4, 0.2]), (2, [0.4, 0.4, 0.2]), (2, [0.2, 0.4, 0.4])])
        #expect(evaluation.results.map(\.predicted) == [0, 0, 0, 1])
        #expect([1, 2, 3].map(evaluation.topAccuracy) == [0.25, 0.75, 1])
        let classifications = evaluation.results[3].classifications(labels: evaluation.labels)
        #expect(classifications.map(\.label) == ["1", "2", "0"])
        #expect(classifications.map(\.confidence) == [0.4, 0.4, 0.2])
    }

    @Test("The worst mistakes are those with the highest confidence, in the order of the images if equal")
    func worstMistakes() {
        let evaluation = evaluation([(0, 0.6), (0, 0.9), (1, 0.95), (1, 0.1), (0, 0.9), (0, 0.2)])
        #expect(evaluation.worstMistakes(9).map(\.url.lastPathComponent) == ["1.png", "3.png", "4.png", "0.png"])
        #expect(evaluation.worstMistakes(2).map(\.url.lastPathComponent) == ["1.png", "3.png"])
        #expect(evaluation.worstMistakes(0).isEmpty)
    }

    @Test("Images are binned by their highest confidence, and the calibration error weights bins by image count")
    func reliability() {
        // 0.6 as a float is more than 9 / 15.
        let evaluation = evaluation([(1, 0.6), (1, 1), (0, 1), (1, 0.75)])
        let bins = evaluation.reliability
        #expect(bins.filter { $0.count > 0 }.map(\.count) == [1, 1, 2])
        #expect(bins[9].count == 1 && bins[11].count == 1 && bins[14].count == 2)
        #expect(bins[14].accuracy == 0.5 && bins[14].meanConfidence == 1 && bins[14].upperBound == 1)
        #expect(bins[0].lowerBound == 0 && bins[0].meanConfidence == nil)
        #expect(abs(evaluation.calibrationError - (0.4 + 0.25 + 2 * 0.5) / 4) < 1e-6)
    }

    @Test("A confidence that is not a number counts as 0 in the reliability diagram")
    func undefinedConfidence() {
        let evaluation = Evaluation(
            labels: ["a"],
            results: [Evaluation.Result(url: URL(filePath: "/0.png"), label: 0, confidences: [.nan])], skipped: [])
        #expect(evaluation.reliability[0].count == 1 && evaluation.calibrationError == 1)
    }

    @Test("The log loss of a confidence of 0 in the true label is finite")
    func logLoss() {
        #expect(evaluation([(1, 0)]).logLoss == -log(Double.ulpOfOne))
        #expect(abs(evaluation([(1, 0.5), (0, 0.75)]).logLoss - (log(2) + log(4)) / 2) < 1e-12)
        #expect(evaluation([(1, 1)]).logLoss == 0)
    }

    @Test("The JSON of per-label metrics contains all keys, with null for undefined metrics")
    func json() throws {
        let text = String(decoding: try JSONEncoder().encode(evaluation([(0, 0.1)]).perLabel[1]), as: UTF8.self)
        for key in ["precision", "recall", "f1", "auc", "averagePrecision"] {
            #expect(text.contains("\"\(key)\":null"))
        }
    }

    @Test("Metrics of many images with many labels are computed without comparing all pairs")
    func many() {
        let images = (0..<20_000).map { image in
            let confidences: [Float] = (0..<20).map { label in
                let number = (image * 7919 + label * 104_729) % 1000
                return Float(number) / 1000
            }
            return (label: image % 20, confidences: confidences)
        }
        let metrics = evaluation(labels: 20, images).perLabel
        #expect(metrics.allSatisfy { $0.count == 1000 && abs(($0.auc ?? 0) - 0.5) < 0.1 })
    }
}
