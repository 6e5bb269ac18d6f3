internal import CImprintKernels
internal import ImprintCore

/// Runs `body` over the ranges of `0..<count` in chunks that are worth a thread.
func forEachRange(_ count: Int, _ worker: Worker, _ body: (Range<Int>) -> Void) {
    let chunks = max(1, count / (1 << 15))
    worker.forEachClaimed(chunks) { chunk in body(chunkRange(chunk, of: chunks, total: count)) }
}

/// Runs `body` over the rows of a matrix, of so many numbers each, in chunks that are worth a thread.
func forEachRows(_ rows: Int, _ numbersPerRow: Int, _ worker: Worker, _ body: (Range<Int>) -> Void) {
    let chunks = min(rows, max(1, rows * numbersPerRow / (1 << 16)))
    worker.forEachClaimed(chunks) { chunk in body(chunkRange(chunk, of: chunks, total: rows)) }
}

extension LayerContext {
    /// to = from; nothing to do if they are the same memory.
    func copy(_ from: UnsafePointer<Float>, to: UnsafeMutablePointer<Float>, count: Int) {
        guard from != UnsafePointer(to) else { return }
        forEachRange(count, worker) { range in
            (to + range.lowerBound).update(from: from + range.lowerBound, count: range.count)
        }
    }
}

/// to += from, over `count` images.
func addRows(
    _ from: UnsafePointer<Float>, to: UnsafeMutablePointer<Float>, count: Int, countPerImage: Int, worker: Worker
) {
    forEachRange(count * countPerImage, worker) { range in
        imprint_add(to + range.lowerBound, from + range.lowerBound, to + range.lowerBound, range.count)
    }
}

/// A sum over rows in fixed parts: the parts may be summed by any thread, and are added in their order.
struct ChannelReduction {
    /// More parts than threads that are likely to be there; fixed, so that the sums never depend on the threads.
    static let parts = 8

    let channels: Int
    let rows: Int
    /// How many numbers stand behind a row; few of them are not worth a thread.
    let numbersPerRow: Int

    init(channels: Int, rows: Int, numbersPerRow: Int? = nil) {
        self.channels = channels
        self.rows = rows
        self.numbersPerRow = numbersPerRow ?? channels
    }

    static func scratchByteCount(channels: Int) -> Int { parts * channels * MemoryLayout<Double>.stride }

    /// Calls `sum(rows, sums)` for every part, then adds all into the first part's place and returns it.
    func run(
        scratch: UnsafeMutableRawPointer, worker: Worker,
        _ sum: (_ rows: Range<Int>, _ sums: UnsafeMutablePointer<Double>) -> Void
    ) -> UnsafePointer<Double> {
        let sums = scratch.assumingMemoryBound(to: Double.self)
        let parts = min(Self.parts, max(1, rows * numbersPerRow / (1 << 16)))
        worker.forEachClaimed(parts) { part in
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
