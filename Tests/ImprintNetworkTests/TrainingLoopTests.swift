import Foundation
import TestSupport
import Testing

@testable import ImprintNetwork

@Suite("Training loop") struct TrainingLoopTests {
    private func options(
        epochs: Int = 12, emaDecay: Float? = nil, optimizer: OptimizerConfiguration = .sgd(SGD.Options())
    ) -> TrainingLoop.Options {
        TrainingLoop.Options(
            rounds: .epochs(.init(count: epochs, steps: 8, learningRate: 0.1)), optimizer: optimizer,
            emaDecay: emaDecay)
    }

    /// Phases of three steps with a constant learning rate.
    private func phases(
        _ count: Int, _ optimizer: OptimizerConfiguration = .sgd(SGD.Options()), emaDecay: Float? = nil
    ) -> TrainingLoop.Options {
        let phase = TrainingLoop.Rounds.Phase(
            steps: 3, learningRate: 0.1, schedule: LearningRateSchedule(.constant))
        return TrainingLoop.Options(
            rounds: .phases(Array(repeating: phase, count: count)), optimizer: optimizer, emaDecay: emaDecay)
    }

    static let optimizers: [OptimizerConfiguration] = [
        .sgd(SGD.Options(momentum: 0.9, nesterov: true)), .adamW(AdamW.Options()),
        .custom { layout, _ in SignDescent(layout) },
    ]

    private func values(_ parameters: Parameters) -> [Float] { parameters.withValues { Array($0) } }

    @Test(
        "A custom objective is trained, with and without an exponential moving average of the parameters",
        arguments: [nil, 0.9] as [Float?])
    func learns(emaDecay: Float?) throws {
        let loop = try TrainingLoop(LineFit(), options: options(emaDecay: emaDecay))
        #expect(try loop.run() == .completed)
        let best = try #require(loop.best)
        #expect(abs((best["line.weight"]?[0] ?? 0) - 3) < 0.02 && abs((best["line.bias"]?[0] ?? 0) + 1) < 0.02)
        #expect(loop.progress.history.map(\.epoch) == Array(1...12))
    }

    @Test(
        "Training that is interrupted and resumed after every step is bitwise identical to uninterrupted training",
        arguments: optimizers, [8, 5])
    func resumes(optimizer: OptimizerConfiguration, batches: Int) throws {
        // With 5 batches, a round ends before its 8 planned steps.
        let options = options(epochs: 3, emaDecay: 0.9, optimizer: optimizer)
        let uninterrupted = try TrainingLoop(LineFit(stepsPerRound: batches), options: options)
        _ = try uninterrupted.run()
        let checkpoints = MemoryCheckpoints()
        var ending = TrainingLoop.Ending.stopped
        var last: TrainingLoop?
        while ending == .stopped {
            let loop = try TrainingLoop(
                LineFit(stepsPerRound: batches), options: options, checkpoints: checkpoints)
            if let state = try checkpoints.last() { try loop.restore(state) }
            ending = try loop.run(shouldStop: { true })
            checkpoints.save(loop.state)
            last = loop
        }
        let resumed = try #require(last)
        #expect(ending == .completed && resumed.progress.history == uninterrupted.progress.history)
        #expect(values(resumed.parameters) == values(uninterrupted.parameters))
        #expect(values(try #require(resumed.best)) == values(try #require(uninterrupted.best)))
    }

    @Test("A round ends after its planned steps if the objective always has another batch", arguments: [false, true])
    func endlessObjective(hasPhases: Bool) throws {
        let options = hasPhases ? phases(2) : options(epochs: 2)
        let loop = try TrainingLoop(LineFit(stepsPerRound: .max), options: options)
        // An endless round must not hang the test.
        #expect(try loop.run(shouldStop: { loop.progress.batch > 100 }) == .completed)
        #expect(loop.progress.history.count == 2 && loop.progress.passes == (hasPhases ? 2 * 3 : 2 * 8))
    }

    @Test("A run that was stopped continues with the next call, with the same result", arguments: optimizers)
    func continuesAfterStop(optimizer: OptimizerConfiguration) throws {
        let options = options(epochs: 3, emaDecay: 0.9, optimizer: optimizer)
        let uninterrupted = try TrainingLoop(LineFit(), options: options)
        _ = try uninterrupted.run()
        let loop = try TrainingLoop(LineFit(), options: options)
        var endings: [TrainingLoop.Ending] = []
        // One call for each of the 24 steps.
        while endings.count < 25, endings.last != .completed { endings.append(try loop.run(shouldStop: { true })) }
        #expect(endings.count == 24 && endings.last == .completed && endings.dropLast().allSatisfy { $0 == .stopped })
        #expect(loop.progress.history == uninterrupted.progress.history)
        #expect(values(loop.parameters) == values(uninterrupted.parameters))
        #expect(values(try #require(loop.best)) == values(try #require(uninterrupted.best)))
    }

