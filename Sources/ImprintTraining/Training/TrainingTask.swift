internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// A training task for `TrainingRunner`, such as training a classifier.
protocol TrainingTask {
    /// The labels of the model.
    var labels: [String] { get }
    /// The network to train.
    var network: Network { get }
    /// The photos to split or to train on; nil without photos.
    var photoSource: (any TrainingSource)? { get }
    /// The hyperparameters that must not change when a run is resumed, by name.
    var fingerprint: [String: String] { get }
    /// The fingerprint with the setting names of format version 1, to resume its checkpoints.
    var versionOneFingerprint: [String: String] { get }
    /// The recipe that was chosen for the run, or nil if the configuration has all hyperparameters.
    var decision: RecipeDecision? { get }
    /// The evaluation of a multi-label model on the validation set, after `makeModel`, or nil for other models.
    var multiLabelEvaluation: MultiLabelEvaluation? { get }
    /// The reason why the model lacks features of training photos, after `makeModel`; nil if it does not.
    var featureFailure: ImprintError? { get }
    /// The processes that train together; nil for a single process.
    var processes: ProcessGroup? { get }
    /// Whether the run has a time limit, so that its result depends on the speed of the machine.
    var hasTimeLimit: Bool { get }

    /// Reads the photos.
    /// - Parameters:
    ///   - earlier: The photos of the run to resume, if any: they stay on their side of the split.
    ///   - checkContinues: Throws if the run should end.
    mutating func readPhotos(
        earlier: Checkpoint.Images?, onEvent: (TrainingEvent) -> Void, checkContinues: () throws -> Void
    ) throws -> RunPhotos

    /// Creates the objective and the loop's options, after the photos are read.
    /// - Parameter onScan: Called on the caller's thread after each portion of photos that the objective scans with a detector, with the number
    ///   of finished photos and of all photos of the scan; throws if the scan should end.
    func makeObjective(
        onScan: @escaping (_ done: Int, _ of: Int) throws -> Void
    ) throws -> (objective: any TrainingObjective, options: TrainingLoop.Options)

    /// Checks that a checkpoint fits the photos.
    /// - Parameter file: The checkpoint's file.
    func check(_ checkpoint: Checkpoint, file: URL) throws

    /// Prepares a new run, such as by finding a learning rate.
    /// - Returns: Whether to continue.
    func prepare(
        _ loop: TrainingLoop, onEvent: (TrainingEvent) -> Void, shouldStop: () -> Bool
    ) throws -> Bool

    /// Returns the number of photos or patches of a round.
    func sampleCount(ofRound round: Int) -> Int

    /// Returns the kind of training, the number of parameters, the number of trainable ones, and the maximum number of rounds.
    func describe() -> (kind: TrainingKind, parameterCount: Int, trainableParameterCount: Int, roundCount: Int)

    /// Creates the model with the best parameters.
    /// - Parameters:
    ///   - isValidated: Whether the objective has just validated them.
    ///   - earlier: The photos that they were trained on, if these are not the photos that the task has read.
    func makeModel(
        _ loop: TrainingLoop, _ best: Parameters, isValidated: Bool, trainedOn earlier: Checkpoint.Images?
    ) throws -> (model: ModelFile, evaluation: Evaluation?)
}

extension TrainingTask {
    var decision: RecipeDecision? { nil }
    var multiLabelEvaluation: MultiLabelEvaluation? { nil }
    var featureFailure: ImprintError? { nil }
    func check(_ checkpoint: Checkpoint, file: URL) throws {}
    func prepare(
        _ loop: TrainingLoop, onEvent: (TrainingEvent) -> Void, shouldStop: () -> Bool
    ) throws -> Bool { true }
}

/// The properties of a run's photos that the runner needs.
struct RunPhotos {
    var trainingCount: Int
    var validationCount: Int
    var labelsWithoutValidation: [String]
    var skipped: [SkippedImage]
    var leakage: TrainingStart.Leakage?
    /// The photos as a checkpoint stores them.
    var checkpointImages: Checkpoint.Images
    /// The photos that become unreadable during the run.
    var unreadable: UnreadablePhotos
}

/// A value that the copies of a task share, and that is set later.
final class SharedValue<Value> {
    var value: Value?
}
