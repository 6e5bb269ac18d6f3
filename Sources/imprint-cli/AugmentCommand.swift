internal import ArgumentParser
internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintSynthesis

struct AugmentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "augment",
        abstract: "Write a contact sheet of photos with the data augmentation of training.",
        discussion: """
            With --artwork instead of a folder, the sheet shows composites of a logo and hard negatives.

            Examples:
              imprint augment photos --contact-sheet sheet.png
              imprint augment --artwork Leaf=leaf.png --contact-sheet sheet.png
              imprint augment --artwork Leaf=leaf.jpg --contact-sheet s.png --cut-out leaf.png
            """)

    @Argument(help: ArgumentHelp("The folder of photos: one sub-folder per label.", valueName: "data"))
    var data: String?

    @OptionGroup var artworkOptions: ArtworkOptions

    @Option(help: BackgroundSource.help(default: "drawn"))
    var backgrounds: BackgroundSource?

    @Option(
        help: ArgumentHelp(
            "The contact sheet to write: per photo a row with the preprocessed photo, then its augmentation in each epoch. With --artwork: "
                + "alternating rows of composites with the logo and of hard negatives.",
            valueName: "file.png"))
    var contactSheet: String

    @Option(
        help: ArgumentHelp(
            "With one --artwork: another PNG to write, with the logo as Imprint uses it: without its background, trimmed, and at most 256 "
                + "pixels wide and high.",
            valueName: "file.png"))
    var cutOut: String?

    @Option(
        help: AugmentationList.help("Data augmentation of the photos", note: "(default: \(Self.standardAugmentation))"))
    var augment: AugmentationList?

    @Option(help: "The height and width of the network's input, in pixels. (default: 96; 224 with --artwork)")
    var inputSize: Int?

    @Option(help: "How a photo is fitted into the network's input. (default: center-crop)")
    var cropAndScale: CropAndScale?

    @Option(help: "The number of photos, spread over the folder. With --artwork: the number of rows for each label.")
    var count = 8

    @Option(help: "The number of epochs. With --artwork: the number of composites in a row.")
    var epochs = 8

    @Option(
        help: "The random seed; training with this seed and no validation set uses the same images. (default: 0)",
        transform: seedNumber)
    var seed: UInt64 = 0

    @OptionGroup var common: CommonOptions

    private static let standardAugmentation = AugmentationList("flip,rotate,crop,exposure,blur,noise")

    private var showsArtwork: Bool { !artworkOptions.artwork.isEmpty }
    private var side: Int { inputSize ?? (showsArtwork ? 224 : 96) }

    func validate() throws {
        try artworkOptions.check(backgrounds)
        try requirePaths([data ?? "data"])
        try checkContactSheet(contactSheet, inputs: artworkOptions.artwork.map { ("the artwork", $0.source) })
        try checkCutOut()
        guard showsArtwork != (data != nil) else {
            throw ValidationError(
                showsArtwork
                    ? "Expected DATA or --artwork, found both. Run the subcommand once for each."
                    : "There are no photos and no artwork. Name a folder of photos, or artwork with --artwork LABEL=FILE."
            )
        }
        try require(side, "--input-size", in: (showsArtwork ? 16 : 1)...1024)
        try require(count, "--count", in: 1...100)
        try require(epochs, "--epochs", in: 1...100)
        _ = try augment?.augmentation()
        let photoOptions = flag("--augment", augment != nil) + flag("--crop-and-scale", cropAndScale != nil)
        guard !showsArtwork || photoOptions.isEmpty else {
            let names = photoOptions.joined(separator: " and ")
            throw ValidationError(
                "\(names): expected only with a folder of photos, not with --artwork. Leave out \(names).")
        }
        let imageCount = showsArtwork ? count * epochs * artworkOptions.labels.count : count * epochs + count
        guard imageCount * side * side <= 100_000_000 else {
            throw ValidationError(
                "The contact sheet would have more than 100 million pixels. Reduce --count, --epochs or --input-size.")
        }
    }

    private func checkCutOut() throws {
        guard let cutOut else { return }
        guard artworkOptions.artwork.count == 1 else {
            throw ValidationError(
                "--cut-out: there are \(artworkOptions.artwork.count) options --artwork, expected one. Run the subcommand once for each."
            )
        }
        try checkOutputs(
            [
                OutputFile(option: "--contact-sheet", path: contactSheet, kind: .contactSheet),
                OutputFile(option: "--cut-out", path: cutOut, kind: .cutOut),
            ], inputs: artworkOptions.artwork.map { ("the artwork", $0.source) })
        guard URL(filePath: cutOut).pathExtension.lowercased() == "png" else {
            throw ValidationError(
                "--cut-out: \(cutOut): the image format has no transparency, expected a name that ends in .png.")
        }
    }

    func run() throws {
        for output in [contactSheet] + [cutOut].compactMap({ $0 }) {
            try AtomicFile.checkWritable(URL(filePath: output))
        }
        if let data { try showPhotos(in: data) } else { try showComposites() }
    }

    private func showPhotos(in data: String) throws {
        let folder = try ImageFolder(at: URL(filePath: data), minimumLabels: 1)
        warnAboutSimilarLabels(folder.labels, consequence: "Training learns them as different labels.")
        try checkContactSheet(contactSheet, inputs: folder.items.map { ("a photo", $0.url.path) })
        let preview = AugmentationPreview(
            preprocessing: Preprocessing(width: side, height: side, cropAndScale: cropAndScale ?? .centerCrop),
            augmentation: try (augment ?? Self.standardAugmentation).augmentation(), seed: seed, epochs: epochs)
        let sheet = try preview.sheet(of: folder.items, count: count)
        for image in sheet.skipped { Terminal.warn("Skipped: \(image.reason)") }
        try writeImage(sheet.image, to: contactSheet, signature: .contactSheet)
        let shown = sheet.shown.map { $0.url.path(percentEncoded: false) }
        if common.json {
            try Terminal.report(
                FinishedLine(
                    images: shown, epochs: epochs, output: contactSheet, skipped: sheet.skipped.map(SkippedLine.init)))
        } else {
            Terminal.note("The rows of \(contactSheet), from the top:")
            for file in shown { Terminal.note("  \(file)") }
        }
    }

    private func showComposites() throws {
        try checkContactSheet(
            contactSheet, inputs: (backgrounds?.files() ?? []).map { ("a background photo", $0.path) })
        let workers = Workers(common.threadCount)
        let compositors = try artworkOptions.compositors(
            backgrounds: backgrounds, size: side, seed: seed, workers: workers)
        if let cutOut { try write(cutOutOf: compositors[0].compositor.artworks[0], to: cutOut) }
        var rows: [CompositeRow] = []
        var images: [RasterImage] = []
        for (label, compositor) in compositors {
            for row in 0..<count {
                let isPositive = row % 2 == 0
                let first = row / 2 * epochs
                let composites = try workers.parallelMap(epochs) { column throws(ImageError) in
                    isPositive ? try compositor.positive(first + column) : try compositor.hardNegative(first + column)
                }
                images += composites.map(\.image)
                rows.append(CompositeRow(label: label, showsLogo: isPositive, kinds: composites.map(\.kind)))
            }
        }
        try writeImage(ContactSheet.make(images, columns: epochs), to: contactSheet, signature: .contactSheet)
        if common.json {
            try Terminal.report(CompositesLine(rows: rows, output: contactSheet, cutOut: cutOut))
        } else {
            Terminal.note("The rows of \(contactSheet), from the top:")
            for row in rows {
                let kind = row.showsLogo ? "" : ", hard negatives"
                Terminal.note("  \(shown(row.label))\(kind): \(row.kinds.joined(separator: ", "))")
            }
        }
    }
}

extension AugmentCommand {
    private func write(cutOutOf artwork: Artwork, to path: String) throws {
        guard let image = artwork.cutOut else {
            throw ValidationError(
                "--cut-out: \(artwork.name) is a recipe, which has no background. Leave out --cut-out.")
        }
        try writeImage(image, to: path, signature: .cutOut)
        if !common.json { Terminal.note("Wrote \(visible(path)), the logo as Imprint uses it.") }
    }
}

private struct FinishedLine: Encodable {
    let event = "finished"
    let images: [String]
    let epochs: Int
    let output: String
    let skipped: [SkippedLine]
}

private struct CompositeRow: Encodable {
    let label: String
    let showsLogo: Bool
    let kinds: [String]
}

private struct CompositesLine: Encodable {
    let event = "finished"
    let rows: [CompositeRow]
    let output: String
    /// The file of the cut-out; absent without --cut-out.
    let cutOut: String?
}
