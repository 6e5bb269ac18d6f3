import Synchronization
import Testing

@testable import ImprintNetwork

@Suite struct TeamTests {
    /// Rounds of chunks whose results depend on those of the round before, with something done once in between.
    private final class Chain: TeamTask, @unchecked Sendable {
        static let chunks = 13
        let rounds: Int
        let numbers = UnsafeMutablePointer<Int>.allocate(capacity: chunks)
        var sums: [Int] = []
        let visits = Atomic(0)

        init(rounds: Int) {
            self.rounds = rounds
            numbers.initialize(repeating: 1, count: Self.chunks)
        }

        deinit { numbers.deallocate() }

        func run(_ worker: Worker) {
            for _ in 0..<rounds {
                worker.forEach(Self.chunks) { chunk in
                    visits.add(1, ordering: .relaxed)
                    // Only this chunk's member touches this place.
                    numbers[chunk] += chunk + (sums.last ?? 0) % 7
                }
                worker.alone { sums.append((0..<Self.chunks).reduce(0) { $0 + numbers[$1] }) }
            }
        }
    }

    @Test("Every chunk runs once, what is done alone once, and each sees what came before", arguments: [1, 2, 3, 8])
    func rounds(count: Int) {
        let team = Team(count: count)
        var expected: [Int]?
        for _ in 0..<20 {
            let chain = Chain(rounds: 50)
            team.run(chain)
            #expect(chain.visits.load(ordering: .relaxed) == 50 * Chain.chunks)
            #expect(chain.sums.count == 50)
            let alone = Chain(rounds: 50)
            Team(count: 1).run(alone)
            expected = alone.sums
            #expect(chain.sums == expected)
        }
    }

    @Test("Teams come and go, used or not")
    func lifetimes() {
        weak var last: Team?
        for count in [1, 2, 4, 2, 8] {
            let team = Team(count: count)
            if count != 4 { team.run(Chain(rounds: 1)) }
            last = team
        }
        #expect(last == nil)
    }
}
