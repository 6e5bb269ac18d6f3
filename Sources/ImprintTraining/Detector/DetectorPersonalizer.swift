public import Foundation
public import Imprint
internal import ImprintCore
public import ImprintImages
public import ImprintModel
internal import ImprintNetwork
public import ImprintSynthesis

/// Adds a user's logos to a trained detector, from artwork or from photos with boxes.
///
/// ```swift
/// let detector = try ImageClassifier(contentsOf: URL(filePath: "logos.imprint"))
/// let result = try DetectorPersonalizer(detector, artwork: ["Mine": [try Artwork(contentsOf: mine)]]).run()
/// try result.personalization.write(to: file)
/// let objects = try detector.personalized(with: result.personalization).detect(photo)
/// ```
///
/// The network computes the features of training patches once. Training on them changes only the weights of the new heat maps, so the boxes
/// and the heat maps of the other logos stay bitwise equal. docs/explanation/personalization.md describes the method.
///
/// The same detector, data and seed give a bitwise equal personalization, for any number of threads.
public struct DetectorPersonalizer: Sendable {
    /// The result of adding logos.
    public struct Result: Sendable {
        /// The personalization with the new logos, added to the detector's personalization if it has one.
        public let personalization: Personalization
        /// The number of photos with boxes of new logos.
        public let exampleCount: Int
        /// The photos that could not be read.
        public let skipped: [SkippedImage]
        /// The duration in seconds.
        public let seconds: Double
        /// The labels of the new logos whose confidences are not calibrated.
        ///
        /// A calibration needs artwork of the logo, or photos in which the detector finds objects of the label and photos without the label.
        public let uncalibratedLabels: [String]
    }

    /// The detector as one model that includes its personalization, if it has one.
    private let model: ModelFile
    private let head: DetectorHead
    private let baseDigest: String
    private let earlier: Personalization?
    private let artwork: [String: [Artwork]]
    /// The photos with boxes of new logos, and the photos without any.
    private let annotations: BoxAnnotations?
    private let backgrounds: [URL]
    /// The labels of the new logos, in order.
    package let logos: [String]
    private let exampleCounts: [String: Int]
    private let configuration: Configuration
    private let workers: Workers

    /// Creates a personalizer.
    /// - Parameters:
    ///   - detector: The detector. If it has a personalization, the result contains that one too.
    ///   - artwork: The artwork of new logos by label; several artworks of one label are variants of one logo.
    ///   - annotations: Photos with the boxes of all objects of new logos, with or without artwork. Boxes of logos that the detector knows
    ///     count as negatives.
    ///   - backgrounds: Photos that show none of the new logos, for composites and as negatives; they may show the other logos. Annotated
    ///     photos with boxes of new logos are left out. If there are no others, the personalizer draws patterns.
    ///   - configuration: The settings.
    /// - Throws:
    ///   - `ImprintError.notADetector` if the model classifies whole images.
    ///   - `ImprintError.labelExists` if the model has a label of the artwork, or all labels of the annotations.
    ///   - `ImprintError.unsupportedDetector` if the network does not have the structure of a detector that Imprint trained.
    ///   - `ImprintError.invalidSetting` if there are no logos, or a setting is out of range.
    public init(
        _ detector: ImageClassifier, artwork: [String: [Artwork]], annotations: BoxAnnotations? = nil,
        backgrounds: [URL] = [], configuration: Configuration = Configuration()
    ) throws {
        try configuration.check()
        guard detector.model.head.isTrainable else {
            throw ImprintError.cannotTrainImportedDetector(network: detector.model.network.name)
        }
        try annotations?.checkEnoughAreReadable()
        earlier = detector.personalization
        baseDigest = try detector.model.identity
        model = try earlier.map(detector.model.personalized) ?? detector.model
        guard let head = model.detector else {
            throw ImprintError.notADetector(network: model.network.name)
        }
        self.head = head
        let known = model.labels
        if let label = artwork.keys.sorted(by: precedes).first(where: known.contains) {
            throw ImprintError.labelExists(label, known: known)
        }
        let boxed = annotations?.usedLabels ?? []
        let logos = Set(artwork.keys).union(boxed).subtracting(known).sorted(by: precedes)
        if logos.isEmpty, let label = boxed.first { throw ImprintError.labelExists(label, known: known) }
        guard !logos.isEmpty, artwork.values.allSatisfy({ !$0.isEmpty }) else {
            throw ImprintError.invalidSetting(
                name: "artwork", found: "empty", expected: "artwork of a new logo, or photos with its boxes")
        }
        try head.checkLearnsLogos(model.network)
        (self.logos, self.artwork, self.configuration) = (logos, artwork, configuration)
        workers = Workers(configuration.threads)
        let photos = (annotations?.photos ?? []).map { photo in
            var photo = photo
            photo.objects.removeAll { !logos.contains($0.label) }
            return photo
        }
        let annotated = BoxAnnotations(
            uncheckedLabels: logos, photos: photos, skipped: annotations?.skipped ?? [],
            withoutUsableBoxes: annotations?.withoutUsableBoxes ?? [])
        let backgrounds = backgrounds.removing(annotated.locationsOfObjects)
        self.backgrounds = backgrounds
        exampleCounts = Dictionary(
            photos.flatMap { Set($0.objects.filter { !$0.isCrowd }.map(\.label)) }.map { ($0, 1) }
                + artwork.map { ($0.key, $0.value.count) }, uniquingKeysWith: +)
        // An annotated photo does not count a second time as a background.
        let negatives = backgrounds.removing(annotated.locations).map {
            AnnotatedPhoto(url: $0, width: 1, height: 1, objects: [])
        }
        self.annotations =
            photos.isEmpty && negatives.isEmpty
            ? nil
            : BoxAnnotations(uncheckedLabels: logos, photos: photos + negatives, skipped: annotated.skipped)
    }

