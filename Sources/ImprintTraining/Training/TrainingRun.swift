/// A training run: the asynchronous sequence of its events, for one reader.
///
/// The run executes on a background thread. It ends with the event `finished`, or with an error:
/// - `ImprintError`: a setting is out of range, a checkpoint does not fit, or training diverged or was stopped before its first epoch ended.
/// - `ImageError`: too few images can be read, or the labels or photos of their source are inconsistent.
/// - `NetworkError`: the network and the images do not fit together.
/// - `FileError`: the checkpoint folder cannot be used.
///
/// `stop()` ends the run after the current step or, while photos are compared or a detector scans them, after the current portion of photos. The
/// last event is `finished`, with the model of the completed epochs. Before the end of the first epoch, there is no model, so the run ends with
/// the error `ImprintError.stoppedTooEarly` instead. The error has the checkpoint to resume from, if there is one. A stopped scan or validation
/// is repeated after a resume. The final validation and calibration, which make the model, are always finished.
///
/// A run also ends with the model of the completed epochs if too few photos are still readable, or if training diverges after an epoch that was
/// validated; see `TrainingResult.Ending`.
///
/// Cancelling the task that reads the events also ends the run after the current step. The run then writes a checkpoint, but sends no
/// further events. The sequence ends when the run has ended, and throws if the checkpoint could not be written. A run without a reader of
/// its events ends in the same way. A run that is still reading images stops after it has read them.
///
/// If the reader lags by more than 1,000 events, the run drops progress events, but never other events.
public struct TrainingRun: AsyncSequence, Sendable {
    public typealias Element = TrainingEvent

    private let run: BackgroundRun<TrainingEvent>

    /// The work of a run: it sends events, from any thread, and returns the result soon after the second closure returns true.
    public typealias Body =
        @Sendable (
            _ onEvent: @escaping @Sendable (TrainingEvent) -> Void, _ shouldStop: @escaping @Sendable () -> Bool
        ) throws -> TrainingResult

    /// Starts a run of your own trainer on a background thread.
    /// - Parameter body: A closure that trains. It sends all events except `finished`, which the run sends with the returned result. If it throws
    ///   an error, the run ends with this error; see `ImprintError.stoppedTooEarly` for a run that is stopped before it has a model.
    public init(_ body: @escaping Body) {
        self.init(shouldStop: { false }) { onEvent, shouldStop in
            let result = try body(onEvent, shouldStop)
            onEvent(.finished(result))
            return result
        }
    }

    init(_ trainer: some BlockingTrainer, shouldStop: @escaping @Sendable () -> Bool) {
        self.init(shouldStop: shouldStop) { onEvent, shouldStop in
            try trainer.train(onEvent: onEvent, shouldStop: shouldStop)
        }
    }

    /// - Parameter body: A closure that also sends the event `finished`.
    private init(shouldStop: @escaping @Sendable () -> Bool, _ body: @escaping Body) {
        run = BackgroundRun(threadName: "imprint training", shouldStop: shouldStop) { onEvent, shouldStop in
            try body(onEvent, shouldStop).checkpointFailure
        }
    }

    /// Ends the run after the current step, or after the current portion of photos.
    ///
    /// Before the end of the first epoch, the run then ends with `ImprintError.stoppedTooEarly`.
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
        case .comparing, .reading, .computingFeatures, .searching, .batch, .scanning, .checkpoint: true
        case .started, .learningRate, .unreadable, .epoch, .checkpointFailed, .finished: false
        }
    }
}
