internal import CImprintKernels
internal import ImprintCore

/// Runs `body` over chunks of `0..<count` that are large enough to be shared among threads.
func forEachRange(_ count: Int, _ worker: Worker, _ body: (Range<Int>) -> Void) {
    let chunks = max(1, count / (1 << 15))
    worker.forEachChunk(chunks) { chunk in body(chunkRange(chunk, of: chunks, total: count)) }
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
        forEachRange(count, worker) { range in
            (to + range.lowerBound).update(from: from + range.lowerBound, count: range.count)
        }
    }
}

/// Adds `from` to `to` for `count` images.
func addRows(
    _ from: UnsafePointer<Float>, to: UnsafeMutablePointer<Float>, count: Int, countPerImage: Int, worker: Worker
) {
    forEachRange(count * countPerImage, worker) { range in
        imprint_add(to + range.lowerBound, from + range.lowerBound, to + range.lowerBound, range.count)
    }
}

/// A deterministic sum over rows: any thread may sum a part, and the partial sums are added in order.
struct ChannelReduction {
    /// The maximum number of parts; fixed, because results must not depend on the number of threads.
    static let parts = 8

    let channels: Int
    let rows: Int
    /// The number of elements read per row, which determines the number of parts.
    let elementsPerRow: Int

    init(channels: Int, rows: Int, elementsPerRow: Int? = nil) {
        self.channels = channels
        self.rows = rows
        self.elementsPerRow = elementsPerRow ?? channels
    }

    static func scratchByteCount(channels: Int) -> Int { parts * channels * MemoryLayout<Double>.stride }

    /// Calls `sum(rows, sums)` for every part, then adds the partial sums to those of the first part and returns them.
    func run(
        scratch: UnsafeMutableRawPointer, worker: Worker,
        _ sum: (_ rows: Range<Int>, _ sums: UnsafeMutablePointer<Double>) -> Void
    ) -> UnsafePointer<Double> {
        let sums = scratch.assumingMemoryBound(to: Double.self)
        let parts = min(Self.parts, max(1, rows * elementsPerRow / (1 << 16)))
        worker.forEachChunk(parts) { part in
            sum(chunkRange(part, of: parts, total: rows), sums + part * channels)
        }
        worker.onFirstThread {
            for part in 0..<parts where part > 0 {
                for channel in 0..<channels { sums[channel] += sums[part * channels + channel] }
            }
        }
        return UnsafePointer(sums)
    }
}
