internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The state that goes from step to step: plans, optimizer, parameters and progress.
final class TrainingSession {
    /// What measuring came to.
    struct Measured {
        let loss: Float
        /// The logits of every image that could be read, and which of the loader's items it is.
        let logits: [[Float]]
        let places: [Int]
        let accuracy: Float
    }

    let start: TrainingConfiguration.StartingPoint
    private(set) var progress: TrainingProgress
    /// Whether the best epoch has to be measured again: photos vanished before the run was resumed, and may be back.
    private(set) var comparesBestAgain = false
    /// The weight of each label in the loss; nil if all are the same.
    let labelWeights: [Float]?
    /// The parameters of the best whole epoch.
    let best: Parameters
    private let configuration: TrainingConfiguration
    private let workers: Workers
    /// For the images of a step; compiled for a stage, at first the last one, with which a learning rate is looked for.
    private var stagePlan: ExecutionPlan?
    /// The stage of the plan.
    private var stage: Int
    /// For the images to measure on; nil if there are none.
    private let predictionPlan: ExecutionPlan?
    private let loss: SoftmaxCrossEntropy
    private(set) var optimizer: SGD
    private let average: Parameters?
    private let stepsPerEpoch: Int

    init(
        _ start: TrainingConfiguration.StartingPoint, configuration: TrainingConfiguration, images: TrainingImages
    ) throws {
        self.start = start
        self.configuration = configuration
        let count = images.training.count
        let parameters = start.trained.parameters
        workers = Workers(configuration.threads)
        stage = start.stages.count - 1
        stagePlan = try Self.plan(
            start, stage: stage, batchSize: min(configuration.batchSize, count), seed: configuration.seed, workers)
        average = try configuration.averageDecay.map { _ in try parameters.copy() }
        if images.validationCount > 0 {
            let logits = try start.trained.network.logits()
            predictionPlan = try ExecutionPlan(
                logits, parameters: average ?? parameters,
                options: ExecutionPlan.Options(
                    batchSize: min(configuration.batchSize, images.validationCount), workers: workers
                ).limitingThreads(for: logits))
        } else {
            predictionPlan = nil
        }
        best = try parameters.copy()
        let learningRate = configuration.learningRate ?? 0
        optimizer = try Self.optimizer(configuration, learningRate, start)
        labelWeights =
            configuration.labelWeights == .none
            ? nil
            : images.counts(images.training).map { own in
                Float(count) / Float(start.whole.network.output.channels * max(own, 1))
            }
        loss = SoftmaxCrossEntropy(labelSmoothing: configuration.labelSmoothing, classWeights: labelWeights)
        stepsPerEpoch = (count + configuration.batchSize - 1) / configuration.batchSize
        progress = TrainingProgress(learningRate: learningRate, plannedEpochs: configuration.epochs)
    }

    private var plan: ExecutionPlan {
        guard let stagePlan else { preconditionFailure("a stage that has no plan cannot be trained") }
        return stagePlan
    }

    private static func optimizer(
        _ configuration: TrainingConfiguration, _ learningRate: Float, _ start: TrainingConfiguration.StartingPoint
    ) throws -> SGD {
        try SGD(
            SGD.Options(
                learningRate: learningRate, momentum: configuration.momentum, nesterov: true,
                weightDecay: configuration.weightDecay, gradientClipping: configuration.gradientClipping),
            for: start.trained.parameters.layout, rateFactors: start.rateFactors)
    }

    private static func plan(
        _ start: TrainingConfiguration.StartingPoint, stage: Int, batchSize: Int, seed: UInt64, _ workers: Workers
    ) throws -> ExecutionPlan {
        let logits = try start.trained.network.logits()
        let network = try start.keepsStatistics ? logits.keepingStatistics() : logits
        return try ExecutionPlan(
            network, parameters: start.trained.parameters,
            options: ExecutionPlan.Options(
                batchSize: batchSize, mode: .training, workers: workers, frozen: start.stages.frozen[stage], seed: seed
            ).limitingThreads(for: network))
    }

    /// Compiles the plan of the stage that the epoch belongs to, unless it is there.
    private func enterStage() throws {
        let current = start.stages.stage(ofEpoch: progress.history.count)
        guard current != stage else { return }
        let batchSize = plan.options.batchSize
        // Two plans at once might not fit into memory.
        stagePlan = nil
        stagePlan = try Self.plan(start, stage: current, batchSize: batchSize, seed: configuration.seed, workers)
        plan.passCount = progress.passes
        stage = current
    }

    /// The numbers that are trained.
    private var parameters: Parameters { start.trained.parameters }

