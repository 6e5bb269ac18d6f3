internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// One run of training, from settings and images to the model, on the thread that calls it.
final class TrainingJob {
    private let folder: ImageFolder
    private let configuration: TrainingConfiguration
    private let checkpoints: CheckpointOptions?
    private let onEvent: (TrainingEvent) -> Void
    private let shouldStop: () -> Bool
    private var clock = RunClock()
    private var isStopped = false
    private var vanished = VanishedPhotos(training: [], validation: [], labels: [])

    init(
        folder: ImageFolder, configuration: TrainingConfiguration, checkpoints: CheckpointOptions?,
        onEvent: @escaping (TrainingEvent) -> Void, shouldStop: @escaping () -> Bool
    ) {
        self.folder = folder
        self.configuration = configuration
        self.checkpoints = checkpoints
        self.onEvent = onEvent
        self.shouldStop = shouldStop
    }

    func run() throws -> TrainingResult {
        try configuration.check()
        let start = try configuration.startingPoint(labels: folder.labels)
        let settings = configuration.settings(base: start.base)
        let store = try checkpoints.map(CheckpointStore.init)
        if let store, let checkpoint = store.resumed {
            try checkpoint.checkFits(
                start.trained.network, labels: folder.labels, settings: settings, file: store.file)
        }
        let images = try TrainingImages(
            folder, configuration, start: start, earlier: store?.resumed?.images, onEvent: onEvent
        ) {
            guard !shouldStop() else {
                throw ImprintError.stoppedTooEarly(checkpoint: store?.resumed.map { _ in store?.file.path ?? "" })
            }
        }
        vanished = VanishedPhotos(
            training: images.training.items, validation: images.validation?.items ?? [], labels: folder.labels)
        let session = try TrainingSession(start, configuration: configuration, images: images)
        let run = Run(
            session: session, images: images, store: store, writer: CheckpointWriter(store, onEvent: onEvent),
            settings: settings)
        try begin(run)
        var ending = try train(run)
        guard run.session.progress.best != nil else {
            run.writer.save { checkpoint(run) }
            if let problem = vanished.problem {
                throw ImprintError.photosLost(reason: "\(problem)", checkpoint: run.writer.path)
            }
            throw ImprintError.stoppedTooEarly(checkpoint: run.writer.path)
        }
        // What is saved as finished has a model: if it cannot be made, the run can be resumed.
        let model = try model(run)
        if vanished.problem != nil { ending = .photosLost }
        let isWhole = ending != .stopped && ending != .photosLost
        run.writer.save { checkpoint(run, isFinished: isWhole) }
        let result = TrainingResult(
            weights: model.weights, evaluation: model.evaluation, ending: ending, seconds: clock.seconds,
            lost: vanished.images, photosLost: vanished.problem, checkpointFailure: run.writer.failure,
            isRepeatable: session.progress.isRepeatable && configuration.timeLimit == nil && isWhole
                && vanished.images.isEmpty)
        onEvent(.finished(result))
        return result
    }

    /// What belongs to the run once its images are read.
    private struct Run {
        let session: TrainingSession
        let images: TrainingImages
        let store: CheckpointStore?
        let writer: CheckpointWriter
        let settings: [String: String]
    }

