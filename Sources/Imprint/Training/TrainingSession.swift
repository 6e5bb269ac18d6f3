internal import ImprintCore
internal import ImprintImages
internal import ImprintNetwork

/// The state that goes from epoch to epoch: plans, optimiser and the place in the schedule.
final class TrainingSession {
    /// What an epoch of training came to.
    struct Trained {
        let loss: Float
        let accuracy: Float
        let learningRate: Float
        /// Whether training is to end here, and whether every image of the epoch has been seen.
        let stopped: Bool
        let isComplete: Bool
    }

    /// What measuring came to.
    struct Measured {
        let loss: Float
        let evaluation: Evaluation
        var accuracy: Float { Float(evaluation.accuracy) }
    }

    private let configuration: TrainingConfiguration
    private let plan: Plan
    /// For the images to measure on; `nil` where there are none.
    private let predictionPlan: Plan?
    private let loss: SoftmaxCrossEntropy
    let optimizer: SGD
    let schedule: Schedule
    private let stepsPerEpoch: Int

    init(
        _ start: TrainingConfiguration.StartingPoint, configuration: TrainingConfiguration, imagesPerEpoch: Int,
        validationImages: Int
    ) throws {
        self.configuration = configuration
        let logits = try start.network.logits()
        let parameters = start.parameters
        let workers = Workers(configuration.threads)
        let batchSize = min(configuration.batchSize, imagesPerEpoch)
        plan = try Plan(
            logits, parameters: parameters,
            options: Plan.Options(
                batchSize: batchSize, mode: .training, workers: workers, frozen: start.frozen, seed: configuration.seed)
        )
        predictionPlan =
            validationImages == 0
            ? nil
            : try Plan(
                logits, parameters: parameters,
                options: Plan.Options(batchSize: min(configuration.batchSize, validationImages), workers: workers))
        optimizer = try SGD(
            SGD.Options(
                learningRate: configuration.learningRate, momentum: configuration.momentum, nesterov: true,
                weightDecay: configuration.weightDecay, gradientClipping: configuration.gradientClipping),
            for: parameters.layout)
        loss = SoftmaxCrossEntropy(labelSmoothing: configuration.labelSmoothing)
        stepsPerEpoch = (imagesPerEpoch + configuration.batchSize - 1) / configuration.batchSize
        schedule = Schedule(configuration.schedule, warmUpSteps: configuration.epochs > 1 ? stepsPerEpoch : 0)
    }

    /// Trains on every image once.
    func trainEpoch(
        _ epoch: Int, over loader: BatchLoader, shouldStop: () -> Bool, onEvent: (TrainingEvent) -> Void
    ) throws -> Trained {
        var sum = Sum()
        var factor: Float = 0
        var stopped = false
        var step = epoch * stepsPerEpoch
        let isComplete = try loader.forEachBatch(epoch: epoch, onLost: { onEvent(.lost($0)) }) { batch in
            factor = schedule.factor(at: step, of: configuration.epochs * stepsPerEpoch)
            batch.write(to: plan.input)
            plan.forward(count: batch.count)
            let result = loss(
                logits: plan.output.first(batch.count * plan.network.output.channels), labels: batch.labels,
                gradient: plan.outputGradient.first(batch.count * plan.network.output.channels))
            guard result.loss.isFinite else {
                throw ImprintError.diverged(epoch: epoch + 1, learningRate: configuration.learningRate)
            }
            plan.backward(count: batch.count)
            optimizer.step(plan, factor: factor)
            sum.add(result, count: batch.count)
            step += 1
            onEvent(
                .step(
                    TrainingStep(
                        epoch: epoch + 1, imagesSeen: sum.count, imagesPerEpoch: loader.count, loss: sum.meanLoss,
                        accuracy: sum.accuracy)))
            stopped = shouldStop()
            return !stopped
        }
        return Trained(
            loss: sum.meanLoss, accuracy: sum.accuracy, learningRate: configuration.learningRate * factor,
            stopped: stopped, isComplete: isComplete)
    }

    /// Measures the network as it is on images with the given labels, as the finished classifier would do.
    func measure(
        over loader: BatchLoader, labels: [String], onEvent: (TrainingEvent) -> Void
    ) throws -> Measured {
        guard let plan = predictionPlan else {
            preconditionFailure("the session was made without images to measure on")
        }
        var sum = Sum()
        var results: [Evaluation.Result] = []
        var lost: [SkippedImage] = []
        try loader.forEachBatch(
            epoch: 0,
            onLost: {
                lost.append($0)
                onEvent(.lost($0))
            }
        ) { batch in
            batch.write(to: plan.input)
            plan.forward(count: batch.count)
            let logits = plan.output.first(batch.count * plan.network.output.channels)
            sum.add(loss(logits: logits, labels: batch.labels), count: batch.count)
            let confidences = SoftmaxCrossEntropy.confidences(logits, batch: batch.count)
            for (place, confidences) in zip(batch.places, confidences) {
                let item = loader.items[place]
                results.append(Evaluation.Result(url: item.url, label: item.label, confidences: confidences))
            }
            return true
        }
        let evaluation = Evaluation(labels: labels, results: results, skipped: loader.skipped + lost)
        return Measured(loss: sum.meanLoss, evaluation: evaluation)
    }
}

/// Losses and right answers, added up over batches of different sizes.
private struct Sum {
    var loss: Double = 0
    var correct = 0
    var count = 0

    mutating func add(_ result: SoftmaxCrossEntropy.Result, count: Int) {
        loss += Double(result.loss) * Double(count)
        correct += result.correct
        self.count += count
    }

    var meanLoss: Float { count > 0 ? Float(loss / Double(count)) : 0 }
    var accuracy: Float { count > 0 ? Float(correct) / Float(count) : 0 }
}

extension UnsafeMutableBufferPointer {
    /// The first `count` elements.
    func first(_ count: Int) -> Self { Self(rebasing: self[..<count]) }
}
