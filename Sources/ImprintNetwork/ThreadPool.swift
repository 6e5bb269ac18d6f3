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

/// Work that the threads of a pool do in lockstep.
protocol ThreadPoolTask: AnyObject {
    /// Runs on every thread of the pool; all threads must reach the same barriers in the same order.
    func run(_ worker: Worker)
}

/// One thread of a plan's pool, as a layer sees it.
///
/// All threads execute the same code. Code outside `forEachClaimed` and `onFirstThread` runs on every one of them, so it may only read, or
/// write memory that belongs to its thread.
public struct Worker {
    unowned(unsafe) let threadPool: ThreadPool
    /// 0 for the thread that called the team.
    let index: Int

    /// Runs `body(chunk)` for every chunk on one of the members; returns when all are done.
    ///
    /// What a chunk holds must not depend on the number of members, and results that are added must be added in the order of
    /// the chunks, so that a plan gives the same bits for any number of threads.
    public func forEachClaimed(_ chunks: Int, _ body: (_ chunk: Int) -> Void) {
        if threadPool.count == 1 {
            for chunk in 0..<chunks { body(chunk) }
            return
        }
        // Who comes first takes the next chunk: another program may hold up one of the threads.
        while case let chunk = threadPool.claim(), chunk < chunks { body(chunk) }
        threadPool.barrier()
    }

    /// Runs `body` on one member, while the others wait.
    public func onFirstThread(_ body: () -> Void) {
        if index == 0 { body() }
        threadPool.barrier()
    }
}

/// The threads that walk through a plan side by side.
///
/// They take the same steps at the same time and meet at barriers, so nothing is handed from thread to thread between
/// two layers, and nothing is allocated. Between runs the threads sleep.
final class ThreadPool: @unchecked Sendable {
    /// How many threads take part, the caller's included.
    private(set) var count = 1
    private let shared: Shared
    private var threads: [pthread_t] = []

    /// Starts `count` − 1 threads, or as many as the system grants: results do not depend on their number.
    init(count: Int) {
        shared = Shared(expecting: count)
        while self.count < count, start(self.count) { self.count += 1 }
        shared.count = self.count
    }

    deinit {
        shared.isClosing.store(true, ordering: .releasing)
        shared.begin()
        for thread in threads { pthread_join(thread, nil) }
    }

    /// Runs `task` on all members and returns when all are done; to be called by one thread at a time.
    func run(_ task: any ThreadPoolTask) {
        guard count > 1 else { return task.run(Worker(threadPool: self, index: 0)) }
        shared.task = (self, task)
        shared.begin()
        task.run(Worker(threadPool: self, index: 0))
        barrier()
        shared.task = nil
    }

    /// The next number that no member has been given since the last barrier, from 0 on.
    fileprivate func claim() -> Int { shared.claimed.add(1, ordering: .relaxed).oldValue }

    fileprivate func barrier() { if count > 1 { shared.barrier() } }

    private func start(_ index: Int) -> Bool {
        let member = Unmanaged.passRetained(Member(shared: shared, index: index)).toOpaque()
        // Signals are for the program's own threads: one that ignores them would lose them.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        #if canImport(Darwin)
            var thread: pthread_t?
            let status = pthread_create(&thread, nil, { ThreadPool.live($0) }, member)
        #else
            var thread = pthread_t()
            let status = pthread_create(&thread, nil, { ThreadPool.live($0) }, member)
        #endif
        pthread_sigmask(SIG_SETMASK, &before, nil)
        guard status == 0 else {
            Unmanaged<Member>.fromOpaque(member).release()
            return false
        }
        threads += [thread].compactMap { $0 }
        return true
    }

    private static func live(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let argument else { return nil }
        let member = Unmanaged<Member>.fromOpaque(argument).takeRetainedValue()
        let shared = member.shared
        var round = 0
        while true {
            round += 1
            shared.wait(for: round)
            if shared.isClosing.load(ordering: .acquiring) { return nil }
            if let (threadPool, task) = shared.task { task.run(Worker(threadPool: threadPool, index: member.index)) }
            shared.barrier()
        }
    }

