internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintSynthesis

/// The training of the folds of a cross-validation, of a classifier or of a detector.
struct FoldTraining: Sendable {
    /// The seed of the configuration.
    let seed: UInt64
    let threads: Int
    /// Whether near-duplicates and bursts stay in one fold.
    let keepsGroupsTogether: Bool
    let validationFolder: URL?
    let trainsDetector: Bool
    /// The kind of the models.
    let kind: ModelEvaluation.Kind
    /// The annotated photos, if detectors are evaluated by their boxes.
    let annotations: BoxAnnotations?
    /// Checks the configuration, and returns the settings that the model of a fold depends on, without the seed, by name.
    let settings: @Sendable () throws -> [String: String]
    /// Returns the trainer of a fold, from its training photos, the photos to evaluate on, and the seed.
    let trainer:
        @Sendable (_ training: [TrainingPhoto], _ heldOut: [TrainingPhoto], _ seed: UInt64) -> any BlockingTrainer

    init(_ photos: any TrainingSource, _ configuration: ClassifierConfiguration) {
        seed = configuration.seed
        threads = configuration.threads
        keepsGroupsTogether = configuration.keepsGroupsTogether
        validationFolder = configuration.validationFolder
        trainsDetector = false
        let isMultiLabel = configuration.isMultiLabel || photos.isMultiLabel
        kind = isMultiLabel ? .multiLabel : .singleLabel
        annotations = nil
        settings = {
            var configuration = configuration
            configuration.isMultiLabel = isMultiLabel
            try configuration.check()
            let pretrained = try configuration.pretrainedBase()
            // The recipe is a separate setting.
            if let pretrained { configuration.start = .base(pretrained.base, trainableLayers: .all) }
            let start = try configuration.startingPoint(labels: photos.labels)
            let fingerprint = configuration.fingerprint(digest: start.digest)
            let texts = HyperparameterText.list(configuration.hyperparameters).filter {
                $0.property != "fineTuning" || configuration.usedFineTuning != nil
            }
            var settings = Self.settings(fingerprint, texts, configuration.storagePrecision)
            if let pretrained {
                settings["recipe"] = pretrained.recipe.rawValue
                // The recipe does not set them, so they matter even if they have their default values.
                settings["fixed hyperparameters"] = configuration.givenHyperparameters.map(\.rawValue).sorted()
                    .joined(separator: ", ")
            }
            return settings
        }
        trainer = { training, _, seed in
            var configuration = configuration
            configuration.seed = seed
            // The photos of a fold may have one label each even if others have several.
            configuration.isMultiLabel = isMultiLabel
            return ClassifierTrainer(
                photos: TrainingSubset(photos, items: training), configuration: configuration)
        }
    }

    /// The training of detectors that are evaluated by the labels of photos.
    init(
        _ artwork: [String: [Artwork]], _ photos: any TrainingSource, _ backgrounds: [URL]?,
        _ configuration: DetectorConfiguration
    ) {
        self.init(artwork, photos: photos, annotations: nil, backgrounds, configuration)
    }

    /// The training of detectors that are evaluated by boxes.
    init(
        _ artwork: [String: [Artwork]], _ annotations: BoxAnnotations, _ backgrounds: [URL]?,
        _ configuration: DetectorConfiguration
    ) {
        self.init(artwork, photos: nil, annotations: annotations, backgrounds, configuration)
    }

    private init(
        _ artwork: [String: [Artwork]], photos: (any TrainingSource)?, annotations: BoxAnnotations?,
        _ backgrounds: [URL]?, _ configuration: DetectorConfiguration
    ) {
        seed = configuration.seed
        threads = configuration.threads
        keepsGroupsTogether = configuration.keepsGroupsTogether
        validationFolder = configuration.validationFolder
        trainsDetector = true
        kind = annotations == nil ? .singleLabel : .detection
        self.annotations = annotations
        settings = {
            let task = try DetectorTask(
                artwork: artwork, photos: photos, annotations: annotations, backgrounds: backgrounds,
                configuration: configuration)
            let texts = HyperparameterText.list(configuration.hyperparameters)
            return Self.settings(task.fingerprint, texts, configuration.storagePrecision)
        }
        trainer = { training, evaluated, seed in
            var configuration = configuration
            configuration.seed = seed
            return DetectorTrainer(
                artwork: artwork, photos: photos.map { TrainingSubset($0, items: training) },
                annotations: annotations?.selecting(training),
                backgrounds: Self.backgrounds(backgrounds, without: evaluated), configuration: configuration)
        }
    }

    /// Returns the backgrounds of composites that are not photos of the fold that is evaluated.
    private static func backgrounds(_ backgrounds: [URL]?, without evaluated: [TrainingPhoto]) -> [URL]? {
        let heldOut = Set(evaluated.map { $0.url.resolvingSymlinksInPath() })
        return backgrounds.map { $0.filter { !heldOut.contains($0.resolvingSymlinksInPath()) } }
    }

    /// Evaluates the model of a fold on the photos of the fold; see `ImageClassifier.evaluate(on:threads:onProgress:)`.
    /// - Parameter checkCancellation: Called before each photo, from any thread; throws if the evaluation should end.
    func evaluate(
        _ classifier: ImageClassifier, on photos: TrainingSubset, onProgress: (Int) -> Void,
        checkCancellation: @Sendable () throws -> Void
    ) throws -> ModelEvaluation {
        if let annotations {
            return .detection(
                try classifier.evaluate(
                    on: annotations.selecting(photos.items), threads: threads, onProgress: onProgress,
                    checkCancellation: checkCancellation))
        }
        return kind == .multiLabel
            ? .multiLabel(
                try classifier.evaluateMultiLabel(
                    on: photos, threads: threads, onProgress: onProgress, checkCancellation: checkCancellation))
            : .singleLabel(
                try classifier.evaluate(
                    on: photos, threads: threads, onProgress: onProgress, checkCancellation: checkCancellation))
    }

    /// Adds the hyperparameters that a fingerprint leaves out, because they may change when a run is resumed.
    private static func settings(
        _ fingerprint: [String: String], _ texts: [HyperparameterText], _ storagePrecision: Safetensors.Precision
    ) -> [String: String] {
        var settings = fingerprint
        for text in texts where settings[text.name] == nil { settings[text.name] = text.value }
        settings["precision"] = storagePrecision.rawValue
        settings["seed"] = nil
        return settings
    }
}
