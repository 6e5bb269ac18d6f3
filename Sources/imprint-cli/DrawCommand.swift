internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintSynthesis

struct DrawCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "draw", abstract: "Draw a data set from a recipe, to try things out on.")

    @Argument(help: "A recipe in datasets/, such as two-circles, or the path of one.")
    var recipe: String

    @Option(help: "The folder to write; it gets one sub-folder per label.")
    var output: String

    @Option(
        help: ArgumentHelp(
            "Draw the pictures of one invented person, who has an own style of the marks: 1 to 100000, the same person each time. "
                + "(default: those of nobody in particular)", valueName: "number"))
    var user: Int?

    @Option(help: "How many images to draw in all. (default: as the recipe says)")
    var count: Int?

    @Option(
        help: "What the images follow from: the same seed draws the same images. (default: as the recipe says)",
        transform: seedNumber)
    var seed: UInt64?

    @Option(help: ArgumentHelp("A picture to write of the first 40 images of each label.", valueName: "file.png"))
    var contactSheet: String?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([recipe, output])
        if let contactSheet { try checkContactSheet(contactSheet) }
        if let user { try require(user, "--user", in: 1...100_000) }
        if let count { try require(count, "--count", in: 1...10_000_000) }
    }

    func run() throws {
        let everyone = try DrawingRecipe.load(named: recipe)
        let recipe = user.map { everyone.ofUser($0) } ?? everyone
        let count = count ?? recipe.count
        let seed = seed ?? recipe.seed
        guard count >= recipe.labels.count else {
            throw ValidationError(
                "--count is \(count), expected at least one image for each of \(recipe.labels.count) labels.")
        }
        if let contactSheet { try AtomicFile.checkWritable(URL(filePath: contactSheet)) }
        var bar = ProgressBar()
        defer { bar.clear() }
        try recipe.write(
            to: URL(filePath: output), count: count, seed: seed, workers: Workers(common.threadCount)
        ) { done in
            bar.draw("drawing", done: done, of: count)
        }
        bar.clear()
        if let contactSheet {
            let images = recipe.labels.indices.flatMap { label in
                (0..<min(recipe.imageCount(ofLabel: label, count: count), 40)).map {
                    recipe.draw(label: label, index: $0, seed: seed)
                }
            }
            try writeContactSheet(ContactSheet.make(images, columns: 10), to: contactSheet)
        }
        let labels = recipe.labels.map(\.name)
        if common.json {
            try Terminal.report(FinishedLine(count: count, labels: labels, output: output))
        } else {
            Terminal.note("Drew \(count) images of \(shown(labels)) into \(output).")
        }
    }
}

private struct FinishedLine: Encodable {
    let event = "finished"
    let count: Int
    let labels: [String]
    let output: String
}
