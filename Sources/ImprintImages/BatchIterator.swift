internal import Foundation

/// The batches of one epoch, in order.
package protocol BatchIterator: AnyObject {
    /// The next batch; nil at the end of the epoch. A batch is valid until the next call.
    ///
    /// An image that can no longer be read is missing from its batch and reported to `onUnreadable`; a batch without images is left out.
    /// - Throws: `ImageError` if more than half of the images can no longer be read.
    func next(onUnreadable: (SkippedImage) -> Void) throws(ImageError) -> Batch?
}

/// A source of batches: prepared images, or their features.
package protocol BatchSource {
    /// The images.
    var items: [ImageFolder.Item] { get }
    /// The images that were left out.
    var skipped: [SkippedImage] { get }
    /// The batches of an epoch, from batch `first` on.
    func batches(epoch: Int, from first: Int) -> any BatchIterator
}

extension BatchSource {
    /// The number of images of an epoch.
    package var count: Int { items.count }

    /// Calls `body` with each batch of an epoch.
    /// - Throws: `ImageError` if more than half of the images can no longer be read, and what `body` throws.
    package func forEachBatch(
        epoch: Int, from first: Int = 0, onUnreadable: (SkippedImage) -> Void, _ body: (Batch) throws -> Void
    ) throws {
        let batches = batches(epoch: epoch, from: first)
        while let batch = try batches.next(onUnreadable: onUnreadable) { try body(batch) }
    }
}

extension BatchLoader: BatchSource {}

/// The batches of a loader: it fills one buffer while the caller reads the other.
final class LoadedBatches: BatchIterator {
    private let loader: BatchLoader
    private let epoch: Int
    private let batches: [ArraySlice<Int>]
    private let buffers: [BatchBuffer]
    private var index: Int
    private var unreadableCount = 0

    init(_ loader: BatchLoader, epoch: Int, from first: Int) {
        self.loader = loader
        self.epoch = epoch
        batches = Array(loader.order.batches(epoch: epoch))
        buffers = [BatchBuffer(loader), BatchBuffer(loader)]
        index = first
        if !loader.keepsAll && index < batches.count { start(index) }
    }

    // A caller that stops early may remove the files next, so nothing reads on afterwards.
    deinit { for buffer in buffers { buffer.finish() } }

    private func start(_ batch: Int) {
        buffers[batch % 2].startFilling(Array(batches[batch]), epoch: epoch, ahead: !loader.keepsAll)
    }

    func next(onUnreadable: (SkippedImage) -> Void) throws(ImageError) -> Batch? {
        while index < batches.count {
            let batch = index
            index += 1
            if loader.keepsAll { start(batch) }
            let samples = buffers[batch % 2].wait()
            if !loader.keepsAll && index < batches.count { start(index) }
            let places = buffers[batch % 2].places
            for image in buffers[batch % 2].lost {
                onUnreadable(image)
                unreadableCount += 1
                if 2 * unreadableCount > loader.count { throw image.reason }
            }
            if places.isEmpty { continue }
            return Batch(index: batch, labels: places.map { loader.items[$0].label }, places: places) {
                [preprocessing = loader.preprocessing] in
                preprocessing.normalize(samples, into: $0)
            }
        }
        return nil
    }
}

/// One of the two buffers that batches are prepared in.
private final class BatchBuffer: @unchecked Sendable {
    /// The images that the buffer holds, and those that it should hold besides but could not be read.
    private(set) var places: [Int] = []
    private(set) var lost: [SkippedImage] = []
    private let loader: BatchLoader
    private let samples: UnsafeMutableBufferPointer<UInt8>
    private let filling = DispatchGroup()

    init(_ loader: BatchLoader) {
        self.loader = loader
        samples = .allocate(capacity: loader.bytesPerBatch)
        samples.initialize(repeating: 0)
    }

    deinit { samples.deallocate() }

    /// Fills the buffer, in the background where that is to be ahead of its use.
    func startFilling(_ places: [Int], epoch: Int, ahead: Bool) {
        guard ahead else { return fill(places, epoch: epoch) }
        DispatchQueue.global(qos: .userInitiated).async(group: filling) { self.fill(places, epoch: epoch) }
    }

    private func fill(_ places: [Int], epoch: Int) {
        (self.places, lost) = loader.fill(samples, places, epoch: epoch)
    }

    /// Returns when nothing is being filled in any more.
    func finish() { filling.wait() }

    func wait() -> UnsafeBufferPointer<UInt8> {
        finish()
        return UnsafeBufferPointer(rebasing: samples[..<(places.count * loader.bytesPerImage)])
    }
}
