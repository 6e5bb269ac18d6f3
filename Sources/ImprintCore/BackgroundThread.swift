internal import Foundation
internal import Synchronization

/// Runs `body` on a thread with the lowest priority and waits for it.
/// - Throws: The error of `body`.
package func onBackgroundThread<Value>(_ body: () throws -> Value) throws -> Value {
    try withoutActuallyEscaping(body) { body in
        // The thread releases the body before it signals the end, and this call returns after the signal. So two threads never access the
        // variables at the same time.
        nonisolated(unsafe) var work: (() throws -> Value)? = body
        nonisolated(unsafe) var result: Result<Value, any Error>?
        let done = DispatchSemaphore(value: 0)
        let thread = Thread {
            #if os(Linux)
                // On Linux, this changes the priority of the calling thread only.
                setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19)
            #endif
            result = work.map { work in Result { try work() } }
            work = nil
            done.signal()
        }
        thread.qualityOfService = .background
        thread.stackSize = 8 << 20
        thread.name = "imprint background"
        thread.start()
        done.wait()
        guard let result else { preconditionFailure("the thread ended without a result") }
        return try result.get()
    }
}

/// Runs `body` on a dedicated thread.
///
/// Use it for work that takes seconds, which would block the shared threads of tasks.
package func onDedicatedThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        let thread = Thread { continuation.resume(with: Result(catching: body)) }
        // The stack size of the main thread, because `body` may decode photos and run layers.
        thread.stackSize = 8 << 20
        thread.start()
    }
}

/// Runs `body` on a dedicated thread, and cancels it if the task is cancelled.
/// - Parameter body: The work. It calls `checkCancellation`, from any thread, before each part, and ends with its error.
/// - Throws: The errors of `body`, and `CancellationError` if the task is cancelled.
package func onCancellableThread<Value: Sendable>(
    _ body:
        @escaping @Sendable (_ checkCancellation: @escaping @Sendable () throws -> Void) throws -> Value
) async throws -> Value {
    try Task.checkCancellation()
    let flag = CancellationFlag()
    return try await withTaskCancellationHandler {
        try await onDedicatedThread { try body { try flag.check() } }
    } onCancel: {
        flag.set()
    }
}

/// Whether work on other threads is cancelled.
package final class CancellationFlag: Sendable {
    private let isCancelled = Atomic(false)

    /// Creates a flag that is not set.
    package init() {}

    /// Cancels the work.
    package func set() { isCancelled.store(true, ordering: .relaxed) }

    /// Checks whether the work may continue.
    /// - Throws: `CancellationError` if it is cancelled.
    package func check() throws {
        if isCancelled.load(ordering: .relaxed) { throw CancellationError() }
    }
}
