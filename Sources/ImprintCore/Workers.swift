internal import Dispatch
internal import Foundation

/// A number of threads that share work in fixed chunks.
///
/// What a chunk holds never depends on the number of threads, and results that must be added are added in the order
/// of the chunks, so that a run gives the same bits for any number of threads.
package struct Workers: Sendable, Hashable {
    /// How many threads take part, the caller's included.
    package let count: Int

    /// Makes `count` workers (at least one).
    package init(_ count: Int) {
        precondition(count >= 1, "at least one worker is needed, not \(count)")
        self.count = count
    }

    /// Runs `body(chunk, worker)` once for every chunk in `0..<chunks` and returns when all are done.
    ///
    /// `worker` (in `0..<count`) names the thread, for scratch memory that a thread keeps to itself. Worker *w* takes
    /// the chunks *w*, *w* + `count`, …; with one worker or one chunk everything stays on the caller's thread.
    @inlinable
    package func parallelForEach(_ chunks: Int, _ body: (_ chunk: Int, _ worker: Int) -> Void) {
        if count == 1 || chunks <= 1 {
            for chunk in 0..<chunks { body(chunk, 0) }
        } else {
            forkJoin(min(count, chunks)) { worker in
                for chunk in stride(from: worker, to: chunks, by: count) { body(chunk, worker) }
            }
        }
    }

    /// The results of `body` for every index in `0..<count`, in order.
    ///
    /// - Parameters:
    ///   - onProgress: Told now and then, on the caller's thread, how many are done.
    ///   - body: Called on any of the threads.
    /// - Throws: The error of the lowest index that fails; what lies far behind it is not tried.
    package func parallelMap<Value, Failure>(
        _ count: Int, onProgress: (_ done: Int) -> Void = { _ in },
        _ body: (_ index: Int) throws(Failure) -> Value
    ) throws(Failure) -> [Value] {
        var values: [Value] = []
        values.reserveCapacity(count)
        // In portions, so that progress is told and errors are seen before the end.
        for start in stride(from: 0, to: count, by: 32 * self.count) {
            let portion = min(32 * self.count, count - start)
            let results = [Result<Value, Failure>](unsafeUninitializedCapacity: portion) { results, initializedCount in
                parallelForEach(portion) { place, _ in
                    let result = Result { () throws(Failure) in try body(start + place) }
                    results.initializeElement(at: place, to: result)
                }
                initializedCount = portion
            }
            for result in results { values.append(try result.get()) }
            onProgress(start + portion)
        }
        return values
    }

    /// Calls `body` for every index in `0..<count` on any of the threads, and `receive` with the results in the order of the indices.
    ///
    /// `receive` gets each result as soon as all results before it are there, one at a time, on any of the threads.
    /// - Throws: What `receive` throws; no further index is begun then.
    package func forEachInOrder<Value>(
        _ count: Int, _ body: (_ index: Int) -> Value, receive: (_ index: Int, _ value: Value) throws -> Void
    ) throws {
        let workers = min(self.count, count)
        guard workers > 1 else {
            for index in 0..<count { try receive(index, body(index)) }
            return
        }
        let results = OrderedResults<Value>(count: count)
        forkJoin(workers) { _ in
            while let index = results.claim() { results.add(body(index), at: index, receive) }
        }
        if let failure = results.failure { throw failure }
    }

    @usableFromInline
    func forkJoin(_ workers: Int, _ body: (_ worker: Int) -> Void) {
        // The closure does not outlive this call, and its chunks write to disjoint memory: that is the contract of
        // `forEach`, which the compiler cannot see.
        withoutActuallyEscaping(body) { body in
            nonisolated(unsafe) let body = body
            DispatchQueue.concurrentPerform(iterations: workers) { body($0) }
        }
    }
}

/// The part of `0..<total` that belongs to `chunk` of `chunks`: contiguous, disjoint, as equal as can be.
@inlinable
public func chunkRange(_ chunk: Int, of chunks: Int, total: Int) -> Range<Int> {
    (total * chunk / chunks)..<(total * (chunk + 1) / chunks)
}

/// Results that threads compute in any order and one of them passes on in order.
private final class OrderedResults<Value>: @unchecked Sendable {
    private let count: Int
    private let lock = NSLock()
    private var claimed = 0
    private var received = 0
    private var waiting: [Int: Value] = [:]
    /// What `receive` threw.
    private(set) var failure: (any Error)?

    init(count: Int) { self.count = count }

    /// The next index; `nil` if there is none, or after a failure.
    func claim() -> Int? {
        lock.withLock {
            guard failure == nil && claimed < count else { return nil }
            defer { claimed += 1 }
            return claimed
        }
    }

    /// Passes on all results for which no earlier one is missing.
    func add(_ value: Value, at index: Int, _ receive: (_ index: Int, _ value: Value) throws -> Void) {
        lock.lock()
        defer { lock.unlock() }
        waiting[index] = value
        do {
            while failure == nil, let next = waiting.removeValue(forKey: received) {
                try receive(received, next)
                received += 1
            }
        } catch { failure = error }
    }
}
