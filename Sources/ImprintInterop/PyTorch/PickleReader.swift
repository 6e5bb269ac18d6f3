/// Reads a pickle that uses only the opcodes and functions of checkpoints, without calling any function.
///
/// Source: Python's `pickle` and `pickletools`, protocols 2 to 5.
struct PickleReader {
    /// The values.
    private(set) var heap: PickleHeap
    /// The end of the pickle in the file.
    private(set) var end: Int
    /// The result.
    private(set) var root = PickleValue.none

    private let limit: Int
    private var stack: [PickleValue] = []
    /// The heights of the stack at each mark.
    private var heights: [Int] = []
    private var memo: [PickleValue?] = []

    private static let maximumStackHeight = 1 << 18
    private static let maximumMarkCount = 1 << 12
    /// The maximum number of arguments of a function.
    private static let maximumArgumentCount = 16

    /// Reads the pickle at the start of a range.
    ///
    /// - Throws: `ImportError.Problem` if it is damaged, too large, or needs other opcodes or functions.
    init(_ file: MappedFile, in range: Range<Int>) throws(ImportError.Problem) {
        heap = PickleHeap(file)
        end = range.lowerBound
        limit = range.upperBound
        while true {
            let offset = end
            let code = try integer(UInt8.self)
            guard let opcode = PickleOpcode(rawValue: code) else { throw Self.unknown(code, at: offset) }
            if opcode == .stop { break }
            try execute(opcode)
        }
        root = try pop()
        stack = []
        memo = []
    }

    private static func unknown(_ code: UInt8, at offset: Int) -> ImportError.Problem {
        let hexadecimal = "0x" + (code < 16 ? "0" : "") + String(code, radix: 16, uppercase: true)
        let name = PickleOpcode.rejected[code].map { " (\($0))" } ?? ""
        return .unsuitableModel(
            found:
                "a pickle with the opcode \(hexadecimal)\(name) at offset \(offset), which checkpoints of tensors do not have",
            advice: PyTorchCheckpoint.advice)
    }
}

// MARK: Bytes

extension PickleReader {
    private mutating func take(_ count: Int) throws(ImportError.Problem) -> Range<Int> {
        guard count >= 0, count <= limit - end else {
            throw .malformed(reason: "its pickle ends at offset \(limit), inside a value")
        }
        defer { end += count }
        return end..<(end + count)
    }

    private mutating func integer<Number: FixedWidthInteger>(_ type: Number.Type) throws(ImportError.Problem) -> Number
    {
        let range = try take(MemoryLayout<Number>.size)
        return heap.file.load(type, at: range.lowerBound)
    }

    /// Returns the range of bytes after their number.
    private mutating func bytes<Number: FixedWidthInteger>(
        countedBy type: Number.Type
    ) throws(ImportError.Problem) -> Range<Int> {
        guard let count = Int(exactly: try integer(type)) else {
            throw .malformed(reason: "its pickle has a value of \(UInt64.max) bytes")
        }
        return try take(count)
    }

    /// Returns the text up to the next end of a line.
    private mutating func line() throws(ImportError.Problem) -> String {
        let start = end
        while try integer(UInt8.self) != UInt8(ascii: "\n") {
            guard end - start <= PickleHeap.maximumTextLength else {
                throw .malformed(reason: "its pickle has a name of more than \(PickleHeap.maximumTextLength) bytes")
            }
        }
        guard let text = heap.file.text(start..<(end - 1)) else {
            throw .malformed(reason: "its pickle has a name at offset \(start) that is not UTF-8")
        }
        return text
    }

    /// Returns the little-endian two's complement integer in a range; `.other` if it has more than 64 bits.
    private mutating func long(_ range: Range<Int>) throws(ImportError.Problem) -> PickleValue {
        guard range.count <= 8 else { return .other }
        guard let last = range.last else { return .integer(0) }
        var value: Int64 = heap.file[last] >= 0x80 ? -1 : 0
        for offset in range.reversed() { value = value << 8 | Int64(heap.file[offset]) }
        return try heap.integer(value)
    }
}

// MARK: Stack

extension PickleReader {
    private mutating func push(_ value: PickleValue) throws(ImportError.Problem) {
        guard stack.count < Self.maximumStackHeight else {
            throw .exceedsLimit(
                reason: "its pickle needs a stack of more than \(Self.maximumStackHeight) values")
        }
        stack.append(value)
    }

    /// Whether there is no value above the last mark.
    private var isEmpty: Bool { stack.count == heights.last ?? 0 }

    private static let missingValue = ImportError.Problem.malformed(
        reason: "its pickle reads a value that no opcode before it pushes")

