/// The SHA-256 hash function (FIPS 180-4) with incremental updates.
///
///     var hash = SHA256()
///     hash.update(bytes.span.bytes)
///     hash.hexadecimal   // 64 digits, 0-9 and a-f
package struct SHA256: Sendable {
    /// The state; initially the first 32 bits of the fractional parts of the square roots of the first 8 primes.
    private var state: SIMD8<UInt32> = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c,
        0x1f83_d9ab, 0x5be0_cd19,
    ]
    /// The last bytes, at most 63, which do not fill a block of 64 yet.
    private var pending: [UInt8] = []
    private var byteCount: UInt64 = 0

    /// Creates a hash without data.
    package init() {}

    /// Adds bytes to the hash.
    package mutating func update(_ bytes: RawSpan) {
        byteCount += UInt64(bytes.byteCount)
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            if !pending.isEmpty {
                let head = rest.prefix(64 - pending.count)
                pending += head
                rest = rest.dropFirst(head.count)
                if pending.count < 64 { return }
                pending.withUnsafeBytes { compress($0) }
                pending.removeAll(keepingCapacity: true)
            }
            let whole = rest.count & ~63
            compress(UnsafeRawBufferPointer(rebasing: rest.prefix(whole)))
            pending += rest.dropFirst(whole)
        }
    }

    /// The digest of all bytes so far, as 64 hexadecimal digits in lower case.
    package var hexadecimal: String {
        var padded = self
        let zeros = (119 - Int(byteCount % 64)) % 64
        var tail: [UInt8] = [0x80] + [UInt8](repeating: 0, count: zeros)
        for shift in stride(from: 56, through: 0, by: -8) {
            tail.append(UInt8(truncatingIfNeeded: (byteCount << 3) >> shift))
        }
        padded.update(tail.span.bytes)
        let digits = Array("0123456789abcdef".utf8)
        let text = padded.state.indices.flatMap { word in
            stride(from: 28, through: 0, by: -4).map { digits[Int((padded.state[word] >> $0) & 15)] }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the digest of `bytes`, as 64 hexadecimal digits in lower case.
    package static func hexadecimal(of bytes: [UInt8]) -> String {
        var hash = SHA256()
        hash.update(bytes.span.bytes)
        return hash.hexadecimal
    }

    /// Hashes complete blocks of 64 bytes (section 6.2.2 of the standard).
    private mutating func compress(_ bytes: UnsafeRawBufferPointer) {
        roundConstants.withUnsafeBufferPointer { constants in
            withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { schedule in
                for block in stride(from: 0, to: bytes.count, by: 64) {
                    for word in 0..<16 {
                        schedule[word] =
                            bytes.loadUnaligned(fromByteOffset: block + word * 4, as: UInt32.self).bigEndian
                    }
                    for word in 16..<64 {
                        let early = schedule[word &- 15]
                        let late = schedule[word &- 2]
                        let mixedEarly = rotated(early, 7) ^ rotated(early, 18) ^ (early >> 3)
                        let mixedLate = rotated(late, 17) ^ rotated(late, 19) ^ (late >> 10)
                        schedule[word] = mixedLate &+ schedule[word &- 7] &+ mixedEarly &+ schedule[word &- 16]
                    }
                    mix(schedule, constants)
                }
            }
        }
    }

    /// Runs the 64 rounds; the variables are named as in the standard.
    private mutating func mix(_ schedule: UnsafeMutableBufferPointer<UInt32>, _ constants: UnsafeBufferPointer<UInt32>)
    {
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        // After eight rounds, the roles of the variables repeat, so no values are moved between variables.
        for first in stride(from: 0, to: 64, by: 8) {
            func input(_ round: Int) -> UInt32 { constants[first &+ round] &+ schedule[first &+ round] }
            mixRound(a, b, c, &d, e, f, g, &h, input(0))
            mixRound(h, a, b, &c, d, e, f, &g, input(1))
            mixRound(g, h, a, &b, c, d, e, &f, input(2))
            mixRound(f, g, h, &a, b, c, d, &e, input(3))
            mixRound(e, f, g, &h, a, b, c, &d, input(4))
            mixRound(d, e, f, &g, h, a, b, &c, input(5))
            mixRound(c, d, e, &f, g, h, a, &b, input(6))
            mixRound(b, c, d, &e, f, g, h, &a, input(7))
        }
        state &+= [a, b, c, d, e, f, g, h]
    }
}

/// Runs one round: `d` and `h` become the next round's `e` and `a`.
@inline(__always)
private func mixRound(
    _ a: UInt32, _ b: UInt32, _ c: UInt32, _ d: inout UInt32, _ e: UInt32, _ f: UInt32, _ g: UInt32, _ h: inout UInt32,
    _ input: UInt32
) {
    let choice = (e & f) ^ (~e & g)
    let majority = (a & b) ^ (a & c) ^ (b & c)
    h &+= (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) &+ choice &+ input
    d &+= h
    h &+= (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) &+ majority
}

@inline(__always)
private func rotated(_ value: UInt32, _ bits: UInt32) -> UInt32 {
    (value &>> bits) | (value &<< (32 &- bits))
}

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
private let roundConstants: [UInt32] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1,
    0x923f_82a4, 0xab1c_5ed5, 0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3,
    0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174, 0xe49b_69c1, 0xefbe_4786,
    0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147,
    0x06ca_6351, 0x1429_2967, 0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13,
    0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85, 0xa2bf_e8a1, 0xa81a_664b,
    0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a,
    0x5b9c_ca4f, 0x682e_6ff3, 0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208,
    0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
]
