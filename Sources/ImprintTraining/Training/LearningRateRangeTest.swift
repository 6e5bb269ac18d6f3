internal import Imprint
internal import ImprintCore
internal import ImprintNetwork

/// The objective of the learning-rate range test.
///
/// `LearningRateSearch` describes the method. The test restores the parameters at its end.
final class LearningRateRangeTest: TrainingObjective {
    private let objective: ClassificationObjective
    private let onStep: (_ done: Int) -> Bool
    /// The losses so far.
    private(set) var search = LearningRateSearch()
    private var epoch = 0

    private init(_ objective: ClassificationObjective, onStep: @escaping (_ done: Int) -> Bool) {
        self.objective = objective
        self.onStep = onStep
    }

    /// Runs the test with the trainable layers of the last stage.
    /// - Parameter onStep: Called with the number of finished steps; if it returns false, the test ends with its result so far.
    /// - Returns: The result; nil after too few steps.
    static func run(
        _ objective: ClassificationObjective, optimizer: OptimizerConfiguration, learningRateFactors: [String: Float],
        onStep: @escaping (_ done: Int) -> Bool
    ) throws -> LearningRateSearch? {
        let parameters = objective.plan.parameters
        let processes = objective.plan.options.workers.processes
        let before = try processes.failTogether { try parameters.copy() }
        let test = LearningRateRangeTest(objective, onStep: onStep)
        var options = TrainingLoop.Options(
            rounds: .phases([
                .init(
                    steps: LearningRateSearch.stepCount, learningRate: 1,
                    schedule: LearningRateSchedule(LearningRateSearch.schedule))
            ]), optimizer: optimizer)
        options.learningRateFactors = learningRateFactors
        options.keepsBest = false
        options.allowsDivergence = true
        defer {
            parameters.copyValues(from: before)
            objective.plan.passCount = 0
        }
        let loop = try processes.failTogether { try TrainingLoop(test, options: options) }
        _ = try loop.run()
        return test.search.learningRate == nil ? nil : test.search
    }

    var plan: ExecutionPlan { objective.plan }

    func beginRound(_ round: Int, at step: Int, evaluationParameters: Parameters) throws {
        objective.beginRangeTest(epoch: epoch)
    }

    func trainingStep(round: Int, step: Int) throws -> StepLoss? {
        var loss = try objective.trainingStep(round: epoch, step: 0)
        if loss == nil {
            epoch += 1
            objective.beginRangeTest(epoch: epoch)
            loss = try objective.trainingStep(round: epoch, step: 0)
        }
        guard var loss else { return nil }
        let rate = LearningRateSearch.learningRate(at: search.points.count)
        guard loss.loss.isFinite || search.learningRate != nil else {
            throw ImprintError.diverged(epoch: 1, learningRate: rate, isDetector: false)
        }
        let isStable = search.add(loss: loss.loss)
        let continues = onStep(search.points.count)
        guard isStable && continues else {
            search.endedEarly = isStable
            return nil
        }
        loss.step = nil
        return loss
    }

    func endRound() { objective.endRound() }
}