    /// Trains the heat maps of the new logos.
    /// - Parameters:
    ///   - control: A control to pause or cancel the call from another thread.
    ///   - onProgress: A closure that receives the number of processed training patches and their total, on the caller's thread. The number
    ///     is 0 while photos are read, and does not change while they are scanned.
    /// - Throws: `ImageError` if too few photos can be read, `ImprintError.personalizationDiverged` if a parameter is not finite,
    ///   `ImprintError.outOfMemory`, `CancellationError` if `control` is cancelled.
    public func run(
        control: PersonalizationControl = PersonalizationControl(),
        onProgress: (_ done: Int, _ of: Int) -> Void = { _, _ in }
    ) throws -> Result {
        try withoutActuallyEscaping(onProgress) { onProgress in
            try learn(PersonalizerProgress(total: patchCount, control, onProgress))
        }
    }

    private func learn(_ progress: PersonalizerProgress) throws -> Result {
        let clock = RunClock()
        let photos = try readPhotos(progress)
        let originals = Dictionary(
            photos.negatives.compactMap { photo in photo.original.map { (photo.url, $0) } },
            uniquingKeysWith: { first, _ in first })
        let backdrops = try Backdrops(
            backgrounds.map { TrainingPhoto(url: $0, labels: []) }, size: 224, seed: configuration.seed,
            workers: workers, onRead: { _ in progress.show() },
            inMemory: { originals[backgrounds[$0]] })
        try progress.report()
        let patches = patches(photos, backdrops)
        var evaluator = DetectorEvaluator(
            labels: model.labels + logos, logos: logos, photos: photos, workers: workers,
            compositeCount: max(Int(100 * configuration.scale), 2), detector: head,
            preprocessing: model.preprocessing)
        evaluator.onPortion = { _, _ in try progress.report() }
        let trained: Trained
        do {
            trained = try train(patches, evaluator, backdrops, hasBoxes: photos.hasObjects, progress)
        } catch is TrainingDivergedError {
            throw ImprintError.personalizationDiverged
        }
        let personalization = try personalization(trained)
        guard personalization.isFinite else { throw ImprintError.personalizationDiverged }
        return Result(
            personalization: personalization, exampleCount: photos.training.count(where: \.hasObject),
            skipped: (annotations?.skipped ?? []) + photos.skipped + photos.unreadable.all, seconds: clock.seconds,
            uncalibratedLabels: trained.uncalibratedLabels)
    }

    // MARK: Data

    /// Reads the annotated photos and the backgrounds.
    private func readPhotos(_ progress: PersonalizerProgress) throws -> DetectorPhotos {
        guard let annotations else { return DetectorPhotos() }
        let none = model.labels.first { label in !head.logos.contains { $0.label == label } } ?? ImageFolder.noLogoLabel
        let source = try DetectorSource(
            nil, labels: [none] + logos, noLogoLabel: none, annotations: annotations)
        var detectorConfiguration = DetectorConfiguration()
        detectorConfiguration.validation = .none
        detectorConfiguration.keepsGroupsTogether = false
        detectorConfiguration.seed = configuration.seed
        detectorConfiguration.threads = configuration.threads
        detectorConfiguration.memoryLimit = configuration.memoryLimit
        return try DetectorPhotos(
            source, validation: nil, detectorConfiguration, logos: logos, earlier: nil, workers: workers,
            onEvent: { _ in }, checkContinues: { try progress.report() })
    }

    /// The number of drawn negatives if there are no background photos.
    private static let drawnNegativeCount = 120

