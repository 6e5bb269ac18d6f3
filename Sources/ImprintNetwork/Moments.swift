internal import CImprintKernels
internal import ImprintCore

/// The means and sums of squared deviations of blocks of rows of a [rows, channels] matrix.
///
/// The producer of an activation records the moments of each block while it is in the cache, on any thread. The blocks are
/// merged in a fixed order, so the result does not depend on the threads. Batch normalization thus gets its statistics without
/// another pass over its input.
struct Moments {
    private let header: UnsafeMutablePointer<Header>
    private let rows: UnsafeMutablePointer<UInt32>
    private let values: UnsafeMutablePointer<Float>
    private let channels: Int
    private let capacity: Int

    private struct Header {
        var blocks: Int
    }

    /// Creates moments of at most `blocks` blocks in `byteCount(channels:blocks:)` bytes of memory.
    init(_ memory: UnsafeMutableRawPointer, channels: Int, blocks: Int) {
        self.channels = channels
        capacity = blocks
        header = memory.assumingMemoryBound(to: Header.self)
        rows = (memory + Self.alignment).assumingMemoryBound(to: UInt32.self)
        values = (memory + Self.alignment + Self.rowByteCount(blocks)).assumingMemoryBound(to: Float.self)
    }

    /// Returns the size in bytes of the number of blocks, their row counts, and a mean and a sum of squares for each block and
    /// channel.
    static func byteCount(channels: Int, blocks: Int) -> Int {
        alignment + rowByteCount(blocks) + 2 * blocks * rowLength(channels) * MemoryLayout<Float>.stride
    }

    /// Sets the number of blocks of this pass, at most the capacity.
    ///
    /// One worker calls it before the barrier that ends the recording.
    func begin(blocks: Int) {
        precondition((1...capacity).contains(blocks), "blocks is \(blocks), expected 1 to \(capacity)")
        header.pointee.blocks = blocks
    }

    /// Records the moments of one block, `rows` rows at `values`.
    ///
    /// Record each block of the pass once, in any order; a block may be empty.
    func record(_ values: UnsafePointer<Float>, rows count: Int, block: Int) {
        assert((0..<capacity).contains(block), "block \(block) of \(capacity)")
        rows[block] = UInt32(count)
        guard count > 0 else { return }
        let mean = self.values + block * stride
        imprint_moments(values, count, channels, mean, mean + Self.rowLength(channels))
    }

    /// Collects the blocks that the processes have recorded, each for its part of the batch.
    func allGather(_ processes: ProcessGroup, parts: Int) {
        let blocks = header.pointee.blocks
        processes.allGather(rows, parts: parts) { chunkRange($0, of: parts, total: blocks) }
        processes.allGather(values, parts: parts) { [stride] in
            let range = chunkRange($0, of: parts, total: blocks)
            return (range.lowerBound * stride)..<(range.upperBound * stride)
        }
    }

    /// Computes the mean and the biased variance of a range of channels over all blocks of the pass.
    func merge(
        _ range: Range<Int>, mean: UnsafeMutablePointer<Float>, variance: UnsafeMutablePointer<Float>
    ) {
        let first = values + range.lowerBound
        imprint_merge_moments(
            rows, first, first + Self.rowLength(channels), header.pointee.blocks, stride, range.count,
            mean + range.lowerBound, variance + range.lowerBound)
    }

    private static let alignment = 64
    private static func rowByteCount(_ blocks: Int) -> Int {
        roundedUp(blocks * MemoryLayout<UInt32>.stride, to: alignment)
    }
    private static func rowLength(_ channels: Int) -> Int { roundedUp(channels, to: 16) }
    private var stride: Int { 2 * Self.rowLength(channels) }
}
