internal import ImprintCore

/// The one training loop: steps, exponential moving average (EMA), divergence check, schedule, early stopping, best snapshot, checkpoints.
///
/// A `TrainingObjective` brings batches and losses, an `Optimizer` updates the parameters, and a `CheckpointPolicy` saves the state.
/// The same objective and options give bitwise equal parameters, whether or not the run was interrupted and resumed.
public final class TrainingLoop {
    /// The progress so far.
    public private(set) var progress: TrainingProgress
    /// The exponential moving average of the parameters; nil if none is kept.
    public let average: Parameters?
    /// A snapshot of the parameters of the best round; nil before the first round ends.
    public private(set) var best: Parameters?
    private let objective: any TrainingObjective
    private let options: Options
    private let reducer: any GradientReducer
    private let checkpoints: (any CheckpointPolicy)?
    private var optimizer: any Optimizer
    private var clock = RunClock()
    private var isStopped = false
    /// Whether the best round has to be validated again: samples disappeared before the run was resumed, and may be back.
    private var validatesBestAgain = false

    /// Makes a loop for the objective's parameters as they are.
    /// - Throws: `NetworkError.outOfMemory`.
    public convenience init(
        _ objective: any TrainingObjective, options: Options, checkpoints: (any CheckpointPolicy)? = nil
    ) throws {
        try self.init(objective, options: options, reducer: LocalReducer(), checkpoints: checkpoints)
    }

    package init(
        _ objective: any TrainingObjective, options: Options, reducer: any GradientReducer,
        checkpoints: (any CheckpointPolicy)? = nil
    ) throws {
        self.objective = objective
        self.options = options
        self.reducer = reducer
        self.checkpoints = checkpoints
        let parameters = objective.plan.parameters
        optimizer = try options.optimizer.makeOptimizer(
            for: parameters.layout, learningRateFactors: options.learningRateFactors)
        average = try options.averageDecay.map { _ in try parameters.copy() }
        progress = TrainingProgress(
            learningRate: options.rounds.learningRate(of: 0), plannedEpochs: options.rounds.count)
    }

    /// The parameters that are trained.
    public var parameters: Parameters { objective.plan.parameters }

    /// The parameters that validation uses and that a model gets: the average if one is kept, otherwise the trained ones.
    public var evaluated: Parameters { average ?? parameters }

    /// The time that the run has taken, over all of its parts, in seconds.
    public var seconds: Double { clock.seconds }
}

// MARK: Run

extension TrainingLoop {
    /// What happens during a run.
    public enum Event: Sendable {
        /// A step is done; the progress is the loop's.
        case step
        /// A round is done; it took so many seconds.
        case round(EpochMetrics, seconds: Double)
    }

    /// Why a run ended.
    public enum Ending: Sendable {
        /// All rounds are done.
        case completed
        /// The validation loss did not improve for `patience` rounds.
        case noImprovement
        /// The time limit is reached.
        case timeLimit
        /// `shouldStop` returned true.
        case stopped
    }

    /// Trains until a stop rule applies.
    /// - Parameters:
    ///   - shouldStop: Called after each step; true ends the run there. A stop after the last step of a round completes the round.
    ///   - onEvent: Receives what happens.
    /// - Throws: `TrainingDivergedError` if the loss or a parameter is not finite, and what the objective throws.
    public func run(
        shouldStop: () throws -> Bool = { false }, onEvent: (Event) throws -> Void = { _ in }
    ) throws -> Ending {
        planRounds()
        while true {
            if let ending { return ending }
            _ = clock.lap()
            let isWhole = try runRound(shouldStop, onEvent)
            guard isWhole || isOutOfTime else { continue }
            let validation = try validateRound()
            progress.secondsInEpoch += clock.lap()
            let seconds = progress.secondsInEpoch
            let metrics = try finishRound(validation)
            planRounds()
            try onEvent(.round(metrics, seconds: seconds))
            if let checkpoints, checkpoints.isDue { checkpoints.save(state) }
        }
    }

    /// Why the run ends here; nil if it continues.
    private var ending: Ending? {
        let done = progress.history.count
        if done >= options.rounds.count { return .completed }
        // The last stage must have had its chance.
        let countsForPatience = min(progress.epochsSinceBest, done - options.firstPatientRound)
        if let patience = options.patience, countsForPatience >= patience { return .noImprovement }
        if isStopped { return .stopped }
        return done > 0 && (done >= progress.plannedEpochs || isOutOfTime) ? .timeLimit : nil
    }

