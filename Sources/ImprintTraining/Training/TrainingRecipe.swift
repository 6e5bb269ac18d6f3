internal import ImprintModel

/// The kind of training that a run does, which follows from its data and its settings.
public enum TrainingRecipe: String, Sendable, CaseIterable {
    /// Fine-tunes the base model that comes with Imprint on photos.
    case shippedBase
    /// Trains a new classifier on photos.
    case wholePhotos
    /// Trains the head of a base model on photos; its other layers are frozen.
    case head
    /// Fine-tunes a base model on photos.
    case fineTuning
    /// Trains a logo detector on composites of its artwork.
    case artworkAlone
    /// Trains a logo detector on composites of its artwork, then also on photos of the logo.
    case artworkAndPhotos

    /// What training does, as the start of a sentence: "Fine-tuning the base model that comes with Imprint".
    public var summary: String {
        switch self {
        case .shippedBase: "Fine-tuning the base model that comes with Imprint"
        case .wholePhotos: "Training a new classifier"
        case .head: "Training a new head on a frozen base model"
        case .fineTuning: "Fine-tuning a base model"
        case .artworkAlone: "Training a logo detector from artwork"
        case .artworkAndPhotos: "Training a logo detector from artwork and photos of it"
        }
    }
}

extension TrainingRecipe {
    /// The recipe for whole photos.
    /// - Parameters:
    ///   - trains: What of a base is trained; nil if there is none.
    ///   - base: The digest of the base.
    init(trains: FineTuning.Trains?, base: String?) {
        self =
            switch trains {
            case nil: .wholePhotos
            case .head: .head
            case .all, .headFirst, .gradual:
                base.map { $0 == ModelFile.shippedDigest } ?? false ? .shippedBase : .fineTuning
            }
    }
}

extension ModelFile {
    /// The recipe that trained the model; nil if nothing is known of its training.
    var recipe: TrainingRecipe? {
        training.flatMap { training in
            guard let detector else {
                // What of a base was trained was not written down at first.
                return training.trains == nil && base != nil ? nil : TrainingRecipe(trains: training.trains, base: base)
            }
            let photos = detector.marks.reduce(0) { $0 + (training.trainingImages[$1.label] ?? 0) }
            return photos > 0 ? .artworkAndPhotos : .artworkAlone
        }
    }
}
