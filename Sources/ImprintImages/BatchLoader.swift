internal import Dispatch
public import Foundation
public import ImprintCore
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
}

/// Some images as a network reads them, with their labels; valid only inside the closure that it is passed to.
public struct Batch {
    /// [count, height, width, channels].
    public let values: UnsafeBufferPointer<Float>
    /// The label of each image.
    public let labels: [Int]
    /// The place of each image among the loader's items.
    public let places: [Int]
    /// The number of images.
    public var count: Int { labels.count }
}

/// Gives the images of a data set in batches, epoch after epoch.
///
/// Every image is read once at the start: what cannot be read is left out and listed. Prepared images are kept, 8 bits a
/// sample, as far as the memory limit goes; the others are read again in every epoch. While the caller works on one batch,
/// the next is prepared in the background. Order and content follow from the seed alone.
public final class BatchLoader: Sendable {
    /// The images that can be read.
    public let items: [ImageFolder.Item]
    /// The images that were left out.
    public let skipped: [SkippedImage]
    private let preprocessing: Preprocessing
    private let augmentation: Augmentation?
    private let batchSize: Int
    private let shuffles: Bool
    private let seed: UInt64
    private let workers: Workers
    /// The prepared images, for the first so many items.
    private let kept: [Image]

    /// Reads all images.
    /// - Parameters:
    ///   - items: The images.
    ///   - labels: The names of the labels, for messages.
    ///   - preprocessing: How they are prepared.
    ///   - augmentation: How they are varied; not at all where `nil`.
    ///   - batchSize: How many images a batch has; the last one of an epoch may have fewer.
    ///   - shuffles: Whether each epoch has an order of its own.
    ///   - seed: What order and variations follow from.
    ///   - workers: The threads that share the reading.
    ///   - memoryLimit: How many bytes of prepared images are kept.
    /// - Throws: `ImageError` where more than half of the images, or all of a label, cannot be read.
    public init(
        items: [ImageFolder.Item], labels: [String], preprocessing: Preprocessing, augmentation: Augmentation? = nil,
        batchSize: Int, shuffles: Bool, seed: UInt64, workers: Workers, memoryLimit: Int = 1 << 29
    ) throws(ImageError) {
        precondition(batchSize >= 1, "a batch has at least one image, not \(batchSize)")
        let bytes = preprocessing.width * preprocessing.height * preprocessing.channels
        let (readable, skipped) = Self.read(
            items, preprocessing, workers: workers, keeping: max(memoryLimit, 0) / bytes)
        self.items = readable.map(\.item)
        try Self.check(items: items, readableItems: self.items, skipped: skipped, labels: labels)
        self.skipped = skipped
        // Only the first images may be kept, so that a place tells whether one is.
        kept = readable.prefix { $0.image != nil }.compactMap(\.image)
        self.preprocessing = preprocessing
        self.augmentation = augmentation
        self.batchSize = batchSize
        self.shuffles = shuffles
        self.seed = seed
        self.workers = workers
    }

    /// The number of images of an epoch.
    public var count: Int { items.count }

    /// Calls `body` with every batch of an epoch until it returns `false`.
    /// - Throws: `ImageError` where an image can no longer be read, and what `body` throws.
    public func forEachBatch(epoch: Int, _ body: (Batch) throws -> Bool) throws {
        var stream = RandomStream(seed: seed, "shuffle", epoch)
        let order = shuffles ? stream.permutation(of: count) : Array(0..<count)
        let batches = (count + batchSize - 1) / batchSize
        guard batches > 0 else { return }
        // The caller reads one buffer while the other is filled.
        let buffers = [BatchBuffer(self), BatchBuffer(self)]
        // A caller that stops early may remove the files next, so nothing reads on after the return.
        defer { for buffer in buffers { buffer.finish() } }
        func start(_ batch: Int) {
            let places = Array(order[(batch * batchSize)..<min((batch + 1) * batchSize, count)])
            buffers[batch % 2].startFilling(places, epoch: epoch)
        }
        start(0)
        for batch in 0..<batches {
            let values = try buffers[batch % 2].wait()
            if batch + 1 < batches { start(batch + 1) }
            let places = buffers[batch % 2].places
            guard try body(Batch(values: values, labels: places.map { items[$0].label }, places: places)) else {
                return
            }
        }
    }

