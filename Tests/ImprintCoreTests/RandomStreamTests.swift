import ImprintCore
import Testing

@Suite struct RandomStreamTests {
    @Test("The same seed, name and indices give the same values; any change gives other values")
    func namedStreams() {
        func first(_ stream: RandomStream) -> [UInt64] {
            var stream = stream
            return (0..<4).map { _ in stream.next() }
        }
        let values = first(RandomStream(seed: 7, "shuffle", 1, 2))
        #expect(values == first(RandomStream(seed: 7, "shuffle", 1, 2)))
        #expect(values != first(RandomStream(seed: 8, "shuffle", 1, 2)))
        #expect(values != first(RandomStream(seed: 7, "shuffles", 1, 2)))
        #expect(values != first(RandomStream(seed: 7, "shuffle", 2, 1)))
        #expect(values != first(RandomStream(seed: 7, "shuffle", 1)))
    }

    @Test("Uniform and normal values have the moments of their distributions")
    func moments() {
        var stream = RandomStream(seed: 1, "moments")
        let uniform = (0..<20_000).map { _ in stream.uniform() }
        let normal = (0..<20_000).map { _ in stream.normal() }
        #expect(uniform.allSatisfy { (0..<1).contains($0) })
        #expect(abs(mean(uniform) - 0.5) < 0.01)
        #expect(abs(mean(uniform.map { ($0 - 0.5) * ($0 - 0.5) }) - 1 / 12) < 0.005)
        #expect(abs(mean(normal)) < 0.03)
        #expect(abs(mean(normal.map { $0 * $0 }) - 1) < 0.04)
    }

    @Test("A permutation contains every index once, and every index can come first", arguments: [0, 1, 2, 17])
    func permutation(count: Int) {
        var stream = RandomStream(seed: 3, "permutation", count)
        var firsts = Set<Int>()
        for _ in 0..<400 {
            let order = stream.permutation(of: count)
            #expect(order.sorted() == Array(0..<count))
            if let first = order.first { firsts.insert(first) }
        }
        #expect(firsts.count == count)
    }

    private func mean(_ values: [Float]) -> Float { values.reduce(0, +) / Float(values.count) }
}