    /// The course of the learning rate.
    var schedule: LearningRateSchedule {
        LearningRateSchedule(configuration.schedule, warmUpSteps: progress.plannedEpochs > 1 ? stepsPerEpoch : 0)
    }

    /// The schedule's factor at a batch of the epoch that is being trained; it rises again in the first epoch of a stage.
    private func factor(at batch: Int) -> Float {
        let epoch = progress.history.count
        let factor = schedule.factor(at: epoch * stepsPerEpoch + batch, of: progress.plannedEpochs * stepsPerEpoch)
        return start.stages.isNew(inEpoch: epoch) ? factor * Float(batch + 1) / Float(stepsPerEpoch) : factor
    }
}

// MARK: Training

extension TrainingSession {
    /// Trains on the images of an epoch that are left, until `afterBatch` returns `false`.
    /// - Returns: Whether the epoch came to its end.
    func trainEpoch(
        over loader: any BatchSource, onLost: (SkippedImage) -> Void, afterBatch: () throws -> Bool
    ) throws -> Bool {
        try enterStage()
        return try loader.forEachBatch(epoch: progress.history.count, from: progress.batch, onLost: onLost) { batch in
            let result = passes(batch)
            guard result.loss.isFinite else { throw diverged }
            optimizer.step(plan, factor: factor(at: batch.index))
            if let average, let decay = configuration.averageDecay {
                let steps = Float(progress.averagedSteps)
                average.move(towards: parameters, by: 1 - min(decay, (1 + steps) / (10 + steps)))
                progress.averagedSteps += 1
            }
            progress.sum.add(loss: result.loss, correct: result.correct, count: batch.count)
            progress.batch = batch.index + 1
            progress.passes = plan.passCount
            return try afterBatch()
        }
    }

    /// Forward, loss and backward.
    private func passes(_ batch: Batch) -> SoftmaxCrossEntropy.Result {
        let values = batch.count * plan.network.output.channels
        batch.write(to: plan.input)
        plan.forward(count: batch.count)
        let result = loss(
            logits: plan.output.first(values), labels: batch.labels, gradient: plan.outputGradient.first(values))
        if result.loss.isFinite { plan.backward(count: batch.count) }
        return result
    }

    private var diverged: ImprintError {
        .diverged(epoch: progress.history.count + 1, learningRate: progress.learningRate)
    }

    /// Takes the epoch down, and keeps its parameters where none were better.
    func finishEpoch(_ measured: Measured?) throws -> EpochMetrics {
        // The loss of a step is that before it: what the last one did shows only here.
        guard measured?.loss.isFinite ?? true, parameters.areFinite else { throw diverged }
        let metrics = EpochMetrics(
            epoch: progress.history.count + 1, loss: progress.sum.meanLoss, accuracy: progress.sum.accuracy,
            validationLoss: measured?.loss, validationAccuracy: measured?.accuracy,
            learningRate: progress.learningRate * factor(at: max(progress.batch - 1, 0)))
        if progress.finishEpoch(metrics) { best.load(from: average ?? parameters) }
        return metrics
    }

    /// Adds to the time of the epoch.
    func add(seconds: Double) { progress.secondsInEpoch += seconds }

    /// Plans as many epochs as fit into what is left of the time, and at least those that are done.
    func planEpochs(secondsLeft: Double?) {
        progress.plannedEpochs = configuration.epochs
        let done = progress.history.count
        guard let secondsLeft, done > 0, progress.secondsInEpochs > 0 else { return }
        let fitting = max(secondsLeft, 0) / (progress.secondsInEpochs / Double(done))
        progress.plannedEpochs = min(configuration.epochs, done + Int(min(fitting, 1e9)))
    }

    /// Looks for a learning rate, with everything that the last stage trains, and begins with it.
    /// - Parameter afterStep: Told how many steps are done; if it says no, the search ends with what is known then.
    /// - Returns: What was found; nil if too few steps were taken to tell.
    func searchLearningRate(
        over loader: any BatchSource, onLost: (SkippedImage) -> Void, afterStep: (Int) -> Bool
    ) throws -> LearningRateSearch? {
        let before = try parameters.copy()
        let trial = try Self.optimizer(configuration, 1, start)
        var search = LearningRateSearch()
        var goesOn = true
        var epoch = 0
        while goesOn {
            try loader.forEachBatch(epoch: epoch, from: 0, onLost: onLost) { batch in
                let result = passes(batch)
                let rate = LearningRateSearch.learningRate(at: search.points.count)
                guard result.loss.isFinite || search.learningRate != nil else {
                    throw ImprintError.diverged(epoch: 1, learningRate: rate)
                }
                goesOn = search.add(loss: result.loss)
                if goesOn { trial.step(plan, factor: rate) }
                goesOn = afterStep(search.points.count) && goesOn
                return goesOn
            }
            epoch += 1
        }
        parameters.load(from: before)
        plan.passCount = 0
        guard let found = search.learningRate else { return nil }
        progress.learningRate = found
        optimizer = try Self.optimizer(configuration, found, start)
        return search
    }
}

