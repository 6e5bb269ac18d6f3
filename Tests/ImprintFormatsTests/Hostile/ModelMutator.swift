import ImprintCore

/// Makes of files such as no writer makes, always the same of one seed.
struct ModelMutator {
    private var stream: RandomStream

    init(_ name: String, _ turn: Int) { stream = RandomStream(seed: 8, name, turn) }

    /// A number below `count`.
    mutating func index(below count: Int) -> Int { stream.index(below: count) }

    /// A file of bytes with some changed, taken away, put in again or moved, or the end of another behind its beginning.
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
                let place = stream.index(below: bytes.count - part.count + 1)
                bytes.replaceSubrange(place..<(place + part.count), with: part)
            // A length or number blown up, in place of one byte.
            case 7:
                let number = WireTree.limits[stream.index(below: WireTree.limits.count)]
                bytes.replaceSubrange(start..<(start + 1), with: WireTree.bytes(of: UInt64(bitPattern: Int64(number))))
            // The same, in as many bytes as there were.
            case 8:
                let number = WireTree.limits[stream.index(below: WireTree.limits.count)]
                for place in start..<min(start + 8, bytes.count) {
                    bytes[place] = UInt8(truncatingIfNeeded: number >> (8 * (place - start)))
                }
            default: bytes = Array(bytes[..<start] + other[stream.index(below: other.count + 1)...])
            }
        }
        return bytes
    }

    /// A protobuf message with fields changed and all lengths right, or with bytes changed.
    mutating func message(_ original: [UInt8], _ other: [UInt8]) -> [UInt8] {
        guard stream.chance(0.7), var tree = WireTree(original[...]), let source = WireTree(other[...]) else {
            return bytes(original, other)
        }
        for _ in 0..<(1 + stream.index(below: 3)) { tree.change(&stream, with: source) }
        return tree.bytes
    }

    /// A text with words changed for other words and for numbers that no writer writes, or with bytes changed.
    mutating func text(_ original: [UInt8], _ other: [UInt8]) -> [UInt8] {
        guard stream.chance(0.7) else { return bytes(original, other) }
        func words(_ text: [UInt8]) -> [ArraySlice<UInt8>] { text.split(separator: UInt8(ascii: " ")) }
        var (all, others) = (words(original), words(other))
        others +=
            WireTree.limits.map { ArraySlice("\($0)".utf8) }
            + ["1e38", "nan", "inf", "-0.5", "\"", "{", "}", "[", "]"].map { ArraySlice($0.utf8) }
        for _ in 0..<(1 + stream.index(below: 3)) {
            let place = stream.index(below: all.count)
            switch stream.index(below: 4) {
            case 0: all.remove(at: place)
            case 1: all.insert(all[place], at: stream.index(below: all.count))
            default: all[place] = others[stream.index(below: others.count)]
            }
            if all.isEmpty { break }
        }
        return Array(all.joined(separator: [UInt8(ascii: " ")]))
    }
}
