internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The task of training a classifier of whole photos.
struct ClassifierTask: TrainingTask {
    private let source: any TrainingSource
    private let configuration: ClassifierConfiguration
    private let start: ClassifierConfiguration.StartingPoint
    let fingerprint: [String: String]
    /// The photos; nil until they are read.
    private var loadedPhotos: TrainingImages?
    private var unreadable: UnreadablePhotos?
    private let objective = SharedValue<ClassificationObjective>()
    /// The recipe of the run, or nil if the configuration has all hyperparameters.
    private let recipe: ChosenRecipe?

    private let multiLabel = SharedValue<MultiLabelEvaluation>()
    /// The reason why the model lacks features of training photos, if it does.
    private let missingFeatures = SharedValue<ImprintError>()

    init(photos source: any TrainingSource, configuration: ClassifierConfiguration, recipe: ChosenRecipe? = nil) throws
    {
        var configuration = configuration
        if source.isMultiLabel { configuration.isMultiLabel = true }
        try configuration.check()
        self.source = source
        self.configuration = configuration
        self.recipe = recipe
        start = try configuration.startingPoint(labels: source.labels, addsBias: recipe != nil)
        if let probe = recipe?.probe { start.use(probe.head) }
        fingerprint = try configuration.fingerprint(digest: start.digest)
            .merging(recipe.map { [ChosenRecipe.setting: try $0.encoded()] } ?? [:]) { $1 }
    }

    var decision: RecipeDecision? { recipe?.decision }

    var labels: [String] { source.labels }
    var photoSource: (any TrainingSource)? { source }
    var multiLabelEvaluation: MultiLabelEvaluation? { multiLabel.value }
    var featureFailure: ImprintError? { missingFeatures.value }
    var network: Network { start.trainablePart.network }
    var versionOneFingerprint: [String: String] { configuration.versionOneFingerprint(digest: start.digest) }
    var processes: ProcessGroup? { configuration.processes }
    var hasTimeLimit: Bool { configuration.timeLimit != nil }
    func sampleCount(ofRound round: Int) -> Int { photos.training.count }

    private var photos: TrainingImages {
        guard let loadedPhotos else { preconditionFailure("the photos must be read before training") }
        return loadedPhotos
    }

    mutating func readPhotos(
        earlier: Checkpoint.Images?, onEvent: (TrainingEvent) -> Void, checkContinues: () throws -> Void
    ) throws -> RunPhotos {
        let photos =
            if let measured = recipe?.probe?.images {
                start.featureExtractor == nil
                    ? TrainingImages(measured, augmentation: configuration.augmentation) : measured
            } else {
                try TrainingImages(
                    source, configuration, start: start, earlier: earlier, onEvent: onEvent,
                    checkContinues: checkContinues)
            }
        let unreadable = UnreadablePhotos(
            training: photos.training.items, validation: photos.validation?.items ?? [], labels: source.labels)
        (loadedPhotos, self.unreadable) = (photos, unreadable)
        var checkpointImages = photos.checkpointImages
        checkpointImages.trainingCounts = photos.countsByLabel(photos.training)
        return RunPhotos(
            trainingCount: photos.training.count, validationCount: photos.validationCount,
            labelsWithoutValidation: photos.labelsWithoutValidation, skipped: photos.skipped, leakage: photos.leakage,
            checkpointImages: checkpointImages, unreadable: unreadable)
    }

