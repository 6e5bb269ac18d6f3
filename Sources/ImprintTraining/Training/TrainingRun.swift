/// A training run: the asynchronous sequence of its events, for one reader.
///
/// The run executes on a background thread. It ends with the event `finished`, or with an error:
/// - `ImprintError`: a setting is out of range, a checkpoint does not fit, or training diverged.
/// - `ImageError`: too few images can be read.
/// - `NetworkError`: the network and the images do not fit together.
/// - `FileError`: the checkpoint folder cannot be used.
///
/// `stop()` ends the run after the current step. The last event is `finished`, with the model of the completed epochs.
///
/// Cancelling the task that reads the events also ends the run after the current step. The run then writes a checkpoint, but sends no
/// further events. The sequence ends when the run has ended, and throws if the checkpoint could not be written. A run without a reader of
/// its events ends in the same way. A run that is still reading images stops after it has read them.
///
/// If the reader lags by more than 1,000 events, the run drops progress events, but never other events.
public struct TrainingRun: AsyncSequence, Sendable {
    public typealias Element = TrainingEvent

    private let run: BackgroundRun<TrainingEvent>

    init(_ trainer: some BlockingTrainer, shouldStop: @escaping @Sendable () -> Bool) {
        run = BackgroundRun(threadName: "imprint training", shouldStop: shouldStop) { onEvent, shouldStop in
            try trainer.train(onEvent: onEvent, shouldStop: shouldStop).checkpointFailure
        }
    }

    /// Ends the run after the current step.
    public func stop() { run.stop() }

    /// Creates the iterator over the events; a run has only one reader.
    public func makeAsyncIterator() -> Iterator { Iterator(events: run.makeAsyncIterator()) }

    /// The iterator over the events.
    public struct Iterator: AsyncIteratorProtocol {
        var events: BackgroundRun<TrainingEvent>.Iterator

        /// Returns the next event, or nil after the last one, or if the task is cancelled and the run has ended.
        /// - Throws: The error that ended the run; see `TrainingRun`.
        public mutating func next() async throws -> TrainingEvent? { try await events.next() }
    }
}

extension TrainingEvent: RunEvent {
    var isProgress: Bool {
        switch self {
        case .comparing, .reading, .computingFeatures, .searching, .batch, .checkpoint: true
        case .started, .learningRate, .unreadable, .epoch, .checkpointFailed, .finished: false
        }
    }
}
