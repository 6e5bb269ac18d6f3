internal import Foundation
internal import Imprint

/// A cross-validation run: the asynchronous sequence of its events, for one reader.
///
/// The run works on a background thread. It ends with the event `finished`, or with an error:
/// - `ImprintError`: a setting is out of range, or training diverged.
/// - `CrossValidationError`: a label has too few groups of photos, or the folder of finished folds cannot be used.
/// - `ImageError`: too few photos can be read.
/// - `NetworkError`: the network and the photos do not fit together.
/// - `FileError`: the folder of finished folds cannot be written.
///
/// `stop()` ends the run after the current training step. The last event is `finished`, with the folds that are complete.
///
/// Cancelling the task that reads the events ends the run in the same way, but the run sends no further events. The sequence ends when the run
/// has ended. A run whose events have no reader ends, too.
///
/// If the reader lags by more than 1,000 events, progress events are dropped; other events never are.
public struct CrossValidationRun: AsyncSequence, Sendable {
    public typealias Element = CrossValidationEvent

    private let events: AsyncThrowingStream<CrossValidationEvent, any Error>
    private let state = RunState()

    init(_ validation: CrossValidation, shouldStop: @escaping @Sendable () -> Bool) {
        let (events, continuation) = AsyncThrowingStream<CrossValidationEvent, any Error>.makeStream()
        self.events = events
        let state = state
        continuation.onTermination = { _ in state.stop() }
        let thread = Thread {
            do {
                _ = try validation.run(
                    onEvent: { if state.admits(isProgress: $0.isProgress) { continuation.yield($0) } },
                    shouldStop: { state.isStopping || shouldStop() })
                continuation.finish()
                state.end(nil)
            } catch {
                continuation.finish(throwing: error)
                state.end(error)
            }
        }
        // The stack size of a main thread, because the thread decodes photos and runs layers.
        thread.stackSize = 8 << 20
        thread.name = "imprint folds"
        thread.start()
    }

    /// Ends the run after the current training step.
    public func stop() { state.stop() }

    public func makeAsyncIterator() -> Iterator { Iterator(events: events.makeAsyncIterator(), state: state) }

    /// The iterator over the events.
    public struct Iterator: AsyncIteratorProtocol {
        var events: AsyncThrowingStream<CrossValidationEvent, any Error>.Iterator
        let state: RunState

        /// Returns the next event; nil after the last one, or if the task is cancelled and the run has ended.
        public mutating func next() async throws -> CrossValidationEvent? {
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
