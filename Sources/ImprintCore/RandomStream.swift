/// A deterministic stream of random numbers, determined by a seed and a name.
///
/// Each random part of a run (initial weights, shuffling, augmentation, dropout) has a separate stream, such as
/// `RandomStream(seed: 7, "augmentation", epoch, image)`. The numbers of a stream do not depend on the use of other streams, on the
/// order in which images are read, or on the number of threads.
///
/// The generator is xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018). SplitMix64 initializes its
/// state from the seed, the FNV-1a hash of the name, and the indices.
package struct RandomStream: RandomNumberGenerator, Sendable {
    private var state: (UInt64, UInt64, UInt64, UInt64)

    /// Creates the stream of a seed, a name and indices; equal arguments always give equal numbers.
    package init(seed: UInt64, _ name: String, _ indices: Int...) {
        var mixer = SplitMix64(state: seed)
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        mixer.state = mixer.next() ^ hash
        for index in indices { mixer.state = mixer.next() ^ UInt64(bitPattern: Int64(index)) }
        state = (mixer.next(), mixer.next(), mixer.next(), mixer.next())
    }

    /// Returns the next 64 uniformly distributed bits.
    package mutating func next() -> UInt64 {
        let result = rotated(state.1 &* 5, by: 7) &* 9
        let shifted = state.1 << 17
        state.2 ^= state.0
        state.3 ^= state.1
        state.1 ^= state.2
        state.0 ^= state.3
        state.2 ^= shifted
        state.3 = rotated(state.3, by: 45)
        return result
    }

    /// Returns a uniformly distributed number in `[0, 1)`, a multiple of 2⁻²⁴.
    package mutating func uniform() -> Float { Float(next() >> 40) * 0x1p-24 }

    /// Returns a uniformly distributed number in `[range.lowerBound, range.upperBound)`.
    package mutating func uniform(in range: ClosedRange<Float>) -> Float {
        range.lowerBound + (range.upperBound - range.lowerBound) * uniform()
    }

    /// Returns a uniformly distributed integer in `0..<bound`.
    package mutating func index(below bound: Int) -> Int {
        precondition(bound > 0, "a random index needs a positive bound, not \(bound)")
        return Int(next().multipliedFullWidth(by: UInt64(bound)).high)
    }

    /// Returns true with the given probability (0…1).
    package mutating func chance(_ probability: Float) -> Bool { uniform() < probability }

    /// Returns an approximately normally distributed number with mean 0 and standard deviation 1: the sum of twelve uniform numbers minus six.
    ///
    /// Sums are bitwise identical on every platform, unlike logarithms of the C library. The tails end at ±6.
    package mutating func normal() -> Float {
        var sum: Float = -6
        for _ in 0..<12 { sum += uniform() }
        return sum
    }

    /// Returns the integers `0..<count` in random order (Fisher–Yates).
    package mutating func permutation(of count: Int) -> [Int] {
        var order = Array(0..<count)
        for last in stride(from: count - 1, to: 0, by: -1) { order.swapAt(last, index(below: last + 1)) }
        return order
    }
}

private func rotated(_ value: UInt64, by bits: UInt64) -> UInt64 { (value << bits) | (value >> (64 - bits)) }

private struct SplitMix64 {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
