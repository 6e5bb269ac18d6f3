import ImprintCore
import Testing

@testable import ImprintNetwork

@Suite struct ArenaTests {
    private struct Lifetime {
        let buffer: Arena.Buffer
        let bytes: Int
        var first: Int
        var last: Int
    }

    @Test("Buffers whose lifetimes overlap do not overlap in memory", arguments: 0..<200)
    func randomRequests(_ seed: Int) {
        var stream = RandomStream(seed: UInt64(seed), "requests")
        var arena = Arena()
        var lifetimes: [Lifetime] = []
        let times = 1 + stream.index(below: 30)
        for _ in 0..<(1 + stream.index(below: 40)) {
            let bytes = stream.chance(0.1) ? 0 : stream.index(below: stream.chance(0.3) ? 100_000 : 300)
            let time = stream.index(below: times)
            lifetimes.append(
                Lifetime(buffer: arena.buffer(bytes: bytes, at: time), bytes: bytes, first: time, last: time))
            // Extend the lifetime of any buffer to a later or earlier time.
            let index = stream.index(below: lifetimes.count)
            let other = stream.index(below: times)
            arena.keep(lifetimes[index].buffer, at: other)
            lifetimes[index].first = min(lifetimes[index].first, other)
            lifetimes[index].last = max(lifetimes[index].last, other)
        }
        let (byteCount, offsets) = arena.layout()
        let ranges = lifetimes.map { lifetime in
            let offset = offsets[lifetime.buffer] ?? -1
            #expect(offset >= 0 && offset % 64 == 0 && offset + lifetime.bytes <= byteCount)
            return offset..<(offset + max(lifetime.bytes, 1))
        }
        for a in lifetimes.indices {
            for b in lifetimes.indices[..<a] {
                let together = lifetimes[a].first <= lifetimes[b].last && lifetimes[b].first <= lifetimes[a].last
                if together && ranges[a].overlaps(ranges[b]) {
                    Issue.record("\(lifetimes[a]) at \(ranges[a]) overlaps \(lifetimes[b]) at \(ranges[b])")
                }
            }
        }
        #expect(byteCount <= lifetimes.reduce(0) { $0 + roundedUp(max($1.bytes, 1), to: 64) })
    }

    @Test("Buffers with disjoint lifetimes share memory, and gaps are filled")
    func reuse() {
        var arena = Arena()
        let first = arena.buffer(bytes: 640, at: 0)
        let second = arena.buffer(bytes: 640, at: 1)
        let small = arena.buffer(bytes: 64, at: 0)
        arena.keep(small, at: 1)
        let (byteCount, offsets) = arena.layout()
        #expect(byteCount == 704)
        #expect(offsets[first] == offsets[second])
    }

    @Test("An arena without buffers has no memory")
    func empty() { #expect(Arena().layout().byteCount == 0) }
}
