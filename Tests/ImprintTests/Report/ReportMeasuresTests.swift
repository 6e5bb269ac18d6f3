import Foundation
import ImprintFormats
import Testing

@testable import Imprint

@Suite("Measures of a report") struct ReportMeasuresTests {
    private func result(_ label: Int, _ confidences: [Float], _ name: String = "x") -> Evaluation.Result {
        Evaluation.Result(url: URL(filePath: "/\(name)"), label: label, confidences: confidences)
    }

    @Test(
        "The bounds of Wilson's interval are the shares from which the observed one is 1.96 deviations away",
        arguments: [(81, 100), (1, 2), (0, 10), (10, 10), (499, 500), (5, 100_000)])
    func wilson(hits: Int, count: Int) {
        let interval = ReportMeasures.wilsonInterval(hits: hits, of: count)
        let observed = Double(hits) / Double(count)
        #expect(interval.contains(observed) && (0...1).contains(interval.lowerBound) && interval.upperBound <= 1)
        for bound in [interval.lowerBound, interval.upperBound] {
            let deviation = (bound * (1 - bound) / Double(count)).squareRoot()
            #expect(abs(abs(observed - bound) - 1.959964 * deviation) < 1e-9, "\(bound)")
        }
        #expect(ReportMeasures.wilsonInterval(hits: 0, of: 0) == 0...1)
    }

    @Test("F1 is the harmonic mean") func f1() {
        #expect(ReportMeasures.f1(0.5, 1) == 2.0 / 3)
        #expect(ReportMeasures.f1(0, 0) == 0)
        #expect(ReportMeasures.f1(nil, 1) == nil)
        let curve = [(0.1, 0.5, 1.0), (0.3, 0.8, 0.8), (0.4, 0.8, 0.8), (0.9, 1, 0.2)].map {
            TrainingRecord.PrecisionRecallPoint(threshold: $0.0, precision: $0.1, recall: $0.2)
        }
        #expect(ReportMeasures.bestPoint(curve)?.threshold == 0.3)
        #expect(ReportMeasures.bestPoint([]) == nil)
    }

    @Test("Reliability counts images by their confidence") func reliability() {
        let bins = ReportMeasures.reliability([
            result(0, [0.95, 0.05]), result(1, [0.95, 0.05]), result(1, [0.4, 0.6]), result(0, [1, 0]),
        ])
        #expect(bins.map(\.count) == [0, 0, 0, 0, 0, 0, 1, 0, 0, 3])
        #expect(bins[9].right == 2 && abs(bins[9].meanConfidence - 2.9 / 3) < 1e-6)
        // (|2.9 − 2| + |0.6 − 1|) / 4
        #expect(abs(ReportMeasures.calibrationError(bins) - 0.325) < 1e-6)
        #expect(ReportMeasures.calibrationError(ReportMeasures.reliability([])) == 0)
    }

    @Test("Mistakes come surest first, right answers least sure first, ties in order") func order() {
        let results = [
            result(0, [0.2, 0.8], "a"), result(0, [0.1, 0.9], "b"), result(0, [0.9, 0.1], "c"),
            result(1, [0.8, 0.2], "d"),
            result(1, [0.4, 0.6], "e"),
        ]
        func names(_ results: [Evaluation.Result]) -> String { results.map(\.url.lastPathComponent).joined() }
        #expect(names(ReportMeasures.worstMistakes(results, limit: 9)) == "bad")
        #expect(names(ReportMeasures.worstMistakes(results, limit: 1)) == "b")
        #expect(names(ReportMeasures.leastCertain(results, limit: 3)) == "ead")
    }
}
