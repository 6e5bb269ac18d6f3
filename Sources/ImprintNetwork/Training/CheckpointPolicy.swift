/// Decides when and where a training loop saves its state.
public protocol CheckpointPolicy: AnyObject {
    /// Whether the time has come to save.
    var isDue: Bool { get }

    /// Saves a state; a failure must not end the run, so the policy reports it on its own.
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
    /// The exponential moving average of the parameters; nil if none is kept.
    public var average: [Float]?
    /// The parameters of the best epoch; nil before the first epoch ends.
    public var best: [Float]?
    /// What the objective has to remember, as it encoded it; nil if nothing.
    public var objective: String?

    /// Makes a state.
    public init(
        progress: TrainingProgress, parameters: [Float], optimizer: [String: [Float]], average: [Float]? = nil,
        best: [Float]? = nil, objective: String? = nil
    ) {
        self.progress = progress
        self.parameters = parameters
        self.optimizer = optimizer
        self.average = average
        self.best = best
        self.objective = objective
    }
}
