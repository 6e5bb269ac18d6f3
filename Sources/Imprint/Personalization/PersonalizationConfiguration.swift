/// The hyperparameters and limits of a `PersonalizationSession`.
public struct PersonalizationConfiguration: Hashable, Sendable {
    /// The loss weight of the base model's rehearsal features relative to the user's photos, ≥ 0.
    ///
    /// A larger weight prevents more forgetting, and adapts less to the user's photos.
    public var rehearsalWeight: Float = 2
    /// The weight of the penalty on changes of the logits, ≥ 0; see docs/personalization.md.
    public var penalty: Float = 0.001
    /// The number of views per photo, including the photo itself, 1…64.
    ///
    /// The other views are augmented copies. Logo detectors always use one view.
    public var views = 4
    /// The number of blocks before the head that low-rank adapters (LoRA) change; see `Network.blocks`.
    ///
    /// 0 trains only the head.
    public var blocks = 0
    /// The rank of the adapters, 1…64.
    public var rank = 4
    /// The number of threads that extract features, 1…256.
    ///
    /// The result does not depend on it.
    public var threads = 1
    /// The maximum number of bytes for the features of the user's photos.
    ///
    /// Training with a folder omits photos beyond the limit; the other methods throw an error.
    public var memoryLimit = 64 << 20
    /// The maximum duration of training with a folder; nil for no limit.
    ///
    /// Photos that are not processed in time are omitted.
    public var timeLimit: Duration?
    /// Whether training with a folder runs on a single thread of the lowest priority.
    public var isBackground = false

    /// Creates a configuration; the defaults suit a handful to a few hundred photos.
    public init() {}

    func check() throws(ImprintError) {
        func require(_ isValid: Bool, _ name: String, _ found: Any, _ expected: String) throws(ImprintError) {
            if !isValid { throw .invalidSetting(name: name, found: "\(found)", expected: expected) }
        }
        try require(rehearsalWeight >= 0 && rehearsalWeight.isFinite, "rehearsalWeight", rehearsalWeight, "at least 0")
        try require(penalty >= 0 && penalty.isFinite, "penalty", penalty, "at least 0")
        try require((1...64).contains(views), "views", views, "1 to 64")
        try require((1...64).contains(rank), "rank", rank, "1 to 64")
        try require(blocks >= 0, "blocks", blocks, "at least 0")
        try require((1...256).contains(threads), "threads", threads, "1 to 256")
        try require(memoryLimit > 0, "memoryLimit", memoryLimit, "more than 0")
        try require(timeLimit.map { $0 > .zero } ?? true, "timeLimit", timeLimit?.seconds ?? 0, "more than 0")
    }
}
