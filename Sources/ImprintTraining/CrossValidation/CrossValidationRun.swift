/// A cross-validation run: the asynchronous sequence of its events, for one reader.
///
/// The run executes on a background thread. It ends with the event `finished`, or with an error:
/// - `ImprintError`: a setting is out of range, or training diverged.
/// - `CrossValidationError`: a label has too few groups of photos, or the folder of finished folds cannot be used.
/// - `ImageError`: too few photos can be read, or the labels or photos of their source are inconsistent.
/// - `NetworkError`: the network and the photos do not fit together.
/// - `FileError`: the folder of finished folds cannot be created or locked.
///
/// If a finished fold cannot be written to that folder, the run sends `foldNotSaved`, and continues. If a fold fails after others are finished,
/// the run sends `finished` with these folds before the error.
///
/// `stop()` ends the run after the current training step, or after the current portion of photos that the run compares, scans or evaluates. The
/// last event is `finished`, with the folds that are complete.
///
/// Cancelling the task that reads the events ends the run in the same way, but the run sends no further events. The sequence ends when the
/// run has ended. A run without a reader of its events ends, too.
///
/// If the reader lags by more than 1,000 events, the run drops progress events, but never other events.
public struct CrossValidationRun: AsyncSequence, Sendable {
    public typealias Element = CrossValidationEvent

    private let run: BackgroundRun<CrossValidationEvent>

    init(_ validation: CrossValidation, shouldStop: @escaping @Sendable () -> Bool) {
        run = BackgroundRun(threadName: "imprint folds", shouldStop: shouldStop) { onEvent, shouldStop in
            _ = try validation.run(onEvent: onEvent, shouldStop: shouldStop)
            return nil
        }
    }

    /// Ends the run after the current training step, or after the current portion of photos.
    public func stop() { run.stop() }

    /// Creates the iterator over the events; a run has only one reader.
    public func makeAsyncIterator() -> Iterator { Iterator(events: run.makeAsyncIterator()) }

    /// The iterator over the events.
    public struct Iterator: AsyncIteratorProtocol {
        var events: BackgroundRun<CrossValidationEvent>.Iterator

        /// Returns the next event, or nil after the last one, or if the task is cancelled and the run has ended.
        /// - Throws: The error that ended the run; see `CrossValidationRun`.
        public mutating func next() async throws -> CrossValidationEvent? { try await events.next() }
    }
}