    /// The image at a place, prepared and varied, as this epoch shows it.
    public func image(at place: Int, epoch: Int) throws(ImageError) -> Image {
        let image = place < kept.count ? kept[place] : try preprocessing.prepare(items[place].url)
        guard let augmentation else { return image }
        var stream = RandomStream(seed: seed, "augmentation", epoch, place)
        return augmentation.apply(to: image, using: &stream)
    }

    fileprivate var valuesPerImage: Int { preprocessing.width * preprocessing.height * preprocessing.channels }
    fileprivate var valuesPerBatch: Int { valuesPerImage * min(batchSize, count) }

    /// Fills `values` with the images at `places`.
    fileprivate func fill(
        _ values: UnsafeMutableBufferPointer<Float>, _ places: [Int], epoch: Int
    ) throws(ImageError) {
        let failures = Mutex<[Int: ImageError]>([:])
        // Kept images take so little time that a second thread would rather be in the way of the training.
        let fillers = kept.count == count ? Workers(1) : workers
        fillers.forEach(places.count) { index, _ in
            do throws(ImageError) {
                let image = try image(at: places[index], epoch: epoch)
                let range = (index * valuesPerImage)..<((index + 1) * valuesPerImage)
                preprocessing.normalize(image, into: UnsafeMutableBufferPointer(rebasing: values[range]))
            } catch {
                failures.withLock { $0[index] = error }
            }
        }
        if let first = failures.withLock({ $0.min { $0.key < $1.key } }) { throw first.value }
    }

    private typealias Read = (item: ImageFolder.Item, image: Image?)

    private static func read(
        _ items: [ImageFolder.Item], _ preprocessing: Preprocessing, workers: Workers, keeping limit: Int
    ) -> (readable: [Read], skipped: [SkippedImage]) {
        let outcomes = Mutex([Result<Image?, ImageError>?](repeating: nil, count: items.count))
        workers.forEach(items.count) { place, _ in
            let outcome = Result { () throws(ImageError) -> Image? in
                let image = try preprocessing.prepare(items[place].url)
                return place < limit ? image : nil
            }
            outcomes.withLock { $0[place] = outcome }
        }
        var readable: [Read] = []
        var skipped: [SkippedImage] = []
        for (item, outcome) in zip(items, outcomes.withLock { $0 }) {
            switch outcome {
            case .success(let image): readable.append((item, image))
            case .failure(let error): skipped.append(SkippedImage(url: item.url, reason: error))
            case nil: preconditionFailure("\(item.url.path) was not read")
            }
        }
        return (readable, skipped)
    }

    private static func check(
        items: [ImageFolder.Item], readableItems: [ImageFolder.Item], skipped: [SkippedImage], labels: [String]
    ) throws(ImageError) {
        let readable = Set(readableItems.map(\.label))
        if let lost = items.map(\.label).filter({ !readable.contains($0) }).min() {
            let files = Set(items.filter { $0.label == lost }.map(\.url))
            throw .noReadableImages(label: labels[lost], skipped: skipped.filter { files.contains($0.url) })
        }
        if 2 * skipped.count > items.count { throw .tooManyUnreadable(images: items.count, skipped: skipped) }
    }
}

/// One of the two buffers that batches are prepared in.
private final class BatchBuffer: @unchecked Sendable {
    private(set) var places: [Int] = []
    private let loader: BatchLoader
    private let values: UnsafeMutableBufferPointer<Float>
    private let filling = DispatchGroup()
    private var failure: ImageError?

    init(_ loader: BatchLoader) {
        self.loader = loader
        values = .allocate(capacity: loader.valuesPerBatch)
        values.initialize(repeating: 0)
    }

    deinit { values.deallocate() }

    func startFilling(_ places: [Int], epoch: Int) {
        self.places = places
        DispatchQueue.global(qos: .userInitiated).async(group: filling) { [self] in
            failure = nil
            do throws(ImageError) { try loader.fill(values, places, epoch: epoch) } catch { failure = error }
        }
    }

    /// Returns when nothing is being filled in any more.
    func finish() { filling.wait() }

    func wait() throws(ImageError) -> UnsafeBufferPointer<Float> {
        finish()
        if let failure { throw failure }
        return UnsafeBufferPointer(rebasing: values[..<(places.count * loader.valuesPerImage)])
    }
}