    @Test("Training stops early after `patience` rounds without an improvement, and keeps the best parameters")
    func earlyStopping() throws {
        let objective = try LineFit()
        objective.scripted = [5, 4, 6, 7, 8]
        var options = options()
        options.patience = 3
        var parameters: [[Float]] = []
        let loop = try TrainingLoop(objective, options: options)
        let ending = try loop.run(onEvent: { event in
            if case .round = event { parameters.append(values(objective.plan.parameters)) }
        })
        #expect(ending == .noImprovement && loop.progress.history.count == 5 && loop.progress.best == 1)
        #expect(values(try #require(loop.best)) == parameters[1])
    }

    @Test(
        "A run that resumes with another patience is repeatable unless it would have ended before its last round",
        arguments: [
            (nil, 0, true), (3, 0, true), (2, 0, false), (1, 0, false), (2, 4, true), (1, 4, true), (1, 3, false),
        ] as [(Int?, Int, Bool)])
    func lowerPatience(patience: Int?, firstPatientRound: Int, isRepeatable: Bool) throws {
        let objective = try LineFit()
        // No improvement in the third, fourth and sixth epoch.
        objective.scripted = [5, 4, 6, 7, 3, 8]
        var options = options(epochs: 6)
        let loop = try TrainingLoop(objective, options: options)
        #expect(try loop.run() == .completed)
        (options.patience, options.firstPatientRound) = (patience, firstPatientRound)
        let resumed = try TrainingLoop(LineFit(), options: options)
        try resumed.restore(loop.state())
        #expect(resumed.progress.isRepeatable == isRepeatable)
    }

    @Test(
        "The initial parameters are kept unless a round is at least as accurate",
        arguments: [([0.8, 0.7, 0.75], nil), ([0.8, 0.7, 0.8], 1), ([0.8, 0.9, 0.7], 0)] as [([Float], Int?)])
    func evaluatesStart(accuracies: [Float], best: Int?) throws {
        let objective = try LineFit()
        // The losses fall, so they do not decide.
        objective.scripted = [5, 4, 3]
        objective.scriptedAccuracies = accuracies
        var options = options(epochs: 2, emaDecay: 0.9)
        options.evaluatesStart = true
        let loop = try TrainingLoop(objective, options: options)
        var parameters = [values(loop.evaluationParameters)]
        _ = try loop.run(onEvent: { event in
            if case .round = event { parameters.append(values(loop.evaluationParameters)) }
        })
        #expect(loop.progress.startAccuracy == accuracies[0] && loop.progress.best == best)
        #expect(values(try #require(loop.best)) == parameters[best.map { $0 + 1 } ?? 0])
    }

