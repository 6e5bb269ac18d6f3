import ImprintCore

/// A parsed protobuf message, in which a test can change one field while all lengths stay correct.
struct WireTree {
    private(set) var fields: [Field]

    struct Field {
        var number: UInt64
        var content: Content
    }

    enum Content {
        case varint(UInt64)
        case fixed64([UInt8])
        case fixed32([UInt8])
        case bytes([UInt8])
        case message(WireTree)
    }

    /// Parses a message; bytes that are a valid message become a nested message.
    init?(_ bytes: ArraySlice<UInt8>, depth: Int = 0) {
        fields = []
        var rest = bytes
        while !rest.isEmpty {
            guard let key = Self.varint(&rest), key >> 3 > 0 else { return nil }
            let content: Content
            switch key & 7 {
            case 0:
                guard let value = Self.varint(&rest) else { return nil }
                content = .varint(value)
            case 1, 5:
                let size = key & 7 == 1 ? 8 : 4
                guard rest.count >= size else { return nil }
                let value = Array(rest.prefix(size))
                content = size == 8 ? .fixed64(value) : .fixed32(value)
                rest = rest.dropFirst(size)
            case 2:
                guard let length = Self.varint(&rest), length <= UInt64(rest.count) else { return nil }
                let part = rest.prefix(Int(length))
                let message = part.isEmpty || depth > 12 ? nil : WireTree(part, depth: depth + 1)
                content = message.map(Content.message) ?? .bytes(Array(part))
                rest = rest.dropFirst(Int(length))
            default: return nil
            }
            fields.append(Field(number: key >> 3, content: content))
        }
    }

    private static func varint(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard let byte = rest.popFirst() else { return nil }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        return nil
    }

    /// The encoded message.
    var bytes: [UInt8] {
        fields.reduce(into: []) { result, field in
            func put(_ type: UInt64, _ content: [UInt8]) {
                result += Self.bytes(of: field.number << 3 | type)
                if type == 2 { result += Self.bytes(of: UInt64(content.count)) }
                result += content
            }
            switch field.content {
            case .varint(let value): put(0, Self.bytes(of: value))
            case .fixed64(let bytes): put(1, bytes)
            case .fixed32(let bytes): put(5, bytes)
            case .bytes(let bytes): put(2, bytes)
            case .message(let message): put(2, message.bytes)
            }
        }
    }

    /// Encodes a number as a varint.
    static func bytes(of number: UInt64) -> [UInt8] {
        var (rest, bytes): (UInt64, [UInt8]) = (number, [])
        while rest >= 0x80 {
            bytes.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }
}

extension WireTree {
    /// Numbers that often reveal errors in parsers.
    static let limits: [Int] = [
        0, 1, 2, 3, 7, 255, 65_536, 1 << 24, 1 << 31 - 1, 1 << 31, 1 << 40, 1 << 62, .max, -1, -2, .min,
    ]

    /// Changes a field anywhere in the message.
    /// - Parameter other: Another message, from which a field may be copied.
    mutating func change(_ stream: inout RandomStream, with other: WireTree) {
        guard !fields.isEmpty else { return }
        let index = stream.index(below: fields.count)
        if case .message(var inner) = fields[index].content, stream.chance(0.85) {
            let others = other.fields.compactMap { if case .message(let message) = $0.content { message } else { nil } }
            inner.change(&stream, with: others.isEmpty ? other : others[stream.index(below: others.count)])
            fields[index].content = .message(inner)
            return
        }
        switch stream.index(below: 8) {
        case 0: fields.remove(at: index)
        case 1: fields.insert(fields[index], at: stream.index(below: fields.count + 1))
        case 2: fields.swapAt(index, stream.index(below: fields.count))
        case 3: fields[index].number = UInt64(1 + stream.index(below: 32))
        case 4 where !other.fields.isEmpty: fields[index] = other.fields[stream.index(below: other.fields.count)]
        default: Self.change(&fields[index].content, &stream)
        }
    }

    private static func change(_ content: inout Content, _ stream: inout RandomStream) {
        func changed(_ bytes: [UInt8]) -> [UInt8] {
            var bytes = bytes
            guard !bytes.isEmpty else { return [UInt8(truncatingIfNeeded: stream.next())] }
            switch stream.index(below: 4) {
            case 0: bytes.removeLast(1 + stream.index(below: bytes.count))
            case 1: bytes += bytes.prefix(64)
            case 2: bytes = self.bytes(of: UInt64(bitPattern: Int64(limits[stream.index(below: limits.count)])))
            default: bytes[stream.index(below: bytes.count)] ^= 1 << UInt8(stream.index(below: 8))
            }
            return bytes
        }
        switch content {
        case .varint: content = .varint(UInt64(bitPattern: Int64(limits[stream.index(below: limits.count)])))
        case .fixed64(var bytes):
            bytes[stream.index(below: 8)] = UInt8(truncatingIfNeeded: stream.next())
            content = .fixed64(bytes)
        case .fixed32(var bytes):
            bytes[stream.index(below: 4)] = UInt8(truncatingIfNeeded: stream.next())
            content = .fixed32(bytes)
        case .bytes(let bytes): content = .bytes(changed(bytes))
        case .message(let message): content = .bytes(changed(message.bytes))
        }
    }
}
