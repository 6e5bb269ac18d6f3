internal import CImprintKernels
internal import ImprintCore

/// A sum over the images of a batch, as a fixed binary tree over consecutive parts of the batch, the leaves.
///
/// The result of a float sum depends on the order of the additions. Here, the order depends only on the batch size, so the result is
/// bitwise reproducible for any number of threads. A subtree is the sum over its images, for example over the first half of the batch.
/// Each process computes the subtree of its part of the batch; `LayerContext.allReduce` then adds the subtrees.
struct ImageSum {
    /// The number of leaves of a sum whose leaves the threads share.
    static let sharedLeaves = 16
    /// The maximum number of leaves of a sum whose elements the threads share instead.
    static let mostLeavesPerThread = BatchPart.mostUnits

    /// The number of leaves of this process, a power of two.
    let leaves: Int
    private let part: BatchPart

    /// Creates the subtree of a part of the batch.
    /// - Parameter leaves: The number of leaves of the whole tree.
    init(leaves: Int, of part: BatchPart) {
        self.leaves = leaves / part.count
        self.part = part
    }

    /// Returns the number of leaves of a sum whose elements the threads share: with fewer images per leaf, adding the leaves would take
    /// longer than computing them.
    static func leavesPerThread(batch: Int) -> Int { BatchPart.units(of: batch) }

    /// The images of a leaf, counted from the first image of the part; empty for some leaves of a small batch.
    func images(_ leaf: Int) -> Range<Int> {
        let first = part.images.lowerBound
        let images = chunkRange(part.index * leaves + leaf, of: part.count * leaves, total: part.total)
        return (images.lowerBound - first)..<(images.upperBound - first)
    }

    // MARK: Leaves that threads share

    /// The number of subtrees that threads compute independently: more than threads, because another process may delay one of them.
    private static func subtrees(workers: Int, leaves: Int = sharedLeaves) -> Int {
        var count = 1
        while count < min(workers, leaves) { count *= 2 }
        return workers > 1 ? min(2 * count, leaves) : 1
    }

    /// The number of buffers for the subtrees of a tree besides the result: one per level.
    private static func levels(_ leaves: Int) -> Int { leaves.trailingZeroBitCount }

    /// The number of floats of scratch memory of `run`.
    static func scratchCount(_ count: Int, workers: Int) -> Int {
        let subtrees = subtrees(workers: workers)
        return (subtrees - 1 + workers * levels(sharedLeaves / subtrees)) * count
    }

    /// Computes a sum of `count` floats, with one leaf of `sharedLeaves` per call of `sum`.
    /// - Parameters:
    ///   - scratch: Memory for `scratchCount(_:workers:)` floats.
    ///   - sum: Writes the sum over some images.
    static func run(
        _ part: BatchPart, count: Int, into result: UnsafeMutablePointer<Float>, scratch: UnsafeMutablePointer<Float>,
        worker: Worker, _ sum: (_ images: Range<Int>, _ result: UnsafeMutablePointer<Float>) -> Void
    ) {
        let tree = ImageSum(leaves: sharedLeaves, of: part)
        let subtrees = subtrees(workers: worker.threadPool.count, leaves: tree.leaves)
        let size = tree.leaves / subtrees
        func root(_ subtree: Int) -> UnsafeMutablePointer<Float> {
            subtree == 0 ? result : scratch + (subtree - 1) * count
        }
        let buffers = scratch + (subtrees - 1 + worker.index * levels(size)) * count
        worker.forEachChunk(subtrees) { subtree in
            for index in 0..<size {
                let target = buffer(index, result: root(subtree), buffers: buffers, count: count)
                tree.write(subtree * size + index, count: count, to: target, sum)
                addCompleteSubtrees(
                    after: index, 0..<count, result: root(subtree), buffers: buffers, stride: count)
            }
        }
        worker.parallelFor(count) { range in
            var distance = 1
            while distance < subtrees {
                for left in stride(from: 0, to: subtrees, by: 2 * distance) {
                    add(root(left + distance) + range.lowerBound, to: root(left) + range.lowerBound, range.count)
                }
                distance *= 2
            }
        }
    }

    // MARK: Leaves of one thread

    /// The number of floats of the buffers of `run(_:into:buffers:_:)`.
    static func bufferCount(_ count: Int) -> Int { levels(mostLeavesPerThread) * count }

    /// Computes a sum of `count` floats on the calling thread, with one leaf per call of `sum`.
    /// - Parameter buffers: Memory for `bufferCount(_:)` floats.
    static func run(
        _ part: BatchPart, count: Int, into result: UnsafeMutablePointer<Float>, buffers: UnsafeMutablePointer<Float>,
        _ sum: (_ images: Range<Int>, _ result: UnsafeMutablePointer<Float>) -> Void
    ) {
        let tree = ImageSum(leaves: leavesPerThread(batch: part.total), of: part)
        for leaf in 0..<tree.leaves {
            tree.write(leaf, count: count, to: buffer(leaf, result: result, buffers: buffers, count: count), sum)
            addCompleteSubtrees(after: leaf, 0..<count, result: result, buffers: buffers, stride: count)
        }
    }

    private func write(
        _ leaf: Int, count: Int, to target: UnsafeMutablePointer<Float>,
        _ sum: (_ images: Range<Int>, _ result: UnsafeMutablePointer<Float>) -> Void
    ) {
        let images = images(leaf)
        if images.isEmpty { target.update(repeating: 0, count: count) } else { sum(images, target) }
    }

    // MARK: Depth first

    /// The memory for a leaf, if leaves are computed in order and complete subtrees are added at once.
    ///
    /// Before leaf i, there is one complete subtree for each bit of i.
    static func buffer(
        _ leaf: Int, result: UnsafeMutablePointer<Float>, buffers: UnsafeMutablePointer<Float>, count: Int
    ) -> UnsafeMutablePointer<Float> {
        let depth = leaf.nonzeroBitCount
        return depth == 0 ? result : buffers + (depth - 1) * count
    }

    /// Adds the pairs of subtrees that a leaf completes.
    /// - Parameters:
    ///   - range: The elements to add.
    ///   - stride: The number of floats of a buffer.
    static func addCompleteSubtrees(
        after leaf: Int, _ range: Range<Int>, result: UnsafeMutablePointer<Float>,
        buffers: UnsafeMutablePointer<Float>, stride: Int
    ) {
        var depth = leaf.nonzeroBitCount
        for _ in 0..<(~leaf).trailingZeroBitCount {
            let left = depth == 1 ? result : buffers + (depth - 2) * stride
            add(buffers + (depth - 1) * stride + range.lowerBound, to: left + range.lowerBound, range.count)
            depth -= 1
        }
    }

    private static func add(_ right: UnsafePointer<Float>, to left: UnsafeMutablePointer<Float>, _ count: Int) {
        imprint_add(left, right, left, count)
    }
}
