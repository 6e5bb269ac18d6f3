internal import Foundation
internal import Imprint
internal import ImprintSynthesis
internal import Synchronization

/// A training run: the asynchronous sequence of its events, for one reader.
///
/// The run works on a background thread. It ends with the event `finished`, or with an error:
/// - `ImprintError`: a setting is out of range, a checkpoint does not fit, or training diverged.
/// - `ImageError`: too few images can be read.
/// - `NetworkError`: the network and the images do not fit together.
/// - `FileError`: the checkpoint folder cannot be used.
///
/// `stop()` ends the run after the current step. The last event is `finished`, with the model of the completed epochs.
///
/// Cancelling the task that reads the events also ends the run after the current step. The run then writes a checkpoint, but sends no further
/// events. The sequence ends when the run has ended, and throws if the checkpoint could not be written. A run whose events have no reader ends
/// in the same way. A run that is still reading images stops after it has read them.
///
/// If the reader lags by more than 1,000 events, progress events are dropped; other events never are.
public struct TrainingRun: AsyncSequence, Sendable {
    public typealias Element = TrainingEvent

    private let events: AsyncThrowingStream<TrainingEvent, any Error>
    private let state = RunState()

    init(_ trainer: some BlockingTrainer, shouldStop: @escaping @Sendable () -> Bool) {
        let (events, continuation) = AsyncThrowingStream<TrainingEvent, any Error>.makeStream()
        self.events = events
        let state = state
        continuation.onTermination = { _ in state.stop() }
        let thread = Thread {
            do {
                let result = try trainer.train(
                    onEvent: { if state.admits(isProgress: $0.isProgress) { continuation.yield($0) } },
                    shouldStop: { state.isStopping || shouldStop() })
                continuation.finish()
                state.end(result.checkpointFailure)
            } catch {
                continuation.finish(throwing: error)
                if case ImprintError.stoppedTooEarly = error { state.end(nil) } else { state.end(error) }
            }
        }
        // The stack size of a main thread, because the thread decodes photos and runs layers.
        thread.stackSize = 8 << 20
        thread.name = "imprint training"
        thread.start()
    }

    /// Ends the run after the current step.
    public func stop() { state.stop() }

    public func makeAsyncIterator() -> Iterator { Iterator(events: events.makeAsyncIterator(), state: state) }

    /// The iterator over the events.
    public struct Iterator: AsyncIteratorProtocol {
        var events: AsyncThrowingStream<TrainingEvent, any Error>.Iterator
        let state: RunState

        /// Returns the next event; nil after the last one, or if the task is cancelled and the run has ended.
        public mutating func next() async throws -> TrainingEvent? {
            if let event = try await events.next() {
                state.recordRead()
                return event
            }
            guard Task.isCancelled else { return nil }
            // A cancelled reader may remove the files next, so it waits for the end; it has not received an error yet.
            if let error = await state.waitForEnd() { throw error }
            return nil
        }
    }
}

/// The state that the run's thread and its reader share.
final class RunState: Sendable {
    private let stopping = Atomic(false)
    /// The number of events that the reader has not read.
    private let unread = Atomic(0)
    private let end = Mutex(End())

    /// The end of the run, and the tasks that wait for it.
    private struct End {
        var hasEnded = false
        var error: (any Error)?
        var waiting: [CheckedContinuation<(any Error)?, Never>] = []
    }

    var isStopping: Bool { stopping.load(ordering: .relaxed) }

    /// Decides whether an event is sent to the reader, and counts it if it is.
    func admits(isProgress: Bool) -> Bool {
        if unread.load(ordering: .relaxed) > 1000 && isProgress { return false }
        unread.add(1, ordering: .relaxed)
        return true
    }

    func recordRead() { unread.subtract(1, ordering: .relaxed) }

    func stop() { stopping.store(true, ordering: .relaxed) }

    func end(_ error: (any Error)?) {
        let readers = end.withLock { end in
            (end.hasEnded, end.error) = (true, error)
            defer { end.waiting = [] }
            return end.waiting
        }
        for reader in readers { reader.resume(returning: error) }
    }

    func waitForEnd() async -> (any Error)? {
        await withCheckedContinuation { continuation in
            let (hasEnded, error) = end.withLock { end in
                if !end.hasEnded { end.waiting.append(continuation) }
                return (end.hasEnded, end.error)
            }
            if hasEnded { continuation.resume(returning: error) }
        }
    }
}

extension TrainingEvent {
    /// Whether the event reports progress, which the next event of its kind supersedes.
    var isProgress: Bool {
        switch self {
        case .comparing, .reading, .computingFeatures, .searching, .batch, .checkpoint: true
        case .started, .learningRate, .unreadable, .epoch, .checkpointFailed, .finished: false
        }
    }
}
