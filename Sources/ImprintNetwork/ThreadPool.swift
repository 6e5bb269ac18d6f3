internal import CImprintKernels
internal import ImprintCore
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A task that the threads of a pool run in lockstep.
protocol ThreadPoolTask: AnyObject {
    /// Runs the task on one worker. The pool calls it on all workers, which must reach the same barriers in the same order.
    func run(_ worker: Worker)
}

/// A worker thread of a plan's thread pool.
///
/// All workers run the same code. Code outside `forEachChunk` and `onFirstThread` runs on every worker, so it may only read shared memory,
/// or write memory that no other worker uses.
public struct Worker {
    unowned(unsafe) let threadPool: ThreadPool
    /// The index in the pool; 0 is the thread that calls `ThreadPool.run(_:)`.
    let index: Int

    /// Calls `body(chunk)` once for every chunk in `0..<chunks`, on any worker, and returns when all chunks are done.
    ///
    /// Plans are bitwise reproducible for any number of threads. The division into chunks must therefore not depend on the number of
    /// workers, unless the bits of each value do not depend on the division, and a layer must add the sums of chunks in a fixed order.
    public func forEachChunk(_ chunks: Int, _ body: (_ chunk: Int) -> Void) {
        if threadPool.activeCount == 1 {
            for chunk in 0..<chunks { body(chunk) }
            return
        }
        // Dynamic scheduling: another process may delay one of the threads.
        while case let chunk = threadPool.claimChunk(), chunk < chunks { body(chunk) }
        threadPool.barrier()
    }

    /// Calls `body` on the first worker while the others wait.
    public func onFirstThread(_ body: () -> Void) {
        if index == 0 { body() }
        threadPool.barrier()
    }
}

/// A pool of worker threads that run a plan in lockstep.
///
/// All workers run the same operation at the same time and meet at barriers. There is no task queue between operations, and a run
/// does not allocate memory. Between runs the threads sleep.
///
/// An `ExecutionPlan` has its own pool, unless it shares one with plans that never run at the same time.
///
/// The pool exists besides `Workers` (ImprintCore), which runs independent items such as photos, because an operation can take less time
/// than starting and joining tasks: here, the threads stay in their loop and a barrier takes about 1 µs.
package final class ThreadPool: @unchecked Sendable {
    /// The number of workers, including the calling thread.
    package private(set) var count = 1
    /// The number of workers of the current run; written before the run begins.
    private(set) var activeCount = 1
    /// The part of `Shared.sleepNanoseconds` that adaptations have recorded.
    private var recordedSleep = 0
    private let shared: Shared
    private var threads: [pthread_t] = []

    /// Creates a pool and starts `count` − 1 threads, or fewer if the system limits them.
    ///
    /// Results do not depend on the number of threads.
    package init(count: Int) {
        shared = Shared(expecting: count)
        while self.count < count, start(self.count) { self.count += 1 }
    }

    deinit {
        shared.isClosing.store(true, ordering: .releasing)
        shared.begin(activeCount: count)
        for thread in threads { pthread_join(thread, nil) }
    }

    /// Runs `task` on all workers and returns when all are done; call it from one thread at a time.
    func run(_ task: any ThreadPoolTask) { run(task, on: count) }

    /// Runs `task` on the number of workers that `adaptation` chooses, and records the duration.
    func run(_ task: any ThreadPoolTask, _ adaptation: inout ThreadAdaptation) {
        guard count > 1 else { return run(task, on: 1) }
        let start = ContinuousClock.now
        run(task, on: min(adaptation.threads, count))
        let sleep = shared.sleepNanoseconds.load(ordering: .relaxed)
        // A sleep at the last barrier can end after this line; it counts in the next run.
        adaptation.record(
            seconds: (ContinuousClock.now - start).seconds, sleepSeconds: Double(sleep - recordedSleep) / 1e9)
        recordedSleep = sleep
    }

    /// Runs `task` on the first `activeCount` workers; the others continue to sleep.
    private func run(_ task: any ThreadPoolTask, on activeCount: Int) {
        self.activeCount = activeCount
        guard activeCount > 1 else { return task.run(Worker(threadPool: self, index: 0)) }
        shared.task = (self, task)
        shared.begin(activeCount: activeCount)
        task.run(Worker(threadPool: self, index: 0))
        barrier()
        shared.task = nil
    }

    /// Returns the next unclaimed chunk since the last barrier.
    fileprivate func claimChunk() -> Int { shared.nextChunk.add(1, ordering: .relaxed).oldValue }

    fileprivate func barrier() { if activeCount > 1 { shared.barrier(activeCount) } }

    private func start(_ index: Int) -> Bool {
        let argument = Unmanaged.passRetained(ThreadArgument(shared: shared, index: index)).toOpaque()
        // Block all signals: the threads of the application handle them.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        #if canImport(Darwin)
            var thread: pthread_t?
            let status = pthread_create(&thread, nil, { ThreadPool.workerLoop($0) }, argument)
        #else
            var thread = pthread_t()
            let status = pthread_create(&thread, nil, { ThreadPool.workerLoop($0) }, argument)
        #endif
        pthread_sigmask(SIG_SETMASK, &before, nil)
        guard status == 0 else {
            Unmanaged<ThreadArgument>.fromOpaque(argument).release()
            return false
        }
        threads += [thread].compactMap { $0 }
        return true
    }

    /// Runs on a worker thread until the pool is deallocated.
    private static func workerLoop(_ pointer: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let pointer else { return nil }
        let argument = Unmanaged<ThreadArgument>.fromOpaque(pointer).takeRetainedValue()
        let shared = argument.shared
        var last = 0
        while true {
            let run = shared.nextRun(after: last, for: argument.index)
            last = run.number
            if shared.isClosing.load(ordering: .acquiring) { return nil }
            if let (threadPool, task) = shared.task { task.run(Worker(threadPool: threadPool, index: argument.index)) }
            shared.barrier(run.activeCount)
        }
    }

    private final class ThreadArgument {
        let shared: Shared
        let index: Int

        init(shared: Shared, index: Int) {
            self.shared = shared
            self.index = index
        }
    }
}

