internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintSynthesis

/// One run of training LogoSpot from artwork and photos, from settings and images to the model, on the thread that calls it.
final class DetectorJob {
    private let data: TrainingData
    /// The labels of the logos, in order: each has a map of the network.
    private let marks: [String]
    /// The photos, with the labels of the logos too, of which there need be no photo.
    private let folder: ImageFolder
    private let configuration: TrainingConfiguration
    private let checkpoints: CheckpointOptions?
    /// The phases; those of the recipe if nil.
    private let phases: [DetectorPhase]?
    private let poolSize: Int
    private let onEvent: (TrainingEvent) -> Void
    private let shouldStop: () -> Bool
    private let workers: Workers
    private var clock = RunClock()
    private var isStopped = false
    private var lost: [SkippedImage] = []

    init(
        data: TrainingData, configuration: TrainingConfiguration, checkpoints: CheckpointOptions?,
        phases: [DetectorPhase]? = nil, poolSize: Int = DetectorPatches.usualPoolSize,
        onEvent: @escaping (TrainingEvent) -> Void, shouldStop: @escaping () -> Bool
    ) {
        self.data = data
        marks = data.artwork.keys.sorted(by: precedes)
        folder = data.photos.adding(labels: marks)
        var configuration = configuration
        // The curve that turns scores into confidences needs more photos than the choice of an epoch.
        if case .split(.automatic) = configuration.validation { configuration.validation = .split(.fraction(0.15)) }
        self.configuration = configuration
        self.checkpoints = checkpoints
        self.phases = phases
        self.poolSize = poolSize
        self.onEvent = onEvent
        self.shouldStop = shouldStop
        workers = Workers(configuration.threads)
    }

    /// The labels of the model: those of the photos and of the logos, in order.
    private var labels: [String] { folder.labels.sorted(by: precedes) }

    /// What belongs to the run once its images are read.
    private struct Run {
        let session: DetectorSession
        let images: DetectorPhotos
        let writer: CheckpointWriter
        let settings: [String: String]
    }

    func run() throws -> TrainingResult {
        try configuration.check()
        if configuration.trains != nil {
            throw ImprintError.invalidSetting(
                name: "start", found: "a base", expected: "a new network, for logos are spotted by one of their own")
        }
        let others = folder.labels.filter { !marks.contains($0) }
        guard others.count == 1 else {
            throw ImprintError.notOneLabelWithoutMark(found: others, marks: marks, folder: folder.url.path)
        }
        let store = try checkpoints.map(CheckpointStore.init)
        var settings = configuration.settings(base: nil)
        settings["artwork"] = marks.map { mark in
            artwork(of: mark).map { "\($0.name) (\($0.digest.prefix(12)))" }.joined(separator: ", ") + " of \(mark)"
        }.joined(separator: "; ")
        settings["backgrounds"] =
            data.backgrounds.map {
                $0.isEmpty ? "drawn patterns" : "\($0.count) photos (\(ImageFolder.digest(of: $0).prefix(12)))"
            } ?? "the photos without a logo"
        // Elsewhere more epochs may follow; here they make every phase another one.
        settings["epochs"] = "\(configuration.epochs)"
        if let store, let checkpoint = store.resumed {
            try checkpoint.checkFits(
                try Network.logoDetector(marks: marks.count), labels: labels, settings: settings, file: store.file)
        }
        let images = try DetectorPhotos(
            folder, configuration, marks: marks, earlier: store?.resumed?.images, workers: workers, onEvent: onEvent)
        let backdrops = try backdrops(images)
        let session = try makeSession(images, backdrops)
        let run = Run(
            session: session, images: images, writer: CheckpointWriter(store, onEvent: onEvent), settings: settings)
        var resumed: TrainingStart.Resumption?
        if let checkpoint = store?.resumed {
            guard checkpoint.progress.plannedEpochs == session.phases.count else {
                throw ImprintError.checkpointMismatch(
                    file: store?.file.path ?? "", setting: "photos of the logo",
                    found: images.positives.isEmpty ? "none" : "some",
                    expected: images.positives.isEmpty ? "some, as before" : "none, as before")
            }
            let hasSameImages = checkpoint.images == images.record
            try session.restore(checkpoint, sameImages: hasSameImages)
            clock.secondsBefore = session.progress.seconds
            resumed = TrainingStart.Resumption(
                history: session.progress.history, imagesSeen: session.progress.sum.count,
                hasSameImages: hasSameImages)
        }
        let layout = ParameterLayout(session.network)
        onEvent(
            .started(
                TrainingStart(
                    recipe: images.positives.isEmpty ? .artworkAlone : .artworkAndPhotos, labels: labels,
                    trainingImages: images.training.count, validationImages: images.validation.count,
                    labelsWithoutValidation: images.labelsWithoutValidation(labels),
                    skipped: images.skipped + backdrops.skipped,
                    network: session.network.name, parameterCount: layout.trainableCount,
                    trainedCount: layout.trainableCount, epochs: session.phases.count, resumed: resumed,
                    replacesCheckpoint: store?.replacesFinished ?? false, leakage: images.leakage)))
        var photosLost: ImageError?
        do {
            while session.progress.history.count < session.phases.count && !isStopped { try trainPhase(run) }
        } catch let error as ImageError {
            photosLost = try lostPhotos(run, error)
        }
        guard session.progress.best != nil else {
            run.writer.save { try checkpoint(run) }
            if let photosLost {
                throw ImprintError.photosLost(reason: "\(photosLost)", checkpoint: run.writer.path)
            }
            throw ImprintError.stoppedTooEarly(checkpoint: run.writer.path)
        }
        var model: (weights: ModelFile, evaluation: Evaluation?)?
        if !images.lost.affectsValidation {
            do {
                model = try self.model(run, measuring: true)
            } catch let error as ImageError {
                photosLost = try photosLost ?? lostPhotos(run, error)
            }
        }
        let (weights, evaluation) = try model ?? self.model(run, measuring: false)
        // Asked to stop in its last step, a run is done all the same.
        let isDone = session.progress.history.count == session.phases.count && photosLost == nil
        run.writer.save { try checkpoint(run, isFinished: isDone) }
        let result = TrainingResult(
            weights: weights, evaluation: evaluation,
            ending: photosLost != nil ? .photosLost : isDone ? .completed : .stopped,
            seconds: clock.seconds, lost: lost, photosLost: photosLost, checkpointFailure: run.writer.failure,
            isRepeatable: isDone && session.progress.isRepeatable)
        onEvent(.finished(result))
        return result
    }

