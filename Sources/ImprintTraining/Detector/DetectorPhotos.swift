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
        let photo: TrainingPhoto
        /// The label that represents the photo: of several objects, the label of the largest one.
        let label: String
        /// The logos that it shows.
        let logos: [Int]
        /// The objects of an annotated photo; nil if only the label is known.
        let objects: [GroundTruthObject]?
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
    /// - Parameters:
    ///   - workers: The threads that read the photos. With several processes, each reads all photos, and all skip the same ones.
    ///   - checkContinues: Called after each portion of photos; throws if the run should end.
    init(
        _ source: DetectorSource, validation annotated: DetectorSource?, _ configuration: DetectorConfiguration,
        logos: [String], earlier: Checkpoint.Images?, workers: Workers, onEvent: (TrainingEvent) -> Void,
        checkContinues: () throws -> Void
    ) throws {
        var rule = configuration.split(logos: logos)
        if let annotated { rule.validation = .source(annotated) }
        let split = try workers.processes.failTogether {
            try DatasetSplit(source, rule, earlier: earlier, onEvent: onEvent, checkContinues: checkContinues)
        }
        // Before the processes exchange which photos they can read.
        try workers.processes?.checkSame(split)
        SystemMemory.returnFreed()
        let total = split.training.count + split.validation.count
        var reader = DetectorPhotoReader(
            logos: logos, workers: workers,
            freeByteCount: configuration.memoryLimit ?? min(SystemMemory.available / 2, Self.defaultMemoryLimit))
        let trainingPhotos = try reader.read(split.training, of: source) { done in
            onEvent(.reading(done: done, of: total))
            try checkContinues()
        }
        try SkippedImage.checkEnoughAreReadable(
            of: split.training, readable: trainingPhotos.readable, skipped: trainingPhotos.skipped,
            labels: source.labels)
        let validationPhotos = try reader.read(split.validation, of: annotated ?? source) { done in
            onEvent(.reading(done: split.training.count + done, of: total))
            try checkContinues()
        }
        try split.checkValidation(readable: validationPhotos.readable, skipped: validationPhotos.skipped)
        (training, validation) = (trainingPhotos.items, validationPhotos.items)
        skippedValidation = validationPhotos.skipped
        skipped = trainingPhotos.skipped + validationPhotos.skipped
        leakage = split.leakage
        unreadable = UnreadablePhotos(
            training: trainingPhotos.readable, validation: validationPhotos.readable, labels: source.labels)
        checkpointImages = Checkpoint.Images(
            training: trainingPhotos.readable, validation: validationPhotos.readable, of: split)
        negatives = training.filter { $0.logos.isEmpty || $0.objects != nil }
        positives = training.filter { !$0.logos.isEmpty && $0.objects == nil }
        guard !negatives.isEmpty else {
            throw ImprintError.noPhotosWithoutLogo(logos: logos, source: source.name)
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

/// A reader of photos that keeps as many of them in memory as a limit allows.
private struct DetectorPhotoReader {
    /// The photos of a call.
    struct Outcome {
        /// The photos that were read.
        var items: [DetectorPhotos.Item] = []
        /// The same photos in their source.
        var readable: [TrainingPhoto] = []
        var skipped: [SkippedImage] = []
    }

    let logos: [String]
    let workers: Workers
    /// The memory that is left for photos, in bytes.
    var freeByteCount: Int

    /// Reads photos of a source.
    /// - Parameter onPortion: Called after each portion of the photos, with the number of finished photos.
    mutating func read(
        _ photos: [TrainingPhoto], of source: DetectorSource, onPortion: (_ done: Int) throws -> Void
    ) throws -> Outcome {
        var outcome = Outcome()
        // Portions bound the memory beyond the limit.
        for start in stride(from: 0, to: photos.count, by: 32) {
            let portion = Array(photos[start..<min(start + 32, photos.count)])
            let results = workers.processes.sharingFailures(decode(portion), of: portion.map(\.url))
            for (photo, result) in zip(portion, results) {
                switch result {
                case .success(let (image, isOriginal)):
                    outcome.items.append(item(photo, of: source, image, isOriginal: isOriginal))
                    outcome.readable.append(photo)
                case .failure(let reason): outcome.skipped.append(SkippedImage(url: photo.url, reason: reason))
                }
            }
            try workers.processes.failTogether { try onPortion(start + portion.count) }
        }
        SystemMemory.returnFreed()
        return outcome
    }

    /// Returns photos at the size of training, and whether that is their original size.
    private func decode(
        _ photos: [TrainingPhoto]
    ) -> [Result<(image: RasterImage, isOriginal: Bool), ImageError>] {
        workers.parallelMap(photos.count) { index in
            Result { () throws(ImageError) in
                let original = try PatchSource.decode(photos[index])
                let image = PatchSource.shrunk(original)
                return (image: image, isOriginal: image == original)
            }
        }
    }

    /// Creates the item of a photo, whose image stays in memory if it fits.
    private mutating func item(
        _ photo: TrainingPhoto, of source: DetectorSource, _ image: RasterImage, isOriginal: Bool
    ) -> DetectorPhotos.Item {
        let fits = image.samples.count <= freeByteCount
        if fits { freeByteCount -= image.samples.count }
        let patches = fits ? PatchSource(image) : PatchSource(photo, width: image.width, height: image.height)
        let label = source.label(of: photo)
        let objects = source.objects[photo.url]?.compactMap { object in
            logos.firstIndex(of: object.label).map {
                GroundTruthObject(logo: $0, object.box, in: patches, isCrowd: object.isCrowd)
            }
        }
        let shown = objects.map { Set($0.map(\.logo)).sorted() } ?? logos.indices.filter { logos[$0] == label }
        return DetectorPhotos.Item(
            photo: photo, label: label, logos: shown, objects: objects, source: patches,
            original: fits && isOriginal ? image : nil)
    }
}

extension DetectorPhotos.Item {
    /// The location of the photo.
    var url: URL { photo.url }

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
