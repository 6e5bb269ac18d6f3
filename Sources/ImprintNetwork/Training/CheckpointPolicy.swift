/// Decides when and where a training loop saves its state.
public protocol CheckpointPolicy: AnyObject {
    /// Whether a checkpoint is due.
    var isDue: Bool { get }

    /// Saves a state; the policy reports failures itself, because they must not end the run.
    func save(_ state: () throws -> TrainingState)
}

/// The complete state of a training loop between two steps.
public struct TrainingState: Sendable {
    /// The progress: epochs, steps, metrics.
    public var progress: TrainingProgress
    /// The parameters after the last step.
    public var parameters: [Float]
    /// The optimizer's tensors by name.
    public var optimizer: [String: [Float]]
    /// The exponential moving average (EMA) of the parameters; nil without an EMA.
    public var ema: [Float]?
    /// The parameters of the best epoch; nil before the first epoch ends.
    public var best: [Float]?
    /// The encoded state of the objective; nil if it has no state.
    public var objective: String?

    /// Creates a state.
    public init(
        progress: TrainingProgress, parameters: [Float], optimizer: [String: [Float]], ema: [Float]? = nil,
        best: [Float]? = nil, objective: String? = nil
    ) {
        self.progress = progress
        self.parameters = parameters
        self.optimizer = optimizer
        self.ema = ema
        self.best = best
        self.objective = objective
    }
}
