/// How large a model may be, and how slow the server that it comes from.
public struct DownloadLimits: Sendable {
    /// How many bytes a model may have at most.
    public var byteCount: Int
    /// The time in which `bytesPerInterval` have to come, again and again; a positive one.
    public var interval: Duration { didSet { Self.check(interval) } }
    /// How many bytes have to come in each `interval`, from the request on; what takes longer is given up.
    public var bytesPerInterval: Int
    /// How long a download may take at most.
    public var time: Duration

    /// Makes limits: a gibibyte, a kibibyte a second over half a minute, an hour.
    public init(
        byteCount: Int = 1 << 30, interval: Duration = .seconds(30), bytesPerInterval: Int = 30 << 10,
        time: Duration = .seconds(3600)
    ) {
        Self.check(interval)
        self.byteCount = byteCount
        self.interval = interval
        self.bytesPerInterval = bytesPerInterval
        self.time = time
    }

    private static func check(_ interval: Duration) {
        precondition(interval > .zero, "the interval of a download's limits is \(interval), expected more than none")
    }
}
