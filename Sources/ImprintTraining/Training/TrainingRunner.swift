internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// Runs a training task on the caller's thread, and handles checkpoints, resume, unreadable photos, events and the result.
final class TrainingRunner<Job: TrainingTask> {
    private var task: Job
    private let store: CheckpointStore?
    private let onEvent: (TrainingEvent) -> Void
    private let shouldStop: () -> Bool
    /// The clock of this part of the run.
    private let clock: RunClock
    /// Whether the training loop runs, so that a scan of photos may be stopped: a resumed run repeats it.
    private var isInLoop = false

    /// Creates a runner.
    /// - Parameters:
    ///   - store: The checkpoint folder; nil to save no checkpoints.
    ///   - now: Returns the current time.
    init(
        _ task: Job, store: CheckpointStore?, onEvent: @escaping (TrainingEvent) -> Void,
        shouldStop: @escaping () -> Bool, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.task = task
        self.store = store
        self.onEvent = onEvent
        self.shouldStop = shouldStop
        clock = RunClock(now: now)
    }

    func run() throws -> TrainingResult {
        try task.processes.failTogether {
            guard let store, let checkpoint = store.resumed else { return }
            let settings = checkpoint.isVersionOne ? task.versionOneFingerprint : task.fingerprint
            try checkpoint.checkFits(task.network, labels: task.labels, settings: settings, file: store.file)
            if let source = task.photoSource { try checkpoint.checkHasMostPhotos(of: source, file: store.file) }
        }
        try checkProcesses()
        let photos = try task.readPhotos(earlier: store?.resumed?.images, onEvent: onEvent) {
            guard !shouldStop() else {
                throw ImprintError.stoppedTooEarly(checkpoint: store?.resumed.map { _ in store?.file.path ?? "" })
            }
        }
        // Only the first process writes checkpoints.
        let writer = CheckpointWriter(
            task.processes?.isFirst ?? true ? store : nil, onEvent: onEvent, network: task.network, labels: task.labels,
            settings: task.fingerprint,
            images: photos.checkpointImages)
        let loop = try task.processes.failTogether { try makeLoop(writer) }
        return try run(Run(loop: loop, photos: photos, writer: writer))
    }

    /// Creates the loop, once the photos are read.
    private func makeLoop(_ writer: CheckpointWriter) throws -> TrainingLoop {
        if let store, let checkpoint = store.resumed { try task.check(checkpoint, file: store.file) }
        // Unowned, because the task keeps the objective, and the objective keeps the closure.
        let parts = try task.makeObjective { [unowned self] done, total in
            self.onEvent(.scanning(done: done, of: total))
            if self.isInLoop, self.shouldStop() { throw CancellationError() }
        }
        let objective = parts.objective
        var options = parts.options
        // The time to read the photos.
        options.secondsBefore += clock.seconds
        return try TrainingLoop(objective, options: options, checkpoints: writer)
    }

    /// Checks that all processes would train the same model; `CheckpointStore` has compared the checkpoints.
    private func checkProcesses() throws {
        guard let processes = task.processes else { return }
        var properties: [(name: String, value: String)] = [("kernels", "\(Engine.current)")]
        properties += task.fingerprint.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        properties.append(("network layers", "\(task.network.name) with \(task.network.nodes.count) layers"))
        try processes.checkSame(properties)
    }

    /// The parts of a run that exist once its photos are read.
    private struct Run {
        let loop: TrainingLoop
        let photos: RunPhotos
        let writer: CheckpointWriter
    }

