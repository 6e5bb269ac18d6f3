internal import ImprintCore

/// How personalizations of several people become one model; see `ModelFile.merging`.
public struct MergeOptions: Hashable, Sendable {
    /// The greatest Euclidean norm that one person's change may have, C in formulas.
    ///
    /// More than 0; a longer change is scaled down to it. `nil` for no limit.
    public var clip: Double?
    /// The deviation of noise as a multiple of `clip`, z in formulas.
    ///
    /// 0.001 to 1000000, and only with `clip`; `nil` for none.
    public var noise: Double?
    /// The δ for which the privacy that noise gives is reported, in 0…1 without the ends.
    public var delta = 1e-5
    /// What noise is computed from: the same seed gives the same noise, and whoever knows it can take the noise away.
    ///
    /// `nil`, for anything but tests and experiments, takes it from the system's generator, and nothing keeps it.
    public var seed: UInt64?

    /// Makes settings; those that are left out average without a limit and without noise.
    public init(clip: Double? = nil, noise: Double? = nil, delta: Double = 1e-5, seed: UInt64? = nil) {
        self.clip = clip
        self.noise = noise
        self.delta = delta
        self.seed = seed
    }

    /// Checks that all settings are within their ranges.
    /// - Throws: `ImprintError.invalidSetting`.
    public func check() throws {
        func require(_ isFine: Bool, _ name: String, _ found: Any, _ expected: String) throws {
            if !isFine { throw ImprintError.invalidSetting(name: name, found: "\(found)", expected: expected) }
        }
        if let clip { try require(clip > 0 && clip.isFinite, "clip", clip, "more than 0") }
        if let noise {
            try require(noise >= 1e-3 && noise <= 1e6, "noise", noise, "0.001 to 1000000")
            try require(clip != nil, "clip", "not set", "a norm, since noise is a multiple of it")
        }
        try require(delta > 0 && delta < 1, "delta", delta, "more than 0 and less than 1")
    }

    /// What noise is drawn from.
    var generator: any RandomNumberGenerator {
        seed.map { RandomStream(seed: $0, "merge noise") } ?? SystemRandomNumberGenerator()
    }
}
