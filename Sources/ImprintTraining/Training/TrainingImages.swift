internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// The images of a run: what is trained on, and what is measured on.
struct TrainingImages {
    let training: any BatchSource
    /// nil if nothing is measured on.
    let validation: (any BatchSource)?
    /// All images that could not be read.
    let skipped: [SkippedImage]
    /// What copies, near-duplicates and bursts have to do with validation.
    let leakage: TrainingStart.Leakage?
    /// The same as a checkpoint keeps it.
    let record: Checkpoint.Images
    private let labels: [String]

    /// Divides the images and reads them, and computes their features where the start has a part for it.
    /// - Parameters:
    ///   - earlier: The images that a run which goes on began with: they stay on their split.
    ///   - checkGoesOn: Throws where the run is to end.
    init(
        _ folder: ImageFolder, _ configuration: ClassifierConfiguration, start: ClassifierConfiguration.StartingPoint,
        earlier: Checkpoint.Images?, onEvent: (TrainingEvent) -> Void, checkGoesOn: () throws -> Void
    ) throws {
        let split = try DatasetSplit(folder, configuration.split, earlier: earlier, onEvent: onEvent)
        // What the comparison of all photos took is not needed any more.
        SystemMemory.returnFreed()
        let total = split.training.count + split.validation.count
        func loader(
            _ items: [ImageFolder.Item], isTraining: Bool, after read: Int, memoryLimit: Int
        ) throws -> BatchLoader {
            try BatchLoader(
                items: items, labels: folder.labels, preprocessing: start.preprocessing,
                augmentation: isTraining ? configuration.augmentation : nil, batchSize: configuration.batchSize,
                shuffles: isTraining, seed: configuration.seed, workers: Workers(configuration.threads),
                allowsMissingLabels: !isTraining && split.folders.count == 1, memoryLimit: memoryLimit,
                onRead: { onEvent(.reading(done: read + $0, of: total)) })
        }
        let memoryLimit = configuration.memoryLimit ?? SystemMemory.available / 2
        let training = try loader(split.training, isTraining: true, after: 0, memoryLimit: memoryLimit)
        let readable =
            split.validation.isEmpty
            ? nil
            : try loader(
                split.validation, isTraining: false, after: split.training.count,
                memoryLimit: memoryLimit - training.cachedByteCount)
        try checkGoesOn()
        let read = training.count + (readable?.count ?? 0)
        func source(_ images: BatchLoader, after done: Int) throws -> any BatchSource {
            guard let part = start.features, images.count > 0 else { return images }
            return try FeatureLoader(of: images, by: part, workers: Workers(configuration.threads)) {
                onEvent(.computingFeatures(done: done + $0, of: read))
                try checkGoesOn()
            }
        }
        self.training = try source(training, after: 0)
        // Photos may have gone since they were read.
        try SkippedImage.checkEnoughIsLeft(
            of: split.training, readable: self.training.items, skipped: self.training.skipped, labels: folder.labels)
        let measured = try readable.map { try source($0, after: training.count) }
        validation = measured.flatMap { $0.count > 0 ? $0 : nil }
        skipped = self.training.skipped + (measured?.skipped ?? [])
        leakage = split.leakage
        labels = folder.labels
        let validationFolder = split.folders[split.folders.count - 1]
        record = Checkpoint.Images(
            digests: split.folders.map(\.digest), training: self.training.items.map(folder.path),
            validation: validation?.items.map(validationFolder.path) ?? [], leakage: split.leakage?.record)
    }

    /// The number of images to measure on.
    var validationCount: Int { validation?.count ?? 0 }

    /// The labels that no image to measure on bears, if there are such images.
    var labelsWithoutValidation: [String] {
        guard let validation else { return [] }
        let present = Set(validation.items.map(\.label))
        return labels.indices.filter { !present.contains($0) }.map { labels[$0] }
    }

    /// How many images of each label a loader has, in the order of the labels.
    func counts(_ loader: (any BatchSource)?) -> [Int] {
        (loader?.items ?? []).reduce(into: labels.map { _ in 0 }) { $0[$1.label] += 1 }
    }

    /// The same by name, without those that have none.
    func countsByLabel(_ loader: (any BatchSource)?) -> [String: Int] {
        Dictionary(uniqueKeysWithValues: zip(labels, counts(loader)).filter { $0.1 > 0 })
    }
}
