internal import Foundation
internal import ImprintImages
internal import Synchronization

/// The photos of a run that could be read at its start and no longer can be, for any number of threads.
///
/// The run continues without them while enough are left. Enough means, of the training photos and of the validation photos
/// separately: at least half of them, and at least one of every label that had any.
final class UnreadablePhotos: Sendable {
    private let state: Mutex<Record>

    /// - Parameter labels: The names of the labels, by their index.
    init(training: [ImageFolder.Item], validation: [ImageFolder.Item], labels: [String]) {
        state = Mutex(Record(training: training, validation: validation, labels: labels))
    }

    /// Records a photo; the first reason counts.
    func add(_ image: SkippedImage) { state.withLock { $0.add(image) } }

    /// Records a photo; the first reason counts.
    /// - Throws: `ImageError` if too few photos are left, or if the picture is not a file.
    func add(_ picture: PatchSource, _ reason: ImageError) throws(ImageError) {
        guard let photo = picture.photo else { throw reason }
        add(SkippedImage(url: photo, reason: reason))
        if let problem { throw problem }
    }

    /// Why a photo cannot be read; nil if it can.
    func reason(for picture: PatchSource) -> ImageError? {
        picture.photo.flatMap { photo in state.withLock { $0.reasons[photo] } }
    }

    /// Why the run cannot continue; nil while enough photos are left.
    var problem: ImageError? { state.withLock { $0.problem } }
    /// Whether too few validation photos are left for a validation result.
    var affectsValidation: Bool { state.withLock { $0.affectsValidation } }
    /// The number of validation photos that cannot be read.
    var validationCount: Int { state.withLock { $0.validationCount } }
    /// All of them, reported or not.
    var all: [SkippedImage] { state.withLock { $0.reported + $0.unreported } }
    /// All of them, in the order in which they were reported.
    var images: [SkippedImage] { state.withLock { $0.reported } }

    /// Those that were recorded since the last call, sorted by path.
    func takeNew() -> [SkippedImage] {
        state.withLock { state in
            let new = state.unreported.sorted { $0.url.path < $1.url.path }
            state.reported += new
            state.unreported = []
            return new
        }
    }
}

private struct Record {
    /// The training or the validation photos.
    private struct Partition {
        let items: [ImageFolder.Item]
        /// The number of readable photos of each label.
        var left: [Int: Int]
        var unreadable: [SkippedImage] = []
    }

    var reasons: [URL: ImageError] = [:]
    var reported: [SkippedImage] = []
    var unreported: [SkippedImage] = []
    var problem: ImageError?
    var affectsValidation = false
    private let labels: [String]
    private var partitions: [Partition]
    /// The partition and the label of each photo.
    private let partition: [URL: (index: Int, label: Int)]

    init(training: [ImageFolder.Item], validation: [ImageFolder.Item], labels: [String]) {
        self.labels = labels
        partitions = [training, validation].map { items in
            Partition(items: items, left: Dictionary(items.map { ($0.label, 1) }, uniquingKeysWith: +))
        }
        partition = Dictionary(
            training.map { ($0.url, (0, $0.label)) } + validation.map { ($0.url, (1, $0.label)) },
            uniquingKeysWith: { first, _ in first })
    }

    var validationCount: Int { partitions[1].unreadable.count }

    mutating func add(_ image: SkippedImage) {
        guard reasons.updateValue(reasons[image.url] ?? image.reason, forKey: image.url) == nil else { return }
        unreported.append(image)
        guard let (index, label) = partition[image.url] else { return }
        partitions[index].unreadable.append(image)
        partitions[index].left[label, default: 0] -= 1
        let found = partitions[index]
        let isEnough = found.left.values.allSatisfy { $0 > 0 } && 2 * found.unreadable.count <= found.items.count
        guard !isEnough else { return }
        if index == 1 { affectsValidation = true }
        do throws(ImageError) {
            try SkippedImage.checkEnoughIsLeft(
                of: found.items, readable: found.items.filter { reasons[$0.url] == nil }, skipped: found.unreadable,
                labels: labels)
        } catch {
            problem = problem ?? error
        }
    }
}