    /// Goes on from a checkpoint, or begins.
    private func begin(_ run: Run) throws {
        let (session, images) = (run.session, run.images)
        var resumed: TrainingStart.Resumption?
        if let checkpoint = run.store?.resumed {
            try session.restore(checkpoint, sameImages: checkpoint.images == images.record)
            clock.secondsBefore = session.progress.seconds
            resumed = TrainingStart.Resumption(
                history: session.progress.history, imagesSeen: session.progress.sum.count,
                hasSameImages: checkpoint.images == images.record)
        }
        session.planEpochs(secondsLeft: secondsLeft)
        let start = session.start
        onEvent(
            .started(
                TrainingStart(
                    recipe: TrainingRecipe(trains: configuration.trains, base: start.base), labels: folder.labels,
                    trainingImages: images.training.count,
                    validationImages: images.validationCount, labelsWithoutValidation: images.labelsWithoutValidation,
                    skipped: images.skipped, network: start.whole.network.name,
                    parameterCount: start.whole.parameters.layout.trainableCount,
                    trainedCount: start.trainedCount,
                    epochs: configuration.epochs, resumed: resumed,
                    replacesCheckpoint: run.store?.replacesFinished ?? false, leakage: images.leakage)))
        guard configuration.learningRate == nil, session.progress.learningRate == 0 else { return }
        let search = try session.searchLearningRate(over: images.training, onLost: noteLost) { step in
            onEvent(.searching(done: step, of: LearningRateSearch.stepCount))
            isStopped = shouldStop()
            return !isStopped && !isOutOfTime
        }
        if let search {
            onEvent(.learningRate(search))
        } else {
            // Without a rate nothing can be trained, so there is nothing to save either.
            throw ImprintError.stoppedTooEarly(checkpoint: nil)
        }
    }

    /// Trains epoch after epoch.
    private func train(_ run: Run) throws -> TrainingResult.Ending {
        let session = run.session
        while true {
            if let ending = ending(session) { return ending }
            _ = clock.lap()
            let measured: TrainingSession.Measured?
            do {
                let isComplete = try session.trainEpoch(over: run.images.training, onLost: noteLost) {
                    afterBatch(run)
                }
                // The time may end within an epoch, which then counts as it is.
                guard isComplete || isOutOfTime, vanished.problem == nil else { continue }
                measured = try run.images.validation.map { try measureEpoch(run, over: $0) }
            } catch let error as ImageError {
                // Too few photos are left. The epoch does not count; a resumed run restarts it.
                guard vanished.problem != nil else { throw error }
                continue
            }
            noteTime(run)
            guard vanished.problem == nil else { continue }
            let seconds = session.progress.secondsInEpoch
            onEvent(.epoch(try session.finishEpoch(measured), seconds: seconds))
            session.planEpochs(secondsLeft: secondsLeft)
            run.writer.saveIfDue { checkpoint(run) }
        }
    }

    /// Measures the epoch.
    ///
    /// If validation photos have vanished, it measures the best epoch again too: only losses on the same photos compare.
    private func measureEpoch(
        _ run: Run, over validation: any BatchSource
    ) throws -> TrainingSession.Measured {
        while true {
            let known = vanished.images.count
            let measured = try run.session.measure(over: validation, onLost: noteLost)
            let hasFewer = vanished.images.count > known || run.session.comparesBestAgain
            guard hasFewer, vanished.problem == nil, run.session.progress.best != nil else { return measured }
            try run.session.compareBest(over: validation, onLost: noteLost)
        }
    }

    /// Why the run ends here; nil if it goes on.
    private func ending(_ session: TrainingSession) -> TrainingResult.Ending? {
        if vanished.problem != nil { return .photosLost }
        let progress = session.progress
        let done = progress.history.count
        if done >= configuration.epochs { return .completed }
        // What is trained from the last stage on has not had its chance before.
        let inLastStage = done - session.start.stages.lastBegins
        if let patience = configuration.patience, min(progress.epochsSinceBest, inLastStage) >= patience {
            return .noImprovement
        }
        if isStopped { return .stopped }
        return done > 0 && (done >= progress.plannedEpochs || isOutOfTime) ? .timeLimit : nil
    }

    /// Counts the time since the last time as that of the epoch.
    private func noteTime(_ run: Run) {
        run.session.add(seconds: clock.lap())
    }

    private func afterBatch(_ run: Run) -> Bool {
        noteTime(run)
        let progress = run.session.progress
        onEvent(
            .batch(
                TrainingBatch(
                    epoch: progress.history.count + 1, epochs: progress.plannedEpochs, imagesSeen: progress.sum.count,
                    imagesPerEpoch: run.images.training.count, loss: progress.sum.meanLoss,
                    accuracy: progress.sum.accuracy)))
        isStopped = shouldStop()
        if isStopped || isOutOfTime || vanished.problem != nil { return false }
        run.writer.saveIfDue { checkpoint(run) }
        return true
    }

