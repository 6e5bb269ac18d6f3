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
