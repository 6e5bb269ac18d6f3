internal import Dispatch
public import Foundation
package import ImprintCore
internal import Synchronization

/// A skipped image and the reason.
public struct SkippedImage: Sendable, Equatable {
    /// The file.
    public let url: URL
    /// The error from reading it.
    public let reason: ImageError

    /// Creates a skipped image.
    public init(url: URL, reason: ImageError) {
        self.url = url
        self.reason = reason
    }

    /// Whether so many images are unreadable that a job cannot continue: more than half.
    package static func areTooMany(_ unreadableCount: Int, of total: Int) -> Bool { 2 * unreadableCount > total }

    /// Throws `ImageError` unless every label has a readable image and at least half of all images are readable.
    package static func checkEnoughAreReadable(
        of items: [TrainingPhoto], readable: [TrainingPhoto], skipped: [SkippedImage], labels: [String]
    ) throws(ImageError) {
        let remaining = Set(readable.flatMap(\.labels))
        if let missing = items.flatMap(\.labels).filter({ !remaining.contains($0) }).min() {
            let files = Set(items.filter { $0.labels.contains(missing) }.map(\.url))
            throw .noReadableImages(label: labels[missing], skipped: skipped.filter { files.contains($0.url) })
        }
        if areTooMany(skipped.count, of: items.count) {
            throw .tooManyUnreadable(images: items.count, skipped: skipped)
        }
    }
}

/// A batch of images with their labels; valid until the next batch is requested.
package struct Batch {
    /// The index of the batch in the epoch, from 0.
    package let index: Int
    /// The labels of each image.
    package let labelSets: [[Int]]
    /// The index of each image in the items of the loader.
    package let indices: [Int]
    /// The number of images.
    package var count: Int { indices.count }
    /// The label of each image; every image must have exactly one.
    package var labels: [Int] {
        labelSets.map { labels in
            precondition(labels.count == 1, "an image has \(labels.count) labels, not 1")
            return labels[0]
        }
    }
    private let writing: (UnsafeMutableBufferPointer<Float>) -> Void

    /// Creates a batch; `writing` writes its images.
    package init(
        index: Int, labelSets: [[Int]], indices: [Int],
        writing: @escaping (UnsafeMutableBufferPointer<Float>) -> Void
    ) {
        self.index = index
        self.labelSets = labelSets
        self.indices = indices
        self.writing = writing
    }

    /// Writes the images in the layout of the network input: [count, height, width, channels].
    ///
    /// `values` must have room for all images; the remaining values do not change.
    package func write(to values: UnsafeMutableBufferPointer<Float>) { writing(values) }
}

/// The order of the images in the batches of each epoch: shuffled in every epoch, or sequential.
package struct BatchOrder: Sendable {
    /// The number of images.
    package let count: Int
    /// The number of images in a batch; the last batch of an epoch may be smaller.
    package let batchSize: Int
    /// Whether every epoch shuffles the images.
    package let shuffles: Bool
    /// The random seed.
    package let seed: UInt64

    package init(count: Int, batchSize: Int, shuffles: Bool, seed: UInt64) {
        precondition(batchSize >= 1, "a batch must have at least one image, not \(batchSize)")
        self.count = count
        self.batchSize = batchSize
        self.shuffles = shuffles
        self.seed = seed
    }

    /// Returns the same order for another number of images.
    package func with(count: Int) -> BatchOrder {
        BatchOrder(count: count, batchSize: batchSize, shuffles: shuffles, seed: seed)
    }

    /// Returns the indices of the images in each batch of an epoch.
    package func batches(epoch: Int) -> [ArraySlice<Int>] {
        var stream = RandomStream(seed: seed, "shuffle", epoch)
        let order = shuffles ? stream.permutation(of: count) : Array(0..<count)
        return stride(from: 0, to: count, by: batchSize).map { order[$0..<min($0 + batchSize, count)] }
    }
}

