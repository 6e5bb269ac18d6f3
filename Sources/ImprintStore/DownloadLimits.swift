internal import Imprint
internal import ImprintNetwork

/// The limits of a download: the maximum size and duration, and the minimum speed.
public struct DownloadLimits: Sendable {
    /// The maximum size of a model in bytes.
    public var byteCount: Int
    /// The interval over which the speed is measured; must be positive.
    public var interval: Duration
    /// The minimum number of bytes in each `interval` since the request; a slower download fails.
    public var bytesPerInterval: Int
    /// The maximum duration of a download.
    public var time: Duration

    /// Creates limits; the defaults are 1 GiB, 1 KiB/s measured over 30 seconds, and one hour.
    public init(
        byteCount: Int = 1 << 30, interval: Duration = .seconds(30), bytesPerInterval: Int = 30 << 10,
        time: Duration = .seconds(3600)
    ) {
        self.byteCount = byteCount
        self.interval = interval
        self.bytesPerInterval = bytesPerInterval
        self.time = time
    }

    /// Checks that the interval is positive.
    /// - Throws: `ImprintError.invalidSetting` if it is not.
    func check() throws(ImprintError) {
        guard interval > .zero else {
            throw .invalidSetting(name: "interval", found: "\(interval)", expected: "more than 0 seconds")
        }
    }
}
