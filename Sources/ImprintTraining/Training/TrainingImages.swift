internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// The training and validation images of a run.
struct TrainingImages {
    let training: any BatchSource
    /// The validation set, or nil for a run without validation.
    let validation: (any BatchSource)?
    /// All images that could not be read.
    let skipped: [SkippedImage]
    /// The leakage between training and validation images.
    let leakage: TrainingStart.Leakage?
    /// The images as a checkpoint stores them.
    let checkpointImages: Checkpoint.Images
    /// The identifier of the group of near-duplicates or of a burst, for each item of the source; nil if the split did not need groups.
    let groups: [Int]?
    private let labels: [String]
    /// The loaders of the photos themselves; `training` and `validation` may have their features instead.
    private let loaders: (training: BatchLoader, validation: BatchLoader?)

    /// Splits and reads the images, and computes their features if the starting point has a part for it.
    /// - Parameters:
    ///   - earlier: The images of the run to resume, if any: they stay on their side of the split.
    ///   - checkContinues: Throws if the run should end.
    init(
        _ photos: any TrainingSource, _ configuration: ClassifierConfiguration,
        start: ClassifierConfiguration.StartingPoint,
        earlier: Checkpoint.Images?, onEvent: (TrainingEvent) -> Void, checkContinues: () throws -> Void
    ) throws {
        let split = try Self.split(
            photos, configuration, earlier: earlier, onEvent: onEvent, checkContinues: checkContinues)
        let total = split.training.count + split.validation.count
        func loader(
            _ items: [TrainingPhoto], isTraining: Bool, after read: Int, memoryLimit: Int
        ) throws -> BatchLoader {
            try BatchLoader(
                items: items, labels: photos.labels, preprocessing: start.preprocessing,
                augmentation: isTraining ? configuration.augmentation : nil, batchSize: configuration.batchSize,
                shuffles: isTraining, seed: configuration.seed, workers: configuration.workers,
                allowsMissingLabels: !isTraining && split.sources.count == 1, memoryLimit: memoryLimit,
                onRead: { onEvent(.reading(done: read + $0, of: total)) })
        }
        let memoryLimit = configuration.memoryLimit ?? SystemMemory.available / 2
        let training = try loader(split.training, isTraining: true, after: 0, memoryLimit: memoryLimit)
        let validationLoader =
            split.validation.isEmpty
            ? nil
            : try loader(
                split.validation, isTraining: false, after: split.training.count,
                memoryLimit: memoryLimit - training.cachedByteCount)
        try configuration.processes.failTogether(checkContinues)
        let read = training.count + (validationLoader?.count ?? 0)
        func source(_ images: BatchLoader, after done: Int) throws -> any BatchSource {
            guard let part = start.featureExtractor, images.count > 0 else { return images }
            return try FeatureLoader(of: images, by: part, workers: configuration.workers) {
                onEvent(.computingFeatures(done: done + $0, of: read))
                try checkContinues()
            }
        }
        loaders = (training, validationLoader)
        self.training = try source(training, after: 0)
        // Photos may have become unreadable since.
        try SkippedImage.checkEnoughAreReadable(
            of: split.training, readable: self.training.items, skipped: self.training.skipped, labels: photos.labels)
        let validationSource = try validationLoader.map { try source($0, after: training.count) }
        if let validationSource {
            try split.checkValidation(readable: validationSource.items, skipped: validationSource.skipped)
        }
        validation = validationSource.flatMap { $0.count > 0 ? $0 : nil }
        skipped = self.training.skipped + (validationSource?.skipped ?? [])
        leakage = split.leakage
        groups = split.groups
        labels = photos.labels
        checkpointImages = Checkpoint.Images(
            training: self.training.items, validation: validation?.items ?? [], of: split)
    }

    /// Splits the photos, and checks that all processes have the same split.
    private static func split(
        _ photos: any TrainingSource, _ configuration: ClassifierConfiguration, earlier: Checkpoint.Images?,
        onEvent: (TrainingEvent) -> Void, checkContinues: () throws -> Void
    ) throws -> DatasetSplit {
        let split = try configuration.processes.failTogether {
            let split = try DatasetSplit(
                photos, configuration.split, earlier: earlier, onEvent: onEvent, checkContinues: checkContinues)
            if !configuration.isMultiLabel, let photo = split.validation.first(where: { $0.labels.count != 1 }) {
                throw ImprintError.notOneLabel(
                    photo: photo.url.displayPath, labels: photo.labels.map { photos.labels[$0] })
            }
            return split
        }
        // Before the processes exchange photos.
        try configuration.processes?.checkSame(split)
        // The comparison of the photos has freed its memory.
        SystemMemory.returnFreed()
        return split
    }

    /// Creates a set with the photos themselves instead of their features, with data augmentation for training.
    init(_ features: TrainingImages, augmentation: Augmentation) {
        training = features.loaders.training.with(augmentation: augmentation)
        validation = features.loaders.validation
        loaders = features.loaders
        (skipped, leakage, labels) = (features.skipped, features.leakage, features.labels)
        (checkpointImages, groups) = (features.checkpointImages, features.groups)
    }

    /// The photos themselves, without augmentation: those for training, then those for validation.
    var photos: (training: BatchLoader, validation: BatchLoader?) { loaders }

    /// The number of validation images.
    var validationCount: Int { validation?.count ?? 0 }

    /// The labels that no validation image has; empty without a validation set.
    var labelsWithoutValidation: [String] {
        guard let validation else { return [] }
        let present = Set(validation.items.flatMap(\.labels))
        return labels.indices.filter { !present.contains($0) }.map { labels[$0] }
    }

    /// Returns the number of a loader's images of each label, in the order of the labels.
    func counts(_ loader: (any BatchSource)?) -> [Int] {
        (loader?.items ?? []).flatMap(\.labels).reduce(into: labels.map { _ in 0 }) { $0[$1] += 1 }
    }

    /// Returns the number of a loader's images by label, without labels that have no images.
    func countsByLabel(_ loader: (any BatchSource)?) -> [String: Int] {
        Dictionary(uniqueKeysWithValues: zip(labels, counts(loader)).filter { $0.1 > 0 })
    }
}
