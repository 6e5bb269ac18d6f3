internal import ImprintCore

/// A table of a FlatBuffer, whose offsets are checked against the size of the file.
///
/// Fields have the index of their declaration in the schema; a field that the file omits has its default value. Offsets only point
/// forward, except the offset of the list of fields, so no cycles exist.
///
/// Source: FlatBuffers, "Internals", https://flatbuffers.dev/internals.
struct FlatTable {
    /// An upper bound for the length of a name in bytes.
    private static let maximumNameLength = 1024

    private let file: MappedFile
    /// The offset of the table.
    private let start: Int
    /// The bytes of the list of field offsets.
    private let fields: Range<Int>

    /// Reads the root table of a file.
    init(rootOf file: MappedFile) throws(ImportError.Problem) {
        self = try FlatTable(file, at: Int(Self.load(UInt32.self, in: file, at: 0)))
    }

    private init(_ file: MappedFile, at start: Int) throws(ImportError.Problem) {
        let list = start - Int(try Self.load(Int32.self, in: file, at: start))
        let length = Int(try Self.load(UInt16.self, in: file, at: list))
        guard length >= 4, list + length <= file.count else {
            throw .malformed(reason: "the table at byte \(start) has an invalid list of fields")
        }
        self.file = file
        self.start = start
        fields = list..<(list + length)
    }

    private static func load<Number: FixedWidthInteger>(
        _ type: Number.Type, in file: MappedFile, at offset: Int
    ) throws(ImportError.Problem) -> Number {
        guard offset >= 0, offset <= file.count - MemoryLayout<Number>.size else {
            throw .malformed(reason: "it refers to byte \(offset), but has \(counted(file.count, "byte"))")
        }
        return file.load(type, at: offset)
    }

    /// Returns the offset of a field; nil if the file omits it.
    private func offset(of index: Int) throws(ImportError.Problem) -> Int? {
        let entry = fields.lowerBound + 4 + 2 * index
        guard entry + 2 <= fields.upperBound else { return nil }
        let offset = Int(try Self.load(UInt16.self, in: file, at: entry))
        return offset == 0 ? nil : start + offset
    }

    /// Returns the offset that a field refers to; nil if the file omits the field.
    private func target(of index: Int) throws(ImportError.Problem) -> Int? {
        guard let offset = try offset(of: index) else { return nil }
        return offset + Int(try Self.load(UInt32.self, in: file, at: offset))
    }

    /// Whether the file has a field.
    func has(_ index: Int) throws(ImportError.Problem) -> Bool { try offset(of: index) != nil }

    /// Returns an integer.
    func integer<Number: FixedWidthInteger>(
        _ index: Int, _ type: Number.Type, default value: Number = 0
    ) throws(ImportError.Problem) -> Int {
        guard let offset = try offset(of: index) else { return Int(truncatingIfNeeded: value) }
        return Int(truncatingIfNeeded: try Self.load(type, in: file, at: offset))
    }

    /// Returns a nested table; nil if the file omits it.
    func table(_ index: Int) throws(ImportError.Problem) -> FlatTable? {
        guard let target = try target(of: index) else { return nil }
        return try FlatTable(file, at: target)
    }

    /// Returns the range of the elements of a vector; nil if the file omits it.
    /// - Parameter size: The size of an element in bytes.
    func vector(_ index: Int, elementSize size: Int) throws(ImportError.Problem) -> Range<Int>? {
        guard let target = try target(of: index) else { return nil }
        let count = Int(try Self.load(UInt32.self, in: file, at: target))
        guard count <= (file.count - target - 4) / size else {
            throw .malformed(reason: "the vector at byte \(target) has \(count) elements, more than the file")
        }
        return (target + 4)..<(target + 4 + count * size)
    }

    /// Returns a vector of tables, at most `limit`; empty if the file omits it.
    func tables(_ index: Int, limit: Int) throws(ImportError.Problem) -> [FlatTable] {
        let range = try vector(index, elementSize: 4, limit: limit)
        var tables: [FlatTable] = []
        for offset in stride(from: range.lowerBound, to: range.upperBound, by: 4) {
            tables.append(try FlatTable(file, at: offset + Int(file.load(UInt32.self, at: offset))))
        }
        return tables
    }

    /// Returns a vector of 32-bit integers, at most `limit`; empty if the file omits it.
    func integers(_ index: Int, limit: Int) throws(ImportError.Problem) -> [Int] {
        let range = try vector(index, elementSize: 4, limit: limit)
        return stride(from: range.lowerBound, to: range.upperBound, by: 4).map { Int(file.load(Int32.self, at: $0)) }
    }

    private func vector(_ index: Int, elementSize size: Int, limit: Int) throws(ImportError.Problem) -> Range<Int> {
        let range = try vector(index, elementSize: size) ?? 0..<0
        guard range.count / size <= limit else {
            throw .exceedsLimit(reason: "a list has \(range.count / size) elements, expected at most \(limit)")
        }
        return range
    }

    /// Returns a name; empty if the file omits it.
    func name(_ index: Int) throws(ImportError.Problem) -> String {
        let range = try vector(index, elementSize: 1, limit: Self.maximumNameLength)
        guard let name = file.text(range) else { throw .malformed(reason: "a name is not UTF-8") }
        return name
    }
}
