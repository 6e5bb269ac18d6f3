internal import ImprintModel

/// What breaks the rules of the protobuf wire format; whoever knows the file names it.
enum WireProblem: Error, Equatable, CustomStringConvertible {
    /// A number or a length goes on beyond the end of its message.
    case truncated(offset: Int)
    /// A number has more than ten bytes.
    case overlongNumber(offset: Int)
    /// A field has a number or a type that the format does not have.
    case unknownType(offset: Int)
    /// A field holds something else than its number stands for.
    case mistyped(field: Int, offset: Int)
    /// Messages lie in each other deeper than any writer nests them.
    case tooDeep(offset: Int)
    /// A text is not UTF-8.
    case notText(field: Int, offset: Int)
    /// There is more of something than any model has.
    case tooMany(what: String, limit: Int)

    var description: String {
        switch self {
        case .truncated(let offset): "it ends in the middle of what begins at byte \(offset)"
        case .overlongNumber(let offset): "the number at byte \(offset) has more than ten bytes"
        case .unknownType(let offset): "at byte \(offset) is no field of a protobuf message"
        case .mistyped(let field, let offset): "the field \(field) at byte \(offset) has another type than it must have"
        case .tooDeep(let offset): "at byte \(offset) more than \(WireMessage.greatestDepth) messages lie in each other"
        case .notText(let field, let offset): "the field \(field) at byte \(offset) is not UTF-8 text"
        case .tooMany(let what, let limit): "it has more than \(limit) \(what)"
        }
    }
}

/// One message in the protobuf wire format: a part of a file's bytes, which stay if they are.
///
/// A field is a key, `(number << 3) | type` as a varint, and a value: type 0 a varint (seven bits a byte, the lowest first), 1 and 5 eight and
/// four bytes, the lowest first, 2 a length and so many bytes (protobuf.dev, "Encoding"). Whoever reads takes the fields it knows in the order
/// in which they are there; the last of several counts where one is expected.
struct WireMessage {
    /// Deeper than any of the formats nests its messages.
    static let greatestDepth = 64

    let file: MappedFile
    /// The message's bytes in the file.
    let range: Range<Int>
    private let depth: Int

    /// The message that a whole file is.
    init(_ file: MappedFile) {
        self.init(file, 0..<file.count, depth: 0)
    }

    private init(_ file: MappedFile, _ range: Range<Int>, depth: Int) {
        self.file = file
        self.range = range
        self.depth = depth
    }

    /// One field of a message.
    struct Field {
        /// The field's number.
        let number: Int
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
    func forEachField(_ body: (Field) throws -> Void) throws {
        var place = range.lowerBound
        while place < range.upperBound {
            let offset = place
            let key = try varint(&place)
            let number = Int(truncatingIfNeeded: key >> 3)
            guard number > 0, number < 1 << 29 else { throw WireProblem.unknownType(offset: offset) }
            let value: Value
            switch key & 7 {
            case 0: value = .varint(try varint(&place))
            case 1: value = .fixed64(try fixed(UInt64.self, &place))
            case 5: value = .fixed32(try fixed(UInt32.self, &place))
            case 2:
                let length = try varint(&place)
                guard length <= UInt64(range.upperBound - place) else { throw WireProblem.truncated(offset: offset) }
                value = .bytes(place..<(place + Int(length)))
                place += Int(length)
            default: throw WireProblem.unknownType(offset: offset)
            }
            try body(Field(number: number, value: value, offset: offset, owner: self))
        }
    }

    fileprivate func varint(_ place: inout Int) throws -> UInt64 {
        let start = place
        var result: UInt64 = 0
        for shift in stride(from: 0, to: 70, by: 7) {
            guard place < range.upperBound else { throw WireProblem.truncated(offset: start) }
            let byte = UInt64(file[place])
            place += 1
            // The tenth byte has one bit left to give.
            result |= shift < 63 ? (byte & 0x7F) << UInt64(shift) : (byte & 1) << 63
            if byte < 0x80 { return result }
        }
        throw WireProblem.overlongNumber(offset: start)
    }

