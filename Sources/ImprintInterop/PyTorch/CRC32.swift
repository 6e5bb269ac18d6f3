/// The CRC-32 of ZIP files and PNG: the polynomial 0x04C11DB7 with reflected bits.
///
/// Reads eight bytes at a time with eight tables (Kounavis and Berry, "A Systematic Approach to Building High Performance
/// Software-based CRC Generators", 2005).
enum CRC32 {
    /// Table *t* has the remainder of each byte that *t* zero bytes follow.
    private static let tables: [UInt32] = {
        var tables = [UInt32](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            var remainder = UInt32(byte)
            for _ in 0..<8 { remainder = remainder & 1 == 0 ? remainder >> 1 : remainder >> 1 ^ 0xEDB8_8320 }
            tables[byte] = remainder
        }
        for index in 256..<tables.count {
            let shorter = tables[index - 256]
            tables[index] = shorter >> 8 ^ tables[Int(shorter & 0xFF)]
        }
        return tables
    }()

    /// Returns the checksum of bytes.
    static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        tables.withUnsafeBufferPointer { tables in
            var state = ~UInt32(0)
            var offset = 0
            while offset + 8 <= bytes.count {
                let word =
                    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) ^ UInt64(state)
                state = 0
                for index in 0..<8 {
                    state ^= tables[(7 - index) << 8 | Int(word >> UInt64(8 * index) & 0xFF)]
                }
                offset += 8
            }
            while offset < bytes.count {
                state = state >> 8 ^ tables[Int((state ^ UInt32(bytes[offset])) & 0xFF)]
                offset += 1
            }
            return ~state
        }
    }
}
