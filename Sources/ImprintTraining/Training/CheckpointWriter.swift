internal import Foundation
internal import ImprintCore
internal import ImprintModel
internal import ImprintNetwork

/// Saves the state of a run at intervals, and reports the result.
///
/// A write error does not end the run, because the model may be saved elsewhere.
final class CheckpointWriter: CheckpointPolicy {
    /// The reason why the last checkpoint could not be written; nil if it was written.
    private(set) var failure: FileError?
    private let store: CheckpointStore?
    private let onEvent: (TrainingEvent) -> Void
    private let network: Network
    private let labels: [String]
    private let settings: [String: String]
    private let images: Checkpoint.Images
    /// The photos that the best parameters of the checkpoint were trained on, if the run has resumed from one.
    var resumedImagesOfBest: Checkpoint.Images?

    /// - Parameter store: The checkpoint folder; nil to save no checkpoints.
    init(
        _ store: CheckpointStore?, onEvent: @escaping (TrainingEvent) -> Void, network: Network, labels: [String],
        settings: [String: String], images: Checkpoint.Images
    ) {
        self.store = store
        self.onEvent = onEvent
        self.network = network
        self.labels = labels
        self.settings = settings
        self.images = images
    }

    /// The path of the checkpoint; nil if it was not written.
    var path: String? { failure == nil ? store?.file.path : nil }

    var isDue: Bool { store?.isDue == true }

    /// Returns the photos that the best parameters were trained on, if these are not the photos of the run.
    func imagesOfBest(_ progress: TrainingProgress) -> Checkpoint.Images? {
        progress.bestPrecedesChange ? resumedImagesOfBest : nil
    }

    func save(_ state: () throws -> TrainingState) {
        guard let store else { return }
        do {
            let state = try state()
            try store.save(
                Checkpoint(
                    network: network, labels: labels, settings: settings, images: images,
                    imagesOfBest: imagesOfBest(state.progress), state: state))
            failure = nil
            onEvent(.checkpoint(store.file, epochs: state.progress.round))
        } catch {
            let found =
                error as? FileError
                ?? .cannotWrite(path: store.file.path, reason: "\(error)".clause, remedy: "Choose another folder.")
            if failure == nil { onEvent(.checkpointFailed(found)) }
            failure = found
        }
    }
}