    private var secondsLeft: Double? { configuration.timeLimit.map { $0.seconds - clock.seconds } }
    private var isOutOfTime: Bool { secondsLeft.map { $0 <= 0 } ?? false }

    private func noteLost(_ image: SkippedImage) {
        if vanished.add(image) { onEvent(.lost(image)) }
    }

    private func checkpoint(_ run: Run, isFinished: Bool = false) -> Checkpoint {
        run.session.checkpoint(
            labels: folder.labels, settings: run.settings, images: run.images.record, seconds: clock.seconds,
            isFinished: isFinished, hasLostPhotos: !vanished.images.isEmpty)
    }

    /// The model of the best epoch, and how it does on the images to measure on.
    private func model(_ run: Run) throws -> (weights: ModelFile, evaluation: Evaluation?) {
        let (session, images, start) = (run.session, run.images, run.session.start)
        let progress = session.progress
        let measured = try measuredBest(run)
        let calibration = measured.flatMap { loader, measured in
            configuration.calibrates
                ? Calibration(logits: measured.logits, labels: measured.places.map { loader.items[$0].label }) : nil
        }
        let evaluation = measured.map { evaluate($1, $0, calibration) }
        let record = TrainingRecord(
            seed: configuration.seed, epochs: configuration.epochs, batchSize: configuration.batchSize,
            optimizer: session.optimizer.options, schedule: session.schedule,
            labelSmoothing: configuration.labelSmoothing, augmentations: configuration.augmentation.words,
            dataDigest: folder.digest, trainingImages: images.countsByLabel(images.training),
            validationImages: images.countsByLabel(images.validation),
            labelWeights: session.labelWeights.map { Dictionary(uniqueKeysWithValues: zip(folder.labels, $0)) },
            averageDecay: configuration.averageDecay, trains: configuration.trains,
            fineTuning: configuration.usedFineTuning, history: progress.history,
            keptEpoch: progress.best.map { $0 + 1 }, precisionRecall: evaluation?.precisionRecall ?? [:],
            thresholds: evaluation?.thresholds, calibration: calibration)
        var weights = ModelFile(
            network: start.whole.network, parameters: try start.parameters(with: session.best), labels: folder.labels,
            preprocessing: start.preprocessing, training: record, base: start.base,
            precision: configuration.precision)
        if let calibration, let calibrated = try weights.calibrated(calibration.temperature) { weights = calibrated }
        weights = try weights.rehearsing(
            images.training.items.map { ($0.url, $0.label) }, count: configuration.rehearsalImages,
            seed: configuration.seed, workers: Workers(configuration.threads))
        return (weights, evaluation)
    }

    /// How the best epoch does on the validation photos; nil if there are none, or if too few of them are left to say anything.
    private func measuredBest(_ run: Run) throws -> (any BatchSource, TrainingSession.Measured)? {
        guard let validation = run.images.validation else { return nil }
        do {
            let measured = try run.session.measureBest(over: validation, onLost: noteLost)
            return vanished.affectsValidation ? nil : (validation, measured)
        } catch let error as ImageError {
            guard vanished.problem != nil else { throw error }
            return nil
        }
    }

    private func evaluate(
        _ measured: TrainingSession.Measured, _ loader: any BatchSource, _ calibration: Calibration?
    ) -> Evaluation {
        let unchanged = Calibration(temperature: 1, errorBefore: 0, errorAfter: 0, images: 0)
        let results = zip(measured.places, measured.logits).map { place, logits in
            Evaluation.Result(
                url: loader.items[place].url, label: loader.items[place].label,
                confidences: (calibration ?? unchanged).confidences(logits))
        }
        return Evaluation(labels: folder.labels, results: results, skipped: loader.skipped)
    }
}
