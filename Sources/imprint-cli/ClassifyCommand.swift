internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintImages

struct ClassifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "classify", abstract: "Say what is in photos, best label first.")

    @Argument(help: "The weights file.")
    var model: String

    @Argument(help: ArgumentHelp("The photos.", valueName: "file"))
    var files: [String]

    @Option(help: "The greatest number of labels to show for a photo.")
    var top = 5

    @Option(help: "The least confidence to show, 0 to 1.")
    var threshold: Float = 0

    @Option(help: "How a photo is fitted into the network's input. (default: as in training)")
    var cropAndScale: CropAndScale?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model] + files)
        try require(top, "--top", in: 1...1_000_000)
        try require(threshold, "--threshold", in: 0...1)
    }

    func run() throws {
        let classifier = try ImageClassifier(contentsOf: URL(filePath: model), threads: common.threadCount)
        var failures = 0
        for file in files {
            do {
                let observations = try classifier.classify(URL(filePath: file), cropAndScale: cropAndScale)
                    .prefix(top).filter { $0.confidence >= threshold }
                try show(file, observations)
            } catch let error as ImageError {
                failures += 1
                Terminal.note("Error: \(error)")
            }
        }
        if failures > 0 { throw ExitCode.failure }
    }

    private func show(_ file: String, _ observations: [Observation]) throws {
        if common.json {
            try Terminal.emit(ClassificationLine(file: file, observations: observations))
        } else {
            let seen = observations.map { "\($0.label) \(Terminal.percent($0.confidence))" }
            try Terminal.show("\(file): \(seen.isEmpty ? "nothing above the threshold" : seen.joined(separator: ", "))")
        }
    }
}

private struct ClassificationLine: Encodable {
    let file: String
    let observations: [Observation]
}