    @Test("The initial parameters stay the best in a resumed run, which does not validate them again")
    func resumesWithStart() throws {
        var options = options(epochs: 2)
        options.evaluatesStart = true
        let checkpoints = MemoryCheckpoints()
        let first = try LineFit()
        let start = values(first.plan.parameters)
        first.scriptedAccuracies = [0.8]
        let interrupted = try TrainingLoop(first, options: options, checkpoints: checkpoints)
        #expect(try interrupted.run(shouldStop: { true }) == .stopped)
        checkpoints.save(interrupted.state)
        let second = try LineFit()
        second.scriptedAccuracies = [0.7, 0.6]
        let resumed = try TrainingLoop(second, options: options, checkpoints: checkpoints)
        try resumed.restore(try #require(try checkpoints.last()))
        #expect(try resumed.run() == .completed)
        #expect(resumed.progress.best == nil && resumed.progress.startAccuracy == 0.8)
        #expect(resumed.progress.history.compactMap(\.validationAccuracy) == [0.7, 0.6])
        #expect(values(try #require(resumed.best)) == start)
        // Its final state can be restored, with other images too: then the initial parameters do not count.
        let third = try LineFit()
        options = self.options(epochs: 3)
        options.evaluatesStart = true
        third.scriptedAccuracies = [0.1]
        let longer = try TrainingLoop(third, options: options)
        try longer.restore(try #require(try checkpoints.last()), hasSameData: false)
        _ = try longer.run()
        #expect(longer.progress.best == longer.progress.history.count - 1)
    }

    @Test(
        "A phase restarts the optimizer and continues from the averaged parameters, as a separate run does",
        arguments: optimizers)
    func restartsInEachPhase(optimizer: OptimizerConfiguration) throws {
        let both = try TrainingLoop(LineFit(), options: phases(2, optimizer, emaDecay: 0.9))
        _ = try both.run(onEvent: { event in
            if case .round = event { #expect(values(both.parameters) == values(both.evaluationParameters)) }
        })
        let first = try TrainingLoop(LineFit(), options: phases(1, optimizer, emaDecay: 0.9))
        _ = try first.run()
        let objective = try LineFit()
        objective.plan.parameters.copyValues(from: first.parameters)
        let second = try TrainingLoop(objective, options: phases(1, optimizer, emaDecay: 0.9))
        _ = try second.run()
        #expect(both.progress.history.count == 2)
        #expect(values(both.parameters) == values(second.parameters))
        #expect(values(both.parameters) != values(first.parameters))
    }

    @Test("A custom optimizer trains, and receives the factors of the learning rate") func customOptimizer() throws {
        var options = options(optimizer: .custom { layout, factors in SignDescent(layout, factors: factors) })
        let loop = try TrainingLoop(LineFit(), options: options)
        #expect(try loop.run() == .completed)
        let best = try #require(loop.best)
        #expect(abs((best["line.weight"]?[0] ?? 0) - 3) < 0.2 && abs((best["line.bias"]?[0] ?? 0) + 1) < 0.2)
        options.learningRateFactors = ["line": 0]
        let frozen = try TrainingLoop(LineFit(), options: options)
        let before = values(frozen.parameters)
        _ = try frozen.run()
        #expect(values(frozen.parameters) == before)
        var state = try loop.state()
        state.optimizer["sum"] = [0, 0]
        let error = #expect(throws: TrainingStateError.self) { try frozen.restore(state) }
        #expect(error?.reason == "found 2 values in the optimizer's sum, expected 1")
    }

    /// Returns options of a run with a time limit in which four epochs fit, because each of their eight steps takes 1/8 s.
    private func timeLimited(_ clock: ManualClock) -> TrainingLoop.Options {
        var options = options(epochs: 100_000)
        options.timeLimit = .seconds(4.75)
        options.now = { clock.now }
        return options
    }

    /// Runs a loop whose steps take 1/8 s, until the time limit or a number of steps.
    private func run(_ loop: TrainingLoop, _ clock: ManualClock, steps limit: Int = .max) throws -> TrainingLoop.Ending
    {
        var steps = 0
        return try loop.run(
            shouldStop: { steps == limit },
            onEvent: { event in
                guard case .step = event else { return }
                steps += 1
                clock.advance(by: .milliseconds(125))
            })
    }

    @Test("A time limit shortens the learning-rate schedule: the run equals one of the epochs that fit")
    func timeLimit() throws {
        let expected = try TrainingLoop(LineFit(), options: options(epochs: 4))
        _ = try expected.run()
        let clock = ManualClock()
        let loop = try TrainingLoop(LineFit(), options: timeLimited(clock))
        #expect(try run(loop, clock) == .timeLimit)
        #expect(loop.progress.history.count == 4 && loop.progress.history == expected.progress.history)
        #expect(values(loop.parameters) == values(expected.parameters))
        #expect(abs(loop.seconds - 4) < 1e-6)
    }

    @Test("The time limit applies to the total time of all parts of a run, without the time between them")
    func resumedTimeLimit() throws {
        let clock = ManualClock()
        let uninterrupted = try TrainingLoop(LineFit(), options: timeLimited(clock))
        _ = try run(uninterrupted, clock)
        let first = try TrainingLoop(LineFit(), options: timeLimited(clock))
        #expect(try run(first, clock, steps: 20) == .stopped)
        let state = try first.state()
        #expect(abs(state.progress.seconds - 2.5) < 1e-6 && abs(state.progress.secondsInRounds - 2) < 1e-6)
        clock.advance(by: .seconds(100))
        let second = try TrainingLoop(LineFit(), options: timeLimited(clock))
        try second.restore(state)
        #expect(try run(second, clock) == .timeLimit)
        #expect(second.progress.history.count == 4 && second.progress.history == uninterrupted.progress.history)
        #expect(abs(second.seconds - 4) < 1e-6)
    }

    @Test("The time before a new run counts towards its time limit, also after a resume") func timeBeforeRun() throws {
        let clock = ManualClock()
        var options = timeLimited(clock)
        options.secondsBefore = 2
        // Two epochs of one second fit into the rest of 2.75 s.
        let uninterrupted = try TrainingLoop(LineFit(), options: options)
        #expect(try run(uninterrupted, clock) == .timeLimit)
        #expect(uninterrupted.progress.history.count == 2 && abs(uninterrupted.seconds - 4) < 1e-6)
        let first = try TrainingLoop(LineFit(), options: options)
        #expect(try run(first, clock, steps: 12) == .stopped)
        let state = try first.state()
        #expect(abs(state.progress.seconds - 3.5) < 1e-6)
        let second = try TrainingLoop(LineFit(), options: timeLimited(clock))
        try second.restore(state)
        #expect(try run(second, clock) == .timeLimit)
        #expect(second.progress.history == uninterrupted.progress.history && abs(second.seconds - 4) < 1e-6)
        options.secondsBefore = 10
        let late = try TrainingLoop(LineFit(), options: options)
        try late.restore(state)
        #expect(abs(late.seconds - 13.5) < 1e-6)
        #expect(try run(late, clock) == .timeLimit && late.progress.history.count == 1)
    }

    @Test("The exponential moving average follows its formula") func movingAverage() throws {
        let loop = try TrainingLoop(LineFit(), options: options(epochs: 2, emaDecay: 0.5))
        var expected = values(loop.parameters)
        var steps: Float = 0
        _ = try loop.run(onEvent: { event in
            guard case .step = event else { return }
            let decay = min(0.5, (1 + steps) / (10 + steps))
            steps += 1
            for (index, value) in values(loop.parameters).enumerated() {
                expected[index] += (1 - decay) * (value - expected[index])
            }
            let ema = values(loop.evaluationParameters)
            #expect(zip(ema, expected).allSatisfy { abs($0 - $1) < 1e-5 })
        })
        #expect(steps == 16)
    }

    @Test("A state that does not fit the loop is an error, and the loop is unchanged")
    func mismatchedStates() throws {
        let options = options(epochs: 2, emaDecay: 0.9)
        let trained = try TrainingLoop(LineFit(), options: options)
        _ = try trained.run()
        let state = try trained.state()
        func reason(_ change: (inout TrainingState) -> Void) throws -> String? {
            var changed = state
            change(&changed)
            let loop = try TrainingLoop(LineFit(), options: options)
            let before = values(loop.parameters)
            let error = #expect(throws: TrainingStateError.self) { try loop.restore(changed) }
            #expect(values(loop.parameters) == before && loop.progress.round == 0)
            return error?.reason
        }
        #expect(try reason { $0.parameters.append(0) } == "found 3 values in the parameters, expected 2")
        #expect(try reason { $0.ema?.append(0) } == "found 3 values in the EMA, expected 2")
        #expect(try reason { $0.best = [] } == "found 0 values in the best parameters, expected 2")
        #expect(
            try reason { $0.optimizer["velocities"]?.append(0) }
                == "found 3 values in the optimizer's velocities, expected 2")
        #expect(
            try reason { $0.optimizer = ["firstMoments": [0, 0]] }
                == "the optimizer's tensors are firstMoments, expected velocities")
        #expect(try reason { $0.optimizer = [:] } == "the optimizer's tensors are missing, expected velocities")
        #expect(try reason { $0.optimizerSteps = -1 } == "the optimizer has -1 steps, expected 0 or more")
        #expect(try reason { $0.ema = nil } == "the EMA is missing")
        #expect(try reason { $0.best = nil } == "the best parameters are missing")
        #expect(try reason { $0.progress.learningRate = .nan } == "the progress has a learning rate of nan")
        let withoutEMA = try TrainingLoop(LineFit(), options: self.options(epochs: 2))
        let error = #expect(throws: TrainingStateError.self) { try withoutEMA.restore(state) }
        #expect(error?.reason == "found an EMA, expected none")
    }

    @Test("A learning rate that is too high is an error") func diverges() throws {
        var options = options()
        options.rounds = .epochs(.init(count: 2, steps: 8, learningRate: 1e30))
        let loop = try TrainingLoop(LineFit(), options: options)
        let error = #expect(throws: TrainingDivergedError.self) { try loop.run() }
        #expect(error == TrainingDivergedError(epoch: 1, learningRate: 1e30))
        // Apps show the localized description.
        #expect(error?.localizedDescription == error?.description)
    }

    @Test("An infinite validation loss is an error") func infiniteValidationLoss() throws {
        let objective = try LineFit()
        objective.scripted = [.infinity]
        let loop = try TrainingLoop(objective, options: options(epochs: 1))
        #expect(throws: TrainingDivergedError(epoch: 1, learningRate: 0.1)) { try loop.run() }
    }

    @Test("A round that ends with parameters that are not finite is an error", arguments: [false, true])
    func divergesInLastStep(isAllowed: Bool) throws {
        let rate = Float.greatestFiniteMagnitude
        let phase = TrainingLoop.Rounds.Phase(
            steps: 1, learningRate: rate, schedule: LearningRateSchedule(.constant))
        var options = TrainingLoop.Options(rounds: .phases([phase]), optimizer: .sgd(SGD.Options()))
        options.keepsBest = false
        options.allowsDivergence = isAllowed
        let objective = try LineFit()
        objective.scripted = [1]
        let loop = try TrainingLoop(objective, options: options)
        if isAllowed {
            #expect(try loop.run() == .completed)
        } else {
            #expect(throws: TrainingDivergedError(epoch: 1, learningRate: rate)) { try loop.run() }
        }
    }
}
