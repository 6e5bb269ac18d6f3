/// Assigns buffers with known lifetimes to offsets in one block of memory.
///
/// Buffers that are not live at the same time may overlap. Times are the steps of a plan. The largest buffers are assigned first, each
/// at the lowest offset that is free during its lifetime (greedy by size: Pisarchyk and Lee, "Efficient memory management for deep
/// neural net inference", 2020).
struct Arena {
    /// A handle of a requested buffer; `layout()` returns its offset.
    struct Buffer: Hashable {
        fileprivate let index: Int
    }

    private struct Request {
        let bytes: Int
        var first: Int
        var last: Int
    }

    private var requests: [Request] = []

    /// Requests a buffer of `bytes` bytes that is live at `time`; `keep(_:at:)` extends its lifetime.
    mutating func buffer(bytes: Int, at time: Int) -> Buffer {
        requests.append(Request(bytes: roundedUp(max(bytes, 1), to: 64), first: time, last: time))
        return Buffer(index: requests.count - 1)
    }

    /// Extends the lifetime of a buffer to include `time`.
    mutating func keep(_ buffer: Buffer, at time: Int) {
        requests[buffer.index].first = min(requests[buffer.index].first, time)
        requests[buffer.index].last = max(requests[buffer.index].last, time)
    }

    /// Returns the last time at which a buffer is live, according to the requests so far.
    func lastTime(of buffer: Buffer) -> Int { requests[buffer.index].last }

    /// Returns the size of the arena in bytes, and the offset of each buffer.
    func layout() -> (byteCount: Int, offsets: [Buffer: Int]) {
        var offsets: [Int?] = Array(repeating: nil, count: requests.count)
        var placed: [Int] = []
        var total = 0
        for index in requests.indices.sorted(by: { (requests[$1].bytes, $0) < (requests[$0].bytes, $1) }) {
            let request = requests[index]
            // `placed` is sorted by offset, so the first gap that fits is the lowest.
            var offset = 0
            for other in placed where requests[other].first <= request.last && request.first <= requests[other].last {
                guard let taken = offsets[other] else { continue }
                if taken >= offset + request.bytes { break }
                offset = max(offset, taken + requests[other].bytes)
            }
            offsets[index] = offset
            total = max(total, offset + request.bytes)
            let position = placed.firstIndex { (offsets[$0] ?? 0) > offset } ?? placed.count
            placed.insert(index, at: position)
        }
        var result: [Buffer: Int] = [:]
        for (index, offset) in offsets.enumerated() { result[Buffer(index: index)] = offset }
        return (total, result)
    }
}
