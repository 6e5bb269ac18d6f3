import ImprintCore

/// Creates invalid variants of files, deterministically for each seed.
struct ModelMutator {
    private var stream: RandomStream

    /// Creates the mutator of one iteration.
    init(_ name: String, _ iteration: Int) { stream = RandomStream(seed: 8, name, iteration) }

    /// Returns a random index below `count`.
    mutating func index(below count: Int) -> Int { stream.index(below: count) }

    /// Returns a file with some bytes changed, removed, repeated or moved, or with the end of another file.
    mutating func bytes(_ original: [UInt8], _ other: [UInt8]) -> [UInt8] {
        var bytes = original
        for _ in 0..<(1 + stream.index(below: 4)) {
            guard !bytes.isEmpty else { return bytes }
            let start = stream.index(below: bytes.count)
            let end = min(start + 1 + stream.index(below: 48), bytes.count)
            switch stream.index(below: 10) {
            case 0: bytes[start] ^= 1 << UInt8(stream.index(below: 8))
            case 1: bytes[start] = UInt8(truncatingIfNeeded: stream.next())
            case 2: bytes[start] = [0, 1, 0x7F, 0x80, 0xFF][stream.index(below: 5)]
            case 3: bytes.removeLast(bytes.count - start)
            case 4: bytes.removeSubrange(start..<end)
            case 5: bytes.insert(contentsOf: bytes[start..<end], at: stream.index(below: bytes.count + 1))
            case 6:
                let part = Array(bytes[start..<end])
                let offset = stream.index(below: bytes.count - part.count + 1)
                bytes.replaceSubrange(offset..<(offset + part.count), with: part)
            // Replace one byte by an extreme length or number.
            case 7:
                let number = WireTree.limits[stream.index(below: WireTree.limits.count)]
                bytes.replaceSubrange(start..<(start + 1), with: WireTree.bytes(of: UInt64(bitPattern: Int64(number))))
            // Overwrite up to eight bytes with an extreme number.
            case 8:
                let number = WireTree.limits[stream.index(below: WireTree.limits.count)]
                for index in start..<min(start + 8, bytes.count) {
                    bytes[index] = UInt8(truncatingIfNeeded: number >> (8 * (index - start)))
                }
            default: bytes = Array(bytes[..<start] + other[stream.index(below: other.count + 1)...])
            }
        }
        return bytes
    }

    /// Returns a protobuf message with changed fields and correct lengths, or with changed bytes.
    mutating func message(_ original: [UInt8], _ other: [UInt8]) -> [UInt8] {
        guard stream.chance(0.7), var tree = WireTree(original[...]), let source = WireTree(other[...]) else {
            return bytes(original, other)
        }
        for _ in 0..<(1 + stream.index(below: 3)) { tree.change(&stream, with: source) }
        return tree.bytes
    }

    /// Returns a text with words replaced by other words and extreme numbers, or with changed bytes.
    mutating func text(_ original: [UInt8], _ other: [UInt8]) -> [UInt8] {
        guard stream.chance(0.7) else { return bytes(original, other) }
        func words(_ text: [UInt8]) -> [ArraySlice<UInt8>] { text.split(separator: UInt8(ascii: " ")) }
        var (all, others) = (words(original), words(other))
        others +=
            WireTree.limits.map { ArraySlice("\($0)".utf8) }
            + ["1e38", "nan", "inf", "-0.5", "\"", "{", "}", "[", "]"].map { ArraySlice($0.utf8) }
        for _ in 0..<(1 + stream.index(below: 3)) {
            let index = stream.index(below: all.count)
            switch stream.index(below: 4) {
            case 0: all.remove(at: index)
            case 1: all.insert(all[index], at: stream.index(below: all.count))
            default: all[index] = others[stream.index(below: others.count)]
            }
            if all.isEmpty { break }
        }
        return Array(all.joined(separator: [UInt8(ascii: " ")]))
    }
}
