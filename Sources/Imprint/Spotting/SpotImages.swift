internal import Foundation
internal import ImprintCore
internal import ImprintFormats
internal import ImprintImages
internal import Synchronization

/// The photos of a run that spots marks, in memory as whole pictures.
struct SpotImages {
    /// A photo and its label.
    struct Item {
        let url: URL
        let label: String
        /// The mark that it shows; `nil` where it shows none.
        let mark: Int?
        let picture: PatchSource
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
    /// The same as a checkpoint keeps it.
    let record: Checkpoint.Images

    init(
        _ folder: ImageFolder, _ configuration: TrainingConfiguration, marks: [String],
        earlier: Checkpoint.Images?, workers: Workers, onEvent: (TrainingEvent) -> Void
    ) throws {
        let sides = try ImageSides(folder, configuration, earlier: earlier, onEvent: onEvent)
        SystemMemory.returnFreed()
        let total = sides.training.count + sides.validation.count
        func read(
            _ items: [ImageFolder.Item], after done: Int
        ) -> (items: [Item], skipped: [SkippedImage], kept: [ImageFolder.Item]) {
            let results = workers.map(items.count, onProgress: { onEvent(.reading(done: done + $0, of: total)) }) {
                place in
                Result { () throws(ImageError) in PatchSource(try PatchSource.read(items[place].url)) }
            }
            var (read, skipped, kept): ([Item], [SkippedImage], [ImageFolder.Item]) = ([], [], [])
            for (item, result) in zip(items, results) {
                switch result {
                case .success(let picture):
                    let label = folder.labels[item.label]
                    read.append(
                        Item(url: item.url, label: label, mark: marks.firstIndex(of: label), picture: picture))
                    kept.append(item)
                case .failure(let reason): skipped.append(SkippedImage(url: item.url, reason: reason))
                }
            }
            return (read, skipped, kept)
        }
        let first = read(sides.training, after: 0)
        try SkippedImage.checkEnoughIsLeft(
            of: sides.training, readable: first.kept, skipped: first.skipped, labels: folder.labels)
        let second = read(sides.validation, after: sides.training.count)
        (training, validation) = (first.items, second.items)
        skippedValidation = second.skipped
        skipped = first.skipped + second.skipped
        leakage = sides.leakage
        let other = sides.folders[sides.folders.count - 1]
        record = Checkpoint.Images(
            digests: sides.folders.map(\.digest), training: first.kept.map(folder.path),
            validation: second.kept.map(other.path), leakage: sides.leakage?.record)
        negatives = training.filter { $0.mark == nil }
        positives = training.filter { $0.mark != nil }
        guard !negatives.isEmpty else {
            throw ImprintError.noPhotosWithoutMark(marks: marks, folder: folder.url.path)
        }
    }

    /// The labels that no photo to measure on bears, where there are such photos.
    func labelsWithoutValidation(_ labels: [String]) -> [String] {
        validation.isEmpty ? [] : labels.filter { label in !validation.contains { $0.label == label } }
    }
}
