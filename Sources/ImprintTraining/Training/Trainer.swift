internal import Foundation
public import ImprintImages

/// Trains a classifier from photos, and from artwork where there is some.
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
/// The same data, configuration and seed give the same bits, whatever the number of threads, and however often the run was
/// ended and went on from a checkpoint.
public struct Trainer: Sendable {
    private let data: TrainingData
    private let configuration: TrainingConfiguration
    private let checkpoints: CheckpointOptions?

    /// Makes a trainer.
    /// - Parameters:
    ///   - data: What to learn from.
    ///   - configuration: How to train.
    ///   - checkpoints: Where the run is saved, and whether it goes on from there; not at all if nil.
    public init(
        data: TrainingData, configuration: TrainingConfiguration = TrainingConfiguration(),
        checkpoints: CheckpointOptions? = nil
    ) {
        self.data = data
        self.configuration = configuration
        self.checkpoints = checkpoints
    }

    /// Makes a trainer for the photos in `folder` alone: `init(data: .photos(folder), …)`.
    public init(
        folder: ImageFolder, configuration: TrainingConfiguration = TrainingConfiguration(),
        checkpoints: CheckpointOptions? = nil
    ) {
        self.init(data: .photos(folder), configuration: configuration, checkpoints: checkpoints)
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
    ///   - shouldStop: Asked after every step; if it says yes, training ends there.
    /// - Throws: See `TrainingRun`.
    package func train(
        onEvent: @escaping (TrainingEvent) -> Void = { _ in }, shouldStop: @escaping () -> Bool = { false }
    ) throws -> TrainingResult {
        guard data.artwork.isEmpty else {
            return try DetectorJob(
                data: data, configuration: configuration, checkpoints: checkpoints, onEvent: onEvent,
                shouldStop: shouldStop
            ).run()
        }
        return try TrainingJob(
            folder: data.photos, configuration: configuration, checkpoints: checkpoints, onEvent: onEvent,
            shouldStop: shouldStop
        ).run()
    }
}
