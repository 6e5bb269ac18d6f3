internal import ImprintModel

/// A violation of the protobuf wire format; the caller adds the path of the file.
package enum WireError: Error, Equatable, CustomStringConvertible {
    /// A value or a length extends beyond the end of its message.
    case truncated(offset: Int)
    /// A varint has more than ten bytes.
    case overlongVarint(offset: Int)
    /// A field has an invalid number or wire type.
    case unknownType(offset: Int)
    /// A field's wire type differs from its definition.
    case mistyped(field: Int, offset: Int)
    /// Messages are nested too deeply.
    case tooDeep(offset: Int)
    /// A text is not UTF-8.
    case notText(field: Int, offset: Int)
    /// There are more items than any model has.
    case tooMany(item: String, limit: Int)

    package var description: String {
        switch self {
        case .truncated(let offset): "it is truncated in the middle of the field at byte \(offset)"
        case .overlongVarint(let offset): "the varint at byte \(offset) has more than ten bytes"
        case .unknownType(let offset): "there is no valid protobuf field at byte \(offset)"
        case .mistyped(let field, let offset): "the field \(field) at byte \(offset) has the wrong wire type"
        case .tooDeep(let offset):
            "the messages at byte \(offset) are nested more than \(WireMessage.maximumDepth) levels deep"
        case .notText(let field, let offset): "the field \(field) at byte \(offset) is not UTF-8 text"
        case .tooMany(let item, let limit): "it has more than \(limit) \(item)"
        }
    }
}

/// A message in the protobuf wire format, which is a range of a file's bytes and is not copied.
///
/// A field is a key, `(number << 3) | type` as a varint, and a value. Type 0 is a varint (seven bits per byte, lowest first). Types
/// 1 and 5 are eight and four bytes in little-endian order. Type 2 is a length followed by that many bytes (protobuf.dev,
/// "Encoding"). Readers visit the fields in file order; if a field occurs more than once, the last one wins.
package struct WireMessage {
    /// An upper bound for the nesting depth in all formats.
    static let maximumDepth = 64

    package let file: MappedFile
    /// The message's bytes in the file.
    let range: Range<Int>
    private let depth: Int

    /// Creates the message that spans a whole file.
    package init(_ file: MappedFile) {
        self.init(file, 0..<file.count, depth: 0)
    }

    private init(_ file: MappedFile, _ range: Range<Int>, depth: Int) {
        self.file = file
        self.range = range
        self.depth = depth
    }

    /// One field of a message.
    package struct Field {
        /// The field's number.
        package let number: Int
        fileprivate let value: Value
        fileprivate let offset: Int
        fileprivate let owner: WireMessage
    }

    fileprivate enum Value {
        case varint(UInt64)
        case fixed64(UInt64)
        case fixed32(UInt32)
        case bytes(Range<Int>)
    }

    /// Calls `body` for each field, in order.
    package func forEachField(_ body: (Field) throws -> Void) throws {
        var position = range.lowerBound
        while position < range.upperBound {
            let offset = position
            let key = try varint(&position)
            let number = Int(truncatingIfNeeded: key >> 3)
            guard number > 0, number < 1 << 29 else { throw WireError.unknownType(offset: offset) }
            let value: Value
            switch key & 7 {
            case 0: value = .varint(try varint(&position))
            case 1: value = .fixed64(try fixed(UInt64.self, &position))
            case 5: value = .fixed32(try fixed(UInt32.self, &position))
            case 2:
                let length = try varint(&position)
                guard length <= UInt64(range.upperBound - position) else { throw WireError.truncated(offset: offset) }
                value = .bytes(position..<(position + Int(length)))
                position += Int(length)
            default: throw WireError.unknownType(offset: offset)
            }
            try body(Field(number: number, value: value, offset: offset, owner: self))
        }
    }

    fileprivate func varint(_ position: inout Int) throws -> UInt64 {
        let start = position
        var result: UInt64 = 0
        for shift in stride(from: 0, to: 70, by: 7) {
            guard position < range.upperBound else { throw WireError.truncated(offset: start) }
            let byte = UInt64(file[position])
            position += 1
            // The tenth byte contributes only one bit.
            result |= shift < 63 ? (byte & 0x7F) << UInt64(shift) : (byte & 1) << 63
            if byte < 0x80 { return result }
        }
        throw WireError.overlongVarint(offset: start)
    }

    fileprivate func fixed<Number: FixedWidthInteger>(_ type: Number.Type, _ position: inout Int) throws -> Number {
        let size = MemoryLayout<Number>.size
        guard range.upperBound - position >= size else { throw WireError.truncated(offset: position) }
        defer { position += size }
        return file.load(type, at: position)
    }

    fileprivate func part(_ range: Range<Int>, depth: Int) -> WireMessage { WireMessage(file, range, depth: depth) }
    fileprivate func nested(_ range: Range<Int>, offset: Int) throws -> WireMessage {
        guard depth < Self.maximumDepth else { throw WireError.tooDeep(offset: offset) }
        return part(range, depth: depth + 1)
    }
}