    private func patches(_ photos: DetectorPhotos, _ backdrops: Backdrops) -> DetectorPatches {
        var negatives = photos.negatives.map { GroundTruthImage(source: $0.source, objects: $0.objects ?? []) }
        if backgrounds.isEmpty {
            let count = max(Int(Double(Self.drawnNegativeCount) * configuration.scale), 1)
            negatives += workers.parallelMap(count) { index in
                GroundTruthImage(source: PatchSource(backdrops.background(at: index, seed: configuration.seed)))
            }
        }
        let compositors = logos.enumerated().compactMap { index, logo in
            artwork[logo].map { artworks in
                (
                    logo: index,
                    compositor: Compositor(
                        artworks: artworks, backdrops: backdrops, seed: configuration.seed, label: logo)
                )
            }
        }
        return DetectorPatches(
            compositors: compositors, negatives: negatives, positives: [], unreadable: photos.unreadable,
            seed: configuration.seed, workers: workers, batchSize: PatchFeatures.batchSize,
            poolSize: max(Int(400 * configuration.scale), 2))
    }

    /// Returns the base's replay features as samples without a new logo.
    private func replay(_ shape: TensorShape) -> HeadSamples {
        var samples = HeadSamples(shape)
        guard let rehearsal = model.rehearsal else { return samples }
        let length = rehearsal.positions * rehearsal.channels
        for photo in rehearsal.labels.indices where !isHeldOut(photo, of: rehearsal) {
            // The positions of a photo replace those of a patch.
            let values = rehearsal.features[(photo * length)..<((photo + 1) * length)]
            let repeated = (0..<shape.pixels).lazy.flatMap { position in
                let start = values.startIndex + position % rehearsal.positions * rehearsal.channels
                return values[start..<(start + rehearsal.channels)]
            }
            samples.add(repeated, [[]])
        }
        return samples
    }

    // MARK: Training

    /// The number of patches of all rounds, which does not depend on whether there are boxes.
    private var patchCount: Int {
        rounds(hasBoxes: false).reduce(0) { $0 + $1.batches } * PatchFeatures.batchSize
    }

    private func rounds(hasBoxes: Bool) -> [Round] {
        let phases = DetectorPhase.standard(
            hasLogoPhotos: false, hasBoxes: hasBoxes, hasArtwork: !artwork.isEmpty, scale: 1)
        // More logos need more patches, as in training.
        let scale = configuration.scale * DetectorHyperparameters.scale(logos: logos.count)
        func round(_ phase: DetectorPhase, batches: Double, steps: Double) -> Round {
            Round(
                phase: phase, batches: max(Int(batches * scale), 1), steps: max(Int(steps * scale.squareRoot()), 1))
        }
        return [round(phases[0], batches: 36, steps: 300), round(phases[1], batches: 24, steps: 500)]
    }

    /// The trained heat maps of the new logos, with their calibration.
    private struct Trained {
        let head: LogoHeadObjective.Head
        let calibratedHead: DetectorHead
        let uncalibratedLabels: [String]
    }

    private func train(
        _ patches: DetectorPatches, _ evaluator: DetectorEvaluator, _ backdrops: Backdrops, hasBoxes: Bool,
        _ progress: PersonalizerProgress
    ) throws -> Trained {
        let rounds = rounds(hasBoxes: hasBoxes)
        let extractor = try PatchFeatures(model, patches, workers: workers)
        let replay = replay(extractor.shape)
        var samples = HeadSamples(extractor.shape)
        func train(_ round: Round) throws -> LogoHeadObjective.Head {
            for _ in 0..<round.batches {
                try extractor.add(round.phase, step: samples.count / PatchFeatures.batchSize, to: &samples)
                progress.done = samples.count
                try progress.report()
            }
            return try LogoHeadObjective(
                logos: logos.count, samples, replay: replay, seed: configuration.seed, workers: workers
            ).run(steps: round.steps) {
                try progress.report(waits: false)
                return false
            }
        }
        var trained = try train(rounds[0])
        for round in rounds.dropFirst() {
            let (network, parameters) = try newHeadNetwork(trained)
            patches.mined = try evaluator.mine(patches.negatives, network, parameters)
            trained = try train(round)
        }
        try progress.report()
        let (network, parameters) = try newHeadNetwork(trained)
        let limits = try limits(trained, patches, backdrops) { sources in
            try evaluator.scan(sources, network, parameters, peaks: Self.falsePositivePeaks)
        }
        let calibrated = try evaluator.calibrated(network, parameters, patches, [], limits: limits)
        return Trained(
            head: trained, calibratedHead: calibrated.head, uncalibratedLabels: calibrated.uncalibratedLabels)
    }

