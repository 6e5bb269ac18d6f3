internal import ImprintModel

/// A known value of an ML program: numbers with a shape, or texts.
enum MILValue {
    case numbers(Constant)
    case texts([String])

    var constant: Constant? { if case .numbers(let constant) = self { constant } else { nil } }
    var text: String? { if case .texts(let texts) = self { texts.first } else { nil } }
}

/// The types of elements, by their numbers in the file, as far as a classifier needs them.
private enum MILType: Int {
    case bool = 1, string = 2, float16 = 10, float32 = 11, float64 = 12, bfloat16 = 13
    case int8 = 21, int16 = 22, int32 = 23, int64 = 24
    case uint8 = 31, uint16 = 32, uint32 = 33, uint64 = 34

    /// Bytes of one element in a file of weights, and in bytes of a message.
    var size: Int {
        switch self {
        case .bool, .int8, .uint8: 1
        case .float16, .bfloat16, .int16, .uint16: 2
        case .float32, .int32, .uint32: 4
        case .float64, .int64, .uint64: 8
        case .string: 0
        }
    }
}

extension MILValue {
    /// Reads a value, from the message or the package's file of weights.
    /// - Throws: `WireProblem` and `ImportError.Problem` if it breaks the rules of the format.
    init(_ message: WireMessage, in package: CoreMLPackage, for name: String) throws {
        var (type, immediate, blob): (WireMessage?, WireMessage?, WireMessage?)
        try message.forEachField { field in
            switch field.number {
            case 2: type = try field.message()
            case 3: immediate = try field.message()
            case 5: blob = try field.message()
            default: break
            }
        }
        if let blob {
            let (element, shape) = try Self.tensor(type, name)
            self = .numbers(try Self.stored(blob, element, shape, package, name))
            return
        }
        guard let immediate else { throw Self.problem(name, "neither numbers nor a place for them") }
        var value: MILValue?
        try immediate.forEachField { field in
            switch field.number {
            case 1:
                let (element, shape) = try Self.tensor(type, name)
                value = try Self.written(field.message(), element, shape, name)
            case 3: value = .texts(try Self.list(field.message(), name))
            default: break
            }
        }
        guard let value else { throw Self.problem(name, "a value that is neither a tensor nor a list") }
        self = value
    }

    private static func problem(_ name: String, _ what: String) -> ImportError.Problem {
        .malformed(reason: "the value \(name.debugDescription) has \(what)")
    }

    private static func tensor(_ message: WireMessage?, _ name: String) throws -> (MILType, [Int]) {
        var (found, shape): (Int, [Int]) = (0, [])
        try message?.forEachField { field in
            guard field.number == 1 else { return }
            try field.message().forEachField { field in
                switch field.number {
                case 1: found = try field.integer()
                case 3:
                    var length = -1
                    try field.message().forEachField { field in
                        guard field.number == 1 else { return }
                        length = 0
                        try field.message().forEachField { if $0.number == 1 { length = try $0.integer() } }
                    }
                    try shape.append(length, upTo: 16, "axes")
                default: break
                }
            }
        }
        guard let type = MILType(rawValue: found) else { throw problem(name, "elements of the type \(found)") }
        guard shape.allSatisfy({ $0 >= 0 }), let count = elementCount(shape), count < 1 << 40 else {
            throw problem(name, "the shape \(shape)")
        }
        return (type, shape)
    }

    /// Numbers or texts in the message itself.
    private static func written(
        _ message: WireMessage, _ type: MILType, _ shape: [Int], _ name: String
    ) throws -> MILValue {
        var (floats, integers, texts): ([Float], [Int], [String]) = ([], [], [])
        var bytes: Constant?
        let count = checkedProduct(shape) ?? 0
        try message.forEachField { field in
            let kind = field.number
            try field.message().forEachField { field in
                guard field.number == 1 else { return }
                switch kind {
                case 1: try field.append(to: &floats)
                case 2, 3, 5: try field.append(to: &integers, limit: count, of: "numbers in the value \(name)")
                case 4: try texts.append(field.string(), upTo: CoreMLModel.greatestCount, "texts")
                case 6: try field.append(doublesTo: &floats)
                case 7: bytes = try elements(in: message.file, field.bytes(), type, shape, name)
                default: break
                }
            }
        }
        if type == .string { return .texts(texts) }
        let isFloat = [.float16, .float32, .float64, .bfloat16].contains(type)
        let constant =
            bytes ?? (isFloat ? Constant(shape: shape, floats: floats) : Constant(shape: shape, integers: integers))
        guard constant.count == count else { throw problem(name, "\(constant.count) numbers for the shape \(shape)") }
        return .numbers(constant)
    }

