internal import Foundation
internal import Imprint
internal import Synchronization

/// An event of a run on a background thread.
protocol RunEvent: Sendable {
    /// Whether the event reports progress, which the next event of its kind supersedes.
    var isProgress: Bool { get }
}

/// Work on a background thread, and the asynchronous sequence of its events, for one reader.
///
/// If the reader lags by more than 1,000 events, the run drops progress events, but never other events.
struct BackgroundRun<Event: RunEvent>: AsyncSequence, Sendable {
    private let events: AsyncThrowingStream<Event, any Error>
    private let state = RunState()

    /// Starts the work.
    /// - Parameters:
    ///   - threadName: The name of the thread.
    ///   - shouldStop: A closure that returns true to end the run. `stop()` and a cancelled or missing reader end it too.
    ///   - work: A closure that does the work: it sends events, from any thread, and ends early if the second closure returns true. It returns
    ///     an error for a cancelled reader, or nil.
    init(
        threadName: String, shouldStop: @escaping @Sendable () -> Bool,
        work:
            @escaping @Sendable (
                _ onEvent: @escaping @Sendable (Event) -> Void, _ shouldStop: @escaping @Sendable () -> Bool
            ) throws -> (any Error)?
    ) {
        let (events, continuation) = AsyncThrowingStream<Event, any Error>.makeStream()
        self.events = events
        let state = state
        continuation.onTermination = { _ in state.stop() }
        let thread = Thread {
            do {
                let error = try work(
                    { if state.admits(isProgress: $0.isProgress) { continuation.yield($0) } },
                    { state.isStopping || shouldStop() })
                continuation.finish()
                state.end(error)
            } catch {
                continuation.finish(throwing: error)
                // The cancelled reader requested the stop, so stopping too early is not an error for it.
                if case ImprintError.stoppedTooEarly = error { state.end(nil) } else { state.end(error) }
            }
        }
        // The stack size of a main thread, because the thread decodes photos and runs layers.
        thread.stackSize = 8 << 20
        thread.name = threadName
        thread.start()
    }

    /// Ends the run after the current step.
    func stop() { state.stop() }

    func makeAsyncIterator() -> Iterator { Iterator(events: events.makeAsyncIterator(), state: state) }

    /// The iterator over the events.
    struct Iterator: AsyncIteratorProtocol {
        fileprivate var events: AsyncThrowingStream<Event, any Error>.Iterator
        fileprivate let state: RunState

        /// Returns the next event, or nil after the last one, or if the task is cancelled and the run has ended.
        mutating func next() async throws -> Event? {
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
private final class RunState: Sendable {
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

    /// Returns whether to send an event to the reader, and counts the event if so.
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