/// The state that the threads of a pool share.
private final class Shared: @unchecked Sendable {
    /// The task of the current run; written before the run begins.
    var task: (ThreadPool, any ThreadPoolTask)?
    let isClosing = Atomic(false)
    let nextChunk = Atomic(0)
    /// The time that workers have slept at barriers in all runs.
    let sleepNanoseconds = Atomic(0)
    /// The last run that has begun, as one word, so that no worker can read the number of one run and the workers of another.
    private let runWord = Atomic(Run(number: 0, activeCount: 0).word)
    /// The number of workers that have arrived at the current barrier.
    private let arrived = Atomic(0)
    private let sleepers = Atomic(0)
    /// Runs and barriers have separate budgets: threads wait much longer between runs than at a barrier.
    private let runSpins: SpinBudget
    private let barrierSpins: SpinBudget
    /// The number of barriers that all workers have passed.
    private let passed = Atomic(0)
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init(expecting count: Int) {
        // Spinning does not help if there are more threads than cores.
        let longest = count <= Processors.count ? SpinBudget.longest : 0
        runSpins = SpinBudget(longest: longest)
        barrierSpins = SpinBudget(longest: longest)
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        pthread_cond_destroy(condition)
        mutex.deallocate()
        condition.deallocate()
    }

    struct Run {
        /// The number of the run, from 1.
        let number: Int
        /// The number of workers that take part: those with the lowest indices.
        let activeCount: Int

        var word: Int { number << 16 | activeCount }

        init(number: Int, activeCount: Int) { (self.number, self.activeCount) = (number, activeCount) }

        init(word: Int) { self.init(number: word >> 16, activeCount: word & 0xFFFF) }
    }

    private var run: Run { Run(word: runWord.load(ordering: .sequentiallyConsistent)) }

    /// Begins a run.
    func begin(activeCount: Int) {
        runWord.store(Run(number: run.number + 1, activeCount: activeCount).word, ordering: .sequentiallyConsistent)
        wakeSleepers()
    }

