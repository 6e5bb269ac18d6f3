internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The recipe of a run that starts from a pretrained base model.
struct ChosenRecipe {
    /// The checkpoint setting that stores the recipe, so that a resumed run does not choose again.
    static let setting = "recipe"

    /// The recipe.
    let decision: RecipeDecision
    /// The recipe as the first part of the run chose it; a resumed run may have a different number of epochs.
    private let original: RecipeDecision
    /// The configuration with the hyperparameters of the recipe.
    let configuration: ClassifierConfiguration
    /// The measurements; nil for a run that resumes from a checkpoint.
    let probe: RecipeProbe?
    /// The duration of the measurements, which counts towards the time limit.
    let secondsOfProbe: Double

    /// Chooses the recipe of a run.
    ///
    /// Nil if the run does not start from a pretrained base model.
    /// - Parameters:
    ///   - configuration: A configuration whose values are in their ranges.
    ///   - store: The checkpoint folder, whose checkpoint a resumed run continues; nil without checkpoints.
    init?(
        _ source: any TrainingSource, _ configuration: ClassifierConfiguration, _ store: CheckpointStore?,
        onEvent: (TrainingEvent) -> Void, shouldStop: () -> Bool
    ) throws {
        let processes = configuration.processes
        let (start, digest) = try processes.failTogether {
            let start = try configuration.pretrainedBase()
            return (start, try start.map { try $0.base.identity })
        }
        // Only some of the machines may have a base model.
        try processes?.checkSame([("base models", digest ?? "none")])
        guard let (base, recipe) = start else { return nil }
        var configuration = configuration
        let given = GivenHyperparameters(configuration)
        // Set before the photos are read, because training reuses the photos of the measurement.
        if !given.names.contains(.batchSize) { configuration.hyperparameters.batchSize = Self.batchSize }
        if recipe == .head, let augmentation = given.augmentation, augmentation != .none {
            throw ImprintError.invalidSetting(
                name: "augmentation", found: "\(augmentation)",
                expected: "none for the recipe head, which trains the head on features that are computed once")
        }
        if let stored = try processes.failTogether({ try Self.decision(in: store, base, recipe) }) {
            var resumed = stored
            if let epochs = given.epochs, resumed.recipe == .fineTuning { resumed.epochs = epochs }
            (decision, original) = (resumed, stored)
            (probe, secondsOfProbe) = (nil, 0)
        } else {
            let measured = try Self.measure(
                source, configuration, base, recipe, given: given, onEvent: onEvent, shouldStop: shouldStop)
            (decision, original) = (measured.decision, measured.decision)
            (probe, secondsOfProbe) = (measured.probe, measured.seconds)
        }
        self.configuration = configuration.applying(decision, original: original, base, given: given.names)
    }

    /// Measures the photos, and chooses the recipe.
    /// - Returns: The recipe, the measurements, and their duration.
    private static func measure(
        _ source: any TrainingSource, _ configuration: ClassifierConfiguration, _ base: ModelFile,
        _ recipe: ClassifierRecipe, given: GivenHyperparameters, onEvent: (TrainingEvent) -> Void,
        shouldStop: () -> Bool
    ) throws -> (decision: RecipeDecision, probe: RecipeProbe, seconds: Double) {
        let clock = RunClock()
        let processes = configuration.processes
        var measuring = configuration
        measuring.start = .base(base, trainableLayers: .head)
        measuring.hyperparameters.augmentation = .none
        if source.isMultiLabel { measuring.isMultiLabel = true }
        let start = try processes.failTogether {
            try measuring.startingPoint(labels: source.labels, addsBias: true)
        }
        guard let extractor = start.featureExtractor else {
            throw ImprintError.noHead(network: base.network.name)
        }
        // The share of the photos whose features are computed.
        var done: Double = 0
        let probe = try RecipeProbe(
            source, measuring, start: start, extractor: extractor,
            onEvent: { event in
                if case .computingFeatures(let count, let total) = event { done = Double(count) / Double(total) }
                onEvent(event)
            },
            checkContinues: {
                if shouldStop() { throw ImprintError.stoppedTooEarly(checkpoint: nil) }
                guard let limit = configuration.timeLimit?.seconds, done > 0, done < 1, clock.seconds > limit else {
                    return
                }
                throw ImprintError.timeLimitTooShort(seconds: limit, expected: clock.seconds / done)
            })
        let decision = RecipeDecision(
            recipe, probe.evidence,
            secondsPerEpoch: probe.secondsPerPhoto * trainingCost * Double(probe.evidence.trainingPhotos),
            secondsLeft: configuration.timeLimit.map { $0.seconds - clock.seconds },
            epochs: given.epochs, augmentation: given.augmentation,
            given: given.augmentation == Augmentation.none ? given.names.subtracting([.augmentation]) : given.names,
            isMultiLabel: measuring.isMultiLabel)
        // It depends on the speed of a process.
        return (try processes?.broadcast(encoding: decision) ?? decision, probe, clock.seconds)
    }

