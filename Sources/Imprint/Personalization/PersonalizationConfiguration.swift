internal import ImprintCore
package import ImprintModel

/// The hyperparameters and limits of a `PersonalizationSession`.
public struct PersonalizationConfiguration: Hashable, Sendable {
    /// The loss weight of the base model's rehearsal features relative to the user's photos, ≥ 0.
    ///
    /// A larger weight prevents forgetting more strongly, but adapts the model less to the user's photos.
    public var rehearsalWeight: Float = 2
    /// The weight of the penalty on changes to the logits, ≥ 0; see docs/explanation/personalization.md.
    ///
    /// It has no effect if `blocks` is more than 0.
    public var penalty: Float = 0.001
    /// The number of views per photo, including the photo itself, 1…64.
    ///
    /// The other views are augmented copies. Logo detectors always use one view.
    public var views = 4
    /// The number of blocks before the head that low-rank adapters (LoRA) change.
    ///
    /// A block has the layers whose outputs have the same number of pixels. 0 trains only the head.
    public var blocks = 0
    /// The rank of the adapters, 1…64.
    ///
    /// It has no effect if `blocks` is 0.
    public var rank = 4
    /// The number of threads that extract features, from 1 to 256, or to the number of cores if that is larger.
    ///
    /// The result does not depend on it.
    public var threads = 1
    /// The maximum number of bytes for the features of the user's photos, including forgotten photos that `PersonalizationSession.undo()` can
    /// restore.
    ///
    /// Training with a folder omits photos beyond the limit; the other methods throw an error. Forgotten photos do not count for this: the
    /// session drops the oldest of them, and `undo()` cannot restore them.
    public var memoryLimit = 64 << 20
    /// The maximum duration of training with a folder; nil for no limit.
    ///
    /// Training omits photos that are not processed in time.
    public var timeLimit: Duration?
    /// Whether training with a folder runs on a single thread of the lowest priority.
    public var isBackground = false

    /// Creates a configuration; the defaults suit a handful to a few hundred photos.
    public init() {}

    /// The first value that is out of range; nil if all are in range.
    package var problem: RangeCheck? {
        let timeLimit = timeLimit ?? .seconds(1)
        return .firstFailure(of: [
            .nonNegative("rehearsalWeight", rehearsalWeight), .nonNegative("penalty", penalty),
            .init("views", views, in: 1...64), .init("rank", rank, in: 1...64),
            .init("blocks", blocks, blocks >= 0, "at least 0"),
            .init("threads", threads, in: Processors.threadRange),
            .init("memoryLimit", memoryLimit, memoryLimit > 0, "more than 0"),
            .init("timeLimit", timeLimit, timeLimit > .zero, "more than 0"),
        ])
    }

    func check() throws(ImprintError) {
        if let problem { throw problem.error }
    }
}

extension RangeCheck {
    /// The problem as an error.
    package var error: ImprintError { .invalidSetting(name: name, found: found, expected: expected) }
}
