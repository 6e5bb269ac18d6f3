internal import Foundation

/// A lock for the calls that change a session, so that they run one after another.
///
/// A progress closure runs while its call holds the lock. If the closure tries to change the session too, it gets an error instead of waiting for
/// its own call.
final class TrainingLock: @unchecked Sendable {
    /// Recursive, so that the thread that holds the lock reaches the check instead of waiting.
    private let lock = NSRecursiveLock()
    private var isHeld = false

    /// Waits for the calls of other threads, then calls `body`.
    /// - Throws: `ImprintError.sessionIsTraining` if this thread already holds the lock, and the errors of `body`.
    func withLock<Value>(_ body: () throws -> Value) throws -> Value {
        lock.lock()
        defer { lock.unlock() }
        guard !isHeld else { throw ImprintError.sessionIsTraining }
        isHeld = true
        defer { isHeld = false }
        return try body()
    }

    /// Throws if this thread holds the lock.
    ///
    /// A call that continues on another thread checks this first: the other thread would wait forever for the lock of a caller that waits for it.
    func checkIsNotHeldByThisThread() throws(ImprintError) {
        // It fails only if another thread holds the lock.
        guard lock.try() else { return }
        defer { lock.unlock() }
        if isHeld { throw .sessionIsTraining }
    }
}
