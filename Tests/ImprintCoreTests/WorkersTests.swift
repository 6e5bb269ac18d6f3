import Foundation
import ImprintCore
import Synchronization
import Testing

@Suite struct WorkersTests {
    @Test("Every chunk runs exactly once, with a valid worker index", arguments: [1, 2, 3, 8], [0, 1, 2, 5, 64])
    func everyChunkOnce(workers: Int, chunks: Int) {
        let seen = Mutex([Int](repeating: 0, count: chunks))
        Workers(workers).parallelForEach(chunks) { chunk, worker in
            #expect((0..<workers).contains(worker))
            seen.withLock { $0[chunk] += 1 }
        }
        #expect(seen.withLock { $0 } == [Int](repeating: 1, count: chunks))
    }

    @Test("A map returns the results in order", arguments: [1, 2, 3], [0, 1, 31, 200])
    func map(workers: Int, count: Int) {
        var progress: [Int] = []
        let squares = Workers(workers).parallelMap(count, onProgress: { progress.append($0) }) { $0 * $0 }
        #expect(squares == (0..<count).map { $0 * $0 })
        #expect(progress == progress.sorted())
        #expect(progress.last ?? 0 == count)
    }

    @Test("A map that fails throws the error of the lowest index and stops early", arguments: [1, 2, 3])
    func failingMap(workers: Int) {
        struct Failure: Error, Equatable { let index: Int }
        let attempts = Atomic(0)
        #expect(throws: Failure(index: 5)) {
            try Workers(workers).parallelMap(10_000) { index throws(Failure) in
                attempts.add(1, ordering: .relaxed)
                if index >= 5 { throw Failure(index: index) }
            }
        }
        #expect(attempts.load(ordering: .relaxed) < 200)
    }

    @Test("Results arrive one at a time and in order", arguments: [1, 2, 3], [0, 1, 5, 200])
    func inOrder(workers: Int, count: Int) throws {
        let received = Mutex<[Int]>([])
        var indices = (0..<count).makeIterator()
        try Workers(workers).forEachInOrder(window: 4) { _ in
            indices.next()
        } _: { index in
            if index % 7 == 0 { usleep(500) }
            return index * index
        } receive: { index, value in
            #expect(value == index * index)
            received.withLock { $0.append(index) }
        }
        #expect(received.withLock { $0 } == Array(0..<count))
    }

    @Test("An error of the receiver stops the work", arguments: [1, 2, 3])
    func failingReceiver(workers: Int) {
        struct Failure: Error {}
        let attempts = Atomic(0)
        let received = Atomic(0)
        var indices = (0..<10_000).makeIterator()
        #expect(throws: Failure.self) {
            try Workers(workers).forEachInOrder(window: 4) { _ in
                indices.next()
            } _: { _ in
                attempts.add(1, ordering: .relaxed)
            } receive: { index, _ in
                received.add(1, ordering: .relaxed)
                if index == 5 { throw Failure() }
            }
        }
        #expect(received.load(ordering: .relaxed) == 6)
        #expect(attempts.load(ordering: .relaxed) < 10_000)
    }

    @Test("An error of the source arrives after the results of all earlier items", arguments: [1, 2, 3])
    func failingSource(workers: Int) {
        struct Failure: Error {}
        let received = Mutex<[Int]>([])
        var indices = (0..<20).makeIterator()
        #expect(throws: Failure.self) {
            try Workers(workers).forEachInOrder(window: 4) { _ in
                guard let index = indices.next() else { throw Failure() }
                return index
            } _: { index in
                usleep(UInt32(index % 3) * 300)
            } receive: { index, _ in
                received.withLock { $0.append(index) }
            }
        }
        #expect(received.withLock { $0 } == Array(0..<20))
    }

    @Test("At most a window of items is in flight, and a waiting source does not hold back results", arguments: [2, 3])
    func window(workers: Int) throws {
        let received = Atomic(0)
        var taken = 0
        var largest = 0
        try Workers(workers).forEachInOrder(window: 4) { _ -> Int? in
            largest = max(largest, taken - received.load(ordering: .sequentiallyConsistent))
            guard taken < 40 else { return nil }
            // From item 20 on, wait until the results of all earlier items have arrived.
            let limit = ContinuousClock.now + .seconds(20)
            while taken >= 20, received.load(ordering: .sequentiallyConsistent) < taken, ContinuousClock.now < limit {
                usleep(100)
            }
            if taken >= 20 { #expect(received.load(ordering: .sequentiallyConsistent) == taken) }
            taken += 1
            return taken
        } _: { index in
            // The first item is slow.
            usleep(index == 1 ? 50_000 : 100)
        } receive: { _, _ in
            received.add(1, ordering: .sequentiallyConsistent)
        }
        #expect(largest <= 4)
    }

    @Test("Chunks cover the whole range without overlap", arguments: [1, 3, 4], [0, 1, 7, 1000])
    func chunksCover(chunks: Int, total: Int) {
        let covered = (0..<chunks).flatMap { Array(chunkRange($0, of: chunks, total: total)) }
        #expect(covered == Array(0..<total))
    }
}