    private mutating func pop() throws(ImportError.Problem) -> PickleValue {
        guard !isEmpty, let value = stack.popLast() else { throw Self.missingValue }
        return value
    }

    private func top() throws(ImportError.Problem) -> PickleValue {
        guard !isEmpty, let value = stack.last else { throw Self.missingValue }
        return value
    }

    /// Removes the values above the last mark, and the mark, and passes the values to `body`.
    private mutating func popMark(
        _ body: (inout PickleReader, [PickleValue]) throws(ImportError.Problem) -> Void
    ) throws(ImportError.Problem) {
        guard let height = heights.popLast() else { throw Self.missingValue }
        // A slice would share the stack's memory, so that removing its values would copy all others.
        let values = Array(stack[height...])
        stack.removeLast(values.count)
        try body(&self, values)
    }

    /// Appends values to the list, dictionary or other object at the top of the stack.
    private mutating func extend(
        _ target: PickleValue, with values: some Collection<PickleValue>, isDictionary: Bool
    ) throws(ImportError.Problem) {
        switch target {
        case .list(let index) where !isDictionary: try heap.append(values, to: index)
        case .dictionary(let index) where isDictionary && values.count.isMultiple(of: 2):
            try heap.append(values, to: index)
        case .other: break
        default: throw .malformed(reason: "its pickle adds elements to a value that cannot have any")
        }
    }

    /// Pops the values above the last mark and adds them to the container below it.
    private mutating func popElements(isDictionary: Bool) throws(ImportError.Problem) {
        guard let height = heights.last, height > (heights.dropLast().last ?? 0) else { throw Self.missingValue }
        let target = stack[height - 1]
        try popMark { (reader, values) throws(ImportError.Problem) in
            try reader.extend(target, with: values, isDictionary: isDictionary)
        }
    }

    private mutating func pushTuple(_ count: Int) throws(ImportError.Problem) {
        guard stack.count - (heights.last ?? 0) >= count else { throw Self.missingValue }
        let index = try heap.container(stack.suffix(count))
        stack.removeLast(count)
        try push(.tuple(index))
    }
}

// MARK: Memo

extension PickleReader {
    private mutating func store(_ index: Int) throws(ImportError.Problem) {
        let value = try top()
        if index >= memo.count {
            let count = index + 1 - memo.count
            try heap.reserve(count * MemoryLayout<PickleValue?>.stride)
            memo.append(contentsOf: repeatElement(nil, count: count))
        }
        memo[index] = value
    }

    private mutating func recall(_ index: Int) throws(ImportError.Problem) {
        guard index < memo.count, let value = memo[index] else {
            throw .malformed(reason: "its pickle reads the value \(index), which no opcode before it stores")
        }
        try push(value)
    }
}

// MARK: Opcodes