    /// Reports photos that vanished, after an error because of them.
    /// - Returns: The error, which ends training.
    /// - Throws: The error if it has another cause.
    private func lostPhotos(_ run: Run, _ error: ImageError) throws -> ImageError {
        tellLost(run)
        if case .unencodable = error {
            run.writer.save { try checkpoint(run) }
            throw error
        }
        return error
    }

    /// What composites have behind them.
    private func backdrops(_ images: DetectorPhotos) throws -> Backdrops {
        let photos = images.negatives
        defer { SystemMemory.returnFreed() }
        return try Backdrops(
            data.backgrounds ?? photos.map(\.url), size: 224, seed: configuration.seed, workers: workers,
            inMemory: { data.backgrounds == nil ? photos[$0].whole : nil })
    }

    private func artwork(of mark: String) -> [Artwork] { data.artwork[mark] ?? [] }

    private func makeSession(_ images: DetectorPhotos, _ backdrops: Backdrops) throws -> DetectorSession {
        let compositors = marks.map { mark in
            Compositor(
                artworks: artwork(of: mark), backdrops: backdrops, seed: configuration.seed,
                label: marks.count > 1 ? mark : nil)
        }
        let patches = DetectorPatches(
            compositors: compositors, negatives: images.negatives.map(\.picture),
            positives: images.positives.compactMap { image in
                image.mark.map { DetectorPatches.Positive(picture: image.picture, mark: $0) }
            }, lost: images.lost, seed: configuration.seed, workers: workers, poolSize: poolSize)
        // The whole recipe is what twenty epochs are elsewhere.
        let recipe = DetectorPhase.all(
            hasPositives: !images.positives.isEmpty, scale: Double(configuration.epochs) / 20)
        return try DetectorSession(
            patches: patches, phases: phases ?? recipe, lost: images.lost, seed: configuration.seed, workers: workers)
    }

    /// Tells of photos that were lost since it was asked last.
    private func tellLost(_ run: Run) {
        let new = run.session.takeLost()
        lost += new
        for image in new { onEvent(.lost(image)) }
    }

    private func trainPhase(_ run: Run) throws {
        let session = run.session
        _ = clock.lap()
        if session.progress.batch == 0 { try session.beginPhase() }
        tellLost(run)
        let steps = session.phase.steps
        while session.progress.batch < steps {
            try session.trainBatch()
            session.add(seconds: clock.lap())
            tellLost(run)
            let progress = session.progress
            onEvent(
                .batch(
                    TrainingBatch(
                        epoch: progress.history.count + 1, epochs: session.phases.count, imagesSeen: progress.sum.count,
                        imagesPerEpoch: steps * DetectorPhase.batchSize, loss: progress.sum.meanLoss,
                        accuracy: progress.sum.accuracy)))
            isStopped = shouldStop()
            if isStopped && progress.batch < steps { return }
            run.writer.saveIfDue { try checkpoint(run) }
        }
        let validation = try measurePhase(run)
        session.add(seconds: clock.lap())
        let seconds = session.progress.secondsInEpoch
        let metrics = session.finishPhase(
            validation: validation.map { (Float($0.evaluation.logLoss), Float($0.evaluation.accuracy)) })
        onEvent(.epoch(metrics, seconds: seconds))
    }

    private func checkpoint(_ run: Run, isFinished: Bool = false) throws -> Checkpoint {
        try run.session.checkpoint(
            labels: labels, settings: run.settings, images: run.images.record, seconds: clock.seconds,
            isFinished: isFinished)
    }

