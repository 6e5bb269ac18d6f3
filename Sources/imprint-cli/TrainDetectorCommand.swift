internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintSynthesis
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
        help: BackgroundSource.help(default: "the photos of --photos and --annotations without logos, else drawn"))
    var backgrounds: BackgroundSource?

    @Option(
        help: ArgumentHelp(
            "A folder of photos: a sub-folder with the label of a logo contains photos of it; all other photos are backgrounds without "
                + "logos. (default: no photos; logos are composited into --backgrounds or drawn patterns)",
            valueName: "folder"))
    var photos: String?

    @Option(
        help: ArgumentHelp(
            "The bounding boxes of all objects in some photos: a file or folder in COCO, Create ML, YOLO or Pascal VOC format. The "
                + "photos are beside it. --validation then names other annotations, or a folder of some of these photos. From "
                + "data.yaml, train-detector reads train for training and val for validation.",
            valueName: "file"))
    var annotations: String?

    @OptionGroup var runOptions: TrainingRunOptions

    @OptionGroup(title: "Data")
    var dataset: DatasetOptions

    @Option(
        help: ArgumentHelp(
            "A pretrained base model whose first layers become the backbone of the detector: a file, or a name from imprint models list. It "
                + "improves detectors of ordinary objects. (default: none; all layers are trained from random parameters)",
            valueName: "model"))
    var base: String?

    @Option(
        help:
            "The length of training: the number of training steps is proportional to it. It must stay the same with --resume."
    )
    var epochs = DetectorHyperparameters().epochs

    func validate() throws {
        try artworkOptions.check(backgrounds)
        try require(hyperparameters().problem)
        if artworkOptions.artwork.isEmpty && annotations == nil {
            throw ValidationError(
                "There is nothing to learn from, expected --artwork LABEL=FILE or --annotations FILE.")
        }
        if annotations != nil, runOptions.crossValidation.folds != nil, photos != nil || data != nil {
            throw ValidationError(
                "--folds splits the photos of --annotations, and cannot keep similar photos of --photos out of the training set of a fold. "
                    + "Leave out --photos.")
        }
        if runOptions.crossValidation.mirror {
            throw ValidationError("--mirror averages the confidences of classifiers, not detections. Leave it out.")
        }
        if photos != nil, let data {
            throw ValidationError("Unexpected argument \"\(data)\": --photos already names the folder of photos.")
        }
        try requirePaths([photos, data, annotations, base].compactMap { $0 })
        let photoOptions = dataset.photoOptions
        if photoFolder == nil, annotations == nil, !photoOptions.isEmpty {
            throw ValidationError(
                "\(photoOptions.joined(separator: ", ")): there are no photos that they apply to. Name a folder with --photos, or leave "
                    + "them out.")
        }
        try runOptions.crossValidation.checkValidation(dataset)
        if photoFolder == nil && annotations == nil && runOptions.crossValidation.folds != nil {
            throw ValidationError("--folds: there are no photos to split into folds. Name a folder with --photos.")
        }
        try runOptions.checkOutputs(
            inputs: artworkOptions.artwork.map { ("the artwork", $0.source) }
                + [annotations].compactMap { $0 }.map { ("the annotations", $0) }
                + [base].compactMap { $0 }.map { ("the base model", $0) })
    }

    func run() async throws {
        try runOptions.joinProcesses()
        // Before the photos with boxes are read, which takes long.
        try runOptions.checkWritable()
        let backbone = try base.map(baseModel)
        let artwork = try artworkOptions.load()
        let backgroundFiles = try backgrounds?.files()
        let (boxes, validationBoxes) = try readAnnotations()
        // With boxes, --validation does not name a folder of labelled photos.
        let validationFolder = boxes == nil ? dataset.validationFolder : nil
        let labels = artworkOptions.labels + (boxes?.usedLabels ?? []).filter { !artworkOptions.labels.contains($0) }
        warnAboutSimilarLabels(labels, consequence: "The detector learns them as different logos.")
        let folder = try readPhotos(boxes, labels: labels)
        if let folder {
            noteMissingLogos(in: folder)
            if boxes == nil { warnAboutBoxes(in: folder) }
        }
        try runOptions.checkFolders(photoFolders: [folder?.url, dataset.validationFolder])
        var configuration = DetectorConfiguration()
        configuration.hyperparameters = try hyperparameters()
        configuration.validationFolder = validationFolder
        configuration.base = backbone
        configuration.threads = runOptions.common.threadCount
        configuration.storagePrecision = dataset.precision
        configuration.processes = TrainingProcesses.group
        configuration.memoryLimit = try dataset.memory?.byteCount()
        let command =
            ["imprint", "train-detector"] + artworkOptions.arguments
            + option("--annotations", annotations) + option("--backgrounds", backgrounds?.description)
            + option("--photos", photos ?? data)
            + option("--output", runOptions.output) + runOptions.details.arguments
            + runOptions.crossValidation.arguments
            + option("--base", base) + option("--epochs", epochs) + dataset.arguments
        // Photos without a logo are the default backgrounds.
        let backgrounds = backgroundsArePhotos ? nil : backgroundFiles
        var outcome = CrossValidationSession.Outcome()
        if let options = try runOptions.crossValidation.options() {
            let (validation, photos) = crossValidation(artwork, boxes, folder, backgrounds, configuration, options)
            outcome = try await CrossValidationSession(
                options: runOptions, photos: photos, command: command, logos: labels
            ).run(validation)
        }
        guard runOptions.output != nil else { return try outcome.check() }
        let trainer = DetectorTrainer(
            artwork: artwork, photos: folder, annotations: boxes, validation: validationBoxes,
            backgrounds: backgrounds, configuration: configuration,
            checkpoints: runOptions.checkpoints)
        try await TrainingSession(
            options: runOptions, photos: folder, validationFolder: validationFolder,
            logos: labels, command: command
        ).run(trainer, epochs: epochs)
        try outcome.check()
    }

    /// Returns the cross-validation on the photos with boxes or, without boxes, on the labelled photos; and the photos.
    private func crossValidation(
        _ artwork: [String: [Artwork]], _ boxes: BoxAnnotations?, _ folder: ImageFolder?, _ backgrounds: [URL]?,
        _ configuration: DetectorConfiguration, _ options: CrossValidation.Options
    ) -> (CrossValidation, any TrainingSource) {
        if let boxes {
            let validation = CrossValidation(
                artwork: artwork, annotations: boxes, backgrounds: backgrounds, configuration: configuration,
                options: options)
            return (validation, AnnotatedSource(boxes))
        }
        guard let folder else { preconditionFailure("--folds needs photos") }
        let validation = CrossValidation(
            artwork: artwork, photos: folder, backgrounds: backgrounds, configuration: configuration, options: options)
        return (validation, folder)
    }

    /// Reads the photos with boxes, and the validation photos if --validation names them.
    private func readAnnotations() throws -> (training: BoxAnnotations?, validation: BoxAnnotations?) {
        guard let annotations else { return (nil, nil) }
        let hasFolds = runOptions.crossValidation.folds != nil
        let split = try AnnotatedSplit(
            URL(filePath: annotations), validation: dataset.validationFolder, part: .training,
            usesValidationPart: dataset.validation == nil && !hasFolds,
            splitAdvice: dataset.validation != nil ? .testSet : hasFolds ? .dataYAML : .validation
        ) { file, photos, part in
            let boxes = try BoxAnnotations(
                contentsOf: file, photos: photos, part: part, threads: runOptions.common.threadCount)
            for image in boxes.skipped { Terminal.warn("Skipped: \(image.reason)") }
            return boxes
        }
        try split.requireTrainingPhotos(validation: dataset.validationFolder)
        split.warnAboutSharedPhotos()
        if hasFolds, split.training.availableParts.contains(.validation) {
            Terminal.note("Note: --folds splits the photos of train, and does not read those of val.")
        }
        return (split.training, split.validation)
    }

    /// Reads the photos without boxes.
    /// - Parameter labels: The labels of the artwork and of the photos with boxes.
    private func readPhotos(_ boxes: BoxAnnotations?, labels: [String]) throws -> ImageFolder? {
        guard let photoFolder else { return nil }
        do throws(ImageError) {
            return try ImageFolder(at: URL(filePath: photoFolder), logos: labels)
        } catch {
            // Artwork cannot have the label of photos without a logo, so the boxes have it.
            let noLogo = ImageFolder.noLogoLabel
            let label = ImageFolder.reservedLabel(in: boxes?.usedLabels ?? [], reserved: [noLogo])
            switch error {
            case .invalidSource, .similarToLogo(_, noLogo, _):
                if let boxes, let label { throw ImprintError.reservedLabel(label, source: boxes.name) }
            default: break
            }
            throw error
        }
    }

    /// Warns about a folder of photos with boxes, because it may show the logos of the artwork.
    private func warnAboutBoxes(in folder: ImageFolder) {
        guard let named = photos ?? data, let found = BoxAnnotations.sign(in: folder.url) else { return }
        Terminal.warn(
            "\(visible(named)) is a data set with bounding boxes (\(found)), which --photos does not read: photos outside of a folder with the "
                + "name of a logo count as photos without a logo. If they show a logo, use --annotations.")
    }

    /// Notes each logo without a sub-folder of photos, because a misspelt name turns its photos into background.
    private func noteMissingLogos(in folder: ImageFolder) {
        guard let named = photos ?? data else { return }
        for label in artworkOptions.labels {
            let count = folder.items.count(where: { folder.labels[$0.label] == label })
            guard count == 0 else { continue }
            Terminal.warn(
                "\(visible(named)) has no sub-folder \(shown(label)) with photos: all of its photos count as photos without this logo. "
                    + "If a sub-folder shows it, give the artwork the name of that sub-folder."
            )
        }
    }

    /// The folder of the photos.
    private var photoFolder: String? { photos ?? data ?? (backgroundsArePhotos ? backgrounds?.description : nil) }

    /// Whether the photos of --backgrounds are also the photos without a logo, because there are no others.
    private var backgroundsArePhotos: Bool {
        photos == nil && data == nil && annotations == nil && backgrounds?.isDrawn == false
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