extension PickleReader {
    private mutating func execute(_ opcode: PickleOpcode) throws(ImportError.Problem) {
        switch opcode {
        case .protocolVersion:
            let version = try integer(UInt8.self)
            guard (2...5).contains(version) else {
                throw .unsuitableModel(
                    found: "a pickle of protocol \(version), expected 2 to 5", advice: PyTorchCheckpoint.advice)
            }
        case .frame: _ = try take(8)
        case .stop: break
        case .mark:
            guard heights.count < Self.maximumMarkCount else {
                throw .exceedsLimit(
                    reason: "its pickle nests values more than \(Self.maximumMarkCount) levels deep")
            }
            heights.append(stack.count)
        case .pop:
            if isEmpty, heights.popLast() != nil { return }
            _ = try pop()
        case .popMark: try popMark { (_, _) in }
        case .none: try push(.none)
        case .newTrue: try push(.bool(true))
        case .newFalse: try push(.bool(false))
        case .binaryInteger: try push(.integer(integer(Int32.self)))
        case .binaryInteger1: try push(.integer(Int32(integer(UInt8.self))))
        case .binaryInteger2: try push(.integer(Int32(integer(UInt16.self))))
        case .long1: try push(long(bytes(countedBy: UInt8.self)))
        case .long4: try push(long(bytes(countedBy: Int32.self)))
        case .binaryFloat: try pushOther(skipping: take(8))
        case .binaryBytes: try pushOther(skipping: bytes(countedBy: UInt32.self))
        case .shortBinaryBytes: try pushOther(skipping: bytes(countedBy: UInt8.self))
        case .binaryBytes8, .byteArray8: try pushOther(skipping: bytes(countedBy: UInt64.self))
        case .shortBinaryString, .shortBinaryUnicode: try push(heap.text(bytes(countedBy: UInt8.self)))
        case .binaryString: try push(heap.text(bytes(countedBy: Int32.self)))
        case .binaryUnicode: try push(heap.text(bytes(countedBy: UInt32.self)))
        case .binaryUnicode8: try push(heap.text(bytes(countedBy: UInt64.self)))
        case .emptyTuple: try pushTuple(0)
        case .tuple1: try pushTuple(1)
        case .tuple2: try pushTuple(2)
        case .tuple3: try pushTuple(3)
        case .tuple:
            guard let height = heights.popLast() else { throw Self.missingValue }
            try pushTuple(stack.count - height)
        case .emptyList: try push(.list(heap.container()))
        case .emptyDictionary: try push(.dictionary(heap.container()))
        case .emptySet: try push(.other)
        case .frozenSet:
            try popMark { (_, _) in }
            try push(.other)
        case .append:
            let value = try pop()
            try extend(top(), with: [value], isDictionary: false)
        case .appends, .addItems: try popElements(isDictionary: false)
        case .setItem:
            let value = try pop()
            let key = try pop()
            try extend(top(), with: [key, value], isDictionary: true)
        case .setItems: try popElements(isDictionary: true)
        case .global: try pushGlobal(line() + "." + line())
        case .stackGlobal:
            let (name, module) = (try pop(), try pop())
            guard let name = try heap.text(name), let module = try heap.text(module) else {
                throw .malformed(reason: "its pickle has a function without a name")
            }
            try pushGlobal(module + "." + name)
        case .persistentID: try push(heap.storage(pop()))
        case .reduce, .newObject:
            let arguments = try pop()
            try push(result(of: pop(), arguments))
        case .build:
            // The state of a dictionary is the metadata of the module. Tensors do not depend on the state of other objects.
            _ = try pop()
            switch try top() {
            case .dictionary, .tensor, .other: break
            default: throw .malformed(reason: "its pickle sets the state of a value that cannot have one")
            }
        case .binaryGet: try recall(Int(integer(UInt8.self)))
        case .longBinaryGet: try recall(Int(integer(UInt32.self)))
        case .binaryPut: try store(Int(integer(UInt8.self)))
        case .longBinaryPut: try store(Int(integer(UInt32.self)))
        case .memoize: try store(memo.count)
        }
    }

    private mutating func pushOther(skipping _: Range<Int>) throws(ImportError.Problem) { try push(.other) }

    private mutating func pushGlobal(_ name: String) throws(ImportError.Problem) {
        guard let global = PickleGlobal(name) else {
            throw .unsuitableModel(
                found: "a pickle that uses \(name), which Imprint does not run", advice: PyTorchCheckpoint.advice)
        }
        try push(.global(global))
    }

    /// Returns the result of a function of the list, without calling it.
    private mutating func result(
        of function: PickleValue, _ arguments: PickleValue
    ) throws(ImportError.Problem) -> PickleValue {
        guard case .tuple(let index) = arguments else {
            throw .malformed(reason: "its pickle calls a function without arguments")
        }
        let count = heap.count(of: index)
        let arguments = heap.elements(of: index, limit: Self.maximumArgumentCount)
        switch function {
        case .other, .global(.other): return .other
        case .global(.orderedDictionary) where count == 0: return .dictionary(try heap.container())
        case .global(.orderedDictionary):
            // Python 2 passes a list of lists of a key and a value.
            guard count == 1, case .list(let pairs) = arguments[0] else { break }
            return .dictionary(try dictionary(ofPairs: pairs))
        case .global(.size):
            guard count == 1, case .tuple = arguments[0] else { break }
            return arguments[0]
        case .global(.tensor): return try heap.tensor(arguments)
        case .global(.parameter):
            guard let tensor = arguments.first, case .tensor = tensor else { break }
            return tensor
        default: break
        }
        throw .malformed(reason: "its pickle calls a function with unexpected arguments")
    }

    private mutating func dictionary(ofPairs list: UInt32) throws(ImportError.Problem) -> UInt32 {
        // Reserve the memory of the temporary array before creating it.
        try heap.reserve(heap.count(of: list) * MemoryLayout<PickleValue>.stride)
        let result = try heap.container()
        for pair in heap.elements(of: list, limit: heap.count(of: list)) {
            guard case .list(let index) = pair, heap.count(of: index) == 2 else {
                throw .malformed(reason: "its pickle has a dictionary with an element that is not a key and a value")
            }
            try heap.append(heap.elements(of: index, limit: 2), to: result)
        }
        return result
    }
}