    /// Elements as they lie in memory, the lowest byte first.
    private static func elements(
        in file: MappedFile, _ range: Range<Int>, _ type: MILType, _ shape: [Int], _ name: String
    ) throws -> Constant {
        guard let count = checkedProduct(shape), type.size > 0, range.count == count * type.size else {
            throw problem(name, "\(range.count) bytes for the shape \(shape)")
        }
        let places = stride(from: range.lowerBound, to: range.upperBound, by: type.size)
        func whole<Number: FixedWidthInteger>(_: Number.Type) -> Constant {
            Constant(shape: shape, integers: places.map { Int(truncatingIfNeeded: file.load(Number.self, at: $0)) })
        }
        switch type {
        case .float32: return Constant(shape: shape, floats: try file.floats(range))
        case .float16: return Constant(shape: shape, floats: try file.halves(range))
        case .bfloat16:
            return Constant(
                shape: shape, floats: places.map { Float(bitPattern: UInt32(file.load(UInt16.self, at: $0)) << 16) })
        case .float64:
            return Constant(
                shape: shape, floats: places.map { Float(Double(bitPattern: file.load(UInt64.self, at: $0))) })
        case .bool, .uint8: return whole(UInt8.self)
        case .int8: return whole(Int8.self)
        case .int16: return whole(Int16.self)
        case .uint16: return whole(UInt16.self)
        case .int32: return whole(Int32.self)
        case .uint32: return whole(UInt32.self)
        case .int64, .uint64: return whole(Int64.self)
        case .string: throw problem(name, "texts as bytes")
        }
    }

    /// Numbers in the package's file of weights: a record of 64 bytes says if they are
    /// (mlmodel/src/MILBlob/Blob/StorageFormat.hpp, https://github.com/apple/coremltools).
    private static func stored(
        _ message: WireMessage, _ type: MILType, _ shape: [Int], _ package: CoreMLPackage, _ name: String
    ) throws -> Constant {
        var (path, place): (String, Int) = ("", 0)
        try message.forEachField { field in
            switch field.number {
            case 1: path = try field.string()
            case 2: place = try field.integer()
            default: break
            }
        }
        let file = try package.weights(path)
        guard file.count >= 64, file.load(UInt32.self, at: 4) == 2 else {
            throw problem(name, "its numbers in \(path), which is no file of weights of version 2")
        }
        guard place >= 64, place <= file.count - 64, file.load(UInt32.self, at: place) == 0xDEAD_BEEF else {
            throw problem(name, "its numbers at byte \(place) of \(path), where no record of them is")
        }
        let length = file.load(UInt64.self, at: place + 8)
        let offset = file.load(UInt64.self, at: place + 16)
        guard let start = Int(exactly: offset), start <= file.count, length <= UInt64(file.count - start) else {
            throw problem(name, "more numbers than \(path) holds")
        }
        return try elements(in: file, start..<(start + Int(length)), type, shape, name)
    }

    /// The texts of a list, or whole numbers as texts.
    private static func list(_ message: WireMessage, _ name: String) throws -> [String] {
        var texts: [String] = []
        func read(_ value: WireMessage) throws {
            try value.forEachField { field in
                guard field.number == 3 else { return }
                try field.message().forEachField { field in
                    guard field.number == 1 else { return }
                    try field.message().forEachField { field in
                        let kind = field.number
                        var numbers: [Int] = []
                        try field.message().forEachField { field in
                            guard field.number == 1 else { return }
                            if kind == 4 { try texts.append(field.string(), upTo: CoreMLModel.greatestCount, "texts") }
                            if kind == 2 || kind == 5 {
                                try field.append(to: &numbers, limit: 1, of: "numbers in a list")
                            }
                        }
                        try numbers.forEach { try texts.append("\($0)", upTo: CoreMLModel.greatestCount, "texts") }
                    }
                }
            }
        }
        try message.forEachField { if $0.number == 1 { try read($0.message()) } }
        return texts
    }
}
