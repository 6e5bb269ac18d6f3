internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintSynthesis

/// The task of training a logo detector on artwork and photos.
struct DetectorTask: TrainingTask {
    private let artwork: [String: [Artwork]]
    /// The labels of the logos, in the order of the heat maps.
    private let logos: [String]
    /// The photos, with the labels of all logos, even of those without photos.
    private let source: DetectorSource
    /// The annotated photos of the validation set; nil if the set is a part of the photos, or a folder.
    private let validationSource: DetectorSource?
    private let hasPhotos: Bool
    private let hasBoxes: Bool
    private let backgrounds: [URL]?
    private let configuration: DetectorConfiguration
    /// The threads of this process.
    private let workers: Workers
    private let start: DetectorStart
    let fingerprint: [String: String]
    let versionOneFingerprint: [String: String]
    /// The photos and the backgrounds, after they are read.
    private var parts: (photos: DetectorPhotos, backdrops: Backdrops)?
    private let objective = SharedValue<DetectorObjective>()
    /// The reason why the model lacks features of training photos, if it does.
    private let missingFeatures = SharedValue<ImprintError>()

    init(
        artwork: [String: [Artwork]], photos: (any TrainingSource)?, annotations: BoxAnnotations? = nil,
        validation: BoxAnnotations? = nil, backgrounds: [URL]?, configuration: DetectorConfiguration
    ) throws {
        try configuration.check()
        try Self.check(artwork, photos, annotations, validation: validation, configuration)
        self.artwork = artwork
        self.configuration = configuration
        workers = Workers(configuration.threads)
        // Validation photos must not be trained on.
        let annotations = annotations?.removing(validation?.locations ?? [])
        // Photos with objects are not backgrounds.
        let backgrounds = backgrounds?.removing(
            (annotations?.locationsOfObjects ?? []).union(validation?.locations ?? []))
        self.backgrounds = backgrounds
        hasPhotos = photos != nil || annotations != nil
        hasBoxes = annotations != nil
        let logos = Set(artwork.keys).union(annotations?.usedLabels ?? []).sorted(by: precedes)
        self.logos = logos
        let photoLabels = try Self.photoLabels(photos, annotations, logos: logos)
        let others = photoLabels.filter { !logos.contains($0) }
        try checkLabelsWithoutLogo(others, logos: logos, source: photos?.name ?? annotations?.name ?? "the artwork")
        guard others.count == 1 else {
            throw ImprintError.notOneLabelWithoutLogo(found: others, logos: logos, source: photos?.name ?? "")
        }
        let allLabels = photoLabels + logos.filter { !photoLabels.contains($0) }
        let source = try DetectorSource(
            photos, labels: allLabels, noLogoLabel: others[0], annotations: annotations, validation: validation)
        self.source = source
        let unknown = (validation?.usedLabels ?? []).filter { !logos.contains($0) }
        if let validation, !unknown.isEmpty {
            throw ImprintError.labelMismatch(source: validation.name, unknown: unknown, labels: logos)
        }
        validationSource = try validation.map {
            try DetectorSource(nil, labels: allLabels, noLogoLabel: others[0], annotations: $0)
        }
        let start = try DetectorStart(base: configuration.base, logos: logos.count)
        self.start = start
        let backgroundsText = Self.text(ofBackgrounds: backgrounds, hasPhotos: hasPhotos)
        func data(_ digest: KeyPath<Artwork, String>) -> [String: String] {
            var data = [
                "artwork": Self.text(of: artwork, logos: logos, digest), "backgrounds": backgroundsText,
            ]
            if annotations != nil { data["boxes"] = String(source.digest.prefix(12)) }
            if let digest = start.baseDigest { data["base model"] = String(digest.prefix(12)) }
            return data
        }
        var fingerprint = configuration.fingerprint(data: data(\.digest))
        if validation != nil { fingerprint["validation"] = "photos with boxes" }
        self.fingerprint = fingerprint
        versionOneFingerprint = configuration.versionOneFingerprint(data: data(\.versionOneDigest))
    }