    /// Runs the rest of the current round.
    /// - Returns: Whether the round is whole.
    private func runRound(
        _ shouldStop: () throws -> Bool, _ onEvent: (Event) throws -> Void
    ) throws -> Bool {
        let round = progress.history.count
        try objective.beginRound(round, at: progress.batch, evaluated: evaluated)
        defer { objective.endRound() }
        if progress.batch == 0, options.rounds.restarts {
            optimizer = try options.optimizer.makeOptimizer(
                for: parameters.layout, learningRateFactors: options.learningRateFactors)
            average?.copyValues(from: parameters)
            progress.averagedSteps = 0
        }
        let steps = options.rounds.steps(of: round)
        while options.rounds.endsByObjective || progress.batch < steps {
            guard try step(round) else { return true }
            progress.secondsInEpoch += clock.lap()
            try onEvent(.step)
            isStopped = try shouldStop()
            if isStopped || isOutOfTime { return progress.batch >= steps }
            if let checkpoints, checkpoints.isDue { checkpoints.save(state) }
        }
        return true
    }

    /// Takes one step.
    /// - Returns: Whether there was a batch left.
    private func step(_ round: Int) throws -> Bool {
        guard let result = try objective.forward(round: round, step: progress.batch) else { return false }
        let step = result.step ?? progress.batch
        guard result.loss.isFinite else { throw diverged }
        let plan = objective.plan
        plan.backward(count: result.count)
        for pass in objective.auxiliaryPasses { pass.plan.backward(count: pass.count) }
        objective.addGradients()
        try reducer.reduce(plan.parameterGradients)
        optimizer.step(plan, learningRate: learningRate(at: step))
        if let average, let decay = options.averageDecay {
            let steps = Float(progress.averagedSteps)
            average.move(towards: plan.parameters, by: 1 - min(decay, (1 + steps) / (10 + steps)))
            progress.averagedSteps += 1
        }
        progress.sum.add(loss: result.loss, correct: result.correct, count: result.count)
        progress.batch = step + 1
        progress.passes = plan.passCount
        return true
    }

    /// The learning rate of a step of the current round.
    private func learningRate(at step: Int) -> Float {
        let round = progress.history.count
        return progress.learningRate
            * options.rounds.factor(round: round, step: step, plannedRounds: progress.plannedEpochs)
    }

    private var diverged: TrainingDivergedError {
        TrainingDivergedError(epoch: progress.history.count + 1, learningRate: progress.learningRate)
    }
}

// MARK: Validation

extension TrainingLoop {
    /// Validates the parameters of the round.
    ///
    /// If validation samples disappeared, it validates the best round again too: only losses on the same samples compare.
    private func validateRound() throws -> ValidationLoss? {
        while true {
            let version = objective.validationVersion
            let validation = try objective.validate(evaluated)
            let hasFewer = objective.validationVersion != version || validatesBestAgain
            guard hasFewer, progress.best != nil else { return validation }
            progress.bestLoss = try validateBest()?.loss
            validatesBestAgain = false
        }
    }

    /// Validates the parameters of the best round again.
    /// - Returns: The result; nil without a validation set or before the first round ends.
    @discardableResult
    public func validateBest() throws -> ValidationLoss? {
        guard let best else { return nil }
        let before = try evaluated.copy()
        defer { evaluated.copyValues(from: before) }
        evaluated.copyValues(from: best)
        return try objective.validate(evaluated)
    }

    /// Records the round's metrics, and snapshots the parameters if they are the best so far.
    private func finishRound(_ validation: ValidationLoss?) throws -> EpochMetrics {
        // The loss of a step is from before its update, so the effect of the last update shows only here.
        guard !options.keepsBest || (validation?.loss.isFinite ?? true && parameters.areFinite) else { throw diverged }
        let round = progress.history.count
        let rate =
            options.rounds.restarts ? progress.learningRate : learningRate(at: max(progress.batch - 1, 0))
        let metrics = EpochMetrics(
            epoch: round + 1, loss: progress.sum.meanLoss, accuracy: progress.sum.accuracy,
            validationLoss: validation?.loss, validationAccuracy: validation?.accuracy, learningRate: rate)
        if progress.finishEpoch(metrics), options.keepsBest {
            if let best { best.copyValues(from: evaluated) } else { best = try evaluated.copy() }
        }
        if options.rounds.restarts {
            if let average { parameters.copyValues(from: average) }
            progress.learningRate = options.rounds.learningRate(of: min(round + 1, options.rounds.count - 1))
        }
        return metrics
    }
}

