internal import CImprintKernels

/// Means and squared deviations of a [rows, channels] matrix, block of rows by block of rows.
///
/// Whoever makes an activation records each block while it is in the cache, on any thread; the blocks are then merged in
/// their order, so that the result does not depend on the threads. This is how a normalization gets its statistics without
/// reading its input once more.
struct Moments {
    private let header: UnsafeMutablePointer<Header>
    private let rows: UnsafeMutablePointer<UInt32>
    private let values: UnsafeMutablePointer<Float>
    private let channels: Int
    private let capacity: Int

    private struct Header {
        var blocks: Int
    }

    /// Moments of at most `blocks` blocks in `byteCount(channels:blocks:)` bytes of memory.
    init(_ memory: UnsafeMutableRawPointer, channels: Int, blocks: Int) {
        self.channels = channels
        capacity = blocks
        header = memory.assumingMemoryBound(to: Header.self)
        rows = (memory + Self.alignment).assumingMemoryBound(to: UInt32.self)
        values = (memory + Self.alignment + Self.rowByteCount(blocks)).assumingMemoryBound(to: Float.self)
    }

    /// The memory that moments need: the number of blocks, their rows, and two rows of numbers for each.
    static func byteCount(channels: Int, blocks: Int) -> Int {
        alignment + rowByteCount(blocks) + 2 * blocks * rowLength(channels) * MemoryLayout<Float>.stride
    }

    /// Says how many blocks this pass has, up to those the memory was made for.
    ///
    /// One member of the team calls it, before the barrier that ends the recording.
    func begin(blocks: Int) {
        precondition((1...capacity).contains(blocks), "there is room for \(capacity) blocks, not \(blocks)")
        header.pointee.blocks = blocks
    }

    /// Records the numbers of one block, `rows` rows at `values`; each block of the pass once, in any order.
    func record(_ values: UnsafePointer<Float>, rows count: Int, block: Int) {
        assert((0..<capacity).contains(block) && count >= 1, "block \(block) of \(capacity), \(count) rows")
        rows[block] = UInt32(count)
        let mean = self.values + block * stride
        imprint_moments(values, count, channels, mean, mean + Self.rowLength(channels))
    }

    /// Mean and biased variance over all blocks of the pass, for some of the channels.
    func merge(
        _ part: Range<Int>, mean: UnsafeMutablePointer<Float>, variance: UnsafeMutablePointer<Float>
    ) {
        let first = values + part.lowerBound
        imprint_merge_moments(
            rows, first, first + Self.rowLength(channels), header.pointee.blocks, stride, part.count,
            mean + part.lowerBound, variance + part.lowerBound)
    }

    private static let alignment = 64
    private static func rowByteCount(_ blocks: Int) -> Int {
        roundedUp(blocks * MemoryLayout<UInt32>.stride, to: alignment)
    }
    private static func rowLength(_ channels: Int) -> Int { roundedUp(channels, to: 16) }
    private var stride: Int { 2 * Self.rowLength(channels) }
}