    /// Checks that the parts of the training data fit together.
    private static func check(
        _ artwork: [String: [Artwork]], _ photos: (any TrainingSource)?, _ annotations: BoxAnnotations?,
        validation: BoxAnnotations?, _ configuration: DetectorConfiguration
    ) throws {
        guard !artwork.isEmpty || annotations != nil else {
            throw ImprintError.invalidSetting(
                name: "artwork", found: "empty", expected: "artwork of a logo, or photos with boxes")
        }
        if let logo = artwork.keys.sorted(by: precedes).first(where: { artwork[$0]?.isEmpty ?? true }) {
            throw ImprintError.invalidSetting(
                name: "artwork", found: "an empty list for the label \(quotedName(logo))",
                expected: "at least one artwork of each logo")
        }
        if annotations != nil || validation != nil, configuration.validationFolder != nil {
            throw ImprintError.invalidSetting(
                name: "validationFolder", found: "a folder", expected: "none, because it would have no boxes")
        }
        if validation != nil, photos == nil, annotations == nil {
            throw ImprintError.invalidSetting(
                name: "validation", found: "annotated photos", expected: "none without photos to train on")
        }
        try photos?.checkForDetector()
        try annotations?.checkEnoughAreReadable()
        try validation?.checkEnoughAreReadable()
    }

    /// Returns the labels of the labelled photos, or the label of photos without a logo if there are only annotated photos or artwork.
    /// - Throws: `ImprintError.invalidSetting` if there are no logos, or if artwork has a reserved label, in any case;
    ///   `ImprintError.reservedLabel` if an annotated object has it.
    private static func photoLabels(
        _ photos: (any TrainingSource)?, _ annotations: BoxAnnotations?, logos: [String]
    ) throws(ImprintError) -> [String] {
        guard !logos.isEmpty else {
            throw .invalidSetting(
                name: "annotations", found: "\(annotations?.photos.count ?? 0) photos without objects",
                expected: "at least one box that is not of a crowd")
        }
        // With labelled photos, the label of those without a logo can have another name.
        let reserved =
            photos == nil ? [ImageFolder.noLogoLabel, ImageFolder.rejectionText] : [ImageFolder.rejectionText]
        if let annotations, let taken = ImageFolder.reservedLabel(in: annotations.usedLabels, reserved: reserved) {
            throw .reservedLabel(taken, source: annotations.name)
        }
        if let taken = ImageFolder.reservedLabel(in: logos, reserved: reserved) {
            throw .invalidSetting(
                name: "artwork", found: "the label \(taken)",
                expected: "another label: this one is reserved for photos without a logo")
        }
        return photos?.labels ?? [ImageFolder.noLogoLabel]
    }

    /// Returns the names and digests of the artwork, as a fingerprint contains them.
    private static func text(
        of artwork: [String: [Artwork]], logos: [String], _ digest: KeyPath<Artwork, String>
    ) -> String {
        logos.map { logo in
            (artwork[logo] ?? []).map { "\($0.name) (\($0[keyPath: digest].prefix(12)))" }.joined(separator: ", ")
                + " of \(logo)"
        }.joined(separator: "; ")
    }

    /// Returns the kind and the digest of the backgrounds, as a fingerprint contains them.
    private static func text(ofBackgrounds backgrounds: [URL]?, hasPhotos: Bool) -> String {
        guard let backgrounds else { return hasPhotos ? "the photos without a logo" : "drawn patterns" }
        return backgrounds.isEmpty
            ? "drawn patterns" : "\(backgrounds.count) photos (\(ImageFolder.digest(of: backgrounds).prefix(12)))"
    }

    /// The labels of the model: the labels of the photos and of the logos, in order.
    var labels: [String] { source.labels.sorted(by: precedes) }
    var network: Network { start.network }
    var photoSource: (any TrainingSource)? { hasPhotos ? source : nil }
    var processes: ProcessGroup? { configuration.processes }
    var hasTimeLimit: Bool { false }
    var featureFailure: ImprintError? { missingFeatures.value }

    private var photos: DetectorPhotos {
        guard let parts else { preconditionFailure("the photos must be read before training") }
        return parts.photos
    }

    private var phases: [DetectorPhase] {
        configuration.hyperparameters.phases(
            hasLogoPhotos: !photos.positives.isEmpty, hasBoxes: hasBoxes, hasArtwork: !artwork.isEmpty,
            logos: logos.count)
    }

    func sampleCount(ofRound round: Int) -> Int {
        phases[min(round, phases.count - 1)].steps * configuration.batchSize
    }

