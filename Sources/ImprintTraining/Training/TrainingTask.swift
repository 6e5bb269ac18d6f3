internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// What a kind of training adds to the common course of a run, which `TrainingRunner` is.
protocol TrainingTask {
    /// The labels of the model.
    var labels: [String] { get }
    /// The network that is trained.
    var network: Network { get }
    /// The hyperparameters that may not change when a run is resumed, by name.
    var fingerprint: [String: String] { get }
    /// The same under the names of version 1, for its checkpoints.
    var versionOneFingerprint: [String: String] { get }
    /// Whether the run depends on the speed of the machine.
    var hasTimeLimit: Bool { get }

    /// Reads the photos.
    /// - Parameters:
    ///   - earlier: The photos of the run that is resumed, if any: they keep their partitions.
    ///   - checkContinues: Throws if the run is to end.
    mutating func readPhotos(
        earlier: Checkpoint.Images?, onEvent: (TrainingEvent) -> Void, checkContinues: () throws -> Void
    ) throws -> RunPhotos

    /// Makes the objective and the loop's options, after the photos are read.
    func makeObjective() throws -> (objective: any TrainingObjective, options: TrainingLoop.Options)

    /// Checks that a checkpoint fits the photos.
    /// - Parameter file: The checkpoint's file.
    func check(_ checkpoint: Checkpoint, file: URL) throws

    /// Prepares a new run, such as by finding a learning rate.
    /// - Returns: Whether to continue.
    func prepare(
        _ loop: TrainingLoop, onEvent: (TrainingEvent) -> Void, shouldStop: () -> Bool
    ) throws -> Bool

    /// The total number of photos or patches of a round.
    func sampleCount(ofRound round: Int) -> Int

    /// The recipe, and the numbers of parameters.
    func describe() -> (recipe: TrainingRecipe, parameterCount: Int, trainedCount: Int, epochs: Int)

    /// Makes the model of the best round.
    /// - Parameter isValidated: Whether the objective has just validated the best round.
    func makeModel(
        _ loop: TrainingLoop, _ best: Parameters, isValidated: Bool
    ) throws -> (model: ModelFile, evaluation: Evaluation?)
}

extension TrainingTask {
    func check(_ checkpoint: Checkpoint, file: URL) throws {}
    func prepare(
        _ loop: TrainingLoop, onEvent: (TrainingEvent) -> Void, shouldStop: () -> Bool
    ) throws -> Bool { true }
}

/// The photos of a run, as the runner needs them.
struct RunPhotos {
    var trainingCount: Int
    var validationCount: Int
    var labelsWithoutValidation: [String]
    var skipped: [SkippedImage]
    var leakage: TrainingStart.Leakage?
    /// What a checkpoint keeps.
    var record: Checkpoint.Images
    /// Those that could be read and no longer can be.
    var unreadable: UnreadablePhotos
}
