/// A clock for the duration of a run, including the parts before it was resumed.
package struct RunClock {
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var lapStart: ContinuousClock.Instant
    /// The duration of the earlier parts of the run in seconds.
    package var secondsBefore = 0.0

    package init() {
        start = clock.now
        lapStart = start
    }

    /// The duration of the run in seconds.
    package var seconds: Double { secondsBefore + (clock.now - start).seconds }

    /// Returns the duration of the current lap in seconds and starts the next lap.
    package mutating func lap() -> Double {
        let now = clock.now
        defer { lapStart = now }
        return (now - lapStart).seconds
    }
}
