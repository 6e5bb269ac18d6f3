import Testing

@testable import ImprintNetwork

@Suite struct ThreadAdaptationTests {
    /// Simulates runs of a machine for which `duration` gives the seconds of a run and the share of time that threads sleep.
    /// - Returns: The number of runs with each number of threads.
    private func simulate(
        _ adaptation: inout ThreadAdaptation, seconds: Double,
        _ duration: (_ threads: Int) -> (seconds: Double, sleepShare: Double)
    ) -> [Int: Int] {
        var counts: [Int: Int] = [:]
        var elapsed = 0.0
        while elapsed < seconds {
            let threads = adaptation.threads
            let run = duration(threads)
            adaptation.record(
                seconds: run.seconds, sleepSeconds: run.sleepShare * run.seconds * Double(threads))
            counts[threads, default: 0] += 1
            elapsed += run.seconds
        }
        return counts
    }

    @Test(
        "The numbers of threads are all, all but one, and halves",
        arguments: [
            (1, [1]), (2, [2, 1]), (3, [3, 2, 1]), (4, [4, 3, 2, 1]), (8, [8, 7, 4, 2, 1]), (12, [12, 11, 6, 3, 1]),
        ])
    func levels(limit: Int, expected: [Int]) {
        #expect(ThreadAdaptation(limit: limit).levels == expected)
    }

    @Test("Nothing is tried while threads hardly sleep", arguments: [1e-4, 0.01, 0.3])
    func idleMachine(seconds: Double) {
        var adaptation = ThreadAdaptation(limit: 2)
        #expect(simulate(&adaptation, seconds: 30) { (seconds / Double($0), 0.1) }.keys.sorted() == [2])
    }

    @Test("Fewer threads are used where they are faster, and more are tried rarely", arguments: [1e-4, 0.004, 0.1])
    func busyCore(seconds: Double) {
        var adaptation = ThreadAdaptation(limit: 2)
        let counts = simulate(&adaptation, seconds: 60) { $0 == 2 ? (3 * seconds, 0.4) : (seconds, 0) }
        #expect(adaptation.threads == 1)
        // At most a tenth of the time.
        #expect(Double(3 * counts[2, default: 0]) <= 0.1 * 60 / seconds)
    }

    @Test("A short disturbance does not reduce the number of threads", arguments: [0.05, 0.1, 0.15, 0.2])
    func shortDisturbance(seconds: Double) {
        var adaptation = ThreadAdaptation(limit: 2)
        func calm(seconds: Double) -> [Int: Int] {
            simulate(&adaptation, seconds: seconds) { $0 == 2 ? (0.002, 0.05) : (0.003, 0) }
        }
        _ = calm(seconds: 1)
        _ = simulate(&adaptation, seconds: seconds) { $0 == 2 ? (0.008, 0.4) : (0.003, 0) }
        // At most one trial.
        #expect(calm(seconds: 1)[1, default: 0] <= 36)
        #expect(adaptation.threads == 2)
    }

    @Test("All threads are used again within six seconds after the other program ends")
    func recovery() {
        var adaptation = ThreadAdaptation(limit: 2)
        _ = simulate(&adaptation, seconds: 60) { $0 == 2 ? (0.003, 0.4) : (0.001, 0) }
        _ = simulate(&adaptation, seconds: 6) { (0.001 / Double($0), 0.01) }
        #expect(adaptation.threads == 2)
        #expect(simulate(&adaptation, seconds: 1) { (0.001 / Double($0), 0.01) }.keys.sorted() == [2])
    }

    @Test("Threads that sleep, but are faster than fewer threads, are kept")
    func imbalance() {
        var adaptation = ThreadAdaptation(limit: 2)
        let counts = simulate(&adaptation, seconds: 60) { (0.001 / ($0 == 2 ? 1.3 : 1), $0 == 2 ? 0.3 : 0) }
        #expect(Double(counts[1, default: 0]) <= 0.03 * 60_000)
    }

    @Test("The best of several numbers of threads is found: seven of eight beside one busy core")
    func severalLevels() {
        var adaptation = ThreadAdaptation(limit: 8)
        let counts = simulate(&adaptation, seconds: 60) { $0 == 8 ? (0.003, 0.5) : (0.008 / Double($0), 0.02) }
        #expect(counts.max { $0.value < $1.value }?.key == 7)
        #expect(counts[4, default: 0] < 100)
    }

    @Test("Fewer threads are also found if the work changes often")
    func changingWork() {
        var adaptation = ThreadAdaptation(limit: 2)
        // Epochs of ten large batches and a small one, beside a busy core.
        for index in 0..<110 {
            adaptation.workSize = index % 11 == 10 ? 1 : 32
            let seconds = adaptation.threads == 2 ? 0.12 : 0.04
            adaptation.record(seconds: seconds, sleepSeconds: adaptation.threads == 2 ? 0.1 : 0)
        }
        #expect(adaptation.threads == 1)
    }

    @Test("A change of the work does not compare different work")
    func workSize() {
        var adaptation = ThreadAdaptation(limit: 2)
        for index in 0..<1000 {
            // Large and small batches alternate.
            adaptation.workSize = index % 2 == 0 ? 32 : 1
            adaptation.record(seconds: adaptation.workSize == 32 ? 0.015 : 0.001, sleepSeconds: 0.01)
        }
        #expect(adaptation.threads == 2)
    }
}