    /// Measures the phase.
    ///
    /// If validation photos have vanished, it measures the best phase again too: only losses on the same photos compare.
    private func measurePhase(_ run: Run) throws -> (evaluation: Evaluation, detector: DetectorHead)? {
        while true {
            let known = lost.count
            let measured = try measure(run, run.session.average)
            let hasFewer = lost.count > known || run.session.comparesBestAgain
            guard hasFewer, run.session.progress.best != nil else { return measured }
            run.session.compareBest(
                loss: try measure(run, run.session.best).map { Float($0.evaluation.logLoss) })
        }
    }

    /// How the network does on the images to measure on, and the curves that turn its scores into confidences.
    private func measure(
        _ run: Run, _ parameters: Parameters
    ) throws -> (evaluation: Evaluation, detector: DetectorHead)? {
        let images = run.images.validation
        guard !images.isEmpty else { return nil }
        let scans = try run.session.scan(images.map(\.picture), parameters, peaks: 0)
        tellLost(run)
        let detector = try detector(run, parameters, scans)
        let results = zip(images, scans).compactMap { image, scans in
            scans.map {
                Evaluation.Result(
                    url: image.url, label: labels.firstIndex(of: image.label) ?? 0,
                    confidences: detector.confidences($0.map(\.score), in: labels))
            }
        }
        let skipped = run.images.skippedValidation + lost.filter { image in images.contains { $0.url == image.url } }
        if results.isEmpty, let last = skipped.last { throw last.reason }
        return (Evaluation(labels: labels, results: results, skipped: skipped), detector)
    }

    /// How the model looks at pictures.
    /// - Parameter scans: What the photos to measure on show.
    private func detector(
        _ run: Run, _ parameters: Parameters, _ scans: [[PyramidScanner.Scan]?]
    ) throws -> DetectorHead {
        let curves = try marks.indices.map { mark in
            let scores = zip(run.images.validation, scans).compactMap { image, scans in
                scans.map { (isOwn: image.mark == mark, score: $0[mark].score) }
            }
            let curve = try calibration(run, parameters, mark, scores)
            return DetectorHead.Mark(label: marks[mark], slope: Float(curve.slope), offset: Float(curve.offset))
        }
        return .logoDetector(marks: curves)
    }

    /// How many new composites a curve is fitted to at most.
    private var unseenCount: Int { min(200, 5 * poolSize) }

    /// Fits the curve of a mark to photos that were not trained on; where none of them shows it, to new composites and hard negatives too.
    private func calibration(
        _ run: Run, _ parameters: Parameters, _ mark: Int, _ scores: [(isOwn: Bool, score: Float)]
    ) throws -> PlattScaling {
        var with = scores.filter(\.isOwn).map(\.score)
        var without = scores.filter { !$0.isOwn }.map(\.score)
        func unseen(isPositive: Bool) throws -> [Float] {
            let pictures = try run.session.patches.unseen(unseenCount, of: mark, isPositive: isPositive)
            return try run.session.scan(pictures, parameters, peaks: 0).compactMap { $0?[mark].score }
        }
        if with.isEmpty || without.isEmpty { without += try unseen(isPositive: false) }
        if with.isEmpty { with = try unseen(isPositive: true) }
        return PlattScaling(with: with, without: without)
    }

    /// The model of the best phase, and how it does on the images to measure on.
    /// - Parameter measuring: Whether the validation photos can be read; otherwise confidences are calibrated on composites.
    private func model(_ run: Run, measuring: Bool) throws -> (weights: ModelFile, evaluation: Evaluation?) {
        let session = run.session
        let measured = measuring ? try measure(run, session.best) : nil
        let detector = try measured?.detector ?? self.detector(run, session.best, [])
        let evaluation = measured?.evaluation
        let record = TrainingRecord(
            seed: configuration.seed, epochs: session.phases.count, batchSize: DetectorPhase.batchSize,
            optimizer: SGD.Options(learningRate: 0, momentum: 0), adamW: session.optimizerOptions,
            dataDigest: folder.digest,
            trainingImages: counts(run.images.training), validationImages: counts(run.images.validation),
            averageDecay: DetectorSession.averageDecay,
            history: session.progress.history, keptEpoch: session.progress.best.map { $0 + 1 },
            precisionRecall: evaluation?.precisionRecall ?? [:], thresholds: evaluation?.thresholds)
        let weights = ModelFile(
            network: session.network, parameters: session.best, labels: labels,
            preprocessing: .logoDetector, detector: detector, training: record, precision: configuration.precision)
        let rehearsing = try weights.rehearsing(
            run.images.training.map { ($0.url, labels.firstIndex(of: $0.label) ?? 0) },
            count: configuration.rehearsalImages, seed: configuration.seed, workers: workers)
        return (rehearsing, evaluation)
    }

    private func counts(_ images: [DetectorPhotos.Item]) -> [String: Int] {
        images.reduce(into: [:]) { $0[$1.label, default: 0] += 1 }
    }
}
