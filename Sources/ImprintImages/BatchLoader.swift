internal import Dispatch
public import Foundation
package import ImprintCore
internal import Synchronization

/// An image that was left out, and why.
public struct SkippedImage: Sendable, Equatable {
    /// The file.
    public let url: URL
    /// What is wrong with it.
    public let reason: ImageError

    /// Makes a note of an image that was left out.
    public init(url: URL, reason: ImageError) {
        self.url = url
        self.reason = reason
    }

    /// Checks that no label has lost all of its images, and that at least half of all images are left.
    package static func checkEnoughIsLeft(
        of items: [ImageFolder.Item], readable: [ImageFolder.Item], skipped: [SkippedImage], labels: [String]
    ) throws(ImageError) {
        let left = Set(readable.map(\.label))
        if let lost = items.map(\.label).filter({ !left.contains($0) }).min() {
            let files = Set(items.filter { $0.label == lost }.map(\.url))
            throw .noReadableImages(label: labels[lost], skipped: skipped.filter { files.contains($0.url) })
        }
        if 2 * skipped.count > items.count { throw .tooManyUnreadable(images: items.count, skipped: skipped) }
    }
}

/// Some images with their labels; valid only inside the closure that it is passed to.
package struct Batch {
    /// Its place in the epoch, from 0.
    package let index: Int
    /// The label of each image.
    package let labels: [Int]
    /// The place of each image among the loader's items.
    package let places: [Int]
    /// The number of images.
    package var count: Int { labels.count }
    private let writing: (UnsafeMutableBufferPointer<Float>) -> Void

    /// Makes a batch whose images `writing` writes.
    package init(
        index: Int, labels: [Int], places: [Int], writing: @escaping (UnsafeMutableBufferPointer<Float>) -> Void
    ) {
        self.index = index
        self.labels = labels
        self.places = places
        self.writing = writing
    }

    /// Writes the images as a network reads them: [count, height, width, channels].
    ///
    /// `values` has room for all of them; what is beyond stays as it is.
    package func write(to values: UnsafeMutableBufferPointer<Float>) { writing(values) }
}

/// How epochs go through images in batches: each in an order of its own, or in that of their places.
package struct BatchOrder: Sendable {
    /// The number of images.
    package let count: Int
    /// How many images a batch has; the last one of an epoch may have fewer.
    package let batchSize: Int
    /// Whether each epoch has an order of its own.
    package let shuffles: Bool
    /// What these orders follow from.
    package let seed: UInt64

    package init(count: Int, batchSize: Int, shuffles: Bool, seed: UInt64) {
        precondition(batchSize >= 1, "a batch has at least one image, not \(batchSize)")
        self.count = count
        self.batchSize = batchSize
        self.shuffles = shuffles
        self.seed = seed
    }

    /// The same for another number of images.
    package func with(count: Int) -> BatchOrder {
        BatchOrder(count: count, batchSize: batchSize, shuffles: shuffles, seed: seed)
    }

    /// The places of the images in each batch of an epoch.
    package func batches(epoch: Int) -> [ArraySlice<Int>] {
        var stream = RandomStream(seed: seed, "shuffle", epoch)
        let order = shuffles ? stream.permutation(of: count) : Array(0..<count)
        return stride(from: 0, to: count, by: batchSize).map { order[$0..<min($0 + batchSize, count)] }
    }
}

