internal import Foundation
internal import ImprintCore

/// The batches of one epoch, in order.
package protocol BatchIterator: AnyObject {
    /// Returns the next batch; nil at the end of the epoch.
    ///
    /// A batch is valid until the next call. An image that has become unreadable is missing from its batch and reported to
    /// `onUnreadable`. Empty batches are skipped.
    /// - Throws: `ImageError` if more than half of the images are unreadable.
    func next(onUnreadable: (SkippedImage) -> Void) throws(ImageError) -> Batch?
}

/// A source of batches: preprocessed images, or their features.
package protocol BatchSource {
    /// The images.
    var items: [TrainingPhoto] { get }
    /// The unreadable images.
    var skipped: [SkippedImage] { get }
    /// Returns the batches of an epoch, starting with batch `first`.
    func batches(epoch: Int, from first: Int) -> any BatchIterator
}

extension BatchSource {
    /// The number of images of an epoch.
    package var count: Int { items.count }

    /// Calls `body` with each batch of an epoch.
    /// - Throws: `ImageError` if more than half of the images are unreadable, and the errors of `body`.
    package func forEachBatch(
        epoch: Int, onUnreadable: (SkippedImage) -> Void, _ body: (Batch) throws -> Void
    ) throws {
        let batches = batches(epoch: epoch, from: 0)
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
        if !loader.cachesAll && index < batches.count { start(index) }
    }

    // A caller that stops early may remove the files next, so reading must end here.
    deinit { for buffer in buffers { buffer.finish() } }

    private func start(_ batch: Int) {
        buffers[batch % 2].startFilling(Array(batches[batch]), epoch: epoch, ahead: !loader.cachesAll)
    }

    func next(onUnreadable: (SkippedImage) -> Void) throws(ImageError) -> Batch? {
        while index < batches.count {
            let batch = index
            index += 1
            if loader.cachesAll { start(batch) }
            let buffer = buffers[batch % 2]
            let samples = buffer.wait(epoch: epoch)
            if !loader.cachesAll && index < batches.count { start(index) }
            let indices = buffer.indices
            for image in buffer.unreadable {
                onUnreadable(image)
                unreadableCount += 1
                if SkippedImage.areTooMany(unreadableCount, of: loader.count) { throw image.reason }
            }
            if indices.isEmpty { continue }
            return Batch(index: batch, labelSets: indices.map { loader.items[$0].labels }, indices: indices) {
                [loader, buffer] values in
                let rows = loader.ownRows(of: indices.count)
                let own = (rows.lowerBound * loader.bytesPerImage)..<(rows.upperBound * loader.bytesPerImage)
                // The caller may have released the iterator, which owns the memory of the samples.
                withExtendedLifetime(buffer) {
                    loader.preprocessing.normalize(
                        UnsafeBufferPointer(rebasing: samples[own]),
                        into: UnsafeMutableBufferPointer(rebasing: values[own]))
                }
            }
        }
        return nil
    }
}

/// One of the two buffers of a double-buffered loader.
private final class BatchBuffer: @unchecked Sendable {
    /// The indices of the images in the buffer.
    private(set) var indices: [Int] = []
    /// The images of the batch that cannot be read.
    private(set) var unreadable: [SkippedImage] = []
    private let loader: BatchLoader
    private let samples: UnsafeMutableBufferPointer<UInt8>
    /// The indices of the images that the batch should have.
    private var wanted: [Int] = []
    /// Whether this process has filled only its rows.
    private var isDivided = false
    private let filling = DispatchGroup()

    init(_ loader: BatchLoader) {
        self.loader = loader
        samples = .allocate(capacity: loader.bytesPerBatch)
        samples.initialize(repeating: 0)
    }

    deinit { samples.deallocate() }

    /// Fills the buffer, in the background if `ahead` is true.
    func startFilling(_ indices: [Int], epoch: Int, ahead: Bool) {
        guard ahead else { return fill(indices, epoch: epoch) }
        DispatchQueue.global(qos: .userInitiated).async(group: filling) { self.fill(indices, epoch: epoch) }
    }

    /// Fills the buffer.
    /// - Parameter divides: Whether several processes share the work.
    private func fill(_ indices: [Int], epoch: Int, divides: Bool = true) {
        wanted = indices
        // Without an image, the rows of the others move. Each process then reads all images.
        isDivided = divides && loader.processes != nil && !loader.haveBecomeUnreadable(indices)
        let rows = isDivided ? loader.ownRows(of: indices.count) : 0..<indices.count
        (self.indices, unreadable) = loader.fill(samples, indices, rows: rows, epoch: epoch)
    }

    /// Waits until the buffer is filled.
    func finish() { filling.wait() }

    /// Repeats filling until all processes have the same images: without any that one of them cannot read.
    private func agree(_ processes: ProcessGroup, epoch: Int) {
        while true {
            let missing = Set(wanted).subtracting(indices)
            // A process that already knows an unreadable image reads the whole batch; the others may read only their part. With the flag, all
            // processes repeat the exchange equally often.
            let own: [UInt8] = wanted.map { missing.contains($0) ? 1 : 0 } + [isDivided ? 1 : 0]
            let flags = processes.allGather(own)
            let unreadable = wanted.indices.filter { row in flags.contains { $0[row] != 0 } }
            let haveSameImages = flags[0].last == 0 && flags.allSatisfy { $0 == flags[0] }
            if unreadable.isEmpty || haveSameImages { return }
            // First, all processes try to read these images, for the reason.
            if !isDivided { for row in unreadable { loader.recordUnreadable(wanted[row]) } }
            fill(wanted, epoch: epoch, divides: false)
        }
    }

    /// Waits until the buffer is filled, in all processes.
    func wait(epoch: Int) -> UnsafeBufferPointer<UInt8> {
        finish()
        if let processes = loader.processes { agree(processes, epoch: epoch) }
        return UnsafeBufferPointer(rebasing: samples[..<(indices.count * loader.bytesPerImage)])
    }
}