    fileprivate func fixed<Number: FixedWidthInteger>(_ type: Number.Type, _ place: inout Int) throws -> Number {
        let size = MemoryLayout<Number>.size
        guard range.upperBound - place >= size else { throw WireProblem.truncated(offset: place) }
        defer { place += size }
        return file.load(type, at: place)
    }

    fileprivate func part(_ range: Range<Int>, depth: Int) -> WireMessage { WireMessage(file, range, depth: depth) }
    fileprivate func nested(_ range: Range<Int>, offset: Int) throws -> WireMessage {
        guard depth < Self.greatestDepth else { throw WireProblem.tooDeep(offset: offset) }
        return part(range, depth: depth + 1)
    }
}

extension WireMessage.Field {
    /// Whether the value is bytes, such as those of many numbers together.
    var isPacked: Bool {
        if case .bytes = value { true } else { false }
    }

    private var mistyped: WireProblem { .mistyped(field: number, offset: offset) }

    /// A whole number, as an int64 is stored.
    func integer() throws -> Int {
        guard case .varint(let value) = value else { throw mistyped }
        return Int(truncatingIfNeeded: value)
    }

    /// Yes or no.
    func bool() throws -> Bool { try integer() != 0 }

    /// A 32-bit floating-point number.
    func float() throws -> Float {
        guard case .fixed32(let value) = value else { throw mistyped }
        return Float(bitPattern: value)
    }

    /// A 64-bit floating-point number.
    func double() throws -> Double {
        guard case .fixed64(let value) = value else { throw mistyped }
        return Double(bitPattern: value)
    }

    /// The place in the file of so many bytes of any content.
    func bytes() throws -> Range<Int> {
        guard case .bytes(let range) = value else { throw mistyped }
        return range
    }

    /// A text.
    func string() throws -> String {
        let range = try bytes()
        guard let text = owner.file.text(range) else { throw WireProblem.notText(field: number, offset: offset) }
        return text
    }

    /// A message in this one.
    func message() throws -> WireMessage { try owner.nested(bytes(), offset: offset) }

    /// Appends the whole numbers of a repeated field, of which a field holds one, or any number "packed".
    /// - Parameter limit: How many there may be in all.
    func append(to numbers: inout [Int], limit: Int, of what: String) throws {
        try append(to: &numbers, limit: limit, of: what) { $0 }
    }

    /// Appends what `number` makes of each whole number of a repeated field.
    func append<Number>(
        to numbers: inout [Number], limit: Int, of what: String, _ number: (Int) -> Number
    ) throws {
        func append(_ value: UInt64) throws {
            guard numbers.count < limit else { throw WireProblem.tooMany(what: what, limit: limit) }
            numbers.append(number(Int(truncatingIfNeeded: value)))
        }
        switch value {
        case .varint(let value): try append(value)
        case .bytes(let range):
            let part = owner.part(range, depth: 0)
            var place = range.lowerBound
            while place < range.upperBound { try append(part.varint(&place)) }
        default: throw mistyped
        }
    }

    /// Appends the 32-bit floating-point numbers of a repeated field.
    func append(to numbers: inout [Float]) throws {
        switch value {
        case .fixed32(let value): numbers.append(Float(bitPattern: value))
        case .bytes(let range):
            guard range.count % 4 == 0 else { throw mistyped }
            // Mostly all are in one field, and need no copy.
            if numbers.isEmpty {
                numbers = try owner.file.floats(range)
            } else {
                numbers += try owner.file.floats(range)
            }
        default: throw mistyped
        }
    }

    /// Appends the 64-bit floating-point numbers of a repeated field, rounded to 32 bits.
    func append(doublesTo numbers: inout [Float]) throws {
        switch value {
        case .fixed64(let value): numbers.append(Float(Double(bitPattern: value)))
        case .bytes(let range):
            guard range.count % 8 == 0 else { throw mistyped }
            try ImportError.Problem.checkMemory(forNumbers: numbers.count + range.count / 8)
            for place in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
                numbers.append(Float(Double(bitPattern: owner.file.load(UInt64.self, at: place))))
            }
        default: throw mistyped
        }
    }
}
