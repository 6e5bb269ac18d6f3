import Foundation
import ImprintCore
import Synchronization
import Testing

@testable import ImprintNetwork

@Suite struct ThreadPoolTests {
    /// Rounds of chunks whose results depend on the previous round, with a serial step after each round.
    private final class Chain: ThreadPoolTask, @unchecked Sendable {
        static let chunks = 13
        let rounds: Int
        let values = UnsafeMutablePointer<Int>.allocate(capacity: chunks)
        var sums: [Int] = []
        let visits = Atomic(0)

        init(rounds: Int) {
            self.rounds = rounds
            values.initialize(repeating: 1, count: Self.chunks)
        }

        deinit { values.deallocate() }

        func run(_ worker: Worker) {
            for _ in 0..<rounds {
                worker.forEachChunk(Self.chunks) { chunk in
                    visits.add(1, ordering: .relaxed)
                    // Only the worker of this chunk accesses this element.
                    values[chunk] += chunk + (sums.last ?? 0) % 7
                }
                worker.onFirstThread { sums.append((0..<Self.chunks).reduce(0) { $0 + values[$1] }) }
            }
        }
    }

    @Test("Every chunk and every serial step runs once and reads the previous results", arguments: [1, 2, 3, 8])
    func rounds(count: Int) {
        let threadPool = ThreadPool(count: count)
        var expected: [Int]?
        for _ in 0..<20 {
            let chain = Chain(rounds: 50)
            threadPool.run(chain)
            #expect(chain.visits.load(ordering: .relaxed) == 50 * Chain.chunks)
            #expect(chain.sums.count == 50)
            let serial = Chain(rounds: 50)
            ThreadPool(count: 1).run(serial)
            expected = serial.sums
            #expect(chain.sums == expected)
        }
    }

    @Test("Thread pools are released after use and without use")
    func lifetimes() {
        weak var last: ThreadPool?
        for count in [1, 2, 4, 2, 8] {
            let threadPool = ThreadPool(count: count)
            if count != 4 { threadPool.run(Chain(rounds: 1)) }
            last = threadPool
        }
        #expect(last == nil)
    }

    @Test("A failed spin halves the next one, and every 32nd failure allows a full spin")
    func spinBudget() {
        let spins = SpinBudget(longest: 4000)
        var lengths: [Int] = []
        for _ in 0..<64 {
            lengths.append(spins.next)
            spins.recordFailure()
        }
        #expect(lengths.prefix(5) == [4000, 2000, 1000, 500, 250])
        #expect(lengths[31] == 4000 && lengths[63] == 4000)
        #expect(lengths.reduce(0, +) < 5 * 4000)
        for _ in 0..<10 { spins.recordSuccess() }
        #expect(spins.next == 4000)
        #expect(SpinBudget(longest: 0).next == 0)
    }

    @Test("Threads that always wait long check rarely") func longWaits() {
        let spins = SpinBudget(longest: 4000)
        var checks = 0
        for _ in 0..<100 {
            let isOver = spins.spin {
                checks += 1
                return false
            }
            #expect(!isOver)
        }
        // The first waits check 4000, 2000, 1000 … 1 times, and every 32nd wait 4000 times.
        #expect(checks == 7994 + 3 * 4000)
    }
}
