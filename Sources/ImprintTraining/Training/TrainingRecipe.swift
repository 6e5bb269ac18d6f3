internal import ImprintModel

/// The way to train that suits what there is to learn from.
///
/// Where there is artwork, logos are spotted, and learned from photos too if there are any of them; else a base is trained further, or
/// a new network.
public enum TrainingRecipe: String, Sendable, CaseIterable {
    /// The base that comes with Imprint learns on, from whole photos.
    case shippedBase
    /// A new network learns from whole photos.
    case wholePhotos
    /// The head of a trained model learns from whole photos.
    case head
    /// A trained model learns on, from whole photos.
    case fineTuning
    /// A network that spots logos learns from pictures made of their artwork.
    case artworkAlone
    /// A network that spots logos learns from pictures made of their artwork, then from photos of them.
    case artworkAndPhotos

    /// What is done, in a few words.
    public var summary: String {
        switch self {
        case .shippedBase: "the base that comes with Imprint learns on"
        case .wholePhotos: "a new network for whole photos"
        case .head: "a new head for a trained model"
        case .fineTuning: "a trained model learns on"
        case .artworkAlone: "logos spotted, from their artwork alone"
        case .artworkAndPhotos: "logos spotted, from their artwork and photos"
        }
    }

    /// Why, and what would allow another recipe.
    public var reason: String {
        switch self {
        case .shippedBase:
            "there are photos and neither artwork (--artwork) nor a trained model of yours (--base)"
        case .wholePhotos:
            "there are photos, and neither artwork (--artwork) nor a trained model (--base) to begin with"
        case .head: "there is a base, and its head alone learns; with --unfreeze all its layers learn too"
        case .fineTuning: "there is a trained model, and --unfreeze lets its layers learn"
        case .artworkAlone: "there is artwork, and no photo of a logo to train on"
        case .artworkAndPhotos: "there is artwork, and there are photos of logos to train on"
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
