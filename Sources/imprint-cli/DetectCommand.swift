internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

struct DetectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "detect", abstract: "Find all logos or other objects in photos, with their bounding boxes.",
        discussion: """
            Examples:
              imprint detect --artwork Logo=logo.png photo.jpg
              imprint detect logo.imprint photo.jpg
              imprint detect logo.imprint photos --annotate checked --crop-to crops
              imprint detect logo.imprint photos --count --csv > counts.csv
              imprint detect centerface photo.jpg
              find photos -name '*.jpg' | imprint detect logo.imprint --files-from - --json

            A model finds every logo in a photo. The installed models centerface and blazeface find faces (imprint models install centerface). \
            With --artwork, Imprint finds every logo without training: it compares the photos with the image of the logo. \
            A trained model is faster, and can also learn its logos from photos.

            Boxes are relative to the upright photo: 0 to 1, with the origin in the upper left corner.
            """)

    @Argument(
        help: ArgumentHelp(
            "The model file of a detector, from imprint train-detector or imprint import, or the name of an installed one. "
                + "Omit it with --artwork."))
    var model: String?

    @OptionGroup(title: "Photos")
    var inputs: PhotoInputOptions

    @OptionGroup(title: "Logos without a model")
    var artworkOptions: ArtworkOptions

    @Option(
        help: ArgumentHelp(
            "With --artwork: the base model whose features are compared: a file, a name from imprint models list, or built-in for the features "
                + "that come with Imprint. (default: built-in)", valueName: "model"))
    var base: String?

    @Option(
        help: ArgumentHelp(
            "The minimum confidence of a detection, 0 to 1, or auto: the model's threshold for each label. (default: auto, or 0.5 for a "
                + "label without a threshold)", valueName: "number or auto"))
    var threshold: ThresholdArgument?

    @Option(
        help: ArgumentHelp("A personalization of the model, from imprint personalize.", valueName: "file"))
    var personalization: String?

    @OptionGroup(title: "Output")
    var detectionOutputs: DetectionOutputOptions

    @OptionGroup(title: "Output")
    var outputs: PhotoOutputOptions

    @OptionGroup var precisionOptions: PrecisionOptions

    @OptionGroup var common: CommonOptions

    /// Whether the logos are found from their artwork, without a model.
    private var matchesArtwork: Bool { !artworkOptions.artwork.isEmpty }

    /// The options with all photos: with --artwork, the first argument is not a model but a photo.
    private var photoOptions: PhotoInputOptions {
        var options = inputs
        if matchesArtwork, let model { options.photos.insert(model, at: 0) }
        return options
    }

    func validate() throws {
        try requirePaths([model, personalization, base].compactMap { $0 })
        if matchesArtwork {
            if precisionOptions.precision != nil {
                throw ValidationError("--precision is for a model, and --artwork uses no model. Leave it out.")
            }
            if personalization != nil {
                throw ValidationError(
                    "--personalization changes a model, and --artwork uses no model. Leave out one of them.")
            }
            if let model, model.hasSuffix(".imprint"), FileStatus(URL(filePath: model))?.isFolder != true {
                throw ValidationError(
                    "detect finds the logos of a model or of --artwork, found both (\(model)). Leave out one of them.")
            }
        } else {
            guard let model else {
                throw ValidationError(
                    "There is neither a model nor artwork. Name the model file of a detector, or --artwork LABEL=FILE.")
            }
            if inputs.photos.isEmpty && inputs.filesFrom == nil {
                throw ValidationError(
                    "\(model) is read as the model, and there are no photos. Name photos after the model; or the artwork of a logo with "
                        + "--artwork LABEL=FILE, to find it without a model.")
            }
            if base != nil { throw ValidationError("--base needs --artwork LABEL=FILE, which is missing.") }
        }
        try photoOptions.requirePhotos()
        try outputs.check(common)
        _ = try threshold?.threshold()
    }

    func run() throws {
        let photos = try photoOptions.open()
        let workers = photos.workers(upTo: parallelPhotos)
        let threads = common.threadCount / workers.count
        let finder = try matchesArtwork ? matcher(threads: threads) : detector(threads: threads)
        let format = PhotoFormat(
            noneText: finder.noneText, separator: "; ", hasBoxes: true, hasVerdicts: false,
            countedLabels: detectionOutputs.count ? finder.labels : nil)
        let output = try outputs.open(
            format, inputs: photoOptions, common: common, detections: detectionOutputs, labels: finder.labels)
        let line: (PhotoResult) -> any Encodable =
            detectionOutputs.count ? { CountLine($0, finder.labels) } : { DetectionLine($0) }
        try forEachPhoto(photos, workers, output, verb: "searching", line: line) { photo in
            let (objects, confidences) = try finder.find(photo.url)
            let classifications = objects.map {
                Classification(label: $0.label, confidence: $0.confidence, box: $0.box)
            }
            return PhotoResult(file: photo.path, classifications: classifications, confidences: confidences)
        }
    }

    /// The maximum number of photos that are searched at the same time; with --artwork and without --threads, as many as fit into memory.
    ///
    /// The other threads then share the work on a photo.
    private var parallelPhotos: Int {
        matchesArtwork && common.threads == nil
            ? ArtworkMatcher.parallelPhotos(upTo: common.threadCount, inMemory: SystemMemory.available)
            : common.threadCount
    }

    /// Finds the objects in photos.
    private struct Finder {
        /// The labels that objects can have.
        let labels: [String]
        /// The text for a photo without objects.
        var noneText = "no logo"
        /// Returns the objects in a photo and, for artwork, the confidence that the photo shows each logo.
        let find: (URL) throws -> (objects: [DetectedObject], confidences: [String: Float]?)
    }

    /// Returns the finder of a model.
    private func detector(threads: Int) throws -> Finder {
        let model = model ?? ""
        let detector = try naming(model) {
            try ImageClassifier(namedModel(model), threads: threads, precision: precisionOptions.checked())
        }
        .personalized(with: try personalization.map(namedPersonalization))
        PrecisionOptions.warnIfSlow(detector)
        try requireDetector(detector, model, otherwise: "use imprint classify")
        let threshold = try threshold?.threshold()
        var minimum: Float?
        if case .confidence(let value) = threshold { minimum = value }
        return Finder(
            labels: detector.objectLabels ?? [],
            noneText: detector.model.detectsLogos ? "no logo" : "nothing found"
        ) { [minimum] photo in
            (try detector.detect(photo, minimumConfidence: minimum), nil)
        }
    }

    /// Returns the features of --base, or those that come with Imprint.
    private func features() throws -> LocalFeatures {
        guard let base, base != builtInBaseName else { return try .builtIn() }
        let model = try baseModel(base)
        do {
            return try LocalFeatures(model)
        } catch let error as ImprintError {
            throw ValidationError("--base \(base): \(error)")
        }
    }

    /// Returns the finder of artwork.
    private func matcher(threads: Int) throws -> Finder {
        let minimum: Float =
            switch try threshold?.threshold() {
            case .confidence(let minimum): minimum
            case .perLabel, nil: 0.5
            }
        warnAboutSimilarLabels(
            artworkOptions.labels, consequence: "Imprint compares the photos with them as different logos.")
        let artwork = try artworkOptions.load()
        let features = try features()
        if let base, base != builtInBaseName, !features.isCalibrated {
            Terminal.note(
                "Note: the confidences are estimates, because Imprint does not know how the base model \(base) scores photos without a logo."
            )
        }
        let matcher = try ArtworkMatcher(
            artwork, features: features, workers: Workers(threads),
            drawingWorkers: Workers(common.threadCount))
        return Finder(labels: matcher.labels) { photo in
            let (classifications, objects) = try matcher.search(photo)
            return (
                objects.filter { $0.confidence >= minimum },
                Dictionary(uniqueKeysWithValues: classifications.map { ($0.label, $0.confidence) })
            )
        }
    }
}

