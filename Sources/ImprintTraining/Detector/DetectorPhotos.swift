internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import Synchronization

/// The photos of a detector run, as whole images.
///
/// As many photos as the memory limit allows stay in memory; the others are read again for each use. The results do not depend on the limit.
struct DetectorPhotos {
    /// The maximum of the default memory limit, in bytes.
    static let defaultMemoryLimit = 512 << 20

    /// A photo and its label.
    struct Item {
        let url: URL
        /// The label that represents the photo: of several objects, the label of the largest one.
        let label: String
        /// The logos that it shows.
        let logos: [Int]
        /// The objects of an annotated photo; nil if only the label is known.
        let objects: [KnownObject]?
        let source: PatchSource
        /// The photo at its original size, if it is in memory.
        let original: RasterImage?
    }

    let training: [Item]
    /// The training photos in which all logos are known: those without a logo, and the annotated photos.
    let negatives: [Item]
    /// The training photos with a logo whose position is unknown.
    let positives: [Item]
    let validation: [Item]
    /// All photos that could not be read.
    let skipped: [SkippedImage]
    /// The validation photos that could not be read.
    let skippedValidation: [SkippedImage]
    let leakage: TrainingStart.Leakage?
    /// The photos that become unreadable during the run.
    let unreadable: UnreadablePhotos
    /// The photos as a checkpoint stores them.
    let checkpointImages: Checkpoint.Images

    /// Splits and reads photos.
    /// - Parameter checkContinues: Called after each portion of photos; throws if the run should end.
    init(
        _ folder: DetectorSource, validation annotated: DetectorSource?, _ configuration: DetectorConfiguration,
        logos: [String], earlier: Checkpoint.Images?, workers: Workers, onEvent: (TrainingEvent) -> Void,
        checkContinues: () throws -> Void
    ) throws {
        var rule = configuration.split(logos: logos)
        if let annotated { rule.validation = .source(annotated) }
        let split = try DatasetSplit(folder, rule, earlier: earlier, onEvent: onEvent)
        SystemMemory.returnFreed()
        let total = split.training.count + split.validation.count
        var room = configuration.memoryLimit ?? min(SystemMemory.available / 2, Self.defaultMemoryLimit)
        func read(
            _ items: [ImageFolder.Item], of photos: DetectorSource, after done: Int
        ) throws -> (items: [Item], skipped: [SkippedImage], readable: [ImageFolder.Item]) {
            var (read, skipped, readable): ([Item], [SkippedImage], [ImageFolder.Item]) = ([], [], [])
            // Portions bound the memory beyond the limit.
            for start in stride(from: 0, to: items.count, by: 32) {
                let portion = items[start..<min(start + 32, items.count)]
                let results = workers.parallelMap(portion.count) { index in
                    Result { () throws(ImageError) in
                        let original = try PatchSource.decode(portion[start + index].url)
                        let image = PatchSource.shrunk(original)
                        return (image, isOriginal: image == original)
                    }
                }
                for (item, result) in zip(portion, results) {
                    switch result {
                    case .success(let (image, isOriginal)):
                        let fits = image.samples.count <= room
                        if fits { room -= image.samples.count }
                        let source =
                            fits ? PatchSource(image) : PatchSource(item.url, width: image.width, height: image.height)
                        let label = photos.label(of: item)
                        let objects = photos.objects[item.url]?.compactMap { object in
                            logos.firstIndex(of: object.label).map {
                                KnownObject(logo: $0, object.box, in: source, isCrowd: object.isCrowd)
                            }
                        }
                        let shown =
                            objects.map { Set($0.map(\.logo)).sorted() } ?? logos.indices.filter { logos[$0] == label }
                        read.append(
                            Item(
                                url: item.url, label: label, logos: shown, objects: objects, source: source,
                                original: fits && isOriginal ? image : nil))
                        readable.append(item)
                    case .failure(let reason): skipped.append(SkippedImage(url: item.url, reason: reason))
                    }
                }
                onEvent(.reading(done: done + start + portion.count, of: total))
                try checkContinues()
            }
            SystemMemory.returnFreed()
            return (read, skipped, readable)
        }
        let trainingPhotos = try read(split.training, of: folder, after: 0)
        try SkippedImage.checkEnoughAreReadable(
            of: split.training, readable: trainingPhotos.readable, skipped: trainingPhotos.skipped,
            labels: folder.labels)
        let validationPhotos = try read(split.validation, of: annotated ?? folder, after: split.training.count)
        (training, validation) = (trainingPhotos.items, validationPhotos.items)
        skippedValidation = validationPhotos.skipped
        skipped = trainingPhotos.skipped + validationPhotos.skipped
        leakage = split.leakage
        unreadable = UnreadablePhotos(
            training: trainingPhotos.readable, validation: validationPhotos.readable, labels: folder.labels)
        let validationFolder = split.folders[split.folders.count - 1]
        checkpointImages = Checkpoint.Images(
            digests: split.folders.map(\.digest), training: trainingPhotos.readable.map(folder.path),
            validation: validationPhotos.readable.map(validationFolder.path), leakage: split.leakage?.storedCounts)
        negatives = training.filter { $0.logos.isEmpty || $0.objects != nil }
        positives = training.filter { !$0.logos.isEmpty && $0.objects == nil }
        guard !negatives.isEmpty else {
            throw ImprintError.noPhotosWithoutLogo(logos: logos, folder: folder.name)
        }
    }