    /// The number of peaks of a logo in an image that count as false positives.
    private static let falsePositivePeaks = 20
    /// The number of scenes that are in memory at the same time; each takes 500 KB.
    private static let scenePortion = 25

    /// Returns the limits of the false positives of each new logo, from held-out images without the logo.
    ///
    /// The images are drawn scenes, composites of the other new logos, and the held-out replay features, which show the known logos.
    private func limits(
        _ trained: LogoHeadObjective.Head, _ patches: DetectorPatches, _ backdrops: Backdrops,
        scan: ([PatchSource]) throws -> [[PyramidScanner.Scan]?]
    ) throws -> [FalsePositiveLimit] {
        let count = max(Int(100 * configuration.scale), 2)
        let replayed = heldOutReplayScores(trained)
        var limits = try logos.indices.map { logo in
            var limit = FalsePositiveLimit()
            let scenes = try stride(from: 0, to: count, by: Self.scenePortion).flatMap { start in
                let numbers = start..<min(start + Self.scenePortion, count)
                return try scan(patches.heldOutScenes(numbers, of: logo, backdrops))
            }
            limit.add(scenes.compactMap { $0?[logo].peaks.map(\.score) })
            limit.add(replayed.map { [$0[logo]] })
            return limit
        }
        for shown in logos.indices where logos.count > 1 {
            let scans = try scan(patches.heldOutComposites(max(count / 2, 2), of: shown, isPositive: true))
            for logo in logos.indices where logo != shown {
                limits[logo].add(scans.compactMap { $0?[logo].peaks.map(\.score) })
            }
        }
        return limits
    }

    /// Returns the highest score of each new logo in each held-out photo of the replay features.
    private func heldOutReplayScores(_ trained: LogoHeadObjective.Head) -> [[Float]] {
        guard let rehearsal = model.rehearsal else { return [] }
        let count = logos.count
        return rehearsal.labels.indices.filter { isHeldOut($0, of: rehearsal) }.map { photo in
            var highest = [Float](repeating: -.infinity, count: count)
            for position in 0..<rehearsal.positions {
                let start = (photo * rehearsal.positions + position) * rehearsal.channels
                var scores = trained.bias
                for channel in 0..<rehearsal.channels {
                    let value = rehearsal.features[start + channel]
                    for logo in 0..<count { scores[logo] += value * trained.weight[channel * count + logo] }
                }
                for logo in 0..<count { highest[logo] = max(highest[logo], scores[logo]) }
            }
            return highest
        }
    }

    /// Returns whether the features of a photo are for calibration, not for replay: every fourth, if there are enough.
    private func isHeldOut(_ photo: Int, of rehearsal: Rehearsal) -> Bool {
        rehearsal.labels.count >= 16 && photo % 4 == 3
    }

    /// A round of training: its kinds of patches, the batches of patches that it adds, and the steps of the head on all patches so far.
    private struct Round {
        let phase: DetectorPhase
        let batches: Int
        let steps: Int
    }

    /// Returns the detector with the heat maps of only the new logos.
    private func newHeadNetwork(_ trained: LogoHeadObjective.Head) throws -> (Network, Parameters) {
        let network = try model.network.resizingHead(outputs: logos.count)
        let parameters = try Parameters(ParameterLayout(network))
        parameters.load(from: model.parameters)
        let name = model.network.headIndex.map { model.network.nodes[$0].name } ?? ""
        parameters["\(name).weight"] = trained.weight
        parameters["\(name).bias"] = trained.bias
        return (network, parameters)
    }

    /// Returns the personalization; the columns of new logos contain the Platt scaling, so their logits are log-odds.
    private func personalization(_ trained: Trained) throws -> Personalization {
        let head = trained.head
        let columns = logos.indices.map { logo in
            let output = trained.calibratedHead.logos[logo]
            let (slope, offset) = (output.slope, output.offset)
            return Personalization.Column(
                label: logos[logo],
                weights: stride(from: logo, to: head.weight.count, by: logos.count).map { slope * head.weight[$0] },
                bias: slope * head.bias[logo] + offset)
        }
        var record = earlier?.record ?? Personalization.Record(examples: [:])
        record.examples.merge(exampleCounts, uniquingKeysWith: +)
        return Personalization(
            baseDigest: baseDigest, addedLabels: (earlier?.addedLabels ?? []) + logos,
            columns: (earlier?.columns ?? []) + columns,
            adapters: earlier?.adapters ?? [], record: record)
    }
}

extension DetectorPhotos {
    /// Whether a photo has an object.
    fileprivate var hasObjects: Bool { training.contains(where: \.hasObject) }
}

extension DetectorPhotos.Item {
    /// Whether the photo has an object that is not a crowd.
    fileprivate var hasObject: Bool { objects?.contains { !$0.isCrowd } ?? false }
}