    mutating func readPhotos(
        earlier: Checkpoint.Images?, onEvent: (TrainingEvent) -> Void, checkContinues: () throws -> Void
    ) throws -> RunPhotos {
        let photos =
            hasPhotos
            ? try DetectorPhotos(
                source, validation: validationSource, configuration, logos: logos, earlier: earlier,
                workers: configuration.workers, onEvent: onEvent, checkContinues: checkContinues)
            : DetectorPhotos()
        try checkLearnsAllLogos(photos)
        let backdrops = try backdrops(photos)
        try processes.failTogether(checkContinues)
        parts = (photos, backdrops)
        var checkpointImages = photos.checkpointImages
        checkpointImages.trainingCounts = counts(photos.training)
        return RunPhotos(
            trainingCount: photos.training.count, validationCount: photos.validation.count,
            labelsWithoutValidation: photos.labelsWithoutValidation(labels, logos: logos),
            skipped: photos.skipped + backdrops.skipped, leakage: photos.leakage,
            checkpointImages: checkpointImages,
            unreadable: photos.unreadable)
    }

    /// Checks that there is an object to train on, or artwork, for each logo.
    ///
    /// A random split leaves objects of each label in the training set, but the split of a checkpoint may not.
    private func checkLearnsAllLogos(_ photos: DetectorPhotos) throws(ImprintError) {
        for (logo, label) in logos.enumerated() where artwork[label] == nil {
            guard !photos.training.contains(where: { $0.shows(logo) }) else { continue }
            throw .invalidSetting(
                name: "the number of objects of \(quotedName(label)) in the training set of the checkpoint",
                found: "0",
                expected: "at least 1. Add photos of \(quotedName(label)), or start a new run")
        }
    }

    /// Reads the backgrounds of composites, without the validation photos.
    private func backdrops(_ photos: DetectorPhotos) throws -> Backdrops {
        let negatives = photos.negatives.filter(\.logos.isEmpty)
        defer { SystemMemory.returnFreed() }
        // The split of the photos, or a validation folder, may hold out some of the backgrounds.
        let heldOut = Set(photos.validation.map { $0.url.resolvingSymlinksInPath() })
        let sources =
            backgrounds?.removing(heldOut).map { TrainingPhoto(url: $0, labels: []) } ?? negatives.map(\.photo)
        return try Backdrops(
            sources, size: 224, seed: configuration.seed, workers: configuration.workers,
            inMemory: { backgrounds == nil ? negatives[$0].original : nil })
    }

    /// Returns the images without a logo and the annotated photos, or drawn backgrounds if there are no photos.
    private func negatives(_ photos: DetectorPhotos, _ backdrops: Backdrops) -> [GroundTruthImage] {
        guard !hasPhotos else {
            return photos.negatives.map { GroundTruthImage(source: $0.source, objects: $0.objects ?? []) }
        }
        return (0..<drawnCount).map { index in
            GroundTruthImage(source: PatchSource(backdrops.background(at: index, seed: configuration.seed)))
        }
    }

    /// The number of drawn negatives and of composites for validation: 200, about as many as the photos of a small data set; fewer if tests use a
    /// small pool.
    private var drawnCount: Int { min(200, 5 * configuration.hyperparameters.poolSize) }

    func check(_ checkpoint: Checkpoint, file: URL) throws {
        guard checkpoint.state.progress.plannedRounds == phases.count else {
            throw ImprintError.checkpointMismatch(
                file: file.path, setting: "photos of the logo", found: photos.positives.isEmpty ? "none" : "some",
                expected: photos.positives.isEmpty ? "some" : "none")
        }
    }

    func makeObjective(
        onScan: @escaping (_ done: Int, _ of: Int) throws -> Void
    ) throws -> (objective: any TrainingObjective, options: TrainingLoop.Options) {
        guard let parts else { preconditionFailure("the photos must be read before training") }
        let hyperparameters = configuration.hyperparameters
        let compositors = logos.enumerated().compactMap { index, logo in
            artwork[logo].map { artworks in
                let label = logos.count > 1 ? logo : nil
                return (
                    logo: index,
                    compositor: Compositor(
                        artworks: artworks, backdrops: parts.backdrops, seed: hyperparameters.seed, label: label)
                )
            }
        }
        let patches = DetectorPatches(
            compositors: compositors, negatives: negatives(parts.photos, parts.backdrops),
            positives: photos.positives.compactMap { photo in
                photo.logos.first.map { DetectorPatches.Positive(source: photo.source, logo: $0) }
            }, unreadable: photos.unreadable, seed: hyperparameters.seed, workers: configuration.workers,
            batchSize: hyperparameters.batchSize, poolSize: hyperparameters.poolSize)
        let parameters = try start.parameters(seed: hyperparameters.seed)
        var evaluator = DetectorEvaluator(
            labels: labels, logos: logos, photos: photos, workers: configuration.workers,
            compositeCount: drawnCount, preprocessing: start.preprocessing)
        if let levels = configuration.pyramidLevels { evaluator.detector.levels = levels }
        evaluator.onPortion = onScan
        let objective = try DetectorObjective(
            network, parameters: parameters, patches: patches, phases: phases, evaluator: evaluator,
            hyperparameters: hyperparameters, workers: configuration.workers)
        self.objective.value = objective
        var options = TrainingLoop.Options(
            rounds: .phases(
                phases.map { .init(steps: $0.steps, learningRate: $0.learningRate, schedule: $0.schedule) }),
            optimizer: .adamW(hyperparameters.optimizer), emaDecay: hyperparameters.emaDecay)
        options.restartsRoundAfterUnreadablePhotos = false
        options.learningRateFactors = start.learningRateFactors
        return (objective, options)
    }