    private func run(_ run: Run) throws -> TrainingResult {
        let (loop, photos, writer) = (run.loop, run.photos, run.writer)
        var resumed: TrainingStart.Resumption?
        if let checkpoint = store?.takeResumed() { resumed = try resume(run, from: checkpoint) }
        try task.processes?.checkSame([
            ("photos", photos.checkpointImages.digest), ("numbers of epochs", "\(task.describe().roundCount)"),
        ])
        try checkCanMakeModel(run)
        start(run, resumed)
        try prepare(run)
        let (loopEnding, divergence) = try train(run)
        guard let best = loop.best, !loop.progress.history.isEmpty else {
            let checkpoint = save(run)
            if let problem = photos.unreadable.problem {
                throw ImprintError.tooFewReadablePhotos(reason: "\(problem)", checkpoint: checkpoint)
            }
            throw ImprintError.stoppedTooEarly(checkpoint: checkpoint)
        }
        // Validation, calibration and replay features take time and memory, so the process may end before there is a model.
        // The last state of a diverged run is not finite, so its checkpoint keeps an earlier one.
        if divergence == nil { writer.save(loop.state) }
        // Only a run with a model is saved as finished: otherwise it can be resumed.
        let model: ModelFile
        let evaluation: Evaluation?
        do {
            let isValidated = try validateBest(run)
            (model, evaluation) = try task.makeModel(
                loop, best, isValidated: isValidated, trainedOn: writer.imagesOfBest(loop.progress))
        } catch {
            // The parameters before a divergence may be so large that the model is unusable, too.
            throw divergence ?? error
        }
        let ending = photos.unreadable.problem == nil ? loopEnding : .tooFewReadablePhotos
        if divergence == nil { writer.save(ending.isEarly ? loop.state : loop.finishedState) }
        let result = TrainingResult(
            model: model, evaluation: evaluation, multiLabelEvaluation: task.multiLabelEvaluation, ending: ending,
            seconds: loop.seconds, unreadable: photos.unreadable.images, photoError: photos.unreadable.problem,
            divergence: divergence, checkpointFailure: writer.failure, featureFailure: task.featureFailure,
            isRepeatable: (!ending.isEarly || ending == .diverged) && loop.progress.isRepeatable && !task.hasTimeLimit)
        onEvent(.finished(result))
        return result
    }

    /// Restores the state of a checkpoint.
    private func resume(_ run: Run, from checkpoint: Checkpoint) throws -> TrainingStart.Resumption {
        let (loop, images) = (run.loop, run.photos.checkpointImages)
        let hasSamePhotos = checkpoint.images.hasSameImages(as: images)
        try task.processes.failTogether {
            do {
                try loop.restore(checkpoint.state, hasSameData: hasSamePhotos)
            } catch let error as TrainingStateError {
                throw ModelFileError(
                    path: store?.file.path ?? "", problem: .invalidMetadata(key: "state", reason: error.reason))
            }
        }
        run.writer.resumedImagesOfBest = checkpoint.imagesOfBest ?? checkpoint.images
        let change = checkpoint.images.change(to: images)
        return TrainingStart.Resumption(
            history: loop.progress.history, imagesSeen: loop.progress.sum.count, hasSameImages: hasSamePhotos,
            newImages: change.new, missingImages: change.missing, editedImages: change.edited,
            unreadableImages: change.unreadable)
    }

    /// Checks that a run that has nothing left to train has the photos that its parameters were trained on.
    ///
    /// Otherwise the calibration, the novelty rule and the features of the model would be those of other photos.
    /// - Throws: `ImprintError.finishedWithOtherPhotos` if it has other photos.
    private func checkCanMakeModel(_ run: Run) throws(ImprintError) {
        let images = run.photos.checkpointImages
        guard let earlier = run.writer.imagesOfBest(run.loop.progress), !earlier.hasSameImages(as: images),
            run.loop.isAtEnd()
        else { return }
        // The number of phases of a detector is fixed, and so is the epoch of the recipe head.
        let canTrainLonger = !Checkpoint.hasDetectorSettings(task.fingerprint) && task.decision?.recipe != .head
        throw .finishedWithOtherPhotos(
            file: store?.file.path ?? "", change: "\(earlier.change(to: images))", canTrainLonger: canTrainLonger)
    }

    /// Prepares a new run.
    ///
    /// If it throws, nothing is trained yet, so there is nothing to save.
    private func prepare(_ run: Run) throws {
        do {
            guard try task.prepare(run.loop, onEvent: onEvent, shouldStop: shouldStop) else {
                throw ImprintError.stoppedTooEarly(checkpoint: nil)
            }
        } catch let error as ImageError {
            report(run)
            guard let problem = run.photos.unreadable.problem else { throw error }
            throw ImprintError.tooFewReadablePhotos(reason: "\(problem)", checkpoint: nil)
        }
    }

