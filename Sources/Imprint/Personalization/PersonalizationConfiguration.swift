/// How a model is tuned to one person.
public struct PersonalizationConfiguration: Hashable, Sendable {
    /// How much the photos that the base was trained on count, relative to those of the person, ≥ 0: more forgets less and learns less.
    public var rehearsalWeight: Float = 2
    /// How much a change of the logits costs, ≥ 0; see docs/personalization.md.
    public var penalty: Float = 0.001
    /// How many views of each photo are learned from, the photo itself included, 1…64; pictures that marks are spotted in have one.
    public var views = 4
    /// How many blocks of layers before the head change too, by factors of low rank; see `Network.blocks`.
    public var blocks = 0
    /// The rank of these factors, 1…64.
    public var rank = 4
    /// The threads that share the photos; the result does not depend on them.
    public var threads = 1
    /// How many bytes the features of the person's photos may take; photos for which there is no room are left out and counted.
    public var memoryLimit = 64 << 20
    /// The longest time that photos of a folder are learned from, with what is known then as the result; `nil` for as long as it takes.
    public var timeLimit: Duration?
    /// Whether the work is done on one thread of the lowest priority, so that it takes what nothing else needs.
    public var isBackground = false

    /// Makes settings; those that are left out suit a handful to some hundred photos.
    public init() {}

    func check() throws(ImprintError) {
        func require(_ isFine: Bool, _ name: String, _ found: Any, _ expected: String) throws(ImprintError) {
            if !isFine { throw .invalidSetting(name: name, found: "\(found)", expected: expected) }
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
