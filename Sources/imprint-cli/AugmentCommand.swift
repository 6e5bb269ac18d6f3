internal import ArgumentParser
internal import Foundation
internal import ImprintImages

struct AugmentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "augment",
        abstract: "Show photos as training sees them: prepared, and varied anew in each epoch.")

    @Argument(help: ArgumentHelp("The folder of photos: one sub-folder per label.", valueName: "data"))
    var data: String

    @Option(
        help: ArgumentHelp(
            "The picture to write: a row per photo, first as it is prepared and then as the first epochs vary it.",
            valueName: "file.png"))
    var contactSheet: String

    @Option(help: AugmentationWords.help("How to vary the photos")) var augment = AugmentationWords(
        "flip,rotate,crop,exposure,blur,noise")

    @Option(help: "The height and width of the network's input, in pixels.")
    var inputSize = 96

    @Option(help: "How a photo is fitted into the network's input.")
    var cropAndScale = CropAndScale.centerCrop

    @Option(help: "How many photos to show, spread over the folder.")
    var count = 8

    @Option(help: "How many epochs to show.")
    var epochs = 8

    @Option(help: "What the variations follow from: those of training with the same seed and no validation.")
    var seed: UInt64 = 0

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([data, contactSheet])
        try require(inputSize, "--input-size", in: 1...1024)
        try require(count, "--count", in: 1...100)
        try require(epochs, "--epochs", in: 1...100)
        _ = try augment.augmentation()
        guard (count * epochs + count) * inputSize * inputSize <= 100_000_000 else {
            throw ValidationError("The picture would have more than 100 million pixels; show fewer or smaller photos.")
        }
    }

    func run() throws {
        let folder = try ImageFolder(at: URL(filePath: data), minimumClasses: 1)
        try requireNoPhoto(contactSheet, "--contact-sheet", of: folder)
        let preview = AugmentationPreview(
            preprocessing: Preprocessing(width: inputSize, height: inputSize, cropAndScale: cropAndScale),
            augmentation: try augment.augmentation(), seed: seed, epochs: epochs)
        let sheet = try preview.sheet(of: folder.items, count: count)
        for image in sheet.skipped { Terminal.note("Skipped: \(image.reason)") }
        try ImageFile.write(sheet.image, to: URL(filePath: contactSheet))
        let shown = sheet.shown.map { $0.url.path(percentEncoded: false) }
        if common.json {
            try Terminal.emit(
                FinishedLine(
                    images: shown, epochs: epochs, output: contactSheet, skipped: sheet.skipped.map(SkippedLine.init)))
        } else {
            Terminal.note("The rows of \(contactSheet), from the top:")
            for file in shown { Terminal.note("  \(file)") }
        }
    }
}

private struct FinishedLine: Encodable {
    let event = "finished"
    let images: [String]
    let epochs: Int
    let output: String
    let skipped: [SkippedLine]
}
