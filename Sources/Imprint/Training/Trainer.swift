internal import Foundation
public import ImprintFormats
public import ImprintImages

/// Trains a classifier from a folder of images, one sub-folder per label.
///
/// ```swift
/// var configuration = TrainingConfiguration()
/// configuration.augmentation = try Augmentation(named: "flip,rotate,blur")
/// let trainer = Trainer(folder: try ImageFolder(at: photos), configuration: configuration)
/// for try await event in trainer.start() {
///     switch event {
///     case .epoch(let metrics, _): print(metrics.epoch, metrics.loss)
///     case .finished(let result): try result.weights.write(to: URL(filePath: "logo.imprint"))
///     default: break
///     }
/// }
/// ```
///
/// The same folder, configuration and seed give the same bits, whatever the number of threads, and however often the run was
/// ended and went on from a checkpoint.
public struct Trainer: Sendable {
    private let folder: ImageFolder
    private let configuration: TrainingConfiguration
    private let checkpoints: CheckpointOptions?
    private let artwork: CompositedArtwork?

    /// Makes a trainer for the images in `folder`.
    /// - Parameters:
    ///   - folder: The images.
    ///   - configuration: How to train.
    ///   - artwork: A logo to spot: then the network learns from pictures that are made of its artwork too, and also says where it is.
    ///     The folder may lack photos of it.
    ///   - checkpoints: Where the run is saved, and whether it goes on from there; not at all where `nil`.
    public init(
        folder: ImageFolder, configuration: TrainingConfiguration = TrainingConfiguration(),
        artwork: CompositedArtwork? = nil, checkpoints: CheckpointOptions? = nil
    ) {
        self.folder = folder
        self.configuration = configuration
        self.checkpoints = checkpoints
        self.artwork = artwork
    }

    /// Starts training on a thread of its own.
    /// - Returns: The run's events.
    public func start() -> TrainingRun { TrainingRun(self, shouldStop: { false }) }

    /// Starts a run that also ends where `shouldStop`, asked after every step on the run's thread, says yes.
    package func start(shouldStop: @escaping @Sendable () -> Bool) -> TrainingRun {
        TrainingRun(self, shouldStop: shouldStop)
    }

    /// Trains on the caller's thread, for as long as it takes.
    /// - Parameters:
    ///   - onEvent: Told what happens, as it happens.
    ///   - shouldStop: Asked after every step; where it says yes, training ends there.
    /// - Throws: See `TrainingRun`.
    package func train(
        onEvent: @escaping (TrainingEvent) -> Void = { _ in }, shouldStop: @escaping () -> Bool = { false }
    ) throws -> TrainingResult {
        if let artwork {
            return try SpotJob(
                folder: folder, configuration: configuration, artwork: artwork, checkpoints: checkpoints,
                onEvent: onEvent,
                shouldStop: shouldStop
            ).run()
        }
        return try TrainingJob(
            folder: folder, configuration: configuration, checkpoints: checkpoints, onEvent: onEvent,
            shouldStop: shouldStop
        ).run()
    }
}
