internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

struct CompareCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "compare",
        abstract: "Compare the predictions of two models that have the same labels.",
        discussion: """
            Each model uses its own preprocessing, so input sizes may differ. The order of the labels may differ as well. With --precision, both \
            files can be the same, to compare precisions.

            Examples:
              imprint compare old.imprint new.imprint --images photos
              imprint compare m.imprint small.imprint --images photos --json
              imprint compare m.imprint m.imprint --images photos --precision bfloat16
            """
    )

    @Argument(help: "The first model file.")
    var first: String

    @Argument(help: "The second model file.")
    var second: String

    @Option(help: ArgumentHelp("A folder of photos, with or without sub-folders.", valueName: "folder"))
    var images: String

    @Option(
        help: ArgumentHelp(
            "The precision in which Imprint computes the predictions of the second model; the first one always has the default. "
                + "(default: int8 if it is quantized, otherwise float32)"))
    var precision: PrecisionOptions.ChosenPrecision?

    @OptionGroup var common: CommonOptions

    func validate() throws { try requirePaths([first, second, images]) }

    func run() throws {
        let models = [
            try naming(first) { try ImageClassifier(namedModel(first)) },
            try naming(second) {
                try ImageClassifier(namedModel(second), precision: PrecisionOptions.checked(precision))
            },
        ]
        let files = try ImageFolder.images(in: URL(filePath: images))
        var bar = ProgressBar()
        defer { bar.clear() }
        let comparison = try models[0].compare(with: models[1], on: files, threads: common.threadCount) { done in
            bar.draw("comparing", done: done, of: files.count)
        }
        bar.clear()
        for image in comparison.skipped { Terminal.warn("Skipped: \(image.reason)") }
        let line = ComparisonLine(comparison)
        try common.json ? Terminal.emit(line) : Terminal.show(line.text)
    }
}

private struct ComparisonLine: Encodable {
    /// The photo and label with the maximum difference.
    struct MaximumDifference: Encodable {
        let file: String
        let label: String
        let first: Float
        let second: Float
    }

    let images: Int
    let labels: Int
    let topAgreement: Double
    let agreeing: Int
    let maximumDifference: Double
    let meanDifference: Double
    let maximum: MaximumDifference
    let skipped: [SkippedLine]

    private enum CodingKeys: String, CodingKey {
        case images, labels, topAgreement, agreeing, maximumDifference, meanDifference, skipped
        case maximum = "greatest"
    }

    init(_ comparison: Comparison) {
        let result = comparison.mostDifferent
        images = comparison.results.count
        labels = comparison.labels.count
        topAgreement = comparison.topAgreement
        agreeing = comparison.results.count(where: \.agrees)
        maximumDifference = result.maximumDifference
        meanDifference = comparison.meanDifference
        maximum = MaximumDifference(
            file: result.url.path(percentEncoded: false), label: comparison.labels[result.label],
            first: result.confidences[0], second: result.confidences[1])
        skipped = comparison.skipped.map(SkippedLine.init)
    }

    var text: String {
        func number(_ value: Double) -> String { String(format: "%.3g", value) }
        return """
            photos       \(images), \(counted(labels, "label"))
            same label   \(Terminal.percent(topAgreement)), \(agreeing) of \(images) photos
            difference   maximum \(number(maximumDifference)), mean \(number(meanDifference))
            worst photo  \(shown(maximum.label)) \(number(Double(maximum.first))) and \(number(Double(maximum.second))) in \(visible(maximum.file))
            """
    }
}
