/// The speed and progress of a run.
package struct TrainingPace {
    private let clock = ContinuousClock()
    private var first: (at: ContinuousClock.Instant, seen: Int)?
    private var last: (at: ContinuousClock.Instant, batch: TrainingBatch)?

    package init() {}

    /// Records a batch.
    package mutating func record(_ batch: TrainingBatch) {
        let now = clock.now
        last = (now, batch)
        first = first ?? (now, batch.imagesSeenInRun)
    }

    /// The number of training images per second; nil before the second batch.
    package var imagesPerSecond: Double? {
        guard let first, let last, last.batch.imagesSeenInRun > first.seen, last.at > first.at else { return nil }
        return Double(last.batch.imagesSeenInRun - first.seen) / (last.at - first.at).seconds
    }

    /// The estimated number of seconds until the end; nil before the second batch.
    package var secondsLeft: Double? {
        guard let last, let rate = imagesPerSecond else { return nil }
        return Double(last.batch.imagesPerRun - last.batch.imagesSeenInRun) / rate
    }

    /// The finished fraction of the run, 0…1.
    package var fractionCompleted: Double { last?.batch.fractionOfRun ?? 0 }
}