    /// The batch size of a recipe: batches of 32 photos need 2.3 GB instead of 1.3 GB for EfficientNet-Lite0.
    private static let batchSize = 16

    /// The duration of a training step, relative to computing the features of the same photos.
    private static let trainingCost = 3.5

    /// Returns the recipe of the run to resume, or nil if there is no run to resume.
    /// - Throws: `ImprintError.checkpointMismatch` if the run has no recipe or another one.
    private static func decision(
        in store: CheckpointStore?, _ base: ModelFile, _ recipe: ClassifierRecipe
    ) throws -> RecipeDecision? {
        guard let store, let checkpoint = store.resumed else { return nil }
        func mismatch(_ setting: String, found: String, expected: String) -> ImprintError {
            .checkpointMismatch(file: store.file.path, setting: setting, found: found, expected: expected)
        }
        guard !checkpoint.isOfDetector else {
            throw mismatch(
                "kind of model", found: Checkpoint.kindOfModel([:]),
                expected: Checkpoint.kindOfModel(checkpoint.settings))
        }
        guard let stored = checkpoint.settings[setting],
            let decision = try? JSONDecoder().decode(RecipeDecision.self, from: Data(stored.utf8))
        else {
            // No recipe fits the checkpoint, so the photos are not measured first.
            throw mismatch(
                "network", found: "base \(base.network.name) with recipe \(recipe.rawValue)",
                expected: withoutDigests(checkpoint.settings["network"] ?? "none"))
        }
        guard recipe == .automatic || recipe == decision.recipe else {
            throw mismatch(setting, found: recipe.rawValue, expected: decision.recipe.rawValue)
        }
        return decision
    }

    /// The recipe as a checkpoint stores it: with the number of epochs of the first part of the run.
    func encoded() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return String(decoding: try encoder.encode(original), as: UTF8.self)
    }
}

/// The hyperparameters of a configuration that a recipe must not choose.
private struct GivenHyperparameters {
    let names: Set<RecipeHyperparameter>
    /// The number of epochs; nil if the recipe chooses it.
    let epochs: Int?
    /// The data augmentation; nil if the recipe chooses it.
    let augmentation: Augmentation?

    init(_ configuration: ClassifierConfiguration) {
        names = configuration.givenHyperparameters
        epochs = names.contains(.epochs) ? configuration.epochs : nil
        augmentation = names.contains(.augmentation) ? configuration.augmentation : nil
    }
}

extension ClassifierConfiguration {
    /// Returns the pretrained base model and the requested recipe, or nil if the run does not start from a pretrained base model.
    func pretrainedBase() throws -> (base: ModelFile, recipe: ClassifierRecipe)? {
        switch start {
        case .pretrained(let base, let recipe): (base, recipe)
        case .automatic: try BaseModels().firstModel { _, _ in }.map { ($0.model, .automatic) }
        case .builtInBase, .network, .untrained, .base: nil
        }
    }

    /// Returns the configuration with the hyperparameters of a recipe, except the given ones.
    /// - Parameter original: The recipe of the first part of the run, which determines the decay of the EMA.
    fileprivate func applying(
        _ decision: RecipeDecision, original: RecipeDecision, _ base: ModelFile, given: Set<RecipeHyperparameter>
    ) -> ClassifierConfiguration {
        var configuration = self
        func set<Value>(
            _ hyperparameter: RecipeHyperparameter, _ property: WritableKeyPath<ClassifierHyperparameters, Value>,
            _ value: Value
        ) {
            if !given.contains(hyperparameter) { configuration.hyperparameters[keyPath: property] = value }
        }
        guard decision.recipe == .fineTuning else {
            // Logistic regression has already fitted the head; the epoch only evaluates it.
            configuration.start = .base(base, trainableLayers: .head)
            RecipeHyperparameter.unusedByHead.forEach { $0.reset(in: &configuration.hyperparameters) }
            configuration.hyperparameters.epochs = decision.epochs
            configuration.hyperparameters.learningRate = 0
            return configuration
        }
        configuration.start = .base(base, trainableLayers: .all)
        set(.epochs, \.epochs, decision.epochs)
        set(.augmentation, \.augmentation, decision.augmentation)
        // On photos of clothing, AdamW is 2 points more accurate than SGD; see docs/explanation/transfer.md.
        set(.optimizer, \.optimizer, .adamW)
        set(.learningRate, \.learningRate, 0.001)
        set(.weightDecay, \.weightDecay, 0.01)
        set(.layerDecay, \.fineTuning.layerDecay, 0.7)
        set(.labelSmoothing, \.labelSmoothing, 0.1)
        set(.gradientClipping, \.gradientClipping, 5)
        let photos = decision.evidence?.trainingPhotos ?? 0
        let steps = Double(original.epochs) * max((Double(photos) / Double(configuration.batchSize)).rounded(.up), 1)
        // The EMA covers about the last tenth of the steps.
        set(.emaDecay, \.emaDecay, Float(min(max(1 - 10 / steps, 0.9), 0.99)))
        return configuration
    }
}
