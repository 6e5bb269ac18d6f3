/// Lays buffers with known lifetimes out in one block of memory, so that buffers share places they do not need at the
/// same time.
///
/// Times are the steps of a plan. The largest buffers are placed first, each at the lowest offset that no buffer alive
/// at the same time occupies (greedy by size: Pisarchyk and Lee, "Efficient memory management for deep neural net
/// inference", 2020).
struct Arena {
    /// Stands for a buffer until the arena is laid out.
    struct Buffer: Hashable {
        fileprivate let index: Int
    }

    private struct Request {
        let bytes: Int
        var first: Int
        var last: Int
    }

    private var requests: [Request] = []

    /// Asks for `bytes` bytes from the step `time` on; `keep` makes it live longer.
    mutating func buffer(bytes: Int, at time: Int) -> Buffer {
        requests.append(Request(bytes: roundedUp(max(bytes, 1), to: 64), first: time, last: time))
        return Buffer(index: requests.count - 1)
    }

    /// Makes a buffer live at the step `time` too.
    mutating func keep(_ buffer: Buffer, at time: Int) {
        requests[buffer.index].first = min(requests[buffer.index].first, time)
        requests[buffer.index].last = max(requests[buffer.index].last, time)
    }

    /// The last step at which a buffer is alive, as far as was asked for.
    func lastTime(of buffer: Buffer) -> Int { requests[buffer.index].last }

    /// The number of bytes that all buffers need together, and each buffer's offset.
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
