internal import Foundation
internal import ImprintCore
public import ImprintFormats
public import ImprintImages
internal import ImprintNetwork

/// Trains a classifier from a folder of images, one sub-folder per label.
///
/// ```swift
/// var configuration = TrainingConfiguration()
/// configuration.augmentation = try Augmentation(named: "flip,rotate,blur")
/// let trainer = Trainer(folder: try ImageFolder(at: photos), configuration: configuration)
/// let weights = try trainer.train()
/// try weights.write(to: URL(filePath: "logo.imprint"))
/// ```
///
/// The same folder, configuration and seed give the same bits, whatever the number of threads.
public struct Trainer: Sendable {
    private let folder: ImageFolder
    private let configuration: TrainingConfiguration

    /// Makes a trainer for the images in `folder`.
    public init(folder: ImageFolder, configuration: TrainingConfiguration = TrainingConfiguration()) {
        self.folder = folder
        self.configuration = configuration
    }

    /// Trains, and returns the model; on the caller's thread, for as long as it takes.
    /// - Parameters:
    ///   - onEvent: Told what happens, as it happens.
    ///   - shouldStop: Asked after every step; where it says yes, training ends there and the model is that of the last
    ///     epoch that came to its end.
    /// - Throws: `ImprintError` for settings out of range or a loss that is no longer a number, `ImageError` where too few
    ///   images can be read, `NetworkError` where network and images do not fit together.
    public func train(
        onEvent: (TrainingEvent) -> Void = { _ in }, shouldStop: () -> Bool = { false }
    ) throws -> WeightsFile {
        try configuration.check()
        let start = try configuration.startingPoint(labels: folder.labels)
        let sides = try sides(onEvent: onEvent)
        // What the comparison of all photos took is not needed any more.
        SystemMemory.returnFreed()
        let (training, readable) = try loaders(sides, start.preprocessing, onEvent: onEvent)
        let validation = readable.flatMap { $0.count > 0 ? $0 : nil }
        let session = try TrainingSession(
            start, configuration: configuration, imagesPerEpoch: training.count,
            validationImages: validation?.count ?? 0)
        onEvent(
            .started(
                TrainingStart(
                    labels: folder.labels, trainingImages: training.count, validationImages: validation?.count ?? 0,
                    labelsWithoutValidation: validation.map(missingLabels) ?? [],
                    skipped: training.skipped + (readable?.skipped ?? []), network: start.network.name,
                    parameterCount: start.parameters.layout.trainableParameterCount,
                    trainedCount: start.trainedCount, leakage: sides.leakage)))

        // An epoch that is stopped half way leaves no trace in these.
        let finished = try start.parameters.copy()
        var history: [EpochMetrics] = []
        var curves: [String: [TrainingRecord.PrecisionRecallPoint]] = [:]
        let clock = ContinuousClock()
        for epoch in 0..<configuration.epochs {
            let epochStart = clock.now
            let trained = try session.trainEpoch(epoch, over: training, shouldStop: shouldStop, onEvent: onEvent)
            guard trained.isComplete else { break }
            let measured = try validation.map {
                try session.measure(over: $0, labels: folder.labels, onEvent: onEvent)
            }
            // The loss of a step is that before it: what the last one did shows only here.
            guard measured?.loss.isFinite ?? true, start.parameters.areFinite else {
                throw ImprintError.diverged(epoch: epoch + 1, learningRate: configuration.learningRate)
            }
            let metrics = EpochMetrics(
                epoch: epoch + 1, loss: trained.loss, accuracy: trained.accuracy, validationLoss: measured?.loss,
                validationAccuracy: measured?.accuracy, learningRate: trained.learningRate)
            history.append(metrics)
            finished.load(from: start.parameters)
            curves = measured?.evaluation.precisionRecall ?? [:]
            onEvent(.epoch(metrics, seconds: (clock.now - epochStart).seconds))
            if trained.stopped { break }
        }
        guard !history.isEmpty else { throw ImprintError.stoppedTooEarly }
        let record = TrainingRecord(
            seed: configuration.seed, epochs: configuration.epochs, batchSize: configuration.batchSize,
            optimizer: session.optimizer.options, schedule: session.schedule,
            labelSmoothing: configuration.labelSmoothing, augmentations: configuration.augmentation.words,
            dataDigest: folder.digest, trainingImages: countByLabel(training),
            validationImages: validation.map(countByLabel) ?? [:], history: history, precisionRecall: curves)
        return WeightsFile(
            network: start.network, parameters: finished, labels: folder.labels,
            preprocessing: start.preprocessing, training: record, base: start.base,
            precision: configuration.precision)
    }

