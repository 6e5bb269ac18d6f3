/// How fast a run goes, for whoever shows it.
package struct TrainingPace {
    private let clock = ContinuousClock()
    private var first: (at: ContinuousClock.Instant, seen: Int)?
    private var last: (at: ContinuousClock.Instant, batch: TrainingBatch)?

    package init() {}

    /// Takes note of a batch.
    package mutating func take(_ batch: TrainingBatch) {
        let now = clock.now
        last = (now, batch)
        first = first ?? (now, batch.imagesSeenInRun)
    }

    /// How many images are trained on in a second; `nil` before there are two batches.
    package var imagesPerSecond: Double? {
        guard let first, let last, last.batch.imagesSeenInRun > first.seen, last.at > first.at else { return nil }
        return Double(last.batch.imagesSeenInRun - first.seen) / (last.at - first.at).seconds
    }

    /// How many seconds the rest takes at this pace.
    package var secondsLeft: Double? {
        guard let last, let rate = imagesPerSecond else { return nil }
        return Double(last.batch.epochs * last.batch.imagesPerEpoch - last.batch.imagesSeenInRun) / rate
    }

    /// How much of the run is done, 0…1.
    package var share: Double {
        guard let batch = last?.batch else { return 0 }
        return min(Double(batch.imagesSeenInRun) / Double(max(batch.epochs * batch.imagesPerEpoch, 1)), 1)
    }
}

extension TrainingBatch {
    /// How many images have been seen since the first epoch.
    fileprivate var imagesSeenInRun: Int { (epoch - 1) * imagesPerEpoch + imagesSeen }
}