    private final class Member {
        let shared: Shared
        let index: Int

        init(shared: Shared, index: Int) {
            self.shared = shared
            self.index = index
        }
    }
}

/// What a team's threads see of each other.
private final class Shared: @unchecked Sendable {
    /// Written before a round begins and read in it.
    var task: (ThreadPool, any ThreadPoolTask)?
    let isClosing = Atomic(false)
    let claimed = Atomic(0)
    /// How many members there are; written before the first round.
    var count = 1
    /// How many rounds have begun.
    private let round = Atomic(0)
    private let arrived = Atomic(0)
    private let sleepers = Atomic(0)
    /// Rounds and barriers have a budget each: between two passes threads wait much longer than at a barrier.
    private let roundSpins: SpinBudget
    private let barrierSpins: SpinBudget
    private let passed = Atomic(0)
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init(expecting count: Int) {
        // Spinning is useless if the threads waited for have no processor to run on.
        let longest = count <= Processors.count ? SpinBudget.longest : 0
        roundSpins = SpinBudget(longest: longest)
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

    /// Begins another round.
    func begin() {
        round.add(1, ordering: .sequentiallyConsistent)
        wakeSleepers()
    }

    /// Returns when so many rounds have begun.
    func wait(for target: Int) {
        wait(roundSpins) { round.load(ordering: .sequentiallyConsistent) >= target }
    }

    /// Returns when all members have come here.
    func barrier() {
        let before = passed.load(ordering: .relaxed)
        if arrived.add(1, ordering: .acquiringAndReleasing).newValue == count {
            arrived.store(0, ordering: .relaxed)
            claimed.store(0, ordering: .relaxed)
            passed.store(before + 1, ordering: .sequentiallyConsistent)
            wakeSleepers()
        } else {
            wait(barrierSpins) { passed.load(ordering: .sequentiallyConsistent) != before }
        }
    }

    /// Returns when `isOver`, which another member's store makes true, followed by `wakeSleepers`.
    ///
    /// Spins before it sleeps, since waking a thread takes longer than most waits.
    private func wait(_ spins: borrowing SpinBudget, _ isOver: () -> Bool) {
        for _ in 0..<spins.next {
            if isOver() { return spins.noteSuccess() }
            imprint_pause()
        }
        spins.noteFailure()
        pthread_mutex_lock(mutex)
        sleepers.add(1, ordering: .sequentiallyConsistent)
        while !isOver() { pthread_cond_wait(condition, mutex) }
        sleepers.subtract(1, ordering: .sequentiallyConsistent)
        pthread_mutex_unlock(mutex)
    }

    /// Wakes who sleeps: they see the store before this call, or this call sees that they sleep.
    private func wakeSleepers() {
        guard sleepers.load(ordering: .sequentiallyConsistent) > 0 else { return }
        pthread_mutex_lock(mutex)
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }
}

/// How often a waiting thread checks for the end of its wait before it sleeps.
///
/// On a machine with other work, the threads waited for may not be running, and spinning takes processor time from them. So a
/// spin that fails halves the next one, and a spin that succeeds doubles it. Every 32nd failure allows one longest spin, to
/// find out whether spinning is worthwhile again.
struct SpinBudget: ~Copyable, Sendable {
    /// About 100 µs.
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

    /// The wait ended during the spin.
    ///
    /// Threads may note at the same time: lost updates do no harm.
    func noteSuccess() {
        let current = budget.load(ordering: .relaxed)
        if current < longest { budget.store(min(max(2 * current, 64), longest), ordering: .relaxed) }
        if failures.load(ordering: .relaxed) > 0 { failures.store(0, ordering: .relaxed) }
    }

    /// The spin was too short, and the thread sleeps.
    func noteFailure() {
        failures.add(1, ordering: .relaxed)
        budget.store(budget.load(ordering: .relaxed) / 2, ordering: .relaxed)
    }
}