    /// Whether some photos are annotated.
    var hasBoxes: Bool { training.contains { $0.objects != nil } || validation.contains { $0.objects != nil } }

    /// Creates the empty set of photos, for a run with artwork only.
    init() {
        (training, negatives, positives, validation, skipped, skippedValidation) = ([], [], [], [], [], [])
        leakage = nil
        unreadable = UnreadablePhotos(training: [], validation: [], labels: [])
        checkpointImages = Checkpoint.Images(digests: [], training: [], validation: [], leakage: nil)
    }

    /// Returns the labels that no validation photo shows; empty without a validation set.
    ///
    /// With boxes, the label of photos without a logo does not count, because every photo has background.
    func labelsWithoutValidation(_ labels: [String], logos: [String]) -> [String] {
        guard !validation.isEmpty else { return [] }
        return labels.filter { label in
            guard let logo = logos.firstIndex(of: label) else {
                return !hasBoxes && !validation.contains { $0.label == label }
            }
            return !validation.contains { $0.shows(logo) }
        }
    }
}

extension DetectorPhotos.Item {
    /// Returns whether the photo shows a logo, apart from crowds.
    func shows(_ logo: Int) -> Bool {
        objects?.contains { $0.logo == logo && !$0.isCrowd } ?? logos.contains(logo)
    }
}

extension [DetectorPhotos.Item] {
    /// Returns at most `count` of the photos, balanced over logos and photos without a logo, in the same order.
    ///
    /// Annotated photos come before photos that only have a label. The choice is random, but always the same.
    func balanced(over logos: [Int], count: Int) -> [DetectorPhotos.Item] {
        guard self.count > count else { return self }
        var random = RandomStream(seed: 0, "calibration")
        let order = random.permutation(of: self.count)
        let candidates = order.filter { self[$0].objects != nil } + order.filter { self[$0].objects == nil }
        let queues =
            logos.map { logo in candidates.filter { self[$0].shows(logo) } }
            + [candidates.filter { self[$0].logos.isEmpty }]
        var chosen: Set<Int> = []
        for turn in 0..<(queues.map(\.count).max() ?? 0) {
            for queue in queues where queue.indices.contains(turn) && chosen.count < count {
                chosen.insert(queue[turn])
            }
        }
        return chosen.sorted().map { self[$0] }
    }
}