    func describe() -> (kind: TrainingKind, parameterCount: Int, trainableParameterCount: Int, roundCount: Int) {
        let count = ParameterLayout(network).trainableCount
        let kind: TrainingKind =
            artwork.isEmpty ? .boxes : photos.positives.isEmpty && !hasBoxes ? .artwork : .artworkAndPhotos
        return (kind, count, count, phases.count)
    }

    func makeModel(
        _ loop: TrainingLoop, _ best: Parameters, isValidated: Bool, trainedOn earlier: Checkpoint.Images?
    ) throws -> (model: ModelFile, evaluation: Evaluation?) {
        guard let objective = objective.value else {
            preconditionFailure("the model needs an objective: call makeObjective first")
        }
        let validation = isValidated ? objective.validation : nil
        let head = try validation?.head ?? objective.calibratedHead(best)
        let evaluation = validation?.evaluation
        var hyperparameters = configuration.hyperparameters
        hyperparameters.phases = phases
        let progress = loop.progress
        let record = TrainingRecord(
            .detector(hyperparameters), dataDigest: earlier?.digests.first ?? source.digest,
            trainingImages: earlier.map { $0.trainingCounts ?? [:] } ?? counts(photos.training),
            validationImages: counts(photos.validation), history: progress.history,
            keptEpoch: progress.best.map { $0 + 1 }, precisionRecall: evaluation?.precisionRecall ?? [:],
            thresholds: evaluation?.thresholds)
        let model = ModelFile(
            network: network, parameters: best, labels: labels, preprocessing: start.preprocessing, detector: head,
            training: record, baseDigest: start.baseDigest, storagePrecision: configuration.storagePrecision)
        // A photo of only crowds shows logos, but has no label.
        let labelled = photos.training.filter { $0.logos.isEmpty || logos.contains($0.label) }
        let withRehearsal = try processes.failTogether {
            try model.addingRehearsal(
                labelled.map { $0.photo.labelled(labels.firstIndex(of: $0.label) ?? 0) }
                    + replayedComposites(objective.patches),
                count: configuration.rehearsalImages, seed: configuration.seed, workers: workers)
        }
        missingFeatures.value = withRehearsal.failure
        return (withRehearsal.model, evaluation)
    }

    /// The maximum number of composites of a logo for replay: a model file needs 6 KB for each.
    private static let replayedCompositeCount = 32

    /// Returns composites of the labels that no training photo has, so that personalization replays every label.
    private func replayedComposites(_ patches: DetectorPatches) throws -> [TrainingPhoto] {
        let count = min(Self.replayedCompositeCount, configuration.rehearsalImages)
        return try labels.enumerated().flatMap { index, label -> [TrainingPhoto] in
            let logo = logos.firstIndex(of: label)
            let isShown = photos.training.contains { $0.label == label || logo.map($0.logos.contains) ?? false }
            guard count > 0, !isShown else { return [] }
            let composites = try (logo.map { [$0] } ?? Array(logos.indices)).flatMap {
                try patches.heldOutComposites(count, of: $0, isPositive: logo != nil)
            }
            return try composites.map {
                TrainingPhoto(identifier: "composite", labels: [index], content: .decoded(try $0.image()))
            }
        }
    }

    private func counts(_ photos: [DetectorPhotos.Item]) -> [String: Int] {
        photos.reduce(into: [:]) { $0[$1.label, default: 0] += 1 }
    }
}
