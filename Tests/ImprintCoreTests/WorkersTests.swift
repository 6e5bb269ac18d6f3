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

    @Test("Chunks cover the whole without overlap", arguments: [1, 3, 4], [0, 1, 7, 1000])
    func chunksCover(chunks: Int, total: Int) {
        let covered = (0..<chunks).flatMap { Array(chunkRange($0, of: chunks, total: total)) }
        #expect(covered == Array(0..<total))
    }
}
