internal import ImprintCore
internal import ImprintModel

/// A constant of an ML program: a tensor or strings.
enum MILValue {
    case tensor(Constant)
    case texts([String])

    var constant: Constant? { if case .tensor(let constant) = self { constant } else { nil } }
    var text: String? { if case .texts(let texts) = self { texts.first } else { nil } }
}

/// The element types that a classifier needs, by their codes in the file.
private enum MILType: Int {
    case bool = 1, string = 2, float16 = 10, float32 = 11, float64 = 12, bfloat16 = 13
    case int8 = 21, int16 = 22, int32 = 23, int64 = 24
    case uint8 = 31, uint16 = 32, uint32 = 33, uint64 = 34

    /// The size of an element in bytes.
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
    /// Decodes a value from the message or from the package's weight file.
    ///
    /// - Throws: `WireError` and `ImportError.Problem` if the value is invalid.
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
            self = .tensor(try Self.decodeBlob(blob, element, shape, package, name))
            return
        }
        guard let immediate else {
            throw Self.problem(name, "neither an immediate value nor a reference to the weight file")
        }
        var value: MILValue?
        try immediate.forEachField { field in
            switch field.number {
            case 1:
                let (element, shape) = try Self.tensor(type, name)
                value = try Self.decodeImmediate(field.message(), element, shape, name)
            case 3: value = .texts(try Self.list(field.message()))
            default: break
            }
        }
        guard let value else { throw Self.problem(name, "a value that is neither a tensor nor a list") }
        self = value
    }

    private static func problem(_ name: String, _ reason: String) -> ImportError.Problem {
        .malformed(reason: "the value \(name.debugDescription) has \(reason)")
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
        guard let type = MILType(rawValue: found) else { throw problem(name, "the element type \(found)") }
        guard shape.allSatisfy({ $0 >= 0 }), let count = elementCount(shape), count < 1 << 40 else {
            throw problem(name, "the shape \(shape)")
        }
        return (type, shape)
    }

    /// Decodes an immediate tensor or strings in the message itself.
    private static func decodeImmediate(
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
                case 2, 3, 5: try field.append(to: &integers, limit: count, of: "elements in the value \(name)")
                case 4: try texts.append(field.string(), upTo: CoreMLModel.maximumCount, "texts")
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
        guard constant.count == count else { throw problem(name, "\(constant.count) elements for the shape \(shape)") }
        return .tensor(constant)
    }

    /// Decodes little-endian elements.
    ///
    /// Integers of 8 and 16 bits become floating-point values, which represent them exactly: compressed weights are such integers.
    private static func elements(
        in file: MappedFile, _ range: Range<Int>, _ type: MILType, _ shape: [Int], _ name: String
    ) throws -> Constant {
        guard let count = checkedProduct(shape), type.size > 0, range.count == count * type.size else {
            throw problem(name, "\(counted(range.count, "byte")) for the shape \(shape)")
        }
        try ImportError.Problem.checkMemory(forElements: count)
        func load<Number: FixedWidthInteger>(_ type: Number.Type, _ index: Int) -> Number {
            file.load(type, at: range.lowerBound + index * MemoryLayout<Number>.size)
        }
        func floats<Number: FixedWidthInteger>(_ type: Number.Type) -> Constant {
            Constant(shape: shape, floats: (0..<count).map { Float(load(type, $0)) })
        }
        func integers<Number: FixedWidthInteger>(_ type: Number.Type) -> Constant {
            Constant(shape: shape, integers: (0..<count).map { Int(truncatingIfNeeded: load(type, $0)) })
        }
        switch type {
        case .float32: return Constant(shape: shape, floats: try file.floats(range))
        case .float16: return Constant(shape: shape, floats: try file.halves(range))
        case .bfloat16:
            return Constant(
                shape: shape, floats: (0..<count).map { Float(bitPattern: UInt32(load(UInt16.self, $0)) << 16) })
        case .float64:
            return Constant(
                shape: shape, floats: (0..<count).map { Float(Double(bitPattern: load(UInt64.self, $0))) })
        case .bool, .uint8: return floats(UInt8.self)
        case .int8: return floats(Int8.self)
        case .int16: return floats(Int16.self)
        case .uint16: return floats(UInt16.self)
        case .int32: return integers(Int32.self)
        case .uint32: return integers(UInt32.self)
        case .int64, .uint64: return integers(Int64.self)
        case .string: throw problem(name, "strings as bytes")
        }
    }

    /// Decodes a tensor in the package's weight file, whose location is in a record of 64 bytes.
    ///
    /// Source: mlmodel/src/MILBlob/Blob/StorageFormat.hpp, https://github.com/apple/coremltools.
    private static func decodeBlob(
        _ message: WireMessage, _ type: MILType, _ shape: [Int], _ package: CoreMLPackage, _ name: String
    ) throws -> Constant {
        var (path, recordOffset): (String, Int) = ("", 0)
        try message.forEachField { field in
            switch field.number {
            case 1: path = try field.string()
            case 2: recordOffset = try field.integer()
            default: break
            }
        }
        let file = try package.weights(path)
        guard file.count >= 64, file.load(UInt32.self, at: 4) == 2 else {
            throw problem(name, "its data in \(path), which is not a weight file of version 2")
        }
        guard recordOffset >= 64, recordOffset <= file.count - 64,
            file.load(UInt32.self, at: recordOffset) == 0xDEAD_BEEF
        else {
            throw problem(name, "its data at byte \(recordOffset) of \(path), which has no record at that offset")
        }
        let length = file.load(UInt64.self, at: recordOffset + 8)
        let offset = file.load(UInt64.self, at: recordOffset + 16)
        guard let start = Int(exactly: offset), start <= file.count, length <= UInt64(file.count - start) else {
            throw problem(name, "more elements than \(path)")
        }
        return try elements(in: file, start..<(start + Int(length)), type, shape, name)
    }

    /// Decodes a list of strings, or of integers as strings.
    private static func list(_ message: WireMessage) throws -> [String] {
        var texts: [String] = []
        func read(_ value: WireMessage) throws {
            try value.forEachField { field in
                guard field.number == 3 else { return }
                try field.message().forEachField { field in
                    guard field.number == 1 else { return }
                    try field.message().forEachField { field in
                        let kind = field.number
                        var integers: [Int] = []
                        try field.message().forEachField { field in
                            guard field.number == 1 else { return }
                            if kind == 4 { try texts.append(field.string(), upTo: CoreMLModel.maximumCount, "texts") }
                            if kind == 2 || kind == 5 {
                                try field.append(to: &integers, limit: 1, of: "values in a list element")
                            }
                        }
                        try integers.forEach { try texts.append("\($0)", upTo: CoreMLModel.maximumCount, "texts") }
                    }
                }
            }
        }
        try message.forEachField { if $0.number == 1 { try read($0.message()) } }
        return texts
    }
}
