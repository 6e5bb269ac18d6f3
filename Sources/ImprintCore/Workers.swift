internal import Dispatch

/// The number of threads for parallel loops over independent items, which run in fixed chunks.
///
/// The content of a chunk does not depend on the number of threads, and callers add results in the order of the chunks. So results are bitwise
/// identical for any number of threads.
///
/// Items are photos, patches or files, for example. Each call starts and joins tasks of Dispatch, which takes too
/// long for the operations of a network. These run on the `ThreadPool` of their `ExecutionPlan` (ImprintNetwork), whose threads
/// stay awake between operations; a plan uses `Workers` only for the number of threads.
package struct Workers: Sendable, Hashable {
    /// The number of threads, including the caller's thread.
    package let count: Int
    /// The processes that share the work of a training run; nil for a single process.
    package let processes: ProcessGroup?

    /// Creates the setting for loops on `count` threads (at least one).
    package init(_ count: Int, processes: ProcessGroup? = nil) {
        precondition(count >= 1, "at least one worker is needed, not \(count)")
        self.count = count
        self.processes = processes
    }

    /// Returns the setting for loops on at most `count` threads in each process.
    package func limited(to count: Int) -> Workers { Workers(min(self.count, count), processes: processes) }

    /// Runs `body(chunk, worker)` once for every chunk in `0..<chunks` and returns when all are done.
    ///
    /// `worker` (in `0..<count`) is the index of the thread, for example for scratch memory. Worker *w* runs the chunks *w*, *w* + `count`, …;
    /// with one worker or one chunk, everything runs on the caller's thread.
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

    /// Returns the results of `body` for every index in `0..<count`, in order.
    /// - Parameters:
    ///   - count: The number of indices.
    ///   - onProgress: Called on the caller's thread with the number of indices that are done.
    ///   - body: Called on any of the threads.
    /// - Throws: The error of the lowest index that fails; indices far after it are not tried.
    package func parallelMap<Value, Failure>(
        _ count: Int, onProgress: (_ done: Int) -> Void = { _ in },
        _ body: (_ index: Int) throws(Failure) -> Value
    ) throws(Failure) -> [Value] {
        var values: [Value] = []
        values.reserveCapacity(count)
        // In batches, to report progress and detect errors before the end.
        for start in stride(from: 0, to: count, by: 32 * self.count) {
            let size = min(32 * self.count, count - start)
            let results = [Result<Value, Failure>](unsafeUninitializedCapacity: size) { results, initializedCount in
                parallelForEach(size) { index, _ in
                    let result = Result { () throws(Failure) in try body(start + index) }
                    results.initializeElement(at: index, to: result)
                }
                initializedCount = size
            }
            for result in results { values.append(try result.get()) }
            onProgress(start + size)
        }
        return values
    }

    @usableFromInline
    func forkJoin(_ workers: Int, _ body: (_ worker: Int) -> Void) {
        // The closure does not outlive this call, and its chunks write to disjoint memory. This is the contract of `parallelForEach`, which
        // the compiler cannot verify.
        withoutActuallyEscaping(body) { body in
            nonisolated(unsafe) let body = body
            DispatchQueue.concurrentPerform(iterations: workers) { body($0) }
        }
    }
}

/// Returns the part of `0..<total` in `chunk` of `chunks`; the parts are contiguous, disjoint and of nearly equal size.
@inlinable
package func chunkRange(_ chunk: Int, of chunks: Int, total: Int) -> Range<Int> {
    (total * chunk / chunks)..<(total * (chunk + 1) / chunks)
}
