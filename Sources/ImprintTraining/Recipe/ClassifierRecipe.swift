internal import Foundation
internal import ImprintCore
public import ImprintImages
internal import ImprintModel

/// The way to train a classifier from a pretrained base model.
public enum ClassifierRecipe: String, Codable, Sendable, CaseIterable {
    /// Measures the photos with the frozen base model, and chooses between the other two; see `RecipeDecision`.
    case automatic = "auto"
    /// Fits a new head to the features of the frozen base model by logistic regression. Takes seconds.
    case head
    /// Fits the head in the same way, and then fine-tunes all layers on augmented photos. Takes minutes.
    case fineTuning = "fine-tune"
}

/// The recipe of a run, with the measurements that determined it.
///
/// | condition | recipe |
/// |---|---|
/// | each label has only one photo or one group of near-duplicates, so no photo can be held out | head |
/// | fewer than `minimumPhotos` training photos | head |
/// | the head is right on at least `sufficientAccuracy` of the held-out photos | head |
/// | the time limit does not suffice for an epoch of fine-tuning | head |
/// | otherwise | fine-tune |
///
/// Fine-tuning takes `epochs(forPhotos:)` epochs. It mirrors photos at random (the augmentation "flip"), unless the head is clearly less
/// accurate on mirrored photos than on other new photos, as it is for text, arrows and hands.
public struct RecipeDecision: Codable, Hashable, Sendable {
    /// The measurements on the features of the frozen base model.
    public struct Evidence: Codable, Hashable, Sendable {
        /// The number of training photos.
        public var trainingPhotos: Int
        /// The number of photos that the head was evaluated on; it was not fitted to any of them.
        ///
        /// Zero if each label has only one photo or one group of near-duplicates.
        public var heldOutPhotos: Int
        /// The accuracy of the head on these photos, 0…1; for several labels per photo, the micro-averaged F1 score at a threshold of 0.5.
        public var headAccuracy: Double
        /// The accuracy, or micro-averaged F1 score, of the head on mirrored training photos, 0…1.
        public var mirroredAccuracy: Double
        /// The evenness of the evidence for the predicted label over a photo; nil if the head does not read an average of a feature map.
        ///
        /// It is the mean of the evidence over the cells of the last feature map, divided by its standard deviation over the cells. It is low
        /// if only a few cells show the label, as with a small logo in a large scene.
        public var evidenceSpread: Double?

        /// Creates measurements.
        package init(
            trainingPhotos: Int, heldOutPhotos: Int, headAccuracy: Double, mirroredAccuracy: Double,
            evidenceSpread: Double?
        ) {
            self.trainingPhotos = trainingPhotos
            self.heldOutPhotos = heldOutPhotos
            self.headAccuracy = headAccuracy
            self.mirroredAccuracy = mirroredAccuracy
            self.evidenceSpread = evidenceSpread
        }

        /// Whether the labelled objects are small in the photos, and the head often misclassifies them.
        public var showsSmallObjects: Bool {
            guard let evidenceSpread, heldOutPhotos > 0 else { return false }
            return evidenceSpread < RecipeDecision.smallObjectSpread
                && headAccuracy < RecipeDecision.smallObjectAccuracy
        }

        /// Whether mirrored photos look like photos of another label.
        public var dependsOnDirection: Bool {
            heldOutPhotos > 0 && mirroredAccuracy < headAccuracy - RecipeDecision.mirrorTolerance
        }
    }

    /// The minimum number of training photos for fine-tuning; with fewer, it does not help.
    public static let minimumPhotos = 100
    /// The minimum accuracy on held-out photos at which the head suffices without fine-tuning, 0…1.
    public static let sufficientAccuracy = 0.99
    /// The tolerated drop in accuracy on mirrored photos, relative to other new photos.
    static let mirrorTolerance = 0.1
    /// The evidence spread below which objects count as small.
    static let smallObjectSpread = 0.75
    /// The accuracy of the head below which `showsSmallObjects` can be true.
    static let smallObjectAccuracy = 0.9

    /// The recipe that was chosen or requested; not `.automatic`.
    public let recipe: ClassifierRecipe
    /// The reason, as the end of a sentence.
    public let reason: String
    /// The measurements; nil if the recipe was requested, and Imprint did not need to measure the photos.
    public let evidence: Evidence?
    /// The number of epochs.
    public internal(set) var epochs: Int
    /// The data augmentation.
    public let augmentation: Augmentation