extension WireMessage.Field {
    /// Whether the value is a byte range, such as packed values.
    package var isPacked: Bool {
        if case .bytes = value { true } else { false }
    }

    private var mistyped: WireError { .mistyped(field: number, offset: offset) }

    /// Returns the value as an int64.
    package func integer() throws -> Int {
        guard case .varint(let value) = value else { throw mistyped }
        return Int(truncatingIfNeeded: value)
    }

    /// Returns the value as a Boolean.
    package func bool() throws -> Bool { try integer() != 0 }

    /// Returns the value as a 32-bit floating-point number.
    func float() throws -> Float {
        guard case .fixed32(let value) = value else { throw mistyped }
        return Float(bitPattern: value)
    }

    /// Returns the value as a 64-bit floating-point number.
    package func double() throws -> Double {
        guard case .fixed64(let value) = value else { throw mistyped }
        return Double(bitPattern: value)
    }

    /// Returns the byte range of the value in the file.
    package func bytes() throws -> Range<Int> {
        guard case .bytes(let range) = value else { throw mistyped }
        return range
    }

    /// Returns the value as UTF-8 text.
    package func string() throws -> String {
        let range = try bytes()
        guard let text = owner.file.text(range) else { throw WireError.notText(field: number, offset: offset) }
        return text
    }

    /// Returns the value as a nested message.
    package func message() throws -> WireMessage { try owner.nested(bytes(), offset: offset) }

    /// Appends the integers of a repeated field, which contains one value or many packed values.
    ///
    /// - Parameter limit: The maximum number of values in total.
    func append(to values: inout [Int], limit: Int, of item: String) throws {
        try append(to: &values, limit: limit, of: item) { $0 }
    }

    /// Appends the transformed integers of a repeated field.
    func append<Number>(
        to values: inout [Number], limit: Int, of item: String, _ transform: (Int) -> Number
    ) throws {
        func append(_ value: UInt64) throws {
            guard values.count < limit else { throw WireError.tooMany(item: item, limit: limit) }
            values.append(transform(Int(truncatingIfNeeded: value)))
        }
        switch value {
        case .varint(let value): try append(value)
        case .bytes(let range):
            let part = owner.part(range, depth: 0)
            var position = range.lowerBound
            while position < range.upperBound { try append(part.varint(&position)) }
        default: throw mistyped
        }
    }

    /// Appends the 32-bit floating-point numbers of a repeated field.
    func append(to values: inout [Float]) throws {
        switch value {
        case .fixed32(let value): values.append(Float(bitPattern: value))
        case .bytes(let range):
            guard range.count % 4 == 0 else { throw mistyped }
            // Usually one field contains all values, which avoids a copy.
            if values.isEmpty {
                values = try owner.file.floats(range)
            } else {
                values += try owner.file.floats(range)
            }
        default: throw mistyped
        }
    }

    /// Appends the 64-bit floating-point numbers of a repeated field, rounded to 32 bits.
    func append(doublesTo values: inout [Float]) throws {
        switch value {
        case .fixed64(let value): values.append(Float(Double(bitPattern: value)))
        case .bytes(let range):
            guard range.count % 8 == 0 else { throw mistyped }
            try ImportError.Problem.checkMemory(forElements: values.count + range.count / 8)
            for position in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
                values.append(Float(Double(bitPattern: owner.file.load(UInt64.self, at: position))))
            }
        default: throw mistyped
        }
    }
}
