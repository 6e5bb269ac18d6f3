internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

struct PrepareCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prepare",
        abstract: "Convert a folder of photos to upright sRGB JPEGs of one size; the originals are not changed.",
        discussion: """
            Examples:
              imprint prepare photos --output small
              imprint prepare photos --output small --size 512 --quality 95
            """)

    @Argument(help: ArgumentHelp("The folder of photos: one sub-folder per label.", valueName: "data"))
    var data: String

    @Option(name: .shortAndLong, help: "The output folder: new, empty, or from an earlier run, which then continues.")
    var output: String

    @Option(help: "The length of the short side, in pixels; smaller photos keep their size.")
    var size = 299

    @Option(help: "The JPEG quality, 1 to 100.")
    var quality = 90

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([data])
        try requireOutputPath(output, "--output")
        try requireNoFile(output, "--output")
        try require(size, "--size", in: 1...8192)
        try require(quality, "--quality", in: 1...100)
    }

    func run() throws {
        let clock = ContinuousClock()
        let start = clock.now
        let folder = try ImageFolder(at: URL(filePath: data), minimumLabels: 1)
        warnAboutSimilarLabels(folder.labels, consequence: "Training learns them as different labels.")
        var bar = ProgressBar()
        defer { bar.clear() }
        let outcome = try Preparation(shortSide: size, quality: quality).run(
            folder, into: URL(filePath: output), workers: Workers(common.threadCount)
        ) { done in
            bar.draw("preparing", done: done, of: folder.items.count)
        }
        bar.clear()
        for image in outcome.skipped { Terminal.warn("Skipped: \(image.reason)") }
        if let stray = outcome.strays.first {
            let (verb, pronoun) = outcome.strays.count == 1 ? ("has", "it") : ("have", "them")
            Terminal.warn(
                "\(counted(outcome.strays.count, "image")) in \(output) \(verb) no original in \(data), such as "
                    + "\(stray.path(percentEncoded: false)); remove \(pronoun), or training will use \(pronoun).")
        }
        let seconds = (clock.now - start).seconds
        if common.json {
            try Terminal.report(
                FinishedLine(
                    images: outcome.images, unchanged: outcome.unchanged,
                    skipped: outcome.skipped.map(SkippedLine.init),
                    strays: outcome.strays.map { $0.path(percentEncoded: false) }, output: output, seconds: seconds))
        } else {
            let earlier = outcome.unchanged > 0 ? ", \(outcome.unchanged) of them earlier" : ""
            Terminal.note(
                "Prepared \(counted(outcome.images, "photo")) into \(output)\(earlier), skipped \(outcome.skipped.count), in "
                    + "\(clockTime(seconds)).")
        }
        if outcome.images == 0 { throw ExitCode.failure }
    }
}

private struct FinishedLine: Encodable {
    let event = "finished"
    let images: Int
    let unchanged: Int
    let skipped: [SkippedLine]
    let strays: [String]
    let output: String
    let seconds: Double
}
