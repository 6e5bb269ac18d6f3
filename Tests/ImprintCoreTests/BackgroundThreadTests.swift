import Foundation
import ImprintCore
import Testing

@Suite struct BackgroundThreadTests {
    @Test("The closure runs on another thread, may throw, and is released before the call returns")
    func closure() throws {
        struct Failure: Error {}
        // Repeat often, because a closure that is released too late crashes the process only by a race.
        let caller = Thread.current
        var sum = 0
        for round in 0..<500 where try onBackgroundThread({ Thread.current != caller }) {
            try onBackgroundThread { sum += round }
        }
        #expect(sum == 500 * 499 / 2)
        #expect(throws: Failure.self) { try onBackgroundThread { throw Failure() } }
    }

    @Test("Cancelling the task ends the work at its next check") func cancellation() async {
        let (started, continuation) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            try await onCancellableThread { checkCancellation throws -> Void in
                continuation.yield()
                while true { try checkCancellation() }
            }
        }
        for await _ in started { break }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test("Work that is not cancelled returns its result or throws its error") func notCancelled() async throws {
        struct Failure: Error {}
        let value = try await onCancellableThread { checkCancellation throws -> Int in
            try checkCancellation()
            return 5
        }
        #expect(value == 5)
        await #expect(throws: Failure.self) {
            try await onCancellableThread { _ throws -> Void in throw Failure() }
        }
    }

    #if os(Linux)
        @Test("The thread has the lowest priority, and the priority of the caller does not change")
        func priority() throws {
            func nice() -> Int32 { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) }
            let before = nice()
            #expect(try onBackgroundThread(nice) == 19)
            #expect(nice() == before)
        }
    #endif
}
