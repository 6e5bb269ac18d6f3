internal import ImprintModel

/// A parsed message of a Core ML file with layer parameters (not weights), whose fields are read by number.
///
/// As in proto3, missing fields are 0, false or empty. If a field occurs more than once, the last one wins.
struct CoreMLRecord {
    /// An upper bound for the fields of a layer's parameters.
    static let maximumCount = 1 << 12

    private var fields: [Int: [WireMessage.Field]] = [:]

    init(_ message: WireMessage) throws {
        var count = 0
        var fields: [Int: [WireMessage.Field]] = [:]
        try message.forEachField { field in
            count += 1
            guard count <= Self.maximumCount else {
                throw WireError.tooMany(item: "fields in one message", limit: Self.maximumCount)
            }
            fields[field.number, default: []].append(field)
        }
        self.fields = fields
    }

    /// Whether a field exists, even if it is empty.
    func has(_ number: Int) -> Bool { fields[number] != nil }

    func integer(_ number: Int) throws -> Int {
        try fields[number]?.last.map { try Self.checked($0.integer()) } ?? 0
    }

    func float(_ number: Int) throws -> Float { try fields[number]?.last?.float() ?? 0 }
    func bool(_ number: Int) throws -> Bool { try fields[number]?.last?.bool() ?? false }
    func string(_ number: Int) throws -> String { try fields[number]?.last?.string() ?? "" }
    func message(_ number: Int) throws -> WireMessage? { try fields[number]?.last?.message() }
    func record(_ number: Int) throws -> CoreMLRecord? { try message(number).map(CoreMLRecord.init) }

    func records(_ number: Int) throws -> [CoreMLRecord] {
        try fields[number, default: []].map { try CoreMLRecord($0.message()) }
    }

    func integers(_ number: Int) throws -> [Int] {
        var result: [Int] = []
        for field in fields[number, default: []] {
            try field.append(to: &result, limit: Self.maximumCount, of: "values in a field")
        }
        return try result.map(Self.checked)
    }

    func floats(_ number: Int) throws -> [Float] {
        var result: [Float] = []
        for field in fields[number, default: []] { try field.append(to: &result) }
        return result
    }

    /// Limits parameters to 32 bits, so that sums and products of two values cannot overflow.
    private static func checked(_ value: Int) throws -> Int {
        guard Int32(exactly: value) != nil else {
            throw ImportError.Problem.malformed(reason: "it has the parameter \(value), expected a 32-bit integer")
        }
        return value
    }
}