    /// Returns the number of epochs of fine-tuning: as many as read about 4,000 photos, but at least 4 and at most 8.
    public static func epochs(forPhotos photos: Int) -> Int { min(max(4000 / max(photos, 1), 4), 8) }
}

extension RecipeDecision {
    /// Chooses the recipe.
    /// - Parameters:
    ///   - recipe: The requested recipe.
    ///   - secondsPerEpoch: The estimated duration of an epoch of fine-tuning.
    ///   - secondsLeft: The time until the time limit; nil without a limit.
    ///   - givenEpochs: The requested number of epochs; nil if the recipe chooses it.
    ///   - givenAugmentation: The requested data augmentation; nil if the recipe chooses it.
    ///   - given: All hyperparameters that the recipe must not choose.
    ///   - isMultiLabel: Whether a photo can have several labels or none.
    package init(
        _ recipe: ClassifierRecipe, _ evidence: Evidence, secondsPerEpoch: Double, secondsLeft: Double?,
        epochs givenEpochs: Int? = nil, augmentation givenAugmentation: Augmentation? = nil,
        given: Set<RecipeHyperparameter> = [], isMultiLabel: Bool = false
    ) {
        let share = Self.percent(evidence.headAccuracy)
        let heldOut = counted(evidence.heldOutPhotos, "held-out photo")
        let accuracy =
            evidence.heldOutPhotos == 0
            ? "each label has only one photo or one group of near-duplicates, so no photo can be held out to measure the head"
            : isMultiLabel
                ? "the micro-F1 of a new head on the frozen base model is \(share) on \(heldOut)"
                : "a new head on the frozen base model is right on \(share) of \(heldOut)"
        var chosen = recipe
        var reason = "as requested; \(accuracy)"
        if recipe == .automatic {
            if evidence.heldOutPhotos == 0 {
                (chosen, reason) = (.head, "because \(accuracy)")
            } else if evidence.trainingPhotos < Self.minimumPhotos {
                (chosen, reason) = (
                    .head, "because there are fewer than \(Self.minimumPhotos) training photos; \(accuracy)"
                )
            } else if evidence.headAccuracy >= Self.sufficientAccuracy {
                (chosen, reason) = (.head, "because \(accuracy)")
            } else if let secondsLeft, secondsLeft < secondsPerEpoch {
                (chosen, reason) = (.head, "because the time limit does not suffice for fine-tuning; \(accuracy)")
            } else {
                (chosen, reason) = (.fineTuning, "because \(accuracy)")
            }
        }
        self.recipe = chosen
        self.evidence = evidence
        guard chosen == .fineTuning else {
            epochs = 1
            augmentation = .none
            let unused = RecipeHyperparameter.unusedByHead.filter(given.contains).map(\.name)
            self.reason =
                reason
                + (unused.isEmpty
                    ? "" : "; logistic regression fits the head and ignores: \(unused.joined(separator: ", "))")
            return
        }
        let most = secondsLeft.map { Int(min(max($0 / max(secondsPerEpoch, 1e-3), 1), 1e6)) } ?? .max
        epochs = givenEpochs ?? min(Self.epochs(forPhotos: evidence.trainingPhotos), most)
        let doesNotMirror = givenAugmentation == nil && evidence.dependsOnDirection
        augmentation =
            givenAugmentation
            ?? Augmentation(doesNotMirror ? [.rotate, .crop, .exposure] : [.flip, .rotate, .crop, .exposure])
        self.reason =
            reason
            + (doesNotMirror
                ? "; photos are not mirrored, because "
                    + (isMultiLabel
                        ? "the micro-F1 of mirrored photos is only \(Self.percent(evidence.mirroredAccuracy))"
                        : "the head is right on only \(Self.percent(evidence.mirroredAccuracy)) of mirrored photos")
                : "")
    }

    private static func percent(_ share: Double) -> String { String(format: "%.1f %%", 100 * share) }
}

extension RecipeDecision: CustomStringConvertible {
    /// The recipe and the reason, such as "fine-tune all layers for 4 epochs, because …".
    public var description: String {
        let work =
            recipe == .fineTuning
            ? "fine-tune all layers for \(counted(epochs, "epoch"))"
            : "train only the head"
        return "\(work), \(reason)"
    }
}
