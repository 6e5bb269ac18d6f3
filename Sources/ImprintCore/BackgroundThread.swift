internal import Foundation

/// Runs `body` on a thread of the lowest priority and waits for it.
public func onBackgroundThread<Value>(_ body: () throws -> Value) throws -> Value {
    try withoutActuallyEscaping(body) { body in
        // The thread is done with the body before this call returns, and lets go of it before it says so: nothing is used by two threads
        // at a time.
        nonisolated(unsafe) var work: (() throws -> Value)? = body
        nonisolated(unsafe) var result: Result<Value, any Error>?
        let done = DispatchSemaphore(value: 0)
        let thread = Thread {
            #if os(Linux)
                // Of this thread alone: the system takes its number for that of a process.
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

/// Runs `body` on a thread of its own, as work of seconds should: the threads that tasks share are for what is short.
package func onThreadOfItsOwn<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        let thread = Thread { continuation.resume(with: Result(catching: body)) }
        // As the main thread has: photos are decoded and layers run on it.
        thread.stackSize = 8 << 20
        thread.start()
    }
}