    /// Waits until a run after run `last` has begun in which the worker with index `worker` takes part.
    ///
    /// A worker cannot miss such a run, because the run does not end without it.
    func nextRun(after last: Int, for worker: Int) -> Run {
        var next = run
        wait(runSpins, measured: false) {
            next = run
            return next.number > last && worker < next.activeCount
        }
        return next
    }

    /// Waits until `count` workers have called this method.
    func barrier(_ count: Int) {
        let before = passed.load(ordering: .relaxed)
        if arrived.add(1, ordering: .acquiringAndReleasing).newValue == count {
            arrived.store(0, ordering: .relaxed)
            nextChunk.store(0, ordering: .relaxed)
            passed.store(before + 1, ordering: .sequentiallyConsistent)
            wakeSleepers()
        } else {
            wait(barrierSpins, measured: true) { passed.load(ordering: .sequentiallyConsistent) != before }
        }
    }

    /// Waits until `isOver` returns true.
    ///
    /// The worker whose store makes it true must call `wakeSleepers` afterwards. This method spins before it sleeps, because waking a thread
    /// takes longer than most waits.
    /// - Parameter measured: Whether the time of a sleep counts in `sleepNanoseconds`.
    private func wait(_ spins: borrowing SpinBudget, measured: Bool, _ isOver: () -> Bool) {
        if spins.spin(until: isOver) { return }
        let start = measured ? ContinuousClock.now : nil
        defer {
            if let start {
                sleepNanoseconds.add(Int((ContinuousClock.now - start).seconds * 1e9), ordering: .relaxed)
            }
        }
        pthread_mutex_lock(mutex)
        sleepers.add(1, ordering: .sequentiallyConsistent)
        while !isOver() { pthread_cond_wait(condition, mutex) }
        sleepers.subtract(1, ordering: .sequentiallyConsistent)
        pthread_mutex_unlock(mutex)
    }

    /// Wakes sleeping threads.
    ///
    /// Either a waiting thread sees the store before this call, or this call sees that the thread sleeps.
    private func wakeSleepers() {
        guard sleepers.load(ordering: .sequentiallyConsistent) > 0 else { return }
        pthread_mutex_lock(mutex)
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }
}

/// The adaptive number of checks that a waiting thread makes before it sleeps.
///
/// If other processes use the cores, spinning takes CPU time from the threads that the waiting thread depends on. Therefore a spin
/// that fails halves the budget, and a spin that succeeds doubles it. Every 32nd failure allows one spin of maximum length, to
/// probe whether spinning succeeds again.
struct SpinBudget: ~Copyable, Sendable {
    /// The maximum number of checks, which take about 100 µs.
    static let longest = 4000
    private static let failuresPerProbe = 32
    private let longest: Int
    private let budget: Atomic<Int>
    private let failures = Atomic(0)

    init(longest: Int) {
        self.longest = longest
        budget = Atomic(longest)
    }

    /// The number of checks of the next wait.
    var next: Int {
        let isProbe = failures.load(ordering: .relaxed) % Self.failuresPerProbe == Self.failuresPerProbe - 1
        return isProbe ? longest : budget.load(ordering: .relaxed)
    }

    /// Checks until `isOver` returns true, at most `next` times, and adapts the budget.
    /// - Returns: Whether it returned true.
    func spin(until isOver: () -> Bool) -> Bool {
        for _ in 0..<next {
            if isOver() {
                recordSuccess()
                return true
            }
            imprint_pause()
        }
        recordFailure()
        return false
    }

    /// Records that the wait ended during the spin.
    ///
    /// Several threads may call it at the same time; a lost update is harmless.
    func recordSuccess() {
        let current = budget.load(ordering: .relaxed)
        if current < longest { budget.store(min(max(2 * current, 64), longest), ordering: .relaxed) }
        if failures.load(ordering: .relaxed) > 0 { failures.store(0, ordering: .relaxed) }
    }

    /// Records that the spin was too short.
    func recordFailure() {
        failures.add(1, ordering: .relaxed)
        budget.store(budget.load(ordering: .relaxed) / 2, ordering: .relaxed)
    }
}
