internal import Foundation
internal import Imprint
internal import ImprintSynthesis
internal import Synchronization

/// A run of training that has begun: the sequence of its events, for one reader.
///
/// The run works on a thread of its own. It ends with the event `finished`, or with an error: `ImprintError` for settings out of
/// range, a checkpoint that does not fit or a loss that is no longer a number, `ImageError` where too few images can be read,
/// `NetworkError` where network and images do not fit together, `FileError` where the folder for checkpoints cannot be used.
///
/// `stop()` ends it in order: events go on to `finished`, with the model of the whole epochs that are done. Cancelling the task
/// that reads the events ends it after the step that it is at, with a checkpoint and without further events; the loop then
/// ends when the run has, and throws where no checkpoint could be written. While images are compared and read, a run ends after that. So does a run whose events nobody can read any more.
///
/// A reader that is more than a thousand events behind misses some of what tells progress within an epoch, and nothing else.
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
                    onEvent: { if state.admits($0) { continuation.yield($0) } },
                    shouldStop: { state.isStopping || shouldStop() })
                continuation.finish()
                state.end(result.checkpointFailure)
            } catch {
                continuation.finish(throwing: error)
                if case ImprintError.stoppedTooEarly = error { state.end(nil) } else { state.end(error) }
            }
        }
        // As the main thread has: photos are decoded and layers run on it.
        thread.stackSize = 8 << 20
        thread.name = "imprint training"
        thread.start()
    }

    /// Asks the run to end after the step that it is at.
    public func stop() { state.stop() }

    public func makeAsyncIterator() -> Iterator { Iterator(events: events.makeAsyncIterator(), state: state) }

    /// Gives one event after the other.
    public struct Iterator: AsyncIteratorProtocol {
        var events: AsyncThrowingStream<TrainingEvent, any Error>.Iterator
        fileprivate let state: RunState

        /// The next event; `nil` after the last, or where the task is cancelled and the run has come to its end.
        public mutating func next() async throws -> TrainingEvent? {
            if let event = try await events.next() {
                state.noteRead()
                return event
            }
            guard Task.isCancelled else { return nil }
            // A reader that was cancelled may remove the files next; it has not been told of an error yet.
            if let error = await state.waitForEnd() { throw error }
            return nil
        }
    }
}

/// What the run's thread and its readers tell each other.
private final class RunState: Sendable {
    private let stopping = Atomic(false)
    /// How many events wait for the reader.
    private let unread = Atomic(0)
    private let end = Mutex(End())

    /// Who waits for the end, or what it came with.
    private struct End {
        var hasCome = false
        var error: (any Error)?
        var waiting: [CheckedContinuation<(any Error)?, Never>] = []
    }

    var isStopping: Bool { stopping.load(ordering: .relaxed) }

    /// Whether an event is passed on; counts those that are.
    func admits(_ event: TrainingEvent) -> Bool {
        if unread.load(ordering: .relaxed) > 1000 && event.isProgress { return false }
        unread.add(1, ordering: .relaxed)
        return true
    }

    func noteRead() { unread.subtract(1, ordering: .relaxed) }

    func stop() { stopping.store(true, ordering: .relaxed) }

    func end(_ error: (any Error)?) {
        let readers = end.withLock { end in
            (end.hasCome, end.error) = (true, error)
            defer { end.waiting = [] }
            return end.waiting
        }
        for reader in readers { reader.resume(returning: error) }
    }

    func waitForEnd() async -> (any Error)? {
        await withCheckedContinuation { continuation in
            let (hasCome, error) = end.withLock { end in
                if !end.hasCome { end.waiting.append(continuation) }
                return (end.hasCome, end.error)
            }
            if hasCome { continuation.resume(returning: error) }
        }
    }
}

extension TrainingEvent {
    /// Whether the next event of its kind makes this one dispensable.
    fileprivate var isProgress: Bool {
        switch self {
        case .comparing, .reading, .computingFeatures, .searching, .batch, .checkpoint: true
        case .started, .learningRate, .lost, .epoch, .checkpointFailed, .finished: false
        }
    }
}
