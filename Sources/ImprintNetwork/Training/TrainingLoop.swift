public import ImprintCore

/// Trains the parameters of an objective.
///
/// The loop runs the steps and applies the learning-rate schedule, the exponential moving average (EMA), divergence checks and
/// early stopping. It also snapshots the best parameters. A `TrainingObjective` provides batches and losses, an `Optimizer` updates
/// the parameters, and a `CheckpointPolicy` saves the state. The same objective and options give bitwise identical parameters, even
/// if the run is interrupted and resumed.
public final class TrainingLoop {
    /// The progress so far.
    public private(set) var progress: TrainingProgress
    /// The trained parameters.
    ///
    /// The loop holds them itself, because an objective may have no plan after an error.
    public private(set) var parameters: Parameters
    /// The exponential moving average (EMA) of the parameters; nil without an EMA.
    public let ema: Parameters?
    /// A snapshot of the best parameters: the parameters of the best round, or the initial ones if `Options.evaluatesStart` is set and no round was
    /// as accurate.
    ///
    /// It is nil before the first round ends, unless the initial parameters were validated.
    public private(set) var best: Parameters?
    private let objective: any TrainingObjective
    private let options: Options
    private let checkpoints: (any CheckpointPolicy)?
    private let optimizer: any Optimizer
    private var clock: RunClock
    private var isStopped = false
    /// Whether to validate the best round again: photos were unreadable before the run was resumed, and may be readable now.
    private var validatesBestAgain = false

    /// Creates a loop that starts from the objective's current parameters.
    /// - Throws: `NetworkError.outOfMemory`, and the errors of the closure of a custom optimizer.
    public init(
        _ objective: any TrainingObjective, options: Options, checkpoints: (any CheckpointPolicy)? = nil
    ) throws {
        if case .phases(let phases) = options.rounds {
            precondition(!phases.isEmpty, "the rounds have no phases, expected at least one")
        }
        precondition((options.patience ?? 1) >= 1, "patience is \(options.patience ?? 1), expected at least 1")
        self.objective = objective
        self.options = options
        self.checkpoints = checkpoints
        clock = RunClock(now: options.now)
        clock.secondsBefore = options.secondsBefore
        let parameters = objective.plan.parameters
        self.parameters = parameters
        optimizer = try options.optimizer.makeOptimizer(
            for: parameters.layout, learningRateFactors: options.learningRateFactors)
        ema = try options.emaDecay.map { _ in try parameters.copy() }
        progress = TrainingProgress(
            learningRate: options.rounds.learningRate(of: 0), plannedRounds: options.rounds.count)
    }

    /// The parameters for validation and the final model: the EMA, or the trained parameters without an EMA.
    public var evaluationParameters: Parameters { ema ?? parameters }

    /// The duration of the run in seconds, including the time before it was resumed.
    public var seconds: Double { clock.seconds }
}

// MARK: Run

extension TrainingLoop {
    /// An event of a run.
    public enum Event: Sendable {
        /// A step is done; see `progress`.
        case step
        /// A round is done, with its metrics and duration.
        case round(EpochMetrics, seconds: Double)
    }

    /// The reason why a run ended.
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

    /// Trains until all rounds are done or a stop rule applies.
    ///
    /// If a run ended with `Ending.stopped`, the next call continues it, with the same result as an uninterrupted run. The time between the calls
    /// counts towards the time limit.
    /// - Parameters:
    ///   - shouldStop: Called after each step; true ends the run. A stop after the last step of a round completes the round,
    ///     unless its validation throws an error.
    ///   - onEvent: Called for each event.
    /// - Throws: `TrainingDivergedError` if the loss or a parameter is not finite; `NetworkError.outOfMemory`; and the errors of
    ///   the objective and of the closures. After a divergence, `best` still has the best parameters, but `state()` has those that are not
    ///   finite. After any other error, `state()` is the state before the failed step or validation, and a run that is resumed from it
    ///   repeats the step or validation.
    public func run(
        shouldStop: () throws -> Bool = { false }, onEvent: (Event) throws -> Void = { _ in }
    ) throws -> Ending {
        isStopped = false
        try validateStart()
        planRounds()
        while true {
            if let ending { return ending }
            _ = clock.lap()
            let isComplete = try runRound(shouldStop, onEvent)
            guard isComplete || isOutOfTime else { continue }
            let validation = try validateRound()
            progress.secondsInRound += clock.lap()
            let seconds = progress.secondsInRound
            let metrics = try finishRound(validation)
            planRounds()
            try onEvent(.round(metrics, seconds: seconds))
            if let checkpoints, checkpoints.isDue { checkpoints.save(state) }
        }
    }

