/// A clock for the duration of a run, including the parts before it was resumed.
package struct RunClock {
    private let now: @Sendable () -> ContinuousClock.Instant
    private let start: ContinuousClock.Instant
    private var lapStart: ContinuousClock.Instant
    /// The duration of the earlier parts of the run in seconds.
    package var secondsBefore = 0.0

    /// Starts the clock.
    /// - Parameter now: Returns the current time.
    package init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.now = now
        start = now()
        lapStart = start
    }

    /// The duration of the run in seconds.
    package var seconds: Double { secondsBefore + (now() - start).seconds }

    /// Returns the duration of the current lap in seconds and starts the next lap.
    package mutating func lap() -> Double {
        let lapEnd = now()
        defer { lapStart = lapEnd }
        return (lapEnd - lapStart).seconds
    }
}
