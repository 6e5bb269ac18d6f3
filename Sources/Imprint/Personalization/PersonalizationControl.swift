internal import Foundation

/// Pauses, resumes or ends the learning of a folder of photos, from any thread.
///
/// Cancelling takes effect after the photo or step that is at work, a few milliseconds later; pausing after the photo: the steps that
/// follow the last one run through.
public final class PersonalizationControl: Sendable {
    private let condition = NSCondition()
    private nonisolated(unsafe) var isPaused = false
    private nonisolated(unsafe) var isCancelled = false

    /// Makes a control of work that goes on.
    public init() {}

    /// Lets the work wait, without using a processor, until `resume()`.
    public func pause() { change { isPaused = true } }

    /// Lets the work go on.
    public func resume() { change { isPaused = false } }

    /// Ends the work: it throws `CancellationError`, and what was known before stays.
    public func cancel() { change { isCancelled = true } }

    private func change(_ body: () -> Void) {
        condition.lock()
        body()
        condition.broadcast()
        condition.unlock()
    }

    /// Waits while paused, if it is a place to wait.
    /// - Throws: `CancellationError` if the work is to end.
    func check(waits: Bool = true) throws {
        condition.lock()
        defer { condition.unlock() }
        while waits && isPaused && !isCancelled { condition.wait() }
        if isCancelled { throw CancellationError() }
    }
}
