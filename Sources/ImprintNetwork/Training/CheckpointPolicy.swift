public import ImprintCore

/// Decides when and where a training loop saves its state.
///
/// The loop asks the policy after each step and each round. It does not save when a run ends, neither if all rounds are done
/// (`TrainingLoop.Ending.completed`) nor if the run was stopped (`stopped`). To keep the last steps, save the state after
/// `TrainingLoop.run(shouldStop:onEvent:)`.
///
/// `TrainingState` is `Codable`, so a policy can write any format:
///
/// ```swift
/// final class HourlyCheckpoints: CheckpointPolicy {
///     let file: URL
///     private var next = ContinuousClock.now + .seconds(3600)
///     init(file: URL) { self.file = file }
///     var isDue: Bool { ContinuousClock.now >= next }
///     func save(_ state: () throws -> TrainingState) {
///         next = .now + .seconds(3600)
///         do {
///             try JSONEncoder().encode(state()).write(to: file, options: .atomic)
///         } catch {
///             print("cannot save the checkpoint: \(error)")
///         }
///     }
/// }
///
/// let checkpoints = HourlyCheckpoints(file: file)
/// let loop = try TrainingLoop(objective, options: options, checkpoints: checkpoints)
/// // To resume:
/// try loop.restore(JSONDecoder().decode(TrainingState.self, from: Data(contentsOf: file)))
/// let ending = try loop.run()
/// checkpoints.save(loop.state)
/// ```
public protocol CheckpointPolicy: AnyObject {
    /// Whether a checkpoint is due.
    var isDue: Bool { get }

    /// Saves a state; the policy reports failures itself, because they must not end the run.
    func save(_ state: () throws -> TrainingState)
}

/// The complete state of a training loop between two steps.
public struct TrainingState: Codable, Sendable {
    /// The progress: rounds, steps, metrics.
    public var progress: TrainingProgress
    /// The parameters after the last step.
    public var parameters: [Float]
    /// The optimizer's tensors by name; see `Optimizer.state`.
    public var optimizer: [String: [Float]]
    /// The number of steps of the optimizer; nil in older checkpoints, for which `progress` determines it.
    public var optimizerSteps: Int?
    /// The exponential moving average (EMA) of the parameters; nil without an EMA.
    public var ema: [Float]?
    /// The best parameters; nil before the first round ends, unless the initial parameters were validated.
    public var best: [Float]?
    /// The encoded state of the objective; nil if it has no state.
    public var objective: String?

    /// Creates a state.
    public init(
        progress: TrainingProgress, parameters: [Float], optimizer: [String: [Float]], optimizerSteps: Int? = nil,
        ema: [Float]? = nil, best: [Float]? = nil, objective: String? = nil
    ) {
        self.progress = progress
        self.parameters = parameters
        self.optimizer = optimizer
        self.optimizerSteps = optimizerSteps
        self.ema = ema
        self.best = best
        self.objective = objective
    }
}

/// The error of a training state that does not fit the training loop that restores it.
public struct TrainingStateError: DescribedError, Hashable {
    /// The problem, with the found and the expected value.
    public let reason: String

    /// Creates an error, also for objectives whose own state does not fit.
    public init(reason: String) { self.reason = reason }

    /// A sentence with the problem, the expected state and the fix.
    public var description: String {
        "cannot restore the training state: \(reason). Use the network and options that the state was saved with."
    }
}

extension TrainingState {
    /// Checks that the state fits a training loop.
    /// - Parameters:
    ///   - layout: The layout of the parameters.
    ///   - optimizerCounts: The number of values of each of the optimizer's tensors, by name.
    ///   - needsEMA: Whether the loop has an EMA.
    ///   - needsBest: Whether the loop keeps the parameters of the best round.
    func check(
        _ layout: ParameterLayout, optimizerCounts: [String: Int], needsEMA: Bool, needsBest: Bool
    ) throws(TrainingStateError) {
        if let problem = progress.problem { throw TrainingStateError(reason: "the progress has \(problem)") }
        if let optimizerSteps, !(0...1 << 48).contains(optimizerSteps) {
            throw TrainingStateError(reason: "the optimizer has \(optimizerSteps) steps, expected 0 or more")
        }
        let tensors: [(name: String, values: [Float]?)] = [
            ("parameters", parameters), ("EMA", ema), ("best parameters", best),
        ]
        for (name, values) in tensors {
            if let values, values.count != layout.count {
                throw TrainingStateError(
                    reason: "found \(values.count) values in the \(name), expected \(layout.count)")
            }
        }
        guard optimizer.keys.sorted() == optimizerCounts.keys.sorted() else {
            let (found, expected) = (list(optimizer.keys), list(optimizerCounts.keys))
            throw TrainingStateError(
                reason: found.isEmpty
                    ? "the optimizer's tensors are missing, expected \(expected)"
                    : "the optimizer's tensors are \(found), expected \(expected.isEmpty ? "none" : expected)")
        }
        for (name, values) in optimizer.sorted(by: { $0.key < $1.key }) {
            guard let count = optimizerCounts[name], values.count != count else { continue }
            throw TrainingStateError(
                reason: "found \(values.count) values in the optimizer's \(name), expected \(count)")
        }
        if progress.emaSteps > 0, needsEMA != (ema != nil) {
            throw TrainingStateError(reason: needsEMA ? "the EMA is missing" : "found an EMA, expected none")
        }
        if needsBest, progress.hasBest, best == nil {
            throw TrainingStateError(reason: "the best parameters are missing")
        }
    }

    private func list(_ names: some Sequence<String>) -> String { names.sorted().joined(separator: ", ") }
}
