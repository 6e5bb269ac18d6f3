internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintSynthesis

struct DrawCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "draw", abstract: "Draw a synthetic data set: from a recipe, or from the artwork of logos.",
        discussion: """
            With --artwork instead of a recipe, half of the images show a logo on a background, as in the training of a detector, and the \
            others show a hard negative. The boxes of the logos are in boxes.json, in COCO format.

            Examples:
              imprint draw two-circles --output circles --count 1000
              imprint draw --artwork Leaf=leaf.png --output leaves --count 2000
            """)

    @Argument(help: "The name of a recipe in datasets/, such as two-circles, or the path of a recipe.")
    var recipe: String?

    @OptionGroup(title: "Artwork")
    var artworkOptions: ArtworkOptions

    @Option(help: BackgroundSource.help(default: "drawn"))
    var backgrounds: BackgroundSource?

    @Option(help: "With --artwork: the height and width of the images, in pixels. (default: 320)")
    var size: Int?

    @Option(name: .shortAndLong, help: "The output folder; with a recipe, it gets one sub-folder per label.")
    var output: String

    @Option(
        help: ArgumentHelp(
            "Draw the images of one simulated user with a personal drawing style: 1 to 100000, the same user for the same number. "
                + "(default: no particular user)", valueName: "number"))
    var user: Int?

    @Option(help: "The total number of images. (default: as in the recipe; 1000 with --artwork)")
    var count: Int?

    @Option(
        help: "The random seed; the same seed draws the same images. (default: as in the recipe; 0 with --artwork)",
        transform: seedNumber)
    var seed: UInt64?

    @Option(
        help: ArgumentHelp("A contact sheet to write of the first 40 images of each label.", valueName: "file.png"))
    var contactSheet: String?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([recipe].compactMap { $0 })
        try requireOutputPath(output, "--output")
        try requireNoFile(output, "--output")
        try artworkOptions.check(backgrounds)
        let drawsArtwork = !artworkOptions.artwork.isEmpty
        guard drawsArtwork != (recipe != nil) else {
            throw ValidationError(
                drawsArtwork
                    ? "Expected a recipe or --artwork, found both. Run the subcommand once for each."
                    : "Expected the name of a recipe, such as two-circles, or --artwork LABEL=FILE.")
        }
        if let size { try require(size, "--size", in: 64...1024) }
        let others =
            drawsArtwork
            ? flag("--user", user != nil) + flag("--contact-sheet", contactSheet != nil) : flag("--size", size != nil)
        guard others.isEmpty else {
            throw ValidationError(
                "\(others.joined(separator: ", ")): expected only \(drawsArtwork ? "with a recipe" : "with --artwork"). "
                    + "Leave it out\(drawsArtwork ? "; imprint augment --artwork writes contact sheets" : "").")
        }
        if let contactSheet { try checkContactSheet(contactSheet) }
        if let user { try require(user, "--user", in: 1...100_000) }
        if let count { try require(count, "--count", in: 1...10_000_000) }
    }

    func run() throws {
        if let recipe { try draw(recipe) } else { try drawComposites() }
    }

    private func drawComposites() throws {
        let folder = URL(filePath: output)
        let contents = try? FileManager.default.contentsOfDirectory(atPath: output)
        guard FileStatus(folder) == nil || contents?.isEmpty == true else {
            throw ValidationError("--output: \(output) exists and is not an empty folder. Choose another name.")
        }
        let (workers, count, size) = (Workers(common.threadCount), count ?? 1000, size ?? 320)
        let dataset = CompositeDataset(
            compositors: try artworkOptions.compositors(
                backgrounds: backgrounds, size: size, seed: seed ?? 0, workers: workers), size: size, workers: workers)
        var bar = ProgressBar()
        defer { bar.clear() }
        let interrupt = Interrupt()
        interrupt.begin()
        defer { interrupt.end() }
        let (images, boxes) = try dataset.write(to: folder, count: count, isStopped: { Interrupt.isRequested }) {
            bar.draw("drawing", done: $0, of: count)
        }
        bar.clear()
        guard images == count else {
            Terminal.warn(
                "Interrupted; \(output) has \(images) of \(count) images, with boxes in \(CompositeDataset.boxesName).")
            throw Interrupt.exitCode
        }
        if common.json {
            try Terminal.report(FinishedLine(count: count, labels: artworkOptions.labels, output: output))
        } else {
            func showing(_ images: Int) -> String { "\(images) \(images == 1 ? "shows" : "show")" }
            let others = images - boxes
            Terminal.note(
                "Drew \(counted(count, "image")) into \(output): \(showing(boxes)) \(shown(artworkOptions.labels)), with boxes in "
                    + CompositeDataset.boxesName + (others > 0 ? ", and \(showing(others)) a hard negative." : "."))
        }
    }

    private func draw(_ recipe: String) throws {
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
        let interrupt = Interrupt()
        interrupt.begin()
        defer { interrupt.end() }
        let drawn = try recipe.write(
            to: URL(filePath: output), count: count, seed: seed, workers: Workers(common.threadCount),
            isStopped: { Interrupt.isRequested }
        ) { done in
            bar.draw("drawing", done: done, of: count)
        }
        bar.clear()
        guard drawn == count else {
            Terminal.warn(
                "Interrupted; \(output) has \(drawn) of \(count) images. Repeat the command to draw all of them.")
            throw Interrupt.exitCode
        }
        if let contactSheet {
            let images = recipe.labels.indices.flatMap { label in
                (0..<min(recipe.imageCount(ofLabel: label, count: count), 40)).map {
                    recipe.draw(label: label, index: $0, seed: seed)
                }
            }
            try writeImage(ContactSheet.make(images, columns: 10), to: contactSheet, signature: .contactSheet)
        }
        let labels = recipe.labels.map(\.name)
        if common.json {
            try Terminal.report(FinishedLine(count: count, labels: labels, output: output))
        } else {
            Terminal.note("Drew \(counted(count, "image")) of \(shown(labels)) into \(output).")
        }
    }
}

private struct FinishedLine: Encodable {
    let event = "finished"
    let count: Int
    let labels: [String]
    let output: String
}
