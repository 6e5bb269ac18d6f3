internal import Foundation

/// A trainer of models: `ClassifierTrainer`, `DetectorTrainer`, or a trainer of your own.
///
/// A trainer of your own creates its runs with `TrainingRun.init(_:)`, for example to preview or test a view of the progress.
public protocol Trainer: Sendable {
    /// Starts training on a background thread.
    /// - Returns: The run's events; see `TrainingRun` for its errors.
    func start() -> TrainingRun
}

/// The trainers of this package, which can also train on the caller's thread.
package protocol BlockingTrainer: Trainer {
    /// Trains on the caller's thread.
    /// - Parameters:
    ///   - onEvent: Receives the events.
    ///   - shouldStop: Called after each step; if it returns true, training ends.
    /// - Throws: See `TrainingRun`.
    func train(onEvent: @escaping (TrainingEvent) -> Void, shouldStop: @escaping () -> Bool) throws -> TrainingResult
}

extension BlockingTrainer {
    /// Trains on the caller's thread, without a way to stop it.
    package func train(onEvent: @escaping (TrainingEvent) -> Void = { _ in }) throws -> TrainingResult {
        try train(onEvent: onEvent, shouldStop: { false })
    }

    /// Starts a run that also ends if `shouldStop`, called after each step on the run's thread, returns true.
    package func start(shouldStop: @escaping @Sendable () -> Bool) -> TrainingRun {
        TrainingRun(self, shouldStop: shouldStop)
    }
}