    private func start(_ run: Run, _ resumed: TrainingStart.Resumption?) {
        let description = task.describe()
        var start = TrainingStart(
            kind: description.kind, labels: task.labels, trainingImages: run.photos.trainingCount,
            validationImages: run.photos.validationCount,
            labelsWithoutValidation: run.photos.labelsWithoutValidation, skipped: run.photos.skipped,
            network: task.network.name, parameterCount: description.parameterCount,
            trainableParameterCount: description.trainableParameterCount, epochs: description.roundCount,
            resumed: resumed, replacesCheckpoint: store?.replacedProgress != nil, leakage: run.photos.leakage,
            decision: task.decision)
        start.replacedProgress = store?.replacedProgress
        start.startAccuracy = run.loop.progress.comparableStartAccuracy
        start.incomparableEpochs = run.loop.progress.firstComparable
        onEvent(.started(start))
    }

    /// Runs the loop.
    ///
    /// If too few photos are left, or if training diverges after a validated epoch, the run ends with the best model so far.
    /// - Returns: The reason why the loop ended, and the error of a run that has diverged.
    private func train(_ run: Run) throws -> (ending: TrainingResult.Ending, divergence: ImprintError?) {
        let loop = run.loop
        isInLoop = true
        defer { isInLoop = false }
        // The number of photos or patches before each round. The plan of a run with a time limit changes, so there are as many as needed.
        var samplesBefore = [0]
        do {
            let ending = try loop.run(shouldStop: shouldStop) { event in
                report(run)
                switch event {
                case .step:
                    let progress = loop.progress
                    while samplesBefore.count <= progress.plannedRounds {
                        let round = samplesBefore.count - 1
                        samplesBefore.append(samplesBefore[round] + task.sampleCount(ofRound: round))
                    }
                    var batch = TrainingBatch(
                        epoch: progress.round + 1, epochs: progress.plannedRounds, imagesSeen: progress.sum.count,
                        imagesPerEpoch: task.sampleCount(ofRound: progress.round),
                        imagesSeenInRun: samplesBefore[progress.round] + progress.sum.count,
                        imagesPerRun: samplesBefore[progress.plannedRounds],
                        loss: progress.sum.meanLoss, accuracy: progress.sum.accuracy)
                    batch.startAccuracy = progress.comparableStartAccuracy
                    onEvent(.batch(batch))
                case .round(let metrics, let seconds): onEvent(.epoch(metrics, seconds: seconds))
                }
            }
            return (TrainingResult.Ending(ending), nil)
        } catch let error as TrainingDivergedError {
            report(run)
            let divergence = ImprintError.diverged(
                epoch: error.epoch, learningRate: error.learningRate,
                isDetector: task.describe().kind.trainsDetector)
            // Without a validation set, an earlier epoch may be almost as bad.
            guard loop.best != nil, loop.progress.history.contains(where: { $0.validationLoss != nil }) else {
                throw divergence
            }
            return (.diverged, divergence)
        } catch is CancellationError {
            report(run)
            return (.stopped, nil)
        } catch {
            report(run)
            guard error is ImageError, run.photos.unreadable.problem != nil else {
                save(run)
                throw error
            }
            return (.tooFewReadablePhotos, nil)
        }
    }

    /// Saves a checkpoint, unless nothing is trained yet: it would replace the checkpoint of a completed run.
    /// - Returns: The path of the checkpoint, if there is one.
    @discardableResult private func save(_ run: Run) -> String? {
        guard run.loop.progress.batch > 0 || !run.loop.progress.history.isEmpty else { return nil }
        run.writer.save(run.loop.state)
        return run.writer.path
    }

    /// Validates the best round again, for the evaluation and the calibration.
    /// - Returns: Whether there is a result.
    private func validateBest(_ run: Run) throws -> Bool {
        guard !run.photos.unreadable.affectsValidation else { return false }
        do {
            let validation = try run.loop.validateBest()
            report(run)
            return validation != nil && !run.photos.unreadable.affectsValidation
        } catch let error as ImageError {
            report(run)
            guard run.photos.unreadable.problem != nil else { throw error }
            return false
        }
    }

    /// Reports photos that have become unreadable.
    private func report(_ run: Run) {
        for image in run.photos.unreadable.takeNew() {
            run.loop.recordUnreadablePhoto()
            onEvent(.unreadable(image))
        }
    }
}

extension TrainingResult.Ending {
    fileprivate init(_ ending: TrainingLoop.Ending) {
        self =
            switch ending {
            case .completed: .completed
            case .noImprovement: .noImprovement
            case .timeLimit: .timeLimit
            case .stopped: .stopped
            }
    }
}
