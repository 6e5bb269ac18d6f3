import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

@testable import imprint_cli

/// The output of classify and evaluate for multi-label models.
@Suite struct MultiLabelOutputTests {
    private func evaluation(_ results: [(name: String, labels: [Int], confidences: [Float])]) -> MultiLabelEvaluation {
        MultiLabelEvaluation(
            labels: ["cat", "dog", "fish"], thresholds: [0.5, 0.5, 0.5],
            results: results.map { name, labels, confidences in
                MultiLabelEvaluation.Result(
                    url: URL(filePath: "/p/\(name)"), labels: labels, confidences: confidences)
            }, skipped: [])
    }

    @Test("The worst mistakes are the photos with the most wrong label decisions") func worstMistakes() {
        let table = MultiLabelTable(
            evaluation([
                ("a.png", [0], [0.9, 0.1, 0.2]), ("c.png", [], [0.9, 0.1, 0.1]), ("b.png", [0, 1], [0.1, 0.9, 0.7]),
                ("d.png", [1, 2], [0.1, 0.9, 0.4]),
            ]))
        let lines = [
            "worst mistakes: wrong label decisions, photo, labels",
            "     2  /p/b.png: missed cat; wrongly predicted fish", "     1  /p/c.png: wrongly predicted cat",
            "     1  /p/d.png: missed fish",
        ]
        #expect(table.worstMistakes(10) == lines.joined(separator: "\n"))
        #expect(table.worstMistakes(1) == lines.prefix(2).joined(separator: "\n"))
        let correct = MultiLabelTable(evaluation([("a.png", [0], [0.9, 0.1, 0.2])]))
        #expect(correct.worstMistakes(10) == "worst mistakes: none")
    }

    @Test(
        "classify shows every label that reaches its threshold, unless --top limits them",
        arguments: [
            ("", 7), ("--threshold auto", 7), ("--top 3", 3), ("--threshold 0.1", 5), ("--threshold 0.1 --top 6", 6),
        ])
    func top(options: String, count: Int) throws {
        try withTemporaryFolder { folder in
            let labels = (0..<7).map { "label \($0)" }
            var hyperparameters = ClassifierHyperparameters()
            hyperparameters.isMultiLabel = true
            let record = TrainingRecord(
                .classifier(hyperparameters), thresholds: Dictionary(uniqueKeysWithValues: labels.map { ($0, 0.5) }))
            try brightnessModel(
                labels: labels, weights: [Float](repeating: 1, count: 3 * labels.count), activation: Sigmoid(),
                training: record
            ).write(to: folder.appending(path: "m.imprint"))
            try writeGreyPhoto(folder.appending(path: "a.png"), 250)
            let run = try shell("$imprint classify m.imprint a.png --json \(options)", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect((run.lines.first?["observations"] as? [Any])?.count == count)
        }
    }

    @Test("inspect counts the labels of the training photos, because a photo may have several") func inspect() throws {
        try withTemporaryFolder { folder in
            var hyperparameters = ClassifierHyperparameters()
            hyperparameters.isMultiLabel = true
            let record = TrainingRecord(
                .classifier(hyperparameters), trainingImages: ["a": 6, "b": 5], validationImages: ["a": 3, "b": 2],
                history: [
                    EpochMetrics(epoch: 1, loss: 0.5, accuracy: 0.9, validationAccuracy: 0.75, learningRate: 0.1)
                ])
            try brightnessModel(
                labels: ["a", "b"], weights: alternatingWeights(1, labels: 2), activation: Sigmoid(), training: record
            ).write(to: folder.appending(path: "m.imprint"))
            let run = try imprint("inspect", "m.imprint", folder: folder)
            let expected =
                "training     photos with 11 labels, 1 epoch, seed 0, accuracy 75.0 % on the validation photos\n"
            #expect(run.output.contains(expected), "\(run.output)\(run.errors)")
        }
    }
}
