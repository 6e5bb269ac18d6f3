/// The time that a run takes, over all of its parts.
package struct RunClock {
    private let clock = ContinuousClock()
    private let began: ContinuousClock.Instant
    private var lapBegan: ContinuousClock.Instant
    /// How long earlier parts of the run took.
    package var secondsBefore = 0.0

    package init() {
        began = clock.now
        lapBegan = began
    }

    /// How long the run has taken.
    package var seconds: Double { secondsBefore + (clock.now - began).seconds }

    /// How long it is since the last lap; the next begins.
    package mutating func lap() -> Double {
        let now = clock.now
        defer { lapBegan = now }
        return (now - lapBegan).seconds
    }
}
