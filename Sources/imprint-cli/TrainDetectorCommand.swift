internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

struct TrainDetectorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "train-detector",
        abstract: "Train a detector from the artwork of logos, photos with boxes, or both.",
        discussion: """
            Imprint generates synthetic training data: it composites the artwork into background photos. With boxes and without artwork, \
            the detector finds any kind of object.

            Examples:
              imprint train-detector --artwork Leaf=leaf.png --output leaf.imprint
              imprint train-detector --artwork A=a.png --photos photos --output a.imprint
              imprint train-detector --annotations boxes.json --output objects.imprint
            """)

    // Version 1 wrote `imprint train PHOTOS --artwork …`.
    @Argument(help: .hidden)
    var data: String?

    @OptionGroup(title: "Artwork")
    var artworkOptions: ArtworkOptions

    @Option(
        help: BackgroundSource.help(default: "the background photos of --photos if there are any, else drawn"))
    var backgrounds: BackgroundSource?

    @Option(
        help: ArgumentHelp(
            "A folder of photos: a sub-folder with the label of a logo contains photos of it; all other photos are backgrounds without "
                + "logos. (default: no photos; logos are composited into --backgrounds or drawn patterns)",
            valueName: "folder"))
    var photos: String?

    @Option(
        help: ArgumentHelp(
            "The bounding boxes of all objects in some photos: a file or folder in the format of COCO, Create ML, YOLO or Pascal VOC. The "
                + "photos are beside it.", valueName: "file"))
    var annotations: String?

    @OptionGroup var runOptions: TrainingRunOptions

    @OptionGroup(title: "Data")
    var dataset: DatasetOptions

    @Option(
        help:
            "The length of training: the number of training steps is in proportion to it. It must stay the same with --resume."
    )
    var epochs = DetectorHyperparameters().epochs

    func validate() throws {
        try artworkOptions.check(backgrounds)
        try require(hyperparameters().problem)
        if artworkOptions.artwork.isEmpty && annotations == nil {
            throw ValidationError(
                "There is nothing to learn from, expected --artwork LABEL=FILE or --annotations FILE.")
        }
        if annotations != nil {
            if runOptions.crossValidation.folds != nil {
                throw ValidationError("--folds is not available with --annotations. Leave out one of them.")
            }
            if dataset.validationFolder != nil {
                throw ValidationError(
                    "--validation is a folder, which has no boxes. With --annotations, name the share of the photos.")
            }
        }
        if photos != nil, let data {
            throw ValidationError("Unexpected argument \"\(data)\": --photos already names the folder of photos.")
        }
        try requirePaths([photos, data, annotations].compactMap { $0 })
        let photoOptions = dataset.photoOptions
        if photoFolder == nil, annotations == nil, !photoOptions.isEmpty {
            throw ValidationError(
                "\(photoOptions.joined(separator: ", ")): there are no photos that they apply to. Name a folder with --photos, or leave "
                    + "them out.")
        }
        try runOptions.crossValidation.checkValidation(dataset)
        if photoFolder == nil && runOptions.crossValidation.folds != nil {
            throw ValidationError("--folds: there are no photos to split into folds. Name a folder with --photos.")
        }
        try runOptions.checkOutputs(inputs: artworkOptions.artwork.map { ("the artwork", $0.source) })
    }

    func run() async throws {
        let artwork = try artworkOptions.load()
        let hasNoPhotos = photos == nil && data == nil
        let boxes = try annotations.map { try BoxAnnotations(contentsOf: URL(filePath: $0)) }
        for warning in boxes?.warnings ?? [] { Terminal.warn("Note: \(warning)") }
        for image in boxes?.skipped ?? [] { Terminal.note("Skipped: \(image.reason)") }
        let labels = artworkOptions.labels + (boxes?.usedLabels ?? []).filter { !artworkOptions.labels.contains($0) }
        let folder = try photoFolder.map { try ImageFolder(at: URL(filePath: $0), logos: labels) }
        if let folder { noteMissingLogos(in: folder) }
        try runOptions.prepare(photoFolders: [folder?.url, dataset.validationFolder])
        var configuration = DetectorConfiguration()
        configuration.hyperparameters = try hyperparameters()
        configuration.validationFolder = dataset.validationFolder
        configuration.threads = runOptions.common.threadCount
        configuration.precision = dataset.precision
        configuration.memoryLimit = try dataset.memory?.byteCount()
        let command =
            ["imprint", "train-detector"] + artworkOptions.arguments
            + option("--annotations", annotations) + option("--backgrounds", backgrounds?.description)
            + option("--photos", photos ?? data)
            + option("--output", runOptions.output) + runOptions.crossValidation.arguments
            + option("--epochs", epochs) + dataset.arguments
        let backgrounds = hasNoPhotos ? nil : try backgrounds?.files()
        if let folder, let options = try runOptions.crossValidation.options() {
            let validation = CrossValidation(
                artwork: artwork, photos: folder, backgrounds: backgrounds, configuration: configuration,
                options: options)
            try await CrossValidationSession(options: runOptions, photos: folder, command: command).run(validation)
            if runOptions.output == nil { return }
        }
        let trainer = DetectorTrainer(
            artwork: artwork, photos: folder, annotations: boxes, backgrounds: backgrounds,
            configuration: configuration,
            checkpoints: runOptions.checkpoints)
        try await TrainingSession(
            options: runOptions, folder: folder, validationFolder: dataset.validationFolder,
            logos: labels, command: command
        ).run(trainer, epochs: epochs)
    }

    /// Notes each logo without a sub-folder of photos, because a misspelt name turns its photos into background.
    private func noteMissingLogos(in folder: ImageFolder) {
        guard let named = photos ?? data else { return }
        for label in artworkOptions.labels {
            let count = folder.items.count(where: { folder.labels[$0.label] == label })
            guard count == 0 else { continue }
            Terminal.note(
                "\(visible(named)) has no sub-folder \(shown(label)) with photos: all of its photos count as photos without this logo."
            )
        }
    }

    /// The folder of the photos; without --photos, the photos of --backgrounds are used as photos without a logo.
    private var photoFolder: String? {
        photos ?? data ?? backgrounds.flatMap { $0.isDrawn ? nil : $0.description }
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
