internal import ImprintCore

/// The times and memory allocations of repeated runs.
struct Measurement {
    /// The seconds of each run, ascending.
    private let times: [Double]
    /// The number of allocations in a run; nil if they are not counted.
    let allocations: Double?

    /// Creates a measurement from the seconds of each run.
    init(times: [Double]) {
        self.times = times.sorted()
        allocations = nil
    }

    /// Runs `body` for about `seconds`, at least three times, after two warm-up runs.
    /// - Parameters:
    ///   - processes: The processes that run `body` together, and thus equally often.
    ///   - prepare: Runs before each run of `body`; it is not timed.
    init(
        seconds: Double, processes: ProcessGroup? = nil, prepare: () -> Void = {}, _ body: () throws -> Void
    ) rethrows {
        func isLong(_ time: Duration) -> Bool {
            let isLong = time >= .seconds(seconds)
            return processes?.broadcast(isLong) ?? isLong
        }
        for _ in 0..<2 {
            prepare()
            try body()
        }
        let maximumRunCount = 100_000
        var times: [Double] = []
        times.reserveCapacity(maximumRunCount)
        let clock = ContinuousClock()
        let start = clock.now
        let allocations = AllocationCounter.count
        repeat {
            prepare()
            let before = clock.now
            try body()
            times.append((clock.now - before) / .seconds(1))
        } while times.count < 3 || (times.count < maximumRunCount && !isLong(clock.now - start))
        let count = Double(times.count)
        self.allocations = AllocationCounter.count.flatMap { after in allocations.map { Double(after - $0) / count } }
        self.times = times.sorted()
    }

    /// Returns the times of the runs, in seconds multiplied by `factor`.
    func times(factor: Double) -> Statistics {
        Statistics(ascending: times.map { $0 * factor })
    }

    /// Returns the rate of each run in work per second, if a run does `amount` of work.
    func rates(of amount: Double) -> Statistics {
        Statistics(ascending: times.reversed().map { amount / $0 })
    }
}

/// The median, minimum and maximum of values.
struct Statistics {
    let median: Double
    let min: Double
    let max: Double

    init(ascending values: [Double]) {
        let middle = values.count / 2
        median = values.count % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2
        min = values[0]
        max = values[values.count - 1]
    }
}
