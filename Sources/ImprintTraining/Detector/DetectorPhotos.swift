internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import Synchronization

/// The photos of a detector run, as whole images.
///
/// They are kept in memory as far as the limit goes; the others are read whenever they are needed. Nothing but time depends on the limit.
struct DetectorPhotos {
    /// How many bytes of photos are kept in memory at most where the configuration does not say.
    static let usualMemoryLimit = 512 << 20

    /// A photo and its label.
    struct Item {
        let url: URL
        let label: String
        /// The mark that it shows; nil if it shows none.
        let mark: Int?
        let picture: PatchSource
        /// The photo as it is in its file, if it is in memory.
        let whole: RasterImage?
    }

    let training: [Item]
    /// Those to train on without a mark, and with one.
    let negatives: [Item]
    let positives: [Item]
    let validation: [Item]
    /// Those that could not be read, all and of the validation photos.
    let skipped: [SkippedImage]
    let skippedValidation: [SkippedImage]
    let leakage: TrainingStart.Leakage?
    /// Those that could be read and no longer can be.
    let unreadable: UnreadablePhotos
    /// The same as a checkpoint keeps it.
    let record: Checkpoint.Images

    init(
        _ folder: ImageFolder, _ configuration: DetectorConfiguration, marks: [String],
        earlier: Checkpoint.Images?, workers: Workers, onEvent: (TrainingEvent) -> Void
    ) throws {
        let split = try DatasetSplit(folder, configuration.split, earlier: earlier, onEvent: onEvent)
        SystemMemory.returnFreed()
        let total = split.training.count + split.validation.count
        var room = configuration.memoryLimit ?? min(SystemMemory.available / 2, Self.usualMemoryLimit)
        func read(
            _ items: [ImageFolder.Item], after done: Int
        ) -> (items: [Item], skipped: [SkippedImage], kept: [ImageFolder.Item]) {
            var (read, skipped, kept): ([Item], [SkippedImage], [ImageFolder.Item]) = ([], [], [])
            // In portions, so that no more than one of them is in memory beyond the limit.
            for start in stride(from: 0, to: items.count, by: 32) {
                let portion = items[start..<min(start + 32, items.count)]
                let results = workers.parallelMap(portion.count) { place in
                    Result { () throws(ImageError) in
                        let whole = try PatchSource.decode(portion[start + place].url)
                        let image = PatchSource.shrunk(whole)
                        return (image, isWhole: image == whole)
                    }
                }
                for (item, result) in zip(portion, results) {
                    switch result {
                    case .success(let (image, isWhole)):
                        let fits = image.samples.count <= room
                        if fits { room -= image.samples.count }
                        let picture =
                            fits ? PatchSource(image) : PatchSource(item.url, width: image.width, height: image.height)
                        let label = folder.labels[item.label]
                        read.append(
                            Item(
                                url: item.url, label: label, mark: marks.firstIndex(of: label), picture: picture,
                                whole: fits && isWhole ? image : nil))
                        kept.append(item)
                    case .failure(let reason): skipped.append(SkippedImage(url: item.url, reason: reason))
                    }
                }
                onEvent(.reading(done: done + start + portion.count, of: total))
            }
            SystemMemory.returnFreed()
            return (read, skipped, kept)
        }
        let first = read(split.training, after: 0)
        try SkippedImage.checkEnoughIsLeft(
            of: split.training, readable: first.kept, skipped: first.skipped, labels: folder.labels)
        let second = read(split.validation, after: split.training.count)
        (training, validation) = (first.items, second.items)
        skippedValidation = second.skipped
        skipped = first.skipped + second.skipped
        leakage = split.leakage
        unreadable = UnreadablePhotos(training: first.kept, validation: second.kept, labels: folder.labels)
        let other = split.folders[split.folders.count - 1]
        record = Checkpoint.Images(
            digests: split.folders.map(\.digest), training: first.kept.map(folder.path),
            validation: second.kept.map(other.path), leakage: split.leakage?.record)
        negatives = training.filter { $0.mark == nil }
        positives = training.filter { $0.mark != nil }
        guard !negatives.isEmpty else {
            throw ImprintError.noPhotosWithoutLogo(logos: marks, folder: folder.url.path)
        }
    }

    /// Makes the photos of a run that has only artwork: none.
    init() {
        (training, negatives, positives, validation, skipped, skippedValidation) = ([], [], [], [], [], [])
        leakage = nil
        unreadable = UnreadablePhotos(training: [], validation: [], labels: [])
        record = Checkpoint.Images(digests: [], training: [], validation: [], leakage: nil)
    }

    /// The labels that no photo to measure on bears, if there are such photos.
    func labelsWithoutValidation(_ labels: [String]) -> [String] {
        validation.isEmpty ? [] : labels.filter { label in !validation.contains { $0.label == label } }
    }
}
