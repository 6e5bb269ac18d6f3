import ImprintCore
import Synchronization
import Testing

@Suite struct WorkersTests {
    @Test("Every chunk runs exactly once, by a worker that exists", arguments: [1, 2, 3, 8], [0, 1, 2, 5, 64])
    func everyChunkOnce(workers: Int, chunks: Int) {
        let seen = Mutex([Int](repeating: 0, count: chunks))
        Workers(workers).forEach(chunks) { chunk, worker in
            #expect((0..<workers).contains(worker))
            seen.withLock { $0[chunk] += 1 }
        }
        #expect(seen.withLock { $0 } == [Int](repeating: 1, count: chunks))
    }

    @Test("A map gives every result in its place", arguments: [1, 2, 3], [0, 1, 31, 200])
    func map(workers: Int, count: Int) {
        var progress: [Int] = []
        let squares = Workers(workers).map(count, onProgress: { progress.append($0) }) { $0 * $0 }
        #expect(squares == (0..<count).map { $0 * $0 })
        #expect(progress == progress.sorted())
        #expect(progress.last ?? 0 == count)
    }

    @Test("A map that fails throws the error of the lowest index, and does not go on for long", arguments: [1, 2, 3])
    func failingMap(workers: Int) {
        struct Failure: Error, Equatable { let index: Int }
        let tried = Atomic(0)
        #expect(throws: Failure(index: 5)) {
            try Workers(workers).map(10_000) { index throws(Failure) in
                tried.add(1, ordering: .relaxed)
                if index >= 5 { throw Failure(index: index) }
            }
        }
        #expect(tried.load(ordering: .relaxed) < 200)
    }

    @Test("Chunks cover the whole without overlap", arguments: [1, 3, 4], [0, 1, 7, 1000])
    func chunksCover(chunks: Int, total: Int) {
        let covered = (0..<chunks).flatMap { Array(chunkRange($0, of: chunks, total: total)) }
        #expect(covered == Array(0..<total))
    }
}
