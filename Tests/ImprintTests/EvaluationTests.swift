import Foundation
import Imprint
import Testing

@Suite struct EvaluationTests {
    /// Results from pairs of (true label, confidence in the second label).
    private func evaluation(_ pairs: [(Int, Float)]) -> Evaluation {
        Evaluation(
            labels: ["no", "yes"],
            results: pairs.map { label, confidence in
                Evaluation.Result(
                    url: URL(filePath: "x.png"), label: label, confidences: [1 - confidence, confidence])
            }, skipped: [])
    }

    @Test("Accuracy, confusion, precision and recall follow their definitions")
    func definitions() {
        let evaluation = evaluation([(0, 0.1), (0, 0.7), (0, 0.2), (1, 0.9), (1, 0.4)])
        #expect(evaluation.accuracy == 0.6)
        #expect(evaluation.confusion == [[2, 1], [1, 1]])
        #expect(evaluation.perLabel[0].precision == 2.0 / 3)
        #expect(evaluation.perLabel[0].recall == 2.0 / 3)
        #expect(evaluation.perLabel[1].precision == 0.5)
        #expect(evaluation.perLabel[1].count == 2)
    }

    @Test("The area under the ROC curve counts ordered pairs, ties half")
    func auc() {
        // The pairs (yes, no) in order: .9 > .1, .9 > .7, .4 > .1, .4 < .7: three of four.
        #expect(evaluation([(0, 0.1), (0, 0.7), (1, 0.9), (1, 0.4)]).auc == 0.75)
        #expect(evaluation([(0, 0.5), (1, 0.5)]).auc == 0.5)
        #expect(evaluation([(0, 0.2), (1, 0.8)]).auc == 1)
        #expect(evaluation([(1, 0.8)]).auc == nil)
    }

    @Test("A label that nothing was given has no precision, one without images no recall")
    func empty() {
        let evaluation = evaluation([(0, 0.1)])
        #expect(evaluation.perLabel[1].precision == nil)
        #expect(evaluation.perLabel[1].recall == nil)
        #expect(evaluation.perLabel[0].recall == 1)
    }
}
