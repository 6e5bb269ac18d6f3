public import Imprint
internal import ImprintModel

/// The settings of a fleet client.
public struct FleetConfiguration: Sendable, Hashable {
    /// The hyperparameters of training on the device; `blocks` must be 0, because a fleet trains only the head.
    public var personalization = PersonalizationConfiguration()
    /// The clipping norm C > 0: the maximum Euclidean norm of the client update that the device sends in a round; nil for no limit.
    ///
    /// The device sends Δ · min(1, C / ‖Δ‖) (McMahan et al., "Learning differentially private recurrent language models", 2018).
    public var clip: Double?
    /// The noise multiplier z, 0.001 to 1000000: the standard deviation of the noise in each value as a multiple of `clip`; nil for no
    /// noise.
    ///
    /// The device adds Gaussian noise N(0, (z C)²) to each value after clipping: local differential privacy. Noise requires `clip`. A device
    /// with noise does not answer evaluations, which would reveal exact measurements.
    public var noise: Double?
    /// The δ for which `FleetEvent.Training.epsilon` is computed, more than 0 and less than 1.
    public var delta = 1e-5
    /// The time between two requests for messages, more than 0.
    public var pollInterval = Duration.seconds(2)
    /// The heartbeat interval, 10 to 1800 seconds: the server counts a device as offline after two intervals without a heartbeat.
    public var heartbeatInterval = Duration.seconds(30)
    /// The maximum time between two attempts to reach the server, more than 0.
    public var maximumBackoff = Duration.seconds(60)

    /// Creates settings; the defaults send unclipped client updates without noise.
    public init() {}

    /// Checks that all settings are within their ranges.
    ///
    /// It checks only the `blocks` of `personalization`; creating a client also checks the other hyperparameters.
    /// - Throws: `ImprintError.invalidSetting` if a setting is out of range.
    public func check() throws(ImprintError) {
        try MergeOptions(clip: clip, noise: noise, delta: delta).check()
        let blocks = personalization.blocks
        let heartbeatRange = Duration.seconds(10)...Duration.seconds(1800)
        let problem = RangeCheck.firstFailure(of: [
            .init("blocks", blocks, blocks == 0, "0, because a fleet trains only the head"),
            .init("pollInterval", pollInterval, pollInterval > .zero, "more than 0"),
            .init("maximumBackoff", maximumBackoff, maximumBackoff > .zero, "more than 0"),
            .init(
                "heartbeatInterval", heartbeatInterval, heartbeatRange.contains(heartbeatInterval),
                "10 to 1800 seconds"),
        ])
        if let problem { throw problem.error }
    }
}
