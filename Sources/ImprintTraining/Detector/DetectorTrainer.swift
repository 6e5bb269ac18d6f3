public import Foundation
internal import Imprint
internal import ImprintCore
public import ImprintImages
internal import ImprintModel
public import ImprintSynthesis

/// Trains a detector on artwork, photos with boxes, or both.
///
/// It composites the logos into photos (synthetic training data) and, if there are any, also trains on photos of the logos. If you train
/// only on boxes, the labels may be any kind of object.
///
/// ```swift
/// let boxes = try BoxAnnotations(contentsOf: URL(filePath: "boxes.json"))
/// let trainer = DetectorTrainer(annotations: boxes)
/// for try await case .finished(let result) in trainer.start() {
///     try result.model.write(to: model)
/// }
/// ```
///
/// With artwork, photos of the logo are not necessary:
///
/// ```swift
/// let trainer = DetectorTrainer(
///     artwork: ["Leaf": [try Artwork(contentsOf: leaf)], "Crest": [try Artwork(contentsOf: crest)]],
///     photos: try ImageFolder(at: folder, minimumLabels: 1))
/// ```
///
/// The same data, configuration and seed give a bitwise equal model, for any number of threads, even if the run was interrupted and resumed
/// from a checkpoint.
public struct DetectorTrainer: BlockingTrainer {
    private let artwork: [String: [Artwork]]
    private let photos: (any TrainingSource)?
    private let annotations: BoxAnnotations?
    private let validation: BoxAnnotations?
    private let backgrounds: [URL]?
    private let configuration: DetectorConfiguration
    private let checkpoints: CheckpointOptions?

    /// Creates a trainer.
    ///
    /// The run throws the errors of `TrainingRun`, and before it trains:
    /// - `ImprintError.invalidSetting` if there is neither artwork nor a box, if a label has an empty list of artwork, or if a setting is out of
    ///   range.
    /// - `ImprintError.reservedLabel` if an object of `annotations` has a label for photos without an object, such as "none".
    /// - `ImageError.invalidSource` if the labels or the photos are inconsistent, or if a photo of `photos` has several labels or none.
    /// - `ImageError.similarToLogo` if a label of `photos` differs from a logo only in case, spaces or invisible characters.
    /// - `ImprintError.notOneLabelWithoutLogo` unless exactly one label of `photos` is not the label of a logo.
    /// - `ImprintError.noPhotosWithoutLogo` if no photo without a logo and no annotated photo is left to train on.
    /// - `ImprintError.labelMismatch` if an object of `validation` has a label that training does not know.
    /// - `ImprintError.unsupportedBackbone` if `DetectorConfiguration.base` cannot be a backbone.
    /// - `ImageError` if too few photos can be read.
    /// - Parameters:
    ///   - artwork: The artwork by label; several artworks of one label are variants of one logo. It may be empty if there are annotations.
    ///   - photos: The photos, with one label each: a folder (`ImageFolder`), a list (`LabelList`), photos in memory (`InMemorySource`), or
    ///     another source. Exactly one of its labels has no artwork, and photos with this label show none of the logos; the other labels
    ///     are labels with artwork; see also `ImageFolder.init(at:logos:)`. Nil to train on artwork and drawn backgrounds only.
    ///   - annotations: Photos with the boxes of all objects of all labels, with or without artwork; a photo may show several objects.
    ///   - validation: The annotated photos of the validation set, with labels of the other photos or of artwork. They may be among `photos`
    ///     and `annotations`; the run does not train on them. Nil to hold out a part of the photos, or to use
    ///     `DetectorConfiguration.validationFolder`.
    ///   - backgrounds: Photos without a logo, used as backgrounds of composites, or an empty array for drawn patterns. Annotated photos
    ///     with objects and validation photos are left out. Nil to use the photos without a logo, or drawn patterns if there are no photos.
    ///   - configuration: The hyperparameters.
    ///   - checkpoints: The folder and interval of checkpoints, and whether to resume; nil to save no checkpoints.
    public init(
        artwork: [String: [Artwork]] = [:], photos: (any TrainingSource)? = nil, annotations: BoxAnnotations? = nil,
        validation: BoxAnnotations? = nil, backgrounds: [URL]? = nil,
        configuration: DetectorConfiguration = DetectorConfiguration(),
        checkpoints: CheckpointOptions? = nil
    ) {
        self.annotations = annotations
        self.validation = validation
        self.artwork = artwork
        self.photos = photos
        self.backgrounds = backgrounds
        self.configuration = configuration
        self.checkpoints = checkpoints
    }

    /// Starts training on a background thread.
    /// - Returns: The run's events; see `TrainingRun` for its errors, such as `ImprintError.stoppedTooEarly` before the end of the first phase.
    public func start() -> TrainingRun { TrainingRun(self, shouldStop: { false }) }

    package func train(
        onEvent: @escaping (TrainingEvent) -> Void, shouldStop: @escaping () -> Bool
    ) throws -> TrainingResult {
        let task = try configuration.processes.failTogether {
            try DetectorTask(
                artwork: artwork, photos: photos, annotations: annotations, validation: validation,
                backgrounds: backgrounds, configuration: configuration)
        }
        let store = try CheckpointStore.open(checkpoints, processes: configuration.processes)
        return try TrainingRunner(task, store: store, onEvent: onEvent, shouldStop: shouldStop).run()
    }
}
