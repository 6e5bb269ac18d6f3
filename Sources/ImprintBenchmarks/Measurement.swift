/// The times of repeated runs, and how often they asked for memory.
struct Measurement {
    /// Seconds a run, ascending.
    private let times: [Double]
    /// How often a run asked for memory; nil if that is not counted.
    let allocations: Double?

    /// Takes the seconds of runs that were timed as they happened.
    init(times: [Double]) {
        self.times = times.sorted()
        allocations = nil
    }

    /// Times `body` for about `seconds`, at least three times, after two runs that do not count.
    /// - Parameter prepare: Called before every run, and not timed.
    init(seconds: Double, prepare: () -> Void = {}, _ body: () throws -> Void) rethrows {
        for _ in 0..<2 {
            prepare()
            try body()
        }
        let mostRuns = 100_000
        var times: [Double] = []
        times.reserveCapacity(mostRuns)
        let clock = ContinuousClock()
        let start = clock.now
        let allocations = AllocationCounter.count
        repeat {
            prepare()
            let before = clock.now
            try body()
            times.append((clock.now - before) / .seconds(1))
        } while times.count < 3 || (clock.now - start < .seconds(seconds) && times.count < mostRuns)
        let count = Double(times.count)
        self.allocations = AllocationCounter.count.flatMap { after in allocations.map { Double(after - $0) / count } }
        self.times = times.sorted()
    }

    /// The times of the runs, in seconds multiplied by `factor`.
    func times(factor: Double) -> Figures {
        Figures(ascending: times.map { $0 * factor })
    }

    /// How many of something happen in a second, of which `perRun` happen in a run.
    func rates(of perRun: Double) -> Figures {
        Figures(ascending: times.reversed().map { perRun / $0 })
    }
}

/// The middle, least and greatest of several numbers.
struct Figures {
    let median: Double
    let min: Double
    let max: Double

    init(ascending numbers: [Double]) {
        let middle = numbers.count / 2
        median = numbers.count % 2 == 1 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2
        min = numbers[0]
        max = numbers[numbers.count - 1]
    }
}