// MARK: Time

extension TrainingLoop {
    private var secondsLeft: Double? { options.timeLimit.map { $0.seconds - clock.seconds } }
    private var isOutOfTime: Bool { secondsLeft.map { $0 <= 0 } ?? false }

    /// Plans as many rounds as fit into the time left, and at least those that are done.
    private func planRounds() {
        progress.plannedEpochs = options.rounds.count
        let done = progress.history.count
        guard let secondsLeft, done > 0, progress.secondsInEpochs > 0 else { return }
        let fitting = max(secondsLeft, 0) / (progress.secondsInEpochs / Double(done))
        progress.plannedEpochs = min(options.rounds.count, done + Int(min(fitting, 1e9)))
    }
}

// MARK: State

extension TrainingLoop {
    /// The complete state between two steps.
    public func state() throws -> TrainingState {
        var progress = progress
        progress.seconds = clock.seconds
        return TrainingState(
            progress: progress, parameters: parameters.withValues { Array($0) },
            optimizer: Dictionary(uniqueKeysWithValues: optimizer.state.map { ($0.name, Array($0.values)) }),
            average: average?.withValues { Array($0) },
            best: progress.history.isEmpty ? nil : best?.withValues { Array($0) },
            objective: try objective.encodeState())
    }

    /// The state of a run that has ended, so that another one may replace its checkpoint.
    package func finishedState() throws -> TrainingState {
        var state = try state()
        state.progress.isFinished = true
        return state
    }

    /// Continues from a state.
    /// - Parameter hasSameData: Whether the data are the same. If not, the round restarts, and earlier validation losses do not compare.
    /// - Throws: `NetworkError.outOfMemory`, and what the objective throws.
    public func restore(_ state: TrainingState, hasSameData: Bool = true) throws {
        progress = state.progress
        progress.isFinished = false
        clock.secondsBefore = progress.seconds
        let round = min(progress.history.count, options.rounds.count - 1)
        if options.rounds.restarts { progress.learningRate = options.rounds.learningRate(of: round) }
        func load(_ values: [Float]?, into parameters: Parameters?) {
            guard let values else { return }
            parameters?.withValues { _ = $0.update(from: values) }
        }
        load(state.parameters, into: parameters)
        load(state.average, into: average)
        if let values = state.best, options.keepsBest {
            best = try parameters.copy()
            load(values, into: best)
        }
        for (name, values) in optimizer.state { _ = values.update(from: state.optimizer[name] ?? []) }
        optimizer.stepCount = options.rounds.stepsBefore(round: progress.history.count) + progress.batch
        objective.plan.passCount = progress.passes
        progress.isRepeatable =
            progress.isRepeatable && (options.rounds.restarts || progress.plannedEpochs == options.rounds.count)
        if !hasSameData {
            progress.changeImages()
        } else {
            if progress.hasLostPhotos == true {
                if options.restartsRoundAfterLoss { progress.restartEpoch() }
                validatesBestAgain = progress.best != nil
            }
            if let objectiveState = state.objective { try objective.restoreState(objectiveState) }
        }
        progress.hasLostPhotos = nil
    }

    /// Records that a photo could not be read any more: no other run gives the same model.
    package func recordUnreadablePhoto() { progress.losePhoto() }

    /// Starts with another learning rate, such as one that a range test found.
    package func use(learningRate: Float) { progress.learningRate = learningRate }
}

/// The loss, or a parameter, became infinite or not a number.
public struct TrainingDivergedError: Error, Hashable, CustomStringConvertible {
    /// The epoch or phase, from 1.
    public let epoch: Int
    /// The peak learning rate.
    public let learningRate: Float

    public var description: String {
        "training diverged in epoch \(epoch): the loss or a parameter is not finite at a learning rate of \(learningRate)"
    }
}

extension Parameters {
    /// Whether every value is finite.
    fileprivate var areFinite: Bool {
        layout.entries.allSatisfy { entry in withValues(of: entry) { $0.allSatisfy(\.isFinite) } }
    }
}
