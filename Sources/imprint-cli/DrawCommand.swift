internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintSynthesis

struct DrawCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "draw", abstract: "Draw a synthetic data set from a recipe, for experiments.")

    @Argument(help: "The name of a recipe in datasets/, such as two-circles, or the path of a recipe.")
    var recipe: String

    @Option(help: "The output folder; it gets one sub-folder per label.")
    var output: String

    @Option(
        help: ArgumentHelp(
            "Draw the images of one simulated user with a personal drawing style: 1 to 100000, the same user for the same number. "
                + "(default: no particular user)", valueName: "number"))
    var user: Int?

    @Option(help: "The total number of images. (default: as in the recipe)")
    var count: Int?

    @Option(
        help: "The random seed; the same seed draws the same images. (default: as in the recipe)",
        transform: seedNumber)
    var seed: UInt64?

    @Option(
        help: ArgumentHelp("A contact sheet to write of the first 40 images of each label.", valueName: "file.png"))
    var contactSheet: String?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([recipe, output])
        if let contactSheet { try checkContactSheet(contactSheet) }
        if let user { try require(user, "--user", in: 1...100_000) }
        if let count { try require(count, "--count", in: 1...10_000_000) }
    }

    func run() throws {
        let sharedRecipe = try DrawingRecipe.load(named: recipe)
        let recipe = user.map { sharedRecipe.ofUser($0) } ?? sharedRecipe
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
