internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

struct PrepareCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prepare",
        abstract: "Copy a folder of photos as upright sRGB JPEGs of one size; the originals stay as they are.")

    @Argument(help: ArgumentHelp("The folder of photos: one sub-folder per label.", valueName: "data"))
    var data: String

    @Option(help: "The folder to write: new, empty, or that of an earlier run, which goes on where it stopped.")
    var output: String

    @Option(help: "The length of the short side, in pixels; a photo with a shorter one keeps its size.")
    var size = 299

    @Option(help: "The quality of the JPEGs, 1 to 100.")
    var quality = 90

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([data, output])
        try require(size, "--size", in: 1...8192)
        try require(quality, "--quality", in: 1...100)
    }

    func run() throws {
        let clock = ContinuousClock()
        let start = clock.now
        let folder = try ImageFolder(at: URL(filePath: data), minimumClasses: 1)
        var bar = ProgressBar()
        defer { bar.clear() }
        let outcome = try Preparation(shortSide: size, quality: quality).run(
            folder, into: URL(filePath: output), workers: Workers(common.threadCount)
        ) { done in
            bar.draw("preparing", done: done, of: folder.items.count)
        }
        bar.clear()
        for image in outcome.skipped { Terminal.note("Skipped: \(image.reason)") }
        if let stray = outcome.strays.first {
            Terminal.note(
                "\(outcome.strays.count) images in \(output) are of no photo in \(data) (any more), such as "
                    + "\(stray.path(percentEncoded: false)); remove them, or they will be trained on.")
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
                "Prepared \(outcome.images) photos into \(output)\(earlier), skipped \(outcome.skipped.count), in "
                    + "\(clockTime(seconds)).")
        }
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
