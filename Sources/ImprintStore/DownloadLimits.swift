public import Foundation
internal import Imprint

/// The limits of a download: the maximum size and duration, the minimum speed, and the trusted certificates.
public struct DownloadLimits: Sendable {
    /// The maximum size of a model in bytes; at least 1.
    public var byteCount: Int
    /// The interval over which the speed is measured; must be positive.
    public var interval: Duration
    /// The minimum number of bytes in each `interval` since the request, at least 0; a slower download fails.
    public var bytesPerInterval: Int
    /// The maximum duration of a download; must be positive.
    public var time: Duration
    /// A PEM file of the only certificate authorities that the download trusts.
    ///
    /// If it is nil, the download trusts those in the file of the environment variable `SSL_CERT_FILE` or, without it, those of the operating
    /// system. On Apple platforms, downloads with a file fail.
    public var certificates: URL?

    /// Creates limits; the defaults are 1 GiB, 1 KiB/s measured over 30 seconds, and one hour.
    public init(
        byteCount: Int = 1 << 30, interval: Duration = .seconds(30), bytesPerInterval: Int = 30 << 10,
        time: Duration = .seconds(3600), certificates: URL? = nil
    ) {
        self.byteCount = byteCount
        self.interval = interval
        self.bytesPerInterval = bytesPerInterval
        self.time = time
        self.certificates = certificates
    }

    /// Checks that all limits are in range.
    /// - Throws: `ImprintError.invalidSetting` for the first one that is not.
    func check() throws(ImprintError) {
        let settings: [(name: String, found: String, isValid: Bool, expected: String)] = [
            ("byteCount", "\(byteCount)", byteCount >= 1, "at least 1"),
            ("interval", "\(interval)", interval > .zero, "more than 0 seconds"),
            ("bytesPerInterval", "\(bytesPerInterval)", bytesPerInterval >= 0, "at least 0"),
            ("time", "\(time)", time > .zero, "more than 0 seconds"),
        ]
        if let invalid = settings.first(where: { !$0.isValid }) {
            throw .invalidSetting(name: invalid.name, found: invalid.found, expected: invalid.expected)
        }
    }
}
