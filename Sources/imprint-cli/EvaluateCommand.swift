internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintImages

struct EvaluateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "evaluate", abstract: "Measure a model on a folder of photos, one sub-folder per label.")

    @Argument(help: "The weights file.")
    var model: String

    @Argument(help: "The folder of photos: one sub-folder per label.")
    var data: String

    @OptionGroup var common: CommonOptions

    func validate() throws { try requirePaths([model, data]) }

    func run() throws {
        let classifier = try ImageClassifier(contentsOf: URL(filePath: model))
        let folder = try ImageFolder(at: URL(filePath: data), minimumClasses: 1)
        var bar = ProgressBar()
        defer { bar.clear() }
        let evaluation = try classifier.evaluate(on: folder, threads: common.threadCount) { done in
            bar.draw("evaluating", done: done, of: folder.items.count)
        }
        bar.clear()
        for image in evaluation.skipped { Terminal.note("Skipped: \(image.reason)") }
        if common.json {
            try Terminal.emit(EvaluationLine(evaluation))
        } else {
            try Terminal.show(table(evaluation))
        }
    }

    private func table(_ evaluation: Evaluation) -> String {
        let labels = evaluation.labels
        let width = max(labels.map(\.count).max() ?? 0, 9) + 2
        func cell(_ text: String) -> String { String(repeating: " ", count: max(width - text.count, 1)) + text }
        func share(_ value: Double?) -> String { value.map { Terminal.percent($0) } ?? "–" }
        var lines = ["accuracy \(Terminal.percent(evaluation.accuracy)) on \(evaluation.results.count) images"]
        if let auc = evaluation.auc { lines[0] += String(format: ", AUC %.4f", auc) }
        lines += ["", cell("label") + cell("precision") + cell("recall") + cell("count")]
        lines += evaluation.perLabel.map {
            cell($0.label) + cell(share($0.precision)) + cell(share($0.recall)) + cell("\($0.count)")
        }
        lines += [
            "", "confusion: rows are the true labels, columns what the model said",
            cell("") + labels.map(cell).joined(),
        ]
        lines += zip(labels, evaluation.confusion).map { label, row in
            cell(label) + row.map { cell("\($0)") }.joined()
        }
        return lines.joined(separator: "\n")
    }
}

private struct EvaluationLine: Encodable {
    let accuracy: Double
    let images: Int
    let labels: [String]
    let confusion: [[Int]]
    let perLabel: [Evaluation.LabelMetrics]
    let auc: Double?
    let skipped: [SkippedLine]

    init(_ evaluation: Evaluation) {
        accuracy = evaluation.accuracy
        images = evaluation.results.count
        labels = evaluation.labels
        confusion = evaluation.confusion
        perLabel = evaluation.perLabel
        auc = evaluation.auc
        skipped = evaluation.skipped.map(SkippedLine.init)
    }
}
