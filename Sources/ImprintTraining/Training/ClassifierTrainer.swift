internal import Foundation
internal import Imprint
internal import ImprintCore
public import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// Trains a classifier of whole photos.
///
/// ```swift
/// var configuration = ClassifierConfiguration()
/// configuration.augmentation = Augmentation([.flip, .rotate, .blur])
/// let trainer = ClassifierTrainer(photos: try ImageFolder(at: photos), configuration: configuration)
/// for try await event in trainer.start() {
///     switch event {
///     case .epoch(let metrics, _): print(metrics.epoch, metrics.loss)
///     case .finished(let result): try result.model.write(to: URL(filePath: "model.imprint"))
///     default: break
///     }
/// }
/// ```
///
/// The same photos, configuration and seed give a bitwise equal model, for any number of threads, even if the run was interrupted and
/// resumed from a checkpoint.
public struct ClassifierTrainer: BlockingTrainer {
    private let photos: any TrainingSource
    private let configuration: ClassifierConfiguration
    private let checkpoints: CheckpointOptions?

    /// Creates a trainer.
    /// - Parameters:
    ///   - photos: The photos: a folder (`ImageFolder`), a list (`LabelList`), photos in memory (`InMemorySource`), or another source.
    ///   - configuration: The hyperparameters and the base model.
    ///   - checkpoints: The folder and interval of checkpoints, and whether to resume; nil to save no checkpoints.
    public init(
        photos: some TrainingSource, configuration: ClassifierConfiguration = ClassifierConfiguration(),
        checkpoints: CheckpointOptions? = nil
    ) {
        self.photos = photos
        self.configuration = configuration
        self.checkpoints = checkpoints
    }

    /// Starts training on a background thread.
    /// - Returns: The run's events; see `TrainingRun` for its errors, such as `ImprintError.stoppedTooEarly`.
    public func start() -> TrainingRun { TrainingRun(self, shouldStop: { false }) }

    package func train(
        onEvent: @escaping (TrainingEvent) -> Void, shouldStop: @escaping () -> Bool
    ) throws -> TrainingResult {
        let processes = configuration.processes
        try processes.failTogether {
            try photos.checkLabelsAndIdentifiers()
            guard !photos.items.isEmpty else {
                throw ImageError.invalidSource(name: photos.name, found: "no photos", expected: "at least one photo")
            }
            try configuration.check()
        }
        // Before a recipe measures the photos, which may take minutes.
        let store = try CheckpointStore.open(checkpoints, processes: processes)
        let recipe = try ChosenRecipe(photos, configuration, store, onEvent: onEvent, shouldStop: shouldStop)
        let task = try processes.failTogether {
            try ClassifierTask(photos: photos, configuration: recipe?.configuration ?? configuration, recipe: recipe)
        }
        return try TrainingRunner(task, store: store, onEvent: onEvent, shouldStop: shouldStop).run()
    }
}