/// Gives the images of a data set in batches, epoch after epoch.
///
/// Every image is read once at the start: what cannot be read is left out and listed. Prepared images are kept in one block,
/// 8 bits a sample, as far as the memory limit goes; the others are read again in every epoch, which goes on without those
/// that can no longer be read. While the caller works on one batch, the next is read in the background. Order and
/// content follow from the seed alone.
package final class BatchLoader: Sendable {
    /// The images that can be read.
    package let items: [ImageFolder.Item]
    /// The images that were left out.
    package let skipped: [SkippedImage]
    let preprocessing: Preprocessing
    private let augmentation: Augmentation?
    /// How epochs go through the images.
    package let order: BatchOrder
    private let workers: Workers
    /// The prepared images of the first `keptCount` items.
    private let kept: ImageStore
    private let keptCount: Int
    /// The images that an epoch could not read any more, by their place: no later epoch reads them, so that what is measured on the rest compares.
    private let vanished = Mutex<[Int: ImageError]>([:])

    /// Reads all images.
    /// - Parameters:
    ///   - items: The images.
    ///   - labels: The names of the labels, for messages.
    ///   - preprocessing: How they are prepared.
    ///   - augmentation: How they are varied; not at all if nil.
    ///   - batchSize: How many images a batch has; the last one of an epoch may have fewer.
    ///   - shuffles: Whether each epoch has an order of its own.
    ///   - seed: What order and variations follow from.
    ///   - workers: The threads that share the reading.
    ///   - mayLoseLabels: Whether it does no harm where most images, or all of a label, cannot be read, as in a small part of
    ///     a folder that is held out.
    ///   - memoryLimit: How many bytes of prepared images are kept; half of the memory that is available if nil.
    ///   - onRead: Told now and then how many images have been read.
    /// - Throws: `ImageError` if more than half of the images, or all of a label, cannot be read and must be.
    package init(
        items: [ImageFolder.Item], labels: [String], preprocessing: Preprocessing, augmentation: Augmentation? = nil,
        batchSize: Int, shuffles: Bool, seed: UInt64, workers: Workers, mayLoseLabels: Bool = false,
        memoryLimit: Int? = nil, onRead: (Int) -> Void = { _ in }
    ) throws(ImageError) {
        kept = ImageStore(
            count: items.count, of: preprocessing, memoryLimit: memoryLimit ?? SystemMemory.available / 2)
        let failures = Self.read(items, preprocessing, workers: workers, into: kept, onRead: onRead)
        let readable = items.indices.filter { failures[$0] == nil }
        skipped = failures.sorted { $0.key < $1.key }.map { SkippedImage(url: items[$0.key].url, reason: $0.value) }
        self.items = skipped.isEmpty ? items : readable.map { items[$0] }
        if !mayLoseLabels {
            try SkippedImage.checkEnoughIsLeft(of: items, readable: self.items, skipped: skipped, labels: labels)
        }
        // Those kept stand together at the start, so that a place tells whether one is.
        keptCount = readable.prefix { [capacity = kept.capacity] in $0 < capacity }.count
        for (place, read) in readable.prefix(keptCount).enumerated() { kept.move(from: read, to: place) }
        self.preprocessing = preprocessing
        self.augmentation = augmentation
        order = BatchOrder(count: self.items.count, batchSize: batchSize, shuffles: shuffles, seed: seed)
        self.workers = workers
    }

    /// The number of images of an epoch.
    package var count: Int { items.count }
    /// The bytes of the prepared images that are kept.
    package var keptByteCount: Int { keptCount * bytesPerImage }

    /// The batches of an epoch, from batch `first` on.
    package func batches(epoch: Int, from first: Int = 0) -> any BatchIterator {
        LoadedBatches(self, epoch: epoch, from: first)
    }

    /// The image at a place, prepared and varied, as this epoch shows it.
    package func image(at place: Int, epoch: Int) throws(ImageError) -> RasterImage {
        let image = place < keptCount ? kept[place] : try preprocessing.prepare(items[place].url)
        return try augmentation?.variation(of: image, at: place, epoch: epoch, seed: order.seed) ?? image
    }

    /// Whether no image has to be read again.
    ///
    /// Then a batch takes so little time that another thread, beside those of the caller, would hold these up for longer: the
    /// caller waits for it instead.
    var keepsAll: Bool { keptCount == count }

    var bytesPerImage: Int { preprocessing.width * preprocessing.height * preprocessing.channels }
    var bytesPerBatch: Int { bytesPerImage * min(order.batchSize, count) }

    /// Fills `samples` with the images at `places`, and tells which of them could not be read.
    ///
    /// The images that can be read stand together at the start, in order.
    func fill(
        _ samples: UnsafeMutableBufferPointer<UInt8>, _ places: [Int], epoch: Int
    ) -> (filled: [Int], lost: [SkippedImage]) {
        let known = vanished.withLock { $0 }
        let failures = Mutex<[Int: ImageError]>([:])
        workers.parallelForEach(places.count) { index, _ in
            do throws(ImageError) {
                if let reason = known[places[index]] { throw reason }
                let image = try image(at: places[index], epoch: epoch)
                let range = (index * bytesPerImage)..<((index + 1) * bytesPerImage)
                _ = UnsafeMutableBufferPointer(rebasing: samples[range]).update(fromContentsOf: image.samples)
            } catch {
                failures.withLock { $0[index] = error }
            }
        }
        let failed = failures.withLock { $0 }
        if failed.isEmpty { return (places, []) }
        var filled: [Int] = []
        for (index, place) in places.enumerated() where failed[index] == nil {
            if let base = samples.baseAddress {
                (base + filled.count * bytesPerImage).update(from: base + index * bytesPerImage, count: bytesPerImage)
            }
            filled.append(place)
        }
        vanished.withLock { vanished in for (index, reason) in failed { vanished[places[index]] = reason } }
        let lost = failed.sorted { $0.key < $1.key }
        return (filled, lost.map { SkippedImage(url: items[places[$0.key]].url, reason: $0.value) })
    }

    /// Reads all images, keeps the first of them, and gives the errors of those that cannot be read by their places.
    private static func read(
        _ items: [ImageFolder.Item], _ preprocessing: Preprocessing, workers: Workers, into kept: ImageStore,
        onRead: (Int) -> Void
    ) -> [Int: ImageError] {
        let failures = Mutex<[Int: ImageError]>([:])
        _ = workers.parallelMap(items.count, onProgress: onRead) { place in
            do throws(ImageError) {
                let image = try preprocessing.prepare(items[place].url)
                if place < kept.capacity { kept[place] = image }
            } catch {
                failures.withLock { $0[place] = error }
            }
        }
        return failures.withLock { $0 }
    }
}
