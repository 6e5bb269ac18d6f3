internal import Synchronization

/// A clock that advances only when a test lets it.
public final class ManualClock: Sendable {
    private let time = Mutex(ContinuousClock.now)

    /// Creates a clock.
    public init() {}

    /// The current time.
    public var now: ContinuousClock.Instant { time.withLock { $0 } }

    /// Advances the clock by a duration.
    public func advance(by duration: Duration) { time.withLock { $0 = $0.advanced(by: duration) } }

    /// Advances the clock to a time; an earlier time does not change it.
    public func advance(to instant: ContinuousClock.Instant) { time.withLock { $0 = max($0, instant) } }
}
