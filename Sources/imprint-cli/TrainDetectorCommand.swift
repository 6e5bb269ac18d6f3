internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

struct TrainDetectorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "train-detector",
        abstract: "Train a logo detector from artwork and, optionally, photos.",
        discussion: """
            Imprint generates synthetic training data: it composites the artwork into background photos.

            Examples:
              imprint train-detector --artwork Leaf=leaf.png --output leaf.imprint
              imprint train-detector --artwork A=a.png --photos photos --output a.imprint
            """)

    // Version 1 wrote `imprint train PHOTOS --artwork …`.
    @Argument(help: .hidden)
    var data: String?

    @OptionGroup var artworkOptions: ArtworkOptions

    @Option(
        help: ArgumentHelp(
            "A folder of photos: a sub-folder with the label of a logo contains photos of it; all other photos are backgrounds without "
                + "logos. (default: no photos; logos are composited into --backgrounds or drawn patterns)",
            valueName: "folder"))
    var photos: String?

    @OptionGroup var runOptions: TrainingRunOptions

    @OptionGroup var dataset: DatasetOptions

    @Option(
        help:
            "The number of epochs; the number of training steps is in proportion to it."
    )
    var epochs = DetectorHyperparameters().epochs

    func validate() throws {
        try require(hyperparameters().problem)
        if artworkOptions.artwork.isEmpty {
            throw ValidationError("--artwork is missing, expected at least one --artwork LABEL=FILE.")
        }
        if photos != nil, let data {
            throw ValidationError("Unexpected argument \"\(data)\": --photos already names the folder of photos.")
        }
        try requirePaths([photos, data].compactMap { $0 })
        try runOptions.checkOutputs(inputs: artworkOptions.artwork.map { ("the artwork", $0.source) })
    }

    func run() async throws {
        let artwork = try artworkOptions.load()
        // Without --photos, the photos of --backgrounds are used as photos without a logo.
        let hasNoPhotos = photos == nil && data == nil
        let path = photos ?? data ?? (artworkOptions.drawsBackgrounds ? nil : artworkOptions.backgrounds)
        let folder = try path.map { try ImageFolder(at: URL(filePath: $0), logos: artworkOptions.labels) }
        try runOptions.prepare(photoFolders: [folder?.url, dataset.validationFolder])
        var configuration = DetectorConfiguration()
        configuration.hyperparameters = try hyperparameters()
        configuration.validationFolder = dataset.validationFolder
        configuration.threads = runOptions.common.threadCount
        configuration.precision = dataset.precision
        configuration.memoryLimit = try dataset.memory?.byteCount()
        let trainer = DetectorTrainer(
            artwork: artwork, photos: folder, backgrounds: hasNoPhotos ? nil : try artworkOptions.backgroundFiles(),
            configuration: configuration, checkpoints: runOptions.checkpoints)
        let command =
            ["imprint", "train-detector"] + artworkOptions.arguments + option("--photos", photos ?? data)
            + ["--output", runOptions.output] + option("--epochs", epochs) + dataset.arguments
        try await TrainingSession(
            options: runOptions, folder: folder, validationFolder: dataset.validationFolder, command: command
        ).run(trainer, epochs: epochs)
    }

    private func hyperparameters() throws -> DetectorHyperparameters {
        var values = DetectorHyperparameters()
        values.validation = try dataset.validationRule().rule
        values.keepsGroupsTogether = !dataset.randomSplit
        values.rehearsalImages = dataset.rehearsal
        values.seed = dataset.seed
        values.epochs = epochs
        return values
    }
}