extension ModelFile {
    /// Whether a detector learned logos from artwork; others find any kind of object, such as faces.
    ///
    /// Models without a training record are logo detectors of version 1.
    fileprivate var detectsLogos: Bool {
        guard case .detector(let hyperparameters)? = training?.hyperparameters, let phases = hyperparameters.phases
        else {
            return head.isTrainable
        }
        return phases.contains { $0.composites > 0 || $0.hardNegatives > 0 }
    }
}

private struct DetectionLine: Encodable {
    let file: String
    let detections: [DetectedObject]
    /// The confidence that the photo shows each logo, with --artwork.
    let confidences: [String: Float]?

    init(_ result: PhotoResult) {
        file = result.file
        confidences = result.confidences
        detections = result.classifications.compactMap { classification in
            classification.box.map {
                DetectedObject(label: classification.label, confidence: classification.confidence, box: $0)
            }
        }
    }
}

/// The JSON line of a photo with --count.
private struct CountLine: Encodable {
    let file: String
    /// The number of detections of every label.
    let counts: [String: Int]
    /// The confidence that the photo shows each logo, with --artwork.
    let confidences: [String: Float]?

    init(_ result: PhotoResult, _ labels: [String]) {
        file = result.file
        confidences = result.confidences
        counts = Dictionary(uniqueKeysWithValues: zip(labels, result.counts(of: labels)))
    }
}
