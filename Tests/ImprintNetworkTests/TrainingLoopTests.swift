import Testing

@testable import ImprintNetwork

/// A custom training objective: fits y = 3x − 1 by least squares.
private final class LineFit: TrainingObjective {
    let plan: ExecutionPlan
    private let stepsPerRound: Int
    /// Validation losses that are reported instead of the computed ones.
    var scripted: [Float] = []

    init(stepsPerRound: Int = 8) throws {
        self.stepsPerRound = stepsPerRound
        var builder = NetworkBuilder(name: "line", input: TensorShape(channels: 1))
        builder.add(Dense(outputChannels: 1), named: "line")
        let network = try builder.network()
        plan = try ExecutionPlan(
            network, parameters: Parameters(network, seed: 1), options: .init(batchSize: 4, mode: .training))
    }

    func forward(round: Int, step: Int) -> StepLoss? {
        guard step < stepsPerRound else { return nil }
        var loss: Float = 0
        for sample in 0..<4 { plan.input[sample] = Float((step * 4 + sample) % 7) / 3 - 1 }
        plan.forward(count: 4)
        for sample in 0..<4 {
            let error = plan.output[sample] - (3 * plan.input[sample] - 1)
            plan.outputGradient[sample] = error / 2
            loss += error * error / 4
        }
        return StepLoss(loss: loss, count: 4)
    }

    func validate(_ parameters: Parameters) -> ValidationLoss? {
        let slope = (parameters["line.weight"]?[0] ?? 0) - 3
        let loss = scripted.isEmpty ? slope * slope : scripted.removeFirst()
        return ValidationLoss(loss: loss, accuracy: 0)
    }
}

/// A checkpoint policy that keeps the last state in memory.
private final class MemoryCheckpoints: CheckpointPolicy {
    var last: TrainingState?
    let isDue = true
    func save(_ state: () throws -> TrainingState) { last = try? state() }
}

@Suite("Training loop") struct TrainingLoopTests {
    private func options(
        epochs: Int = 12, emaDecay: Float? = nil, optimizer: OptimizerConfiguration = .sgd(SGD.Options())
    ) -> TrainingLoop.Options {
        TrainingLoop.Options(
            rounds: .epochs(.init(count: epochs, steps: 8, learningRate: 0.1)), optimizer: optimizer,
            emaDecay: emaDecay)
    }

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
        arguments: [.sgd(SGD.Options(momentum: 0.9, nesterov: true)), .adamW(AdamW.Options())]
            as [OptimizerConfiguration])
    func resumes(optimizer: OptimizerConfiguration) throws {
        let options = options(epochs: 3, emaDecay: 0.9, optimizer: optimizer)
        let uninterrupted = try TrainingLoop(LineFit(), options: options)
        _ = try uninterrupted.run()
        let checkpoints = MemoryCheckpoints()
        var ending = TrainingLoop.Ending.stopped
        var last: TrainingLoop?
        while ending == .stopped {
            let loop = try TrainingLoop(LineFit(), options: options, checkpoints: checkpoints)
            if let state = checkpoints.last { try loop.restore(state) }
            ending = try loop.run(shouldStop: { true })
            checkpoints.save(loop.state)
            last = loop
        }
        let resumed = try #require(last)
        #expect(ending == .completed && resumed.progress.history == uninterrupted.progress.history)
        #expect(values(resumed.parameters) == values(uninterrupted.parameters))
        #expect(values(try #require(resumed.best)) == values(try #require(uninterrupted.best)))
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

    @Test("A phase restarts the optimizer and continues from the averaged parameters") func phases() throws {
        let phase = TrainingLoop.Rounds.Phase(
            steps: 3, learningRate: 0.1, schedule: LearningRateSchedule(.constant))
        let options = TrainingLoop.Options(
            rounds: .phases([phase, phase]), optimizer: .sgd(SGD.Options()), emaDecay: 0.9)
        let loop = try TrainingLoop(LineFit(), options: options)
        _ = try loop.run(onEvent: { event in
            if case .round = event {
                #expect(values(loop.parameters) == values(loop.evaluationParameters))
            }
        })
        #expect(loop.progress.history.count == 2)
        #expect(try loop.state().optimizer.keys.sorted() == ["velocities"])
    }

    @Test("A learning rate that is too high is an error") func diverges() throws {
        var options = options()
        options.rounds = .epochs(.init(count: 2, steps: 8, learningRate: 1e30))
        let loop = try TrainingLoop(LineFit(), options: options)
        #expect(throws: TrainingDivergedError(epoch: 1, learningRate: 1e30)) { try loop.run() }
    }
}