    /// Returns whether `run` would end without a training step, because all rounds are done or a stop rule applies.
    package func isAtEnd() -> Bool {
        planRounds()
        return ending != nil
    }

    /// The reason why the run ends now; nil if it continues.
    private var ending: Ending? {
        let done = progress.round
        if done >= options.rounds.count { return .completed }
        if let patience = options.patience, progress.hasStalled(for: patience, since: options.firstPatientRound) {
            return .noImprovement
        }
        if isStopped { return .stopped }
        return done > 0 && (done >= progress.plannedRounds || isOutOfTime) ? .timeLimit : nil
    }

    /// Runs the rest of the current round.
    /// - Returns: Whether the round is complete.
    private func runRound(
        _ shouldStop: () throws -> Bool, _ onEvent: (Event) throws -> Void
    ) throws -> Bool {
        let round = progress.round
        try objective.beginRound(round, at: progress.batch, evaluationParameters: evaluationParameters)
        parameters = objective.plan.parameters
        defer { objective.endRound() }
        if progress.batch == 0, options.rounds.restarts {
            optimizer.reset()
            ema?.copyValues(from: parameters)
            progress.emaSteps = 0
        }
        let steps = options.rounds.steps(of: round)
        while progress.batch < steps {
            guard try step() else { return true }
            progress.secondsInRound += clock.lap()
            try onEvent(.step)
            isStopped = broadcast(try shouldStop())
            if isStopped || isOutOfTime { return progress.batch >= steps }
            if let checkpoints, checkpoints.isDue { checkpoints.save(state) }
        }
        return true
    }

    /// Takes the next step of the current round.
    /// - Returns: False if the round has no more batches.
    package func step() throws -> Bool {
        guard let result = try objective.trainingStep(round: progress.round, step: progress.batch) else { return false }
        let step = result.step ?? progress.batch
        guard result.loss.isFinite else { throw diverged }
        let plan = objective.plan
        plan.backward(count: result.count)
        for pass in objective.auxiliaryPasses { pass.plan.backward(count: pass.count) }
        objective.addGradients()
        optimizer.step(plan, learningRate: learningRate(at: step))
        if let ema, let decay = options.emaDecay {
            let steps = Float(progress.emaSteps)
            ema.move(towards: plan.parameters, by: 1 - min(decay, (1 + steps) / (10 + steps)))
            progress.emaSteps += 1
        }
        progress.sum.add(
            loss: result.loss, correct: result.correct, count: result.count, decisions: result.decisions)
        progress.batch = step + 1
        progress.passes = plan.passCount
        return true
    }

    /// Returns the learning rate of a step of the current round.
    private func learningRate(at step: Int) -> Float {
        let round = progress.round
        return progress.learningRate
            * options.rounds.factor(round: round, step: step, plannedRounds: progress.plannedRounds)
    }

    private var diverged: TrainingDivergedError {
        TrainingDivergedError(epoch: progress.round + 1, learningRate: progress.learningRate)
    }
}

// MARK: Validation

extension TrainingLoop {
    /// Validates the initial parameters of a new run, and snapshots them, if the options ask for it.
    private func validateStart() throws {
        guard options.evaluatesStart, options.keepsBest, optimizer.stepCount == 0, progress.history.isEmpty,
            progress.startAccuracy == nil, let validation = try objective.validate(evaluationParameters)
        else { return }
        best = try copyInAllProcesses(evaluationParameters)
        progress.recordStart(validation)
    }

