internal import Imprint
internal import ImprintCore
internal import ImprintModel

extension DetectorPersonalizer {
    /// The settings.
    public struct Configuration: Hashable, Sendable {
        /// The random seed.
        public var seed: UInt64 = 0
        /// The number of threads, from 1 to 256, or to the number of cores if that is larger; the result does not depend on it.
        public var threads = Processors.coreCount
        /// The maximum memory for photos, in bytes, at least 0.
        ///
        /// Nil means half of the available memory, at most 512 MB. The result does not depend on it.
        public var memoryLimit: Int?
        /// The amount of training, relative to the default; more than 0.
        package var scale = 1.0

        /// Creates the default configuration.
        public init() {}
    }
}

extension DetectorPersonalizer.Configuration {
    /// Checks that every value is in its range.
    func check() throws(ImprintError) {
        let problem = RangeCheck.firstFailure(of: [
            .init("threads", threads, in: Processors.threadRange),
            .init("memoryLimit", memoryLimit ?? 0, memoryLimit ?? 0 >= 0, "at least 0"),
        ])
        if let problem { throw problem.error }
    }
}
