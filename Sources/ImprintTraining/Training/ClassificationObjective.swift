internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// Classification of photos, or of their cached features, by a `ClassificationLoss`.
final class ClassificationObjective: TrainingObjective {
    /// The validation result of some parameters.
    struct Validation {
        let loss: Float
        let accuracy: Float
        /// The logits of every readable photo.
        let logits: [[Float]]
        /// The index of each of these photos among the loader's items.
        let itemIndices: [Int]
    }

    let start: ClassifierConfiguration.StartingPoint
    /// The result of the last validation.
    private(set) var validation: Validation?
    /// The weight of each label in the loss; nil if all are equal.
    let classWeights: [Float]?
    private let hyperparameters: ClassifierHyperparameters
    private let workers: Workers
    private let images: TrainingImages
    private let unreadable: UnreadablePhotos
    private let loss: ClassificationLoss
    /// The plan of a training step, compiled for a stage: initially for the last one, which the range test uses.
    private var trainingPlan: ExecutionPlan?
    private var stage: Int
    private var validationPlan: ExecutionPlan?
    private var batches: (any BatchIterator)?

    init(
        _ start: ClassifierConfiguration.StartingPoint, configuration: ClassifierConfiguration, images: TrainingImages,
        unreadable: UnreadablePhotos
    ) throws {
        self.start = start
        hyperparameters = configuration.hyperparameters
        workers = configuration.workers
        self.images = images
        self.unreadable = unreadable
        classWeights = ClassificationLoss.classWeights(
            hyperparameters, counts: images.counts(images.training), total: images.training.count)
        loss = ClassificationLoss(hyperparameters, classWeights: classWeights)
        stage = start.stages.count - 1
        trainingPlan = try makePlan()
    }

    /// The number of steps of an epoch.
    var stepsPerEpoch: Int { (images.training.count + hyperparameters.batchSize - 1) / hyperparameters.batchSize }

    var plan: ExecutionPlan {
        guard let trainingPlan else { preconditionFailure("the stage has no plan") }
        return trainingPlan
    }

    private func makePlan() throws -> ExecutionPlan {
        let logits = try start.trainablePart.network.logits()
        let network = try start.freezesStatistics ? logits.withFrozenStatistics() : logits
        var options = ExecutionPlan.Options(
            batchSize: min(hyperparameters.batchSize, images.training.count), mode: .training,
            workers: workers, frozen: start.stages.frozen[stage].intersection(network.nodes.map(\.name)),
            seed: hyperparameters.seed)
        options.precision = hyperparameters.usesMixedPrecision ? .bfloat16 : .float32
        return try ExecutionPlan(
            network, parameters: start.trainablePart.parameters, options: options.limitingThreads(for: network))
    }

    // MARK: Steps

    func beginRound(_ round: Int, at step: Int, evaluationParameters: Parameters) throws {
        let current = start.stages.stage(ofEpoch: round)
        if current != stage {
            let passes = plan.passCount
            // Two plans at once might not fit into memory.
            trainingPlan = nil
            stage = current
            trainingPlan = try workers.processes.failTogether { try makePlan() }
            plan.passCount = passes
        }
        batches = images.training.batches(epoch: round, from: step)
    }

    /// Begins an epoch of the learning-rate range test, without changing the stage.
    func beginRangeTest(epoch: Int) { batches = images.training.batches(epoch: epoch, from: 0) }

    func trainingStep(round: Int, step: Int) throws -> StepLoss? {
        let batch = try batches?.next { unreadable.add($0) }
        if let problem = unreadable.problem { throw problem }
        guard let batch else { return nil }
        batch.write(to: plan.input)
        plan.forward(count: batch.count)
        let values = batch.count * plan.network.output.channels
        let result = loss(
            logits: plan.output.first(values), batch: batch, gradient: plan.outputGradient.first(values))
        return StepLoss(
            loss: result.loss, correct: result.correct, count: batch.count, step: batch.index,
            decisions: result.decisions)
    }

    func endRound() { batches = nil }

    // MARK: Validation

    var validationVersion: Int { unreadable.unreadableValidationCount }

    func validate(_ parameters: Parameters) throws -> ValidationLoss? {
        guard let photos = images.validation else { return nil }
        let plan = try validationPlan(parameters, count: photos.count)
        var sum = TrainingProgress.Sum()
        var logits: [[Float]] = []
        var itemIndices: [Int] = []
        let labelCount = plan.network.output.channels
        try photos.forEachBatch(epoch: 0, onUnreadable: { unreadable.add($0) }) { batch in
            batch.write(to: plan.input)
            plan.forward(count: batch.count)
            let values = plan.output.first(batch.count * labelCount)
            let result = loss(logits: values, batch: batch)
            sum.add(loss: result.loss, correct: result.correct, count: batch.count, decisions: result.decisions)
            logits += (0..<batch.count).map { Array(values[($0 * labelCount)..<(($0 + 1) * labelCount)]) }
            itemIndices += batch.indices
        }
        validation = Validation(
            loss: sum.meanLoss, accuracy: sum.accuracy, logits: logits, itemIndices: itemIndices)
        // An epoch with too few readable validation photos does not count.
        if unreadable.affectsValidation, let problem = unreadable.problem { throw problem }
        return ValidationLoss(loss: sum.meanLoss, accuracy: sum.accuracy)
    }

    private func validationPlan(_ parameters: Parameters, count: Int) throws -> ExecutionPlan {
        if let validationPlan, validationPlan.parameters === parameters { return validationPlan }
        let plan = try workers.processes.failTogether {
            let logits = try start.trainablePart.network.logits()
            return try ExecutionPlan(
                logits, parameters: parameters,
                options: ExecutionPlan.Options(
                    batchSize: min(hyperparameters.batchSize, count), workers: workers
                ).limitingThreads(for: logits))
        }
        validationPlan = plan
        return plan
    }
}

extension UnsafeMutableBufferPointer {
    /// The first `count` elements.
    func first(_ count: Int) -> Self { Self(rebasing: self[..<count]) }
}
