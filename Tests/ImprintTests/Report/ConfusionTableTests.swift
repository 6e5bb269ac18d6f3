import ImprintModel
import Testing

@testable import Imprint
@testable import ImprintImages
@testable import ImprintInterop
@testable import ImprintNetwork
@testable import ImprintSynthesis
@testable import ImprintTraining

@Suite("Confusion table and curves") struct ConfusionTableTests {
    /// Returns the counts in the cells, row by row.
    private func cells(_ html: String) -> [Int] {
        html.matches(of: /<b>([^<]+)<\/b>/).compactMap { Int($0.output.1.filter(\.isNumber)) }
    }

    @Test("Each cell has a count and its share of the row", arguments: [1, 2, 7, 20]) func all(labels: Int) {
        let matrix = (0..<labels).map { row in (0..<labels).map { $0 == row ? 90 : row < $0 ? 10 : 0 } }
        let html = ConfusionTable.html(labels: (0..<labels).map { "l\($0)" }, matrix: matrix)
        #expect(cells(html) == matrix.flatMap { $0 })
        let total = matrix.joined().reduce(0, +)
        #expect(html.contains("<td class=\"sum\">\(grouped(total))</td></tr></tfoot>"))
        #expect(html.contains("upright") == (labels > 6))
        if labels == 2 { #expect(html.contains("<b>10</b><small>10\u{a0}%</small>")) }
    }

    @Test("With many labels, the most confused labels are shown and the others are combined") func many() {
        // Label 3 is most often confused with label 25. Among the other labels, later ones are confused less often.
        let matrix = (0..<30).map { row in
            (0..<30).map { column in
                switch (row, column) {
                case (3, 25): 50
                case _ where row == column: 100
                case _ where column == (row + 1) % 30: 30 - row
                default: 0
                }
            }
        }
        let html = ConfusionTable.html(labels: (0..<30).map { "label \($0)" }, matrix: matrix)
        #expect(cells(html).count == 21 * 21 && cells(html).reduce(0, +) == matrix.joined().reduce(0, +))
        #expect(html.contains("<bdi>label 25</bdi>") && !html.contains("<bdi>label 28</bdi>"))
        #expect(html.contains("10 others") && html.contains("20 labels of 30"))
    }

    @Test("Without images there is no table") func empty() {
        #expect(ConfusionTable.html(labels: ["a", "b"], matrix: [[0, 0], [0, 0]]) == "")
    }

    private func history(_ count: Int, validates: Bool = true) -> [EpochMetrics] {
        (1...count).map { epoch in
            let distance = Float(abs(epoch - count / 2))
            return EpochMetrics(
                epoch: epoch, loss: 1 / Float(epoch), accuracy: 0.5, validationLoss: validates ? 1 + distance : nil,
                validationAccuracy: validates ? 0.4 : nil, learningRate: 0.01)
        }
    }

    @Test("Each curve has one point per epoch", arguments: [1, 2, 6, 500]) func points(epochs: Int) {
        let html = TrainingCurves.html(history(epochs), unit: "epoch")
        #expect(html.components(separatedBy: "<circle").count - 1 == 5 * epochs)
        #expect(html.contains("<title>validation, epoch \(epochs): "))
        #expect(html.contains(">best: \(max(epochs / 2, 1))</text>"))
        #expect(TrainingCurves.bestEpoch(history(epochs))?.epoch == max(epochs / 2, 1))
        let withoutValidation = TrainingCurves.html(history(epochs, validates: false), unit: "epoch")
        #expect(withoutValidation.components(separatedBy: "<circle").count - 1 == 3 * epochs)
        #expect(!withoutValidation.contains("key validation"))
        #expect(withoutValidation.contains("There is no validation set"))
    }

    @Test("The curves of a detector count phases") func phases() {
        let html = TrainingCurves.html(history(6), unit: "phase")
        #expect(html.contains("<title>validation, phase 6: ") && html.contains("<strong>phase 3</strong> of 6"))
        #expect(html.contains("over 6 phases") && !html.contains("epoch"))
    }

    @Test("If the fitted head is kept, no epoch is the best") func keptStart() {
        let record = TrainingRecord(
            .classifier(ClassifierHyperparameters()), history: history(6), keptEpoch: 0, startAccuracy: 0.5)
        let html = TrainingCurves.html(record.history, record: record, unit: "epoch")
        #expect(html.contains("<p>The model is the fitted head, because every epoch was less accurate on the"))
        #expect(!html.contains(">best: ") && !html.contains("so far"))
    }

    @Test(
        "The curves explain why the model is not from the epoch with the lowest validation loss",
        arguments: [
            (nil, "Earlier epochs had other validation photos."), (0.4, "or were less accurate than the fitted head."),
        ] as [(Float?, String)])
    func otherEpoch(startAccuracy: Float?, reason: String) {
        let record = TrainingRecord(
            .classifier(ClassifierHyperparameters()), history: history(6), keptEpoch: 5, startAccuracy: startAccuracy)
        let html = TrainingCurves.html(record.history, record: record, unit: "epoch")
        #expect(html.contains(">best: 5</text>") && html.contains("<strong>epoch 5</strong> of 6"))
        #expect(html.contains(reason))
    }

    @Test("Without epochs there are no curves, and values that are not finite have no point") func unusual() {
        #expect(TrainingCurves.html([], unit: "epoch") == "")
        var history = history(3)
        history[1].validationLoss = .nan
        history[2].loss = .infinity
        let html = TrainingCurves.html(history, unit: "epoch")
        #expect(html.components(separatedBy: "<circle").count - 1 == 13)
        #expect(!html.contains("nan") && !html.contains("inf"))
    }
}
