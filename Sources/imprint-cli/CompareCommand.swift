internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

struct CompareCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "compare",
        abstract: "Say how far the probabilities of two models of the same labels lie apart.",
        discussion:
            "Each model prepares the photos by its own rules, so sizes may differ, and labels may be in another order.")

    @Argument(help: "A weights file.")
    var first: String

    @Argument(help: "The weights file to compare it with.")
    var second: String

    @Option(help: ArgumentHelp("A folder of photos, with sub-folders or without.", valueName: "folder"))
    var images: String

    @OptionGroup var common: CommonOptions

    func validate() throws { try requirePaths([first, second, images]) }

    func run() throws {
        let models = try [first, second].map { try ImageClassifier(contentsOf: URL(filePath: $0)) }
        let files = try ImageFolder.images(in: URL(filePath: images))
        var bar = ProgressBar()
        defer { bar.clear() }
        let comparison = try models[0].compare(with: models[1], on: files, threads: common.threadCount) { done in
            bar.draw("comparing", done: done, of: files.count)
        }
        bar.clear()
        for image in comparison.skipped { Terminal.note("Skipped: \(image.reason)") }
        let line = ComparisonLine(comparison)
        try common.json ? Terminal.emit(line) : Terminal.show(line.text)
    }
}

private struct ComparisonLine: Encodable {
    /// The photo with the greatest difference, and the label that has it.
    struct Greatest: Encodable {
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
    let greatest: Greatest
    let skipped: [SkippedLine]

    init(_ comparison: Comparison) {
        let result = comparison.mostDifferent
        images = comparison.results.count
        labels = comparison.labels.count
        topAgreement = comparison.topAgreement
        agreeing = comparison.results.count(where: \.agrees)
        maximumDifference = result.maximumDifference
        meanDifference = comparison.meanDifference
        greatest = Greatest(
            file: result.url.path(percentEncoded: false), label: comparison.labels[result.label],
            first: result.confidences[0], second: result.confidences[1])
        skipped = comparison.skipped.map(SkippedLine.init)
    }

    var text: String {
        func number(_ value: Double) -> String { String(format: "%.3g", value) }
        return """
            photos       \(images), \(labels) labels
            same label   \(Terminal.percent(topAgreement)), \(agreeing) of \(images) photos
            difference   at most \(number(maximumDifference)), mean \(number(meanDifference))
            greatest     \(shown(greatest.label)) \(number(Double(greatest.first))) and \(number(Double(greatest.second))) in \(visible(greatest.file))
            """
    }
}
