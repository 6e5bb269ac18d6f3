internal import ImprintModel

/// A builder for a protobuf message, whose fields keep the order in which they are added.
///
/// Numbers and texts are encoded immediately. Large fields are encoded one by one when the message is written, so that a
/// model's weights are never in memory twice. The builder never omits a field; callers omit fields with default values as in
/// proto3.
///
/// Source: Protocol Buffers encoding, wire types 0 (varint), 1 (64 bits), 2 (length-delimited) and 5 (32 bits).
package struct MessageBuilder {
    private enum Piece {
        case bytes([UInt8])
        case deferred(count: Int, ByteSource)
    }

    private var pieces: [Piece] = []
    /// The size of the encoded message.
    package private(set) var byteCount = 0

    /// Creates an empty message.
    package init() {}

    /// Adds an integer, enumeration value or Boolean as a varint; negative values take ten bytes.
    package mutating func add(_ field: Int, _ value: Int) {
        append(Self.key(field, 0) + Self.varint(UInt64(bitPattern: Int64(value))))
    }

    /// Adds a Boolean.
    package mutating func add(_ field: Int, _ value: Bool) { add(field, value ? 1 : 0) }

    /// Adds a 32-bit floating-point number.
    mutating func add(_ field: Int, _ value: Float) { append(Self.key(field, 5) + Self.bytes(of: value.bitPattern)) }

    /// Adds a 64-bit floating-point number.
    package mutating func add(_ field: Int, _ value: Double) {
        append(Self.key(field, 1) + Self.bytes(of: value.bitPattern))
    }

    /// Adds a text.
    package mutating func add(_ field: Int, _ text: String) { add(field, bytes: Array(text.utf8)) }

    /// Adds bytes.
    package mutating func add(_ field: Int, bytes: [UInt8]) {
        append(Self.key(field, 2) + Self.varint(UInt64(bytes.count)) + bytes)
    }

    /// Adds a nested message.
    package mutating func add(_ field: Int, _ message: MessageBuilder) {
        append(Self.key(field, 2) + Self.varint(UInt64(message.byteCount)))
        for piece in message.pieces {
            if case .bytes(let bytes) = piece { append(bytes, counted: false) } else { pieces.append(piece) }
        }
        byteCount += message.byteCount
    }

    /// Adds packed integers.
    mutating func add(_ field: Int, packed values: [Int]) {
        add(field, bytes: values.flatMap { Self.varint(UInt64(bitPattern: Int64($0))) })
    }

    /// Adds packed 32-bit floating-point numbers.
    mutating func add(_ field: Int, packed values: [Float]) {
        add(field, bytes: values.flatMap { Self.bytes(of: $0.bitPattern) })
    }

    /// Adds bytes that `source` generates in parts when the message is written.
    mutating func add(_ field: Int, byteCount count: Int, deferred source: @escaping ByteSource) {
        append(Self.key(field, 2) + Self.varint(UInt64(count)))
        pieces.append(.deferred(count: count, source))
        byteCount += count
    }

    /// Adds an entry of a map from strings to strings.
    mutating func add(_ field: Int, key: String, value: String) {
        var entry = MessageBuilder()
        entry.add(1, key)
        entry.add(2, value)
        add(field, entry)
    }

    /// The message's bytes without deferred fields.
    package var immediateBytes: [UInt8] {
        pieces.flatMap { piece -> [UInt8] in
            switch piece {
            case .bytes(let bytes): bytes
            case .deferred: []
            }
        }
    }

    /// Passes the message's bytes to `body` in parts.
    func write(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        for piece in pieces {
            switch piece {
            case .bytes(let bytes): try bytes.withUnsafeBytes(body)
            case .deferred(let count, let source):
                var written = 0
                try source {
                    written += $0.count
                    try body($0)
                }
                precondition(written == count, "expected \(count) bytes, found \(written)")
            }
        }
    }

    private mutating func append(_ bytes: [UInt8], counted: Bool = true) {
        if counted { byteCount += bytes.count }
        guard case .bytes(var last)? = pieces.last else { return pieces.append(.bytes(bytes)) }
        // Remove the piece first, so that it grows in place instead of being copied.
        pieces.removeLast()
        last += bytes
        pieces.append(.bytes(last))
    }

    private static func key(_ field: Int, _ wireType: UInt64) -> [UInt8] { varint(UInt64(field) << 3 | wireType) }

    private static func varint(_ value: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = value
        while rest > 0x7F {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    private static func bytes(of bits: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: bits.littleEndian, Array.init)
    }
}