/// Loads the images of a data set in batches, epoch after epoch.
///
/// The loader reads every image once at the start, and skips and lists unreadable images. It caches preprocessed images, 8 bits
/// per sample, up to the memory limit, and reads the other images again in every epoch. An epoch continues without images that
/// have become unreadable. While the caller works on one batch, the loader reads the next in the background. Order and content
/// depend only on the seed.
package final class BatchLoader: Sendable {
    /// The readable images.
    package let items: [TrainingPhoto]
    /// The unreadable images.
    package let skipped: [SkippedImage]
    let preprocessing: Preprocessing
    private let augmentation: Augmentation?
    /// The order of the images in each epoch.
    package let order: BatchOrder
    private let workers: Workers
    /// The preprocessed images of the first `cachedCount` items.
    private let cache: ImageStore
    private let cachedCount: Int
    /// The images that became unreadable after the start, by index.
    ///
    /// Later epochs do not read them again, so that the metrics of all epochs cover the same images.
    private let unreadable = Mutex<[Int: ImageError]>([:])

    /// Creates a loader and reads all images.
    /// - Parameters:
    ///   - items: The images.
    ///   - labels: The names of the labels, for error messages.
    ///   - preprocessing: The preprocessing of the images.
    ///   - augmentation: The data augmentation; nil for none.
    ///   - batchSize: The number of images in a batch; the last batch of an epoch may be smaller.
    ///   - shuffles: Whether every epoch shuffles the images.
    ///   - seed: The random seed of order and augmentation.
    ///   - workers: The threads and processes that read the images. With several processes, each reads its share.
    ///   - allowsMissingLabels: Whether most images, or all images of a label, may be unreadable, as in a small validation
    ///     set.
    ///   - memoryLimit: The maximum number of bytes of cached images; half of the available memory if nil.
    ///   - onRead: Receives the number of images read so far, from time to time.
    /// - Throws: `ImageError` if more than half of the images, or all images of a label, are unreadable, unless
    ///   `allowsMissingLabels` is true.
    package init(
        items: [TrainingPhoto], labels: [String], preprocessing: Preprocessing, augmentation: Augmentation? = nil,
        batchSize: Int, shuffles: Bool, seed: UInt64, workers: Workers, allowsMissingLabels: Bool = false,
        memoryLimit: Int? = nil, onRead: (Int) -> Void = { _ in }
    ) throws(ImageError) {
        let memoryLimit = memoryLimit ?? SystemMemory.available / 2
        cache = ImageStore(
            count: items.count, of: preprocessing,
            memoryLimit: workers.processes.map { $0.minimum(memoryLimit) / $0.count } ?? memoryLimit)
        let failures = Self.read(items, preprocessing, workers: workers, into: cache, onRead: onRead)
        let readable = items.indices.filter { failures[$0] == nil }
        skipped = failures.sorted { $0.key < $1.key }.map { SkippedImage(url: items[$0.key].url, reason: $0.value) }
        self.items = skipped.isEmpty ? items : readable.map { items[$0] }
        if !allowsMissingLabels {
            try SkippedImage.checkEnoughAreReadable(of: items, readable: self.items, skipped: skipped, labels: labels)
        }
        // Cached images come first, so that the index decides whether an image is cached.
        cachedCount = readable.prefix { [capacity = cache.capacity] in $0 < capacity }.count
        for (index, source) in readable.prefix(cachedCount).enumerated() { cache.move(from: source, to: index) }
        self.preprocessing = preprocessing
        self.augmentation = augmentation
        order = BatchOrder(count: self.items.count, batchSize: batchSize, shuffles: shuffles, seed: seed)
        self.workers = workers
    }

    /// Returns a loader of the same images with other data augmentation; both share the cached images.
    package func with(augmentation: Augmentation?) -> BatchLoader { BatchLoader(self, augmentation) }

    private init(_ other: BatchLoader, _ augmentation: Augmentation?) {
        (items, skipped, preprocessing, order) = (other.items, other.skipped, other.preprocessing, other.order)
        (workers, cache, cachedCount) = (other.workers, other.cache, other.cachedCount)
        self.augmentation = augmentation
    }

    /// The number of images of an epoch.
    package var count: Int { items.count }
    /// The number of bytes of the cached images.
    package var cachedByteCount: Int { cachedCount * bytesPerImage }

    /// Returns the batches of an epoch, starting with batch `first`.
    package func batches(epoch: Int, from first: Int = 0) -> any BatchIterator {
        LoadedBatches(self, epoch: epoch, from: first)
    }

    /// Returns the image at `index`, preprocessed and augmented for this epoch.
    package func image(at index: Int, epoch: Int) throws(ImageError) -> RasterImage {
        let image = index < cachedCount ? cache[index] : try preprocessing.prepare(items[index])
        return try augmentation?.augmented(image, at: index, epoch: epoch, seed: order.seed) ?? image
    }

    /// Whether all images are cached.
    ///
    /// Filling a batch is then fast. A background thread would slow down the threads of the caller by more than it saves, so the
    /// caller waits instead.
    var cachesAll: Bool { cachedCount == count }

    /// Returns the rows of a batch that this process fills.
    func ownRows(of count: Int) -> Range<Int> { workers.processes?.part(of: count).images ?? 0..<count }

    /// The processes that share the work; nil for a single one.
    var processes: ProcessGroup? { workers.processes }

    var bytesPerImage: Int { preprocessing.width * preprocessing.height * preprocessing.channels }
    var bytesPerBatch: Int { bytesPerImage * min(order.batchSize, count) }

    /// Whether one of the images has become unreadable.
    func haveBecomeUnreadable(_ indices: [Int]) -> Bool {
        unreadable.withLock { unreadable in indices.contains { unreadable[$0] != nil } }
    }

    /// Records that another process cannot read an image.
    func recordUnreadable(_ index: Int) {
        unreadable.withLock { unreadable in
            unreadable[index] = unreadable[index] ?? .unreadableInAnotherProcess(items[index].url)
        }
    }

    /// Fills `samples` with the images at `indices`, and returns which images were read and which are unreadable.
    ///
    /// The readable images are packed at the start, in order.
    /// - Parameter rows: The rows to fill; the content of the others is undefined.
    func fill(
        _ samples: UnsafeMutableBufferPointer<UInt8>, _ indices: [Int], rows: Range<Int>, epoch: Int
    ) -> (filled: [Int], unreadable: [SkippedImage]) {
        let known = unreadable.withLock { $0 }
        let failures = Mutex<[Int: ImageError]>([:])
        workers.parallelForEach(rows.count) { offset, _ in
            let row = rows.lowerBound + offset
            do throws(ImageError) {
                if let reason = known[indices[row]] { throw reason }
                let image = try image(at: indices[row], epoch: epoch)
                let range = (row * bytesPerImage)..<((row + 1) * bytesPerImage)
                _ = UnsafeMutableBufferPointer(rebasing: samples[range]).update(fromContentsOf: image.samples)
            } catch {
                failures.withLock { $0[row] = error }
            }
        }
        let failed = failures.withLock { $0 }
        if failed.isEmpty { return (indices, []) }
        var filled: [Int] = []
        for (row, index) in indices.enumerated() where failed[row] == nil {
            if let base = samples.baseAddress {
                (base + filled.count * bytesPerImage).update(from: base + row * bytesPerImage, count: bytesPerImage)
            }
            filled.append(index)
        }
        unreadable.withLock { unreadable in for (row, reason) in failed { unreadable[indices[row]] = reason } }
        let skipped = failed.sorted { $0.key < $1.key }
        return (filled, skipped.map { SkippedImage(url: items[indices[$0.key]].url, reason: $0.value) })
    }

    /// Reads all images, caches as many as fit, and returns the errors of the unreadable images by index.
    private static func read(
        _ items: [TrainingPhoto], _ preprocessing: Preprocessing, workers: Workers, into cache: ImageStore,
        onRead: (Int) -> Void
    ) -> [Int: ImageError] {
        let failures = Mutex<[Int: ImageError]>([:])
        func read(_ index: Int) {
            do throws(ImageError) {
                let image = try preprocessing.prepare(items[index])
                if index < cache.capacity { cache[index] = image }
            } catch {
                failures.withLock { $0[index] = error }
            }
        }
        guard let processes = workers.processes else {
            _ = workers.parallelMap(items.count, onProgress: onRead) { read($0) }
            return failures.withLock { $0 }
        }
        // Each process reads its share of every group of images, and the processes exchange the cached ones.
        for start in stride(from: 0, to: items.count, by: groupSize) {
            let group = start..<min(start + groupSize, items.count)
            func share(_ rank: Int) -> Range<Int> {
                let share = chunkRange(rank, of: processes.count, total: group.count)
                return (start + share.lowerBound)..<(start + share.upperBound)
            }
            let own = share(processes.rank)
            workers.parallelForEach(own.count) { offset, _ in read(own.lowerBound + offset) }
            cache.allGather(processes, share: share)
            let isUnreadable = failures.withLock { failures in group.map { failures[$0] == nil ? 0 : 1 as UInt8 } }
            for (rank, flags) in processes.allGather(isUnreadable).enumerated() {
                for index in share(rank) where flags[index - start] != 0 && !own.contains(index) {
                    // Reading the photo here gives the reason, or shows that only the other process cannot read it.
                    read(index)
                    failures.withLock { failures in
                        failures[index] = failures[index] ?? .unreadableInAnotherProcess(items[index].url)
                    }
                }
            }
            onRead(group.upperBound)
        }
        return failures.withLock { $0 }
    }

    /// The number of images after which processes exchange what they have read.
    private static let groupSize = 512
}