    /// Validates the parameters of the current round.
    ///
    /// If validation samples became unreadable, also validates the best round again, because only losses on the same samples are
    /// comparable.
    private func validateRound() throws -> ValidationLoss? {
        while true {
            let version = objective.validationVersion
            let validation = try objective.validate(evaluationParameters)
            let samplesChanged = objective.validationVersion != version || validatesBestAgain
            guard samplesChanged, progress.hasBest else { return validation }
            progress.recordBest(try validateBest())
            validatesBestAgain = false
        }
    }

    /// Validates the best parameters again.
    /// - Returns: The result; nil without a validation set or without best parameters.
    /// - Throws: `NetworkError.outOfMemory`, and the errors of `TrainingObjective.validate(_:)`.
    @discardableResult
    public func validateBest() throws -> ValidationLoss? {
        guard let best else { return nil }
        let before = try copyInAllProcesses(evaluationParameters)
        defer { evaluationParameters.copyValues(from: before) }
        evaluationParameters.copyValues(from: best)
        return try objective.validate(evaluationParameters)
    }

    /// Records the round's metrics, and snapshots the parameters if they are the best so far.
    private func finishRound(_ validation: ValidationLoss?) throws -> EpochMetrics {
        // The loss of a step is measured before its update, so only this check covers the last update.
        let isFinite = validation?.loss.isFinite ?? true && parameters.areFinite
        guard isFinite || options.allowsDivergence else { throw diverged }
        let round = progress.round
        let rate =
            options.rounds.restarts ? progress.learningRate : learningRate(at: max(progress.batch - 1, 0))
        let metrics = EpochMetrics(
            epoch: round + 1, loss: progress.sum.meanLoss, accuracy: progress.sum.accuracy,
            validationLoss: validation?.loss, validationAccuracy: validation?.accuracy,
            validationAveragePrecision: validation?.averagePrecision, learningRate: rate)
        // Before the round is recorded, because there may be too little memory.
        if options.keepsBest, best == nil { best = try copyInAllProcesses(evaluationParameters) }
        if progress.finishRound(metrics) { best?.copyValues(from: evaluationParameters) }
        if options.rounds.restarts {
            if let ema { parameters.copyValues(from: ema) }
            progress.learningRate = options.rounds.learningRate(of: min(round + 1, options.rounds.count - 1))
        }
        return metrics
    }
}

// MARK: Several processes

extension TrainingLoop {
    /// The processes that train together; nil for a single process.
    private var processes: ProcessGroup? { objective.plan.options.workers.processes }

    /// Broadcasts a value from the first process, if several processes train together: all must decide alike.
    /// - Returns: The value of the first process.
    private func broadcast<Value: BitwiseCopyable>(_ value: Value) -> Value {
        processes?.broadcast(value) ?? value
    }

    /// Returns a copy of parameters, or throws in all processes if one of them has too little memory.
    private func copyInAllProcesses(_ parameters: Parameters) throws -> Parameters {
        try processes.failTogether { try parameters.copy() }
    }
}

// MARK: Time

extension TrainingLoop {
    private var secondsLeft: Double? { options.timeLimit.map { broadcast($0.seconds - clock.seconds) } }
    private var isOutOfTime: Bool { secondsLeft.map { $0 <= 0 } ?? false }

    /// Plans as many rounds as fit into the remaining time, and at least the completed ones.
    private func planRounds() {
        progress.plannedRounds = options.rounds.count
        let done = progress.round
        guard let secondsLeft, done > 0 else { return }
        let secondsInRounds = broadcast(progress.secondsInRounds)
        guard secondsInRounds > 0 else { return }
        let fitting = max(secondsLeft, 0) / (secondsInRounds / Double(done))
        progress.plannedRounds = min(options.rounds.count, done + Int(min(fitting, 1e9)))
    }
}

// MARK: State

