internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import Synchronization

/// The photos of a run that were readable at its start and have become unreadable; thread-safe.
///
/// The run continues without them while enough photos are readable: at least half of the photos, and at least one photo of every label that
/// had photos at the start. This applies to training photos and validation photos separately.
final class UnreadablePhotos: Sendable {
    private let state: Mutex<State>

    /// - Parameter labels: The names of the labels, by their index.
    init(training: [TrainingPhoto], validation: [TrainingPhoto], labels: [String]) {
        state = Mutex(State(training: training, validation: validation, labels: labels))
    }

    /// Adds an unreadable photo; it is ignored if it was added before.
    func add(_ image: SkippedImage) { state.withLock { $0.add(image) } }

    /// Adds the photos that other processes cannot read.
    /// - Parameter count: The number of unreadable photos that all processes know.
    /// - Returns: Whether there are new ones in any process.
    func share(with processes: ProcessGroup, from count: Int) -> Bool {
        // As positions: a relative URL has a different URL for the same text.
        let own = state.withLock { state in
            (state.reported + state.unreported).dropFirst(count).compactMap { state.photos[$0.url]?.position }
        }
        let all = processes.allGather(Array(own.map(String.init).joined(separator: " ").utf8))
            .flatMap { String(decoding: $0, as: UTF8.self).split(separator: " ").compactMap { Int($0) } }
        for position in all {
            let url = state.withLock { $0.items[position].url }
            add(SkippedImage(url: url, reason: .unreadableInAnotherProcess(url)))
        }
        return !all.isEmpty
    }

    /// Returns the reason why a photo cannot be read; nil if it is readable.
    func reason(for source: PatchSource) -> ImageError? {
        source.photo.flatMap { photo in state.withLock { $0.reasons[photo] } }
    }

    /// The reason why the run cannot continue; nil while enough photos are readable.
    var problem: ImageError? { state.withLock { $0.problem } }
    /// Whether too few validation photos are readable for a validation result.
    var affectsValidation: Bool { state.withLock { $0.affectsValidation } }
    /// The number of unreadable validation photos.
    var unreadableValidationCount: Int { state.withLock { $0.unreadableValidationCount } }
    /// All unreadable photos: first the reported ones, then the others, sorted by path.
    var all: [SkippedImage] { state.withLock { $0.reported + $0.sortedUnreported } }
    /// The reported photos, in the order of the reports.
    var images: [SkippedImage] { state.withLock { $0.reported } }

    /// Returns the photos added since the last call, sorted by path, and counts them as reported.
    func takeNew() -> [SkippedImage] {
        state.withLock { state in
            let new = state.sortedUnreported
            state.reported += new
            state.unreported = []
            return new
        }
    }
}

private struct State {
    /// The training or the validation photos.
    private struct Partition {
        let items: [TrainingPhoto]
        /// The number of readable photos of each label.
        var readableCounts: [Int: Int]
        var unreadable: [SkippedImage] = []
    }

    var reasons: [URL: ImageError] = [:]
    var reported: [SkippedImage] = []
    var unreported: [SkippedImage] = []
    var problem: ImageError?
    var affectsValidation = false
    /// The training photos and then the validation photos; all processes have them in the same order.
    let items: [TrainingPhoto]
    private let labels: [String]
    private var partitions: [Partition]
    /// The partition, the labels and the index in `items` of each photo.
    let photos: [URL: (partition: Int, labels: [Int], position: Int)]

    init(training: [TrainingPhoto], validation: [TrainingPhoto], labels: [String]) {
        self.labels = labels
        partitions = [training, validation].map { items in
            Partition(
                items: items, readableCounts: Dictionary(items.flatMap(\.labels).map { ($0, 1) }, uniquingKeysWith: +))
        }
        let items = training + validation
        self.items = items
        photos = Dictionary(
            items.enumerated().map { ($1.url, ($0 < training.count ? 0 : 1, $1.labels, $0)) },
            uniquingKeysWith: { first, _ in first })
    }

    var unreadableValidationCount: Int { partitions[1].unreadable.count }
    /// The photos that are not reported, sorted by path, because threads add them in any order.
    var sortedUnreported: [SkippedImage] { unreported.sorted { $0.url.path < $1.url.path } }

    mutating func add(_ image: SkippedImage) {
        guard reasons.updateValue(reasons[image.url] ?? image.reason, forKey: image.url) == nil else { return }
        unreported.append(image)
        guard let (index, labels, _) = photos[image.url] else { return }
        partitions[index].unreadable.append(image)
        for label in labels { partitions[index].readableCounts[label, default: 0] -= 1 }
        let partition = partitions[index]
        let isEnough =
            partition.readableCounts.values.allSatisfy { $0 > 0 }
            && !SkippedImage.areTooMany(partition.unreadable.count, of: partition.items.count)
        guard !isEnough else { return }
        if index == 1 { affectsValidation = true }
        // The first problem is the reason; the check reads all photos of the partition.
        guard problem == nil else { return }
        do throws(ImageError) {
            try SkippedImage.checkEnoughAreReadable(
                of: partition.items, readable: partition.items.filter { reasons[$0.url] == nil },
                skipped: partition.unreadable, labels: self.labels)
        } catch {
            problem = error
        }
    }
}
