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
    ///   - earlier: The images that a run which goes on began with: they stay on their sides.
    ///   - checkGoesOn: Throws where the run is to end.
    init(
        _ folder: ImageFolder, _ configuration: TrainingConfiguration, start: TrainingConfiguration.StartingPoint,
        earlier: Checkpoint.Images?, onEvent: (TrainingEvent) -> Void, checkGoesOn: () throws -> Void
    ) throws {
        let sides = try ImageSides(folder, configuration, earlier: earlier, onEvent: onEvent)
        // What the comparison of all photos took is not needed any more.
        SystemMemory.returnFreed()
        let total = sides.training.count + sides.validation.count
        func loader(
            _ items: [ImageFolder.Item], isTraining: Bool, after read: Int, memoryLimit: Int
        ) throws -> BatchLoader {
            try BatchLoader(
                items: items, labels: folder.labels, preprocessing: start.preprocessing,
                augmentation: isTraining ? configuration.augmentation : nil, batchSize: configuration.batchSize,
                shuffles: isTraining, seed: configuration.seed, workers: Workers(configuration.threads),
                mayLoseLabels: !isTraining && sides.folders.count == 1, memoryLimit: memoryLimit,
                onRead: { onEvent(.reading(done: read + $0, of: total)) })
        }
        let memoryLimit = configuration.memoryLimit ?? SystemMemory.available / 2
        let training = try loader(sides.training, isTraining: true, after: 0, memoryLimit: memoryLimit)
        let readable =
            sides.validation.isEmpty
            ? nil
            : try loader(
                sides.validation, isTraining: false, after: sides.training.count,
                memoryLimit: memoryLimit - training.keptByteCount)
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
            of: sides.training, readable: self.training.items, skipped: self.training.skipped, labels: folder.labels)
        let measured = try readable.map { try source($0, after: training.count) }
        validation = measured.flatMap { $0.count > 0 ? $0 : nil }
        skipped = self.training.skipped + (measured?.skipped ?? [])
        leakage = sides.leakage
        labels = folder.labels
        let validationFolder = sides.folders[sides.folders.count - 1]
        record = Checkpoint.Images(
            digests: sides.folders.map(\.digest), training: self.training.items.map(folder.path),
            validation: validation?.items.map(validationFolder.path) ?? [], leakage: sides.leakage?.record)
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

/// The images of a run before they are read.
struct ImageSides {
    var training: [ImageFolder.Item]
    var validation: [ImageFolder.Item] = []
    var leakage: TrainingStart.Leakage?
    /// The folder of the images, and that of those to measure on if they have one of their own.
    var folders: [ImageFolder]

    init(
        _ folder: ImageFolder, _ configuration: TrainingConfiguration, earlier: Checkpoint.Images?,
        onEvent: (TrainingEvent) -> Void
    ) throws {
        func groups(_ folders: [ImageFolder]) -> ImageGroups {
            let total = folders.reduce(0) { $0 + $1.items.count }
            return ImageGroups(folders, workers: Workers(configuration.threads)) {
                onEvent(.comparing(done: $0, of: total))
            }
        }
        training = folder.items
        folders = [folder]
        let seed = configuration.seed
        switch configuration.validation {
        case .split(let rule):
            if let earlier {
                let isSame = earlier.digests == [folder.digest]
                let groups = isSame || !configuration.keepsGroupsTogether ? nil : groups([folder])
                (training, validation) = folder.split(as: earlier, groups: groups)
                if validation.isEmpty && !earlier.validation.isEmpty {
                    throw ImprintError.validationImagesLost(count: earlier.validation.count)
                }
                if let groups, !validation.isEmpty {
                    leakage = folder.avoidedLeakage(rule, seed: seed, groups: groups)
                } else {
                    leakage = earlier.leakage.flatMap(TrainingStart.Leakage.init)
                }
                return
            }
            guard rule.fraction(ofImages: folder.items.count) > 0 else { return }
            guard configuration.keepsGroupsTogether else {
                (training, validation) = folder.split(rule, seed: seed)
                return
            }
            let groups = groups([folder])
            (training, validation) = folder.split(rule, seed: seed, groups: groups)
            leakage = folder.avoidedLeakage(rule, seed: seed, groups: groups)
        case .folder(let url):
            let other = try ImageFolder(at: url, minimumClasses: 1)
            let unknown = other.labels.filter { !folder.labels.contains($0) }
            guard unknown.isEmpty else {
                throw ImprintError.labelMismatch(
                    folder: url.path(percentEncoded: false), unknown: unknown, labels: folder.labels)
            }
            let places = other.labels.map { label in folder.labels.firstIndex(of: label) ?? 0 }
            validation = other.items.map { ImageFolder.Item(url: $0.url, label: places[$0.label]) }
            folders.append(other)
            if let earlier, earlier.digests == folders.map(\.digest) {
                leakage = earlier.leakage.flatMap(TrainingStart.Leakage.init)
            } else if configuration.keepsGroupsTogether {
                let count = folder.items.count
                let leaks = groups(folders).leaks(from: count..<(count + validation.count), into: 0..<count)
                leakage = .found(images: leaks, of: validation.count)
            }
        }
    }
}

extension ImageFolder {
    /// How many validation photos would leak in a random split, which the split by groups avoids.
    fileprivate func avoidedLeakage(_ rule: ValidationRule, seed: UInt64, groups: ImageGroups) -> TrainingStart.Leakage
    {
        let random = randomSplitLeaks(rule, seed: seed, groups: groups)
        return .avoided(images: random.images, of: random.of, groups: groups.groups.count)
    }

    /// Divides the items as an earlier split did.
    ///
    /// Those that it did not know are trained on, unless they show what an image held out shows.
    fileprivate func split(
        as earlier: Checkpoint.Images, groups: ImageGroups?
    ) -> (training: [Item], validation: [Item]) {
        let paths = items.map(path)
        let (trained, keptBack) = (Set(earlier.training), Set(earlier.validation))
        let groupsKeptBack = groups.map { groups in
            Set(items.indices.filter { keptBack.contains(paths[$0]) }.map(groups.group))
        }
        let isKeptBack = items.indices.map { place in
            if keptBack.contains(paths[place]) { return true }
            guard let groups, let groupsKeptBack, !trained.contains(paths[place]) else { return false }
            return groupsKeptBack.contains(groups.group(of: place))
        }
        return (
            items.indices.filter { !isKeptBack[$0] }.map { items[$0] },
            items.indices.filter { isKeptBack[$0] }.map { items[$0] }
        )
    }
}

extension TrainingStart.Leakage {
    /// As a checkpoint keeps it.
    var record: [String: Int] {
        switch self {
        case .avoided(let images, let total, let groups): ["avoided": images, "of": total, "groups": groups]
        case .found(let images, let total): ["found": images, "of": total]
        }
    }

    fileprivate init?(_ record: [String: Int]) {
        if let images = record["avoided"], let total = record["of"], let groups = record["groups"] {
            self = .avoided(images: images, of: total, groups: groups)
        } else if let images = record["found"], let total = record["of"] {
            self = .found(images: images, of: total)
        } else {
            return nil
        }
    }
}
