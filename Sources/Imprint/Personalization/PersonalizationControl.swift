internal import Dispatch
internal import Synchronization

/// A control that pauses, resumes or cancels a personalization from another thread.
///
/// ```swift
/// let control = PersonalizationControl()
/// Thread.detachNewThread {
///     do { try session.teach(photos, control: control) } catch { print(error) }
/// }
/// control.pause()
/// ```
///
/// A paused call blocks its thread. So make the call on a thread of its own, as here, and not in a task: tasks share a few threads.
///
/// Cancellation takes effect after the current photos or the current step, usually within milliseconds. A pause takes effect only while
/// photos are processed: the training steps that follow do not pause.
public final class PersonalizationControl: Sendable {
    private struct State {
        var isPaused = false
        var isCancelled = false
        /// A semaphore for each paused thread.
        var waiting: [DispatchSemaphore] = []
    }

    private let state = Mutex(State())

    /// Creates a control that is not paused.
    public init() {}

    /// Pauses the work until `resume()`; a paused thread does not use the CPU.
    public func pause() { state.withLock { $0.isPaused = true } }

    /// Resumes paused work.
    public func resume() { change { $0.isPaused = false } }

    /// Cancels the work, which then throws `CancellationError` and does not change the session.
    public func cancel() { change { $0.isCancelled = true } }

    /// Changes the state and wakes the paused threads.
    private func change(_ body: (inout State) -> Void) {
        let waiting = state.withLock { state in
            body(&state)
            defer { state.waiting = [] }
            return state.waiting
        }
        for semaphore in waiting { semaphore.signal() }
    }

    /// Checks for cancellation, and waits while paused if `waits` is true.
    /// - Throws: `CancellationError` if the work is cancelled.
    package func check(waits: Bool = true) throws {
        while true {
            let semaphore: DispatchSemaphore? = try state.withLock { state in
                if state.isCancelled { throw CancellationError() }
                guard waits, state.isPaused else { return nil }
                let semaphore = DispatchSemaphore(value: 0)
                state.waiting.append(semaphore)
                return semaphore
            }
            guard let semaphore else { return }
            semaphore.wait()
        }
    }
}