extension TrainingLoop {
    /// Returns the complete state between two steps.
    /// - Throws: The errors of `TrainingObjective.encodeState()`.
    public func state() throws -> TrainingState {
        var progress = progress
        progress.seconds = clock.seconds
        return TrainingState(
            progress: progress, parameters: parameters.withValues { Array($0) },
            optimizer: Dictionary(uniqueKeysWithValues: optimizer.state.map { ($0.name, Array($0.values)) }),
            optimizerSteps: optimizer.stepCount,
            ema: ema?.withValues { Array($0) },
            best: progress.hasBest ? best?.withValues { Array($0) } : nil,
            objective: try objective.encodeState())
    }

    /// Returns the state of a finished run, whose checkpoint other runs may replace.
    package func finishedState() throws -> TrainingState {
        var state = try state()
        state.progress.isFinished = true
        state.progress.roundsWithoutTimeLimit = options.rounds.count
        return state
    }

    /// Restores a state.
    /// - Parameters:
    ///   - state: The state of a loop with the same network and options.
    ///   - hasSameData: Whether the data are unchanged. If not, the round restarts, and earlier validation losses are not comparable.
    /// - Throws: `TrainingStateError` if the state does not fit the network and the options, `NetworkError.outOfMemory`, and errors of the
    ///   objective.
    public func restore(_ state: TrainingState, hasSameData: Bool = true) throws {
        try state.check(
            parameters.layout,
            optimizerCounts: Dictionary(uniqueKeysWithValues: optimizer.state.map { ($0.name, $0.values.count) }),
            needsEMA: ema != nil, needsBest: options.keepsBest)
        progress = state.progress
        progress.isFinished = false
        progress.roundsWithoutTimeLimit = nil
        clock.secondsBefore = progress.seconds + options.secondsBefore
        let round = min(progress.round, options.rounds.count - 1)
        if options.rounds.restarts { progress.learningRate = options.rounds.learningRate(of: round) }
        func load(_ values: [Float]?, into parameters: Parameters?) {
            guard let values else { return }
            parameters?.withValues { _ = $0.update(from: values) }
        }
        load(state.parameters, into: parameters)
        load(state.ema ?? state.parameters, into: ema)
        if let values = state.best, options.keepsBest {
            best = try parameters.copy()
            load(values, into: best)
        }
        for (name, values) in optimizer.state { _ = values.update(from: state.optimizer[name] ?? []) }
        // A round may have fewer steps than planned, so older checkpoints give only an upper bound.
        optimizer.stepCount =
            state.optimizerSteps ?? options.rounds.stepsBefore(round: progress.round) + progress.batch
        objective.plan.passCount = progress.passes
        progress.isRepeatable =
            progress.isRepeatable && (options.rounds.restarts || progress.plannedRounds == options.rounds.count)
            && !(options.patience.map { progress.hadStalled(for: $0, since: options.firstPatientRound) } ?? false)
        if !hasSameData {
            progress.changeImages()
            if !progress.hasBest { best = nil }
        } else {
            if progress.hasUnreadablePhotos == true {
                if options.restartsRoundAfterUnreadablePhotos { progress.restartRound() }
                validatesBestAgain = progress.hasBest
            }
            if let objectiveState = state.objective { try objective.restoreState(objectiveState) }
        }
        progress.hasUnreadablePhotos = nil
    }

    /// Records that a photo became unreadable, after which the run is not reproducible.
    package func recordUnreadablePhoto() { progress.recordUnreadablePhoto() }

    /// Replaces the peak learning rate, for example by the result of a range test.
    package func use(learningRate: Float) { progress.learningRate = learningRate }
}

/// The error of a run whose loss or parameters became infinite or NaN.
public struct TrainingDivergedError: DescribedError, Hashable {
    /// The number of the epoch or phase, from 1.
    public let epoch: Int
    /// The peak learning rate.
    public let learningRate: Float

    /// A sentence with the problem and the fix.
    public var description: String {
        "training diverged in epoch or phase \(epoch): the loss or a parameter is not finite at a learning rate of "
            + "\(learningRate). Train with a lower learning rate."
    }
}

extension Parameters {
    /// Whether every value is finite.
    fileprivate var areFinite: Bool {
        layout.entries.allSatisfy { entry in withValues(of: entry) { $0.allSatisfy(\.isFinite) } }
    }
}