// MARK: Measuring

extension TrainingSession {
    /// Measures the network as it is, as the finished classifier would do.
    func measure(over loader: any BatchSource, onLost: (SkippedImage) -> Void) throws -> Measured {
        guard let plan = predictionPlan else {
            preconditionFailure("the session was made without images to measure on")
        }
        var sum = TrainingProgress.Sum()
        var logits: [[Float]] = []
        var places: [Int] = []
        let labels = plan.network.output.channels
        try loader.forEachBatch(epoch: 0, from: 0, onLost: onLost) { batch in
            batch.write(to: plan.input)
            plan.forward(count: batch.count)
            let values = plan.output.first(batch.count * labels)
            let result = loss(logits: values, labels: batch.labels)
            sum.add(loss: result.loss, correct: result.correct, count: batch.count)
            logits += (0..<batch.count).map { Array(values[($0 * labels)..<(($0 + 1) * labels)]) }
            places += batch.places
            return true
        }
        return Measured(loss: sum.meanLoss, logits: logits, places: places, accuracy: sum.accuracy)
    }

    /// Measures the best epoch once more.
    func measureBest(over loader: any BatchSource, onLost: (SkippedImage) -> Void) throws -> Measured {
        let current = average ?? parameters
        let before = try current.copy()
        defer { current.load(from: before) }
        current.load(from: best)
        return try measure(over: loader, onLost: onLost)
    }
}

extension TrainingSession {
    /// Measures the best epoch on the validation photos that can be read now, for comparison with the epochs that follow.
    func compareBest(over loader: any BatchSource, onLost: (SkippedImage) -> Void) throws {
        progress.bestLoss = try measureBest(over: loader, onLost: onLost).loss
        comparesBestAgain = false
    }
}

// MARK: Going on

extension TrainingSession {
    /// All that the run needs to go on from here.
    func checkpoint(
        labels: [String], settings: [String: String], images: Checkpoint.Images, seconds: Double, isFinished: Bool,
        hasLostPhotos: Bool
    ) -> Checkpoint {
        var numbers: [Checkpoint.Numbers: [Float]] = [
            .parameters: parameters.withValues { Array($0) }, .velocities: Array(optimizer.state),
        ]
        numbers[.average] = average?.withValues { Array($0) }
        if !progress.history.isEmpty { numbers[.best] = best.withValues { Array($0) } }
        var progress = progress
        progress.seconds = seconds
        progress.isFinished = isFinished
        if hasLostPhotos { progress.losePhoto() }
        return Checkpoint(
            network: start.trained.network, labels: labels, settings: settings, images: images, progress: progress,
            numbers: numbers)
    }

    /// Goes on from a checkpoint.
    /// - Parameter sameImages: Whether its images are those of this session. With others, the epoch begins again, and what was
    ///   measured before does not compare.
    func restore(_ checkpoint: Checkpoint, sameImages: Bool) throws {
        func load(_ kind: Checkpoint.Numbers, into parameters: Parameters?) {
            guard let parameters, let numbers = checkpoint.numbers[kind] else { return }
            parameters.withValues { _ = $0.update(from: numbers) }
        }
        progress = checkpoint.progress
        load(.parameters, into: parameters)
        load(.average, into: average)
        load(.best, into: best)
        optimizer = try Self.optimizer(configuration, progress.learningRate, start)
        _ = optimizer.state.update(from: checkpoint.numbers[.velocities] ?? [])
        plan.passCount = progress.passes
        progress.isFinished = false
        progress.isRepeatable =
            progress.isRepeatable && progress.plannedEpochs == configuration.epochs
        if !sameImages {
            progress.changeImages()
        } else if progress.hasLostPhotos == true {
            progress.restartEpoch()
            comparesBestAgain = progress.best != nil
        }
        progress.hasLostPhotos = nil
    }
}

extension Parameters {
    fileprivate var areFinite: Bool {
        layout.entries.allSatisfy { entry in withValues(of: entry) { $0.allSatisfy(\.isFinite) } }
    }
}

extension UnsafeMutableBufferPointer {
    /// The first `count` elements.
    func first(_ count: Int) -> Self { Self(rebasing: self[..<count]) }
}
