internal import ImprintModel

/// A protobuf message while it is put together: fields in the order in which they are added.
///
/// Numbers and texts are encoded at once. Large fields are encoded when the message is written, one after the other, so that a
/// model's weights are not in memory a second time. Fields with their default value are left out by callers where proto3
/// leaves them out; nothing here drops a field.
///
/// Source: the encoding of Protocol Buffers, wire types 0 (varint), 1 (64 bits), 2 (with a length) and 5 (32 bits).
struct WrittenMessage {
    private enum Piece {
        case bytes([UInt8])
        case later(count: Int, ByteSource)
    }

    private var pieces: [Piece] = []
    /// How many bytes the message has.
    private(set) var byteCount = 0

    /// Adds an integer, an enumeration's number or a truth value: a varint; negative ones take ten bytes.
    mutating func add(_ field: Int, _ value: Int) {
        append(Self.key(field, 0) + Self.varint(UInt64(bitPattern: Int64(value))))
    }

    /// Adds a truth value.
    mutating func add(_ field: Int, _ value: Bool) { add(field, value ? 1 : 0) }

    /// Adds a number of 32 bits.
    mutating func add(_ field: Int, _ value: Float) { append(Self.key(field, 5) + Self.bytes(of: value.bitPattern)) }

    /// Adds a number of 64 bits.
    mutating func add(_ field: Int, _ value: Double) { append(Self.key(field, 1) + Self.bytes(of: value.bitPattern)) }

    /// Adds a text.
    mutating func add(_ field: Int, _ text: String) { add(field, bytes: Array(text.utf8)) }

    /// Adds bytes.
    mutating func add(_ field: Int, bytes: [UInt8]) {
        append(Self.key(field, 2) + Self.varint(UInt64(bytes.count)) + bytes)
    }

    /// Adds a message.
    mutating func add(_ field: Int, _ message: WrittenMessage) {
        append(Self.key(field, 2) + Self.varint(UInt64(message.byteCount)))
        for piece in message.pieces {
            if case .bytes(let bytes) = piece { append(bytes, counted: false) } else { pieces.append(piece) }
        }
        byteCount += message.byteCount
    }

    /// Adds integers, packed.
    mutating func add(_ field: Int, packed values: [Int]) {
        add(field, bytes: values.flatMap { Self.varint(UInt64(bitPattern: Int64($0))) })
    }

    /// Adds numbers of 32 bits, packed.
    mutating func add(_ field: Int, packed values: [Float]) {
        add(field, bytes: values.flatMap { Self.bytes(of: $0.bitPattern) })
    }

    /// Adds bytes that are made when the message is written, part by part.
    mutating func add(_ field: Int, byteCount count: Int, later source: @escaping ByteSource) {
        append(Self.key(field, 2) + Self.varint(UInt64(count)))
        pieces.append(.later(count: count, source))
        byteCount += count
    }

    /// Adds an entry of a map from texts to texts.
    mutating func add(_ field: Int, key: String, value: String) {
        var entry = WrittenMessage()
        entry.add(1, key)
        entry.add(2, value)
        add(field, entry)
    }

    /// Hands the message's bytes to `body`, part by part.
    func write(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        for piece in pieces {
            switch piece {
            case .bytes(let bytes): try bytes.withUnsafeBytes(body)
            case .later(let count, let source):
                var written = 0
                try source {
                    written += $0.count
                    try body($0)
                }
                precondition(written == count, "\(count) bytes were announced, not \(written)")
            }
        }
    }

    private mutating func append(_ bytes: [UInt8], counted: Bool = true) {
        if counted { byteCount += bytes.count }
        guard case .bytes(var last)? = pieces.last else { return pieces.append(.bytes(bytes)) }
        // Taken out first, so that it grows in place instead of being copied.
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
