internal import ImprintCore
internal import ImprintModel

/// The options of `ModelFile.merging(_:options:)`.
public struct MergeOptions: Hashable, Sendable {
    /// The clipping norm C > 0: the maximum Euclidean norm of one user's change; nil for no limit.
    ///
    /// Merging scales longer changes down to this norm.
    public var clip: Double?
    /// The noise multiplier z, 0.001 to 1000000: the standard deviation of the noise as a multiple of `clip`; nil for no noise.
    ///
    /// Noise requires `clip`.
    public var noise: Double?
    /// The δ for which `MergeResult.Privacy.epsilon` is computed, more than 0 and less than 1.
    public var delta = 1e-5
    /// The random seed of the noise; nil for the system's random number generator.
    ///
    /// Set a seed only in tests and experiments: anyone who knows the seed can subtract the noise.
    public var seed: UInt64?

    /// Creates options; the defaults average without clipping and without noise.
    public init(clip: Double? = nil, noise: Double? = nil, delta: Double = 1e-5, seed: UInt64? = nil) {
        self.clip = clip
        self.noise = noise
        self.delta = delta
        self.seed = seed
    }

    /// Checks that all options are within their ranges.
    /// - Throws: `ImprintError.invalidSetting` if an option is out of range.
    public func check() throws(ImprintError) {
        let norm = clip ?? 1
        let problem = RangeCheck.firstFailure(of: [
            .init("clip", norm, norm > 0 && norm.isFinite, "more than 0 and finite"),
            .init("noise", noise ?? 1, in: 1e-3...1e6),
            .init("clip", "not set", noise == nil || clip != nil, "a norm, because the noise is a multiple of it"),
            .init("delta", delta, delta > 0 && delta < 1, "more than 0 and less than 1"),
        ])
        if let problem { throw problem.error }
    }

    /// The generator of the noise.
    var generator: any RandomNumberGenerator {
        seed.map { RandomStream(seed: $0, "merge noise") } ?? SystemRandomNumberGenerator()
    }
}
