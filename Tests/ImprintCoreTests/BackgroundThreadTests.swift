import Foundation
import ImprintCore
import Testing

@Suite struct BackgroundThreadTests {
    @Test("Work is done on another thread, to its end, and may fail; the caller's closure does not outlive the call")
    func work() throws {
        struct Failure: Error {}
        // Often, for a closure that is let go of too late ends the process only where the threads happen to meet.
        let caller = Thread.current
        var sum = 0
        for round in 0..<500 where try onBackgroundThread({ Thread.current != caller }) {
            try onBackgroundThread { sum += round }
        }
        #expect(sum == 500 * 499 / 2)
        #expect(throws: Failure.self) { try onBackgroundThread { throw Failure() } }
    }

    #if os(Linux)
        @Test("The thread has the lowest priority, and the caller keeps its own")
        func priority() throws {
            func nice() -> Int32 { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) }
            let before = nice()
            #expect(try onBackgroundThread(nice) == 19)
            #expect(nice() == before)
        }
    #endif
}