    private func loaders(
        _ sides: Sides, _ preprocessing: Preprocessing, onEvent: (TrainingEvent) -> Void
    ) throws -> (training: BatchLoader, validation: BatchLoader?) {
        let total = sides.training.count + sides.validation.count
        let memoryLimit = configuration.memoryLimit ?? SystemMemory.available / 2
        func loader(
            _ items: [ImageFolder.Item], training: Bool, after read: Int, memoryLimit: Int
        ) throws -> BatchLoader {
            try BatchLoader(
                items: items, labels: folder.labels, preprocessing: preprocessing,
                augmentation: training ? configuration.augmentation : nil, batchSize: configuration.batchSize,
                shuffles: training, seed: configuration.seed, workers: Workers(configuration.threads),
                mayLoseLabels: !training && sides.isValidationKeptBack, memoryLimit: memoryLimit,
                onRead: { onEvent(.reading(done: read + $0, of: total)) })
        }
        let first = try loader(sides.training, training: true, after: 0, memoryLimit: memoryLimit)
        guard !sides.validation.isEmpty else { return (first, nil) }
        let left = memoryLimit - first.keptByteCount
        let second = try loader(sides.validation, training: false, after: sides.training.count, memoryLimit: left)
        return (first, second)
    }

    /// What is trained on, and what is measured on.
    private struct Sides {
        var training: [ImageFolder.Item]
        var validation: [ImageFolder.Item] = []
        var leakage: TrainingStart.Leakage?
        /// Whether those to measure on are a part of the folder, which may happen to hold its damaged images alone.
        var isValidationKeptBack = true
    }

    private func sides(onEvent: (TrainingEvent) -> Void) throws -> Sides {
        func groups(_ folders: [ImageFolder]) -> ImageGroups {
            let total = folders.reduce(0) { $0 + $1.items.count }
            return ImageGroups(folders, workers: Workers(configuration.threads)) {
                onEvent(.comparing(done: $0, of: total))
            }
        }
        let seed = configuration.seed
        switch configuration.validation {
        case .split(let rule):
            guard rule.fraction(ofImages: folder.items.count) > 0 else { return Sides(training: folder.items) }
            guard configuration.keepsGroupsTogether else {
                let (training, validation) = folder.split(rule, seed: seed)
                return Sides(training: training, validation: validation)
            }
            let groups = groups([folder])
            let (training, validation) = folder.split(rule, seed: seed, groups: groups)
            let random = folder.randomSplitLeaks(rule, seed: seed, groups: groups)
            return Sides(
                training: training, validation: validation,
                leakage: .avoided(images: random.images, of: random.of, groups: groups.groups.count))
        case .folder(let url):
            let validation = try ImageFolder(at: url, minimumClasses: 1)
            let unknown = validation.labels.filter { !folder.labels.contains($0) }
            guard unknown.isEmpty else {
                throw ImprintError.labelMismatch(
                    folder: url.path(percentEncoded: false), unknown: unknown, labels: folder.labels)
            }
            let places = validation.labels.map { label in folder.labels.firstIndex(of: label) ?? 0 }
            let items = validation.items.map { ImageFolder.Item(url: $0.url, label: places[$0.label]) }
            guard configuration.keepsGroupsTogether else {
                return Sides(training: folder.items, validation: items, isValidationKeptBack: false)
            }
            let count = folder.items.count
            let leaks = groups([folder, validation]).leaks(from: count..<(count + items.count), into: 0..<count)
            return Sides(
                training: folder.items, validation: items, leakage: .found(images: leaks, of: items.count),
                isValidationKeptBack: false)
        }
    }

    private func missingLabels(_ loader: BatchLoader) -> [String] {
        let present = Set(loader.items.map(\.label))
        return folder.labels.indices.filter { !present.contains($0) }.map { folder.labels[$0] }
    }

    private func countByLabel(_ loader: BatchLoader) -> [String: Int] {
        var counts: [String: Int] = [:]
        for item in loader.items { counts[folder.labels[item.label], default: 0] += 1 }
        return counts
    }
}

extension Parameters {
    fileprivate var areFinite: Bool {
        layout.entries.allSatisfy { entry in withValues(of: entry) { $0.allSatisfy(\.isFinite) } }
    }
}

extension Duration {
    /// The duration in seconds.
    public var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
