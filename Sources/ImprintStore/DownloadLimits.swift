internal import Imprint
internal import ImprintNetwork

/// How large a model may be, and how slow the server that it comes from.
public struct DownloadLimits: Sendable {
    /// How many bytes a model may have at most.
    public var byteCount: Int
    /// The time in which `bytesPerInterval` have to come, again and again; a positive one.
    public var interval: Duration
    /// How many bytes have to come in each `interval`, from the request on; what takes longer is given up.
    public var bytesPerInterval: Int
    /// How long a download may take at most.
    public var time: Duration

    /// Makes limits: a gibibyte, a kibibyte a second over half a minute, an hour.
    public init(
        byteCount: Int = 1 << 30, interval: Duration = .seconds(30), bytesPerInterval: Int = 30 << 10,
        time: Duration = .seconds(3600)
    ) {
        self.byteCount = byteCount
        self.interval = interval
        self.bytesPerInterval = bytesPerInterval
        self.time = time
    }

    /// Checks that something may come in each interval.
    /// - Throws: `ImprintError.invalidSetting` if it is none.
    func check() throws(ImprintError) {
        guard interval > .zero else {
            throw .invalidSetting(name: "interval", found: "\(interval)", expected: "more than 0 seconds")
        }
    }
}
