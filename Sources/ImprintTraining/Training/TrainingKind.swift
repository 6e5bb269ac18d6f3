internal import ImprintCore
internal import ImprintModel

/// The kind of training of a run, which depends on its data and its configuration.
public enum TrainingKind: String, Sendable, CaseIterable {
    /// Fine-tunes the base model that comes with Imprint on photos.
    case builtInBase = "shippedBase"
    /// Trains a classifier on photos from scratch.
    case fromScratch = "wholePhotos"
    /// Trains the head of a base model on photos; its other layers are frozen.
    case head
    /// Fine-tunes a base model on photos.
    case fineTuning
    /// Trains a logo detector on composites of its artwork.
    case artwork = "artworkAlone"
    /// Trains a logo detector on composites of its artwork, then also on photos of the logo.
    case artworkAndPhotos
    /// Trains a detector on photos with the boxes of objects, without artwork.
    case boxes

    /// The description of the recipe, such as "Fine-tuning the base model that comes with Imprint".
    public var summary: String {
        switch self {
        case .builtInBase: "Fine-tuning the base model that comes with Imprint"
        case .fromScratch: "Training a new classifier from scratch"
        case .head: "Training a new head on a frozen base model"
        case .fineTuning: "Fine-tuning a base model"
        case .artwork: "Training a logo detector from artwork"
        case .artworkAndPhotos: "Training a logo detector from artwork and photos of it"
        case .boxes: "Training a detector from photos with boxes"
        }
    }

    /// Whether the run trains a logo detector, whose number of phases is fixed.
    package var trainsDetector: Bool {
        switch self {
        case .builtInBase, .fromScratch, .head, .fineTuning: false
        case .artwork, .artworkAndPhotos, .boxes: true
        }
    }

    /// The unit of progress in messages.
    package var unit: String { progressUnit(isDetector: trainsDetector) }
}

extension TrainingKind {
    /// Creates the kind of training of a classifier.
    /// - Parameters:
    ///   - trainableLayers: The trainable layers of the base model; nil without a base model.
    ///   - baseDigest: The digest of the base model.
    init(trainableLayers: FineTuning.TrainableLayers?, baseDigest: String?) {
        self =
            switch trainableLayers {
            case nil: .fromScratch
            case .head: .head
            case .all, .headFirst, .gradual:
                baseDigest.map { $0 == ModelFile.builtInBaseDigest } ?? false ? .builtInBase : .fineTuning
            }
    }
}

extension ModelFile {
    /// The kind of training of the model; nil if it is unknown.
    var trainingKind: TrainingKind? {
        training.flatMap { training in
            switch head {
            case .softmax, .sigmoid:
                // Old files do not record the trainable layers.
                let isUnknown = training.trainableLayers == nil && baseDigest != nil
                return isUnknown ? nil : TrainingKind(trainableLayers: training.trainableLayers, baseDigest: baseDigest)
            case .centerPoints, .anchors: return nil
            case .detector(let detector):
                let photos = detector.logos.reduce(0) { $0 + (training.trainingImages[$1.label] ?? 0) }
                if case .detector(let values) = training.hyperparameters, let phases = values.phases,
                    phases.allSatisfy({ $0.composites == 0 && $0.hardNegatives == 0 })
                {
                    return .boxes
                }
                return photos > 0 ? .artworkAndPhotos : .artwork
            }
        }
    }
}