    func makeObjective(
        onScan: @escaping (_ done: Int, _ of: Int) throws -> Void
    ) throws -> (objective: any TrainingObjective, options: TrainingLoop.Options) {
        guard let unreadable else { preconditionFailure("the photos must be read before training") }
        let objective = try ClassificationObjective(
            start, configuration: configuration, images: photos, unreadable: unreadable)
        self.objective.value = objective
        var epochs = TrainingLoop.Rounds.Epochs(
            count: configuration.epochs, steps: objective.stepsPerEpoch,
            learningRate: configuration.learningRate ?? 0, scheduleShape: configuration.schedule)
        epochs.laterWarmUpEpochs = Set(
            (0..<min(configuration.epochs, start.stages.lastStageStart + 1)).filter(start.stages.startsStage))
        var options = TrainingLoop.Options(
            rounds: .epochs(epochs), optimizer: configuration.hyperparameters.optimizerConfiguration,
            emaDecay: configuration.emaDecay)
        options.learningRateFactors = start.learningRateFactors
        options.patience = configuration.patience
        options.firstPatientRound = start.stages.lastStageStart
        options.timeLimit = configuration.timeLimit
        options.secondsBefore = recipe?.secondsOfProbe ?? 0
        options.evaluatesStart = recipe?.decision.recipe == .fineTuning
        return (objective, options)
    }

    func prepare(
        _ loop: TrainingLoop, onEvent: (TrainingEvent) -> Void, shouldStop: () -> Bool
    ) throws -> Bool {
        guard configuration.learningRate == nil, loop.progress.learningRate == 0, let objective = objective.value else {
            return true
        }
        // All processes must decide alike.
        func agreed(_ condition: Bool) -> Bool { configuration.processes?.broadcast(condition) ?? condition }
        return try withoutActuallyEscaping(onEvent) { onEvent in
            try withoutActuallyEscaping(shouldStop) { shouldStop in
                let search = try LearningRateRangeTest.run(
                    objective, optimizer: configuration.hyperparameters.optimizerConfiguration,
                    learningRateFactors: start.learningRateFactors
                ) { step in
                    onEvent(.searching(done: step, of: LearningRateSearch.stepCount))
                    // A run that reaches its time limit needs a learning rate for its only step.
                    return agreed(!shouldStop() && (step < LearningRateSearch.settling || !isOutOfTime(loop)))
                }
                // The result of an interrupted test is not the learning rate of the run.
                guard agreed(!shouldStop()), let search, let found = search.learningRate else { return false }
                loop.use(learningRate: found)
                onEvent(.learningRate(search))
                return true
            }
        }
    }

    private func isOutOfTime(_ loop: TrainingLoop) -> Bool {
        configuration.timeLimit.map { loop.seconds >= $0.seconds } ?? false
    }

    func describe() -> (kind: TrainingKind, parameterCount: Int, trainableParameterCount: Int, roundCount: Int) {
        (
            TrainingKind(trainableLayers: configuration.trainableLayers, baseDigest: start.baseDigest),
            start.whole.parameters.layout.trainableCount, start.trainableParameterCount, configuration.epochs
        )
    }

