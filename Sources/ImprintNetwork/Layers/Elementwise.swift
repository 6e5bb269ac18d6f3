internal import CImprintKernels
internal import ImprintCore

extension Worker {
    /// Runs `body` over chunks of `0..<count` that are large enough to be shared among threads; see `LayerContext.parallelFor(_:_:)`.
    func parallelFor(_ count: Int, _ body: (Range<Int>) -> Void) {
        let chunks = max(1, count / (1 << 15))
        forEachChunk(chunks) { chunk in body(chunkRange(chunk, of: chunks, total: count)) }
    }
}

/// Runs `body` over chunks of the rows of a matrix that are large enough to be shared among threads.
func forEachRows(_ rows: Int, _ elementsPerRow: Int, _ worker: Worker, _ body: (Range<Int>) -> Void) {
    let chunks = min(rows, max(1, rows * elementsPerRow / (1 << 16)))
    worker.forEachChunk(chunks) { chunk in body(chunkRange(chunk, of: chunks, total: rows)) }
}

extension LayerContext {
    /// Copies `from` to `to`; does nothing if they are the same memory.
    func copy(_ from: UnsafePointer<Float>, to: UnsafeMutablePointer<Float>, count: Int) {
        guard from != UnsafePointer(to) else { return }
        parallelFor(count) { range in
            (to + range.lowerBound).update(from: from + range.lowerBound, count: range.count)
        }
    }
}

/// Adds `from` to `to` for `count` images.
func addRows(
    _ from: UnsafePointer<Float>, to: UnsafeMutablePointer<Float>, count: Int, countPerImage: Int, worker: Worker
) {
    worker.parallelFor(count * countPerImage) { range in
        imprint_add(to + range.lowerBound, from + range.lowerBound, to + range.lowerBound, range.count)
    }
}

/// A sum over the rows of all images for each channel, as a tree over the images (`ImageSum`).
struct ChannelReduction {
    let channels: Int
    let rowsPerImage: Int

    /// The number of leaves; fewer for many channels, which need much memory and which threads can share.
    private static func leaves(_ channels: Int) -> Int {
        channels <= 1 << 12 ? ImageSum.sharedLeaves : ImageSum.mostLeavesPerThread
    }

    static func scratchByteCount(channels: Int) -> Int { leaves(channels) * channels * MemoryLayout<Double>.stride }

    /// Calls `sum(rows, sums)` for every leaf that has images, and returns the sum of all leaves, in the scratch memory.
    func run(
        _ context: LayerContext, _ sum: (_ rows: Range<Int>, _ sums: UnsafeMutablePointer<Double>) -> Void
    ) -> UnsafePointer<Double> {
        run(context, channelBlocks: 1) { rows, _, sums in sum(rows, sums) }
    }

    /// Calls `sum(rows, channels, sums)` for every leaf that has images and for all channels, and returns the sum of all leaves, in the scratch
    /// memory.
    ///
    /// If the batch has fewer images than leaves, threads also share the channels of a leaf. The sum of a channel must not depend on the other
    /// channels of a call.
    func runByChannels(
        _ context: LayerContext,
        _ sum: (_ rows: Range<Int>, _ channels: Range<Int>, _ sums: UnsafeMutablePointer<Double>) -> Void
    ) -> UnsafePointer<Double> {
        run(context, channelBlocks: channelBlocks(images: context.part.total), sum)
    }

    /// The number of parts of a leaf's channels: with more, a part would be smaller than a cache line, or take less time than its start.
    func channelBlocks(images: Int) -> Int {
        let leaves = Self.leaves(channels)
        guard (1..<leaves).contains(images) else { return 1 }
        let most = min((channels + 15) / 16, rowsPerImage * channels / (1 << 14))
        return max(1, min((leaves + images - 1) / images, most))
    }

    private func run(
        _ context: LayerContext, channelBlocks blocks: Int,
        _ sum: (_ rows: Range<Int>, _ channels: Range<Int>, _ sums: UnsafeMutablePointer<Double>) -> Void
    ) -> UnsafePointer<Double> {
        let (worker, sums) = (context.worker, context.scratch.assumingMemoryBound(to: Double.self))
        let tree = ImageSum(leaves: Self.leaves(channels), of: context.part)
        worker.forEachChunk(tree.leaves * blocks) { chunk in
            let (leaf, block) = chunk.quotientAndRemainder(dividingBy: blocks)
            let (images, part) = (tree.images(leaf), chunkRange(block, of: blocks, total: channels))
            let target = sums + leaf * channels + part.lowerBound
            if images.isEmpty {
                target.update(repeating: 0, count: part.count)
            } else {
                sum((images.lowerBound * rowsPerImage)..<(images.upperBound * rowsPerImage), part, target)
            }
        }
        worker.parallelFor(channels * tree.leaves) { range in
            let some = (range.lowerBound / tree.leaves)..<(range.upperBound / tree.leaves)
            var distance = 1
            while distance < tree.leaves {
                for left in stride(from: 0, to: tree.leaves, by: 2 * distance) {
                    let (target, other) = (sums + left * channels, sums + (left + distance) * channels)
                    for channel in some { target[channel] += other[channel] }
                }
                distance *= 2
            }
        }
        context.allReduce(sums, count: channels)
        return UnsafePointer(sums)
    }
}
