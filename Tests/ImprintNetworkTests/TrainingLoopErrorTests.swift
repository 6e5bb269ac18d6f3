import Testing

@testable import ImprintNetwork

@Suite("Errors in a training loop") struct TrainingLoopErrorTests {
    /// A method of an objective.
    enum Method: CaseIterable {
        case beginRound, trainingStep, validate
    }

    /// Fits a line, with a plan that is compiled for each round, and fails in the second round.
    private final class FailingFit: TrainingObjective {
        private let fit: LineFit
        private let failing: Method
        private var round = 0
        private var hasPlan = true

        init(in method: Method) throws {
            fit = try LineFit()
            failing = method
        }

        /// There is no plan after an error of `beginRound`.
        var plan: ExecutionPlan {
            guard hasPlan else { preconditionFailure("the round has no plan") }
            return fit.plan
        }

        private func fail(in method: Method) throws {
            if method == failing, round == 1 { throw NetworkError.outOfMemory(bytes: 1) }
        }

        func beginRound(_ round: Int, at step: Int, evaluationParameters: Parameters) throws {
            self.round = round
            hasPlan = false
            try fail(in: .beginRound)
            hasPlan = true
        }

        func trainingStep(round: Int, step: Int) throws -> StepLoss? {
            if step == 3 { try fail(in: .trainingStep) }
            return fit.trainingStep(round: round, step: step)
        }

        func validate(_ parameters: Parameters) throws -> ValidationLoss? {
            try fail(in: .validate)
            return fit.validate(parameters)
        }
    }

    private func options(epochs: Int) -> TrainingLoop.Options {
        TrainingLoop.Options(
            rounds: .epochs(.init(count: epochs, steps: 8, learningRate: 0.1)), optimizer: .adamW(AdamW.Options()),
            emaDecay: 0.9)
    }

    private func values(_ parameters: Parameters?) throws -> [Float] {
        try #require(parameters).withValues { Array($0) }
    }

    @Test(
        "After an error of the objective, the state is complete: a resumed run is bitwise identical",
        arguments: Method.allCases)
    func resumes(method: Method) throws {
        let uninterrupted = try TrainingLoop(LineFit(), options: options(epochs: 3))
        #expect(try uninterrupted.run() == .completed)
        let failing = try TrainingLoop(FailingFit(in: method), options: options(epochs: 3))
        #expect(throws: NetworkError.outOfMemory(bytes: 1)) { try failing.run() }
        #expect(failing.progress.round == 1)
        let resumed = try TrainingLoop(LineFit(), options: options(epochs: 3))
        try resumed.restore(failing.state())
        #expect(try resumed.run() == .completed)
        #expect(resumed.progress.history == uninterrupted.progress.history)
        #expect(try values(resumed.parameters) == values(uninterrupted.parameters))
        #expect(try values(resumed.best) == values(uninterrupted.best))
    }

    @Test("After a divergence, the loop still has the best parameters") func bestAfterDivergence() throws {
        let objective = try LineFit()
        objective.scripted = [4, 5, .infinity]
        let loop = try TrainingLoop(objective, options: options(epochs: 6))
        var parameters: [[Float]] = []
        #expect(throws: TrainingDivergedError(epoch: 3, learningRate: 0.1)) {
            try loop.run(onEvent: { event in
                if case .round = event { parameters.append(try values(loop.evaluationParameters)) }
            })
        }
        #expect(loop.progress.history.count == 2 && loop.progress.best == 0)
        #expect(try values(loop.best) == parameters.first)
    }
}