    func makeModel(
        _ loop: TrainingLoop, _ best: Parameters, isValidated: Bool, trainedOn earlier: Checkpoint.Images?
    ) throws -> (model: ModelFile, evaluation: Evaluation?) {
        guard let objective = objective.value else {
            preconditionFailure("the model needs an objective: call makeObjective first")
        }
        let photos = photos
        let progress = loop.progress
        let items = photos.validation?.items ?? []
        let validation = isValidated ? objective.validation : nil
        let isMultiLabel = configuration.isMultiLabel
        // Not all networks can divide their logits by a temperature.
        let calibrates = configuration.calibrates && !isMultiLabel && start.whole.network.logitLayerName != nil
        // The photos that were unreadable at the start, and those that became unreadable.
        let validationURLs = Set(items.map(\.url))
        let skipped =
            (photos.validation?.skipped ?? []) + (unreadable?.all ?? []).filter { validationURLs.contains($0.url) }
        if let validation, isMultiLabel { multiLabel.value = multiLabelEvaluation(validation, items, skipped) }
        let calibration =
            calibrates
            ? validation.flatMap { Calibration(logits: $0.logits, labels: $0.itemIndices.map { items[$0].label }) }
            : nil
        let evaluation = isMultiLabel ? nil : validation.map { evaluate($0, items, skipped, calibration) }
        let record = TrainingRecord(
            .classifier(configuration.hyperparameters),
            foundLearningRate: configuration.learningRate == nil ? progress.learningRate : nil,
            dataDigest: earlier?.digests.first ?? source.digest,
            trainingImages: earlier.map { $0.trainingCounts ?? [:] } ?? photos.countsByLabel(photos.training),
            validationImages: photos.countsByLabel(photos.validation),
            classWeights: classWeights(objective, trainedOn: earlier).map {
                Dictionary(uniqueKeysWithValues: zip(source.labels, $0))
            },
            trainableLayers: configuration.trainableLayers, history: progress.history,
            keptEpoch: progress.best.map { $0 + 1 } ?? 0, startAccuracy: progress.startAccuracy,
            precisionRecall: evaluation?.precisionRecall ?? multiLabel.value?.precisionRecall ?? [:],
            thresholds: isMultiLabel ? multiLabelThresholds : evaluation?.thresholds,
            calibration: calibration)
        var model = ModelFile(
            network: isMultiLabel ? try start.whole.network.endingInSigmoid() : start.whole.network,
            parameters: try start.parameters(with: best), labels: source.labels,
            preprocessing: start.preprocessing, training: record, baseDigest: start.baseDigest,
            storagePrecision: configuration.storagePrecision)
        if let calibration, let calibrated = try model.calibrated(calibration.temperature) { model = calibrated }
        // A personalization cannot learn several labels per photo.
        guard !isMultiLabel else { return (model, evaluation) }
        try processes.failTogether {
            let withRehearsal = try model.addingRehearsal(
                photos.training.items, count: configuration.rehearsalImages, seed: configuration.seed,
                workers: Workers(configuration.threads))
            (model, missingFeatures.value) = (withRehearsal.model, withRehearsal.failure)
            do {
                model.noveltyRule = try model.fittedNoveltyRule(
                    training: photos.training.items, validation: items, seed: configuration.seed,
                    workers: Workers(configuration.threads))
            } catch NetworkError.outOfMemory(let byteCount) {
                missingFeatures.value = .outOfMemory(byteCount: byteCount)
            }
        }
        return (model, evaluation)
    }

    /// Returns the class weights of the photos that the parameters were trained on; nil without weights, and if an older checkpoint lacks counts.
    private func classWeights(_ objective: ClassificationObjective, trainedOn earlier: Checkpoint.Images?) -> [Float]? {
        guard let earlier else { return objective.classWeights }
        guard let counts = earlier.trainingCounts else { return nil }
        return ClassificationLoss.classWeights(
            configuration.hyperparameters, counts: labels.map { counts[$0] ?? 0 }, total: earlier.training.count)
    }

    /// The threshold of each label; 0.5 if it was not measured.
    private var multiLabelThresholds: [String: Double] {
        multiLabel.value?.thresholdsByLabel ?? Dictionary(uniqueKeysWithValues: labels.map { ($0, 0.5) })
    }

    private func multiLabelEvaluation(
        _ validation: ClassificationObjective.Validation, _ items: [TrainingPhoto], _ skipped: [SkippedImage]
    ) -> MultiLabelEvaluation {
        let results = zip(validation.itemIndices, validation.logits).map { index, logits in
            MultiLabelEvaluation.Result(
                url: items[index].url, labels: items[index].labels,
                confidences: logits.map { Float(1 / (1 + exp(-Double($0)))) })
        }
        return MultiLabelEvaluation(labels: source.labels, results: results, skipped: skipped)
    }

    private func evaluate(
        _ validation: ClassificationObjective.Validation, _ items: [TrainingPhoto], _ skipped: [SkippedImage],
        _ calibration: Calibration?
    ) -> Evaluation {
        let uncalibrated = Calibration(temperature: 1, errorBefore: 0, errorAfter: 0, images: 0)
        let results = zip(validation.itemIndices, validation.logits).map { index, logits in
            Evaluation.Result(
                url: items[index].url, label: items[index].label,
                confidences: (calibration ?? uncalibrated).confidences(logits))
        }
        return Evaluation(labels: source.labels, results: results, skipped: skipped)
    }
}
