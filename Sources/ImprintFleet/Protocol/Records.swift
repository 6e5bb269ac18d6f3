internal import Foundation
internal import ImprintInterop

/// The content of a message: named records of arrays, of metrics and of settings (flwr/app/message).
struct RecordDictionary: Equatable, Sendable {
    var arrays: [Named<ArrayRecord>] = []
    var metrics: [Named<ValueRecord>] = []
    var configurations: [Named<ValueRecord>] = []

    init() {}

    /// A value with its name; the order of names matters for the objects' IDs.
    struct Named<Value: Equatable & Sendable>: Equatable, Sendable {
        let name: String
        let value: Value
    }

    /// Reads the content of a message from its objects.
    /// - Parameter maximumValues: The maximum number of values in all arrays.
    init(_ tree: ObjectTree, in store: ObjectStore, maximumValues: Int) throws {
        let object = try store.object(tree.objectID, type: "RecordDict")
        var budget = maximumValues
        // Flower stores equal objects once, so each is read once: its names share the memory.
        var (records, knownArrays) = ([String: Record](), [String: FleetArray]())
        for (name, id) in try object.references() {
            guard let bytes = store.contents[id] else {
                throw FleetError.malformed(reason: "the record \(shown(name)) is missing")
            }
            let record =
                try records[id] ?? Record(FleetObject(bytes, id: id), in: store, &knownArrays, budget: &budget)
            records[id] = record
            switch record {
            case .arrays(let value): arrays.append(Named(name: name, value: value))
            case .metrics(let value): metrics.append(Named(name: name, value: value))
            case .configuration(let value): configurations.append(Named(name: name, value: value))
            }
        }
    }

    /// A record of any type.
    private enum Record {
        case arrays(ArrayRecord)
        case metrics(ValueRecord)
        case configuration(ValueRecord)

        init(
            _ object: FleetObject, in store: ObjectStore, _ known: inout [String: FleetArray], budget: inout Int
        ) throws {
            switch object.type {
            case "ArrayRecord": self = .arrays(try ArrayRecord(object, in: store, &known, budget: &budget))
            case "MetricRecord": self = .metrics(try ValueRecord(object))
            case "ConfigRecord": self = .configuration(try ValueRecord(object))
            default: throw FleetError.malformed(reason: "\(shown(object.type)) is not a type of records")
            }
        }
    }

    /// Adds the objects of the content to a store.
    func add(to store: inout ObjectStore) -> ObjectTree {
        let children =
            arrays.map { (name: $0.name, tree: $0.value.add(to: &store)) }
            + metrics.map { (name: $0.name, tree: store.add("MetricRecord", body: $0.value.wire.immediateBytes)) }
            + configurations.map {
                (name: $0.name, tree: store.add("ConfigRecord", body: $0.value.wire.immediateBytes))
            }
        return store.add("RecordDict", children: children.map(\.tree), body: PythonJSON.object(children))
    }

    /// Returns the first setting of a name in all records of settings.
    func setting(_ name: String) -> RecordValue? {
        for record in configurations {
            if let found = record.value.items.first(where: { $0.name == name }) { return found.value }
        }
        return nil
    }
}

/// Named arrays of floating-point values.
struct ArrayRecord: Equatable, Sendable {
    var items: [RecordDictionary.Named<FleetArray>] = []

    init(_ items: [RecordDictionary.Named<FleetArray>]) { self.items = items }

    /// Reads a record of arrays.
    /// - Parameters:
    ///   - known: The arrays of the message that have been read, by their IDs.
    ///   - budget: The number of values that may still be read.
    init(
        _ object: FleetObject, in store: ObjectStore, _ known: inout [String: FleetArray], budget: inout Int
    ) throws {
        for (name, id) in try object.references() {
            let array = try known[id] ?? FleetArray(id, in: store, budget: &budget)
            known[id] = array
            items.append(.init(name: name, value: array))
        }
    }

    func add(to store: inout ObjectStore) -> ObjectTree {
        let children = items.map { (name: $0.name, tree: $0.value.add(to: &store)) }
        return store.add("ArrayRecord", children: children.map(\.tree), body: PythonJSON.object(children))
    }
}

/// A setting or metric.
enum RecordValue: Equatable, Sendable {
    case double(Double)
    case integer(Int)
    case bool(Bool)
    case string(String)
    /// A value of another type: bytes or a list.
    case other
}

/// Named settings or metrics.
struct ValueRecord: Equatable, Sendable {
    /// The maximum number of values of a record that is read.
    static let maximumItems = 1024

    var items: [RecordDictionary.Named<RecordValue>] = []

    init(_ items: [(String, RecordValue)]) { self.items = items.map { .init(name: $0.0, value: $0.1) } }

    init(_ object: FleetObject) throws {
        let message = WireMessage(MappedFile(object.body, named: object.type))
        do {
            try message.forEachField { field in
                guard field.number == 1 else { return }
                guard items.count < Self.maximumItems else {
                    throw FleetError.malformed(
                        reason: "a record has more than \(Self.maximumItems) values")
                }
                var (name, value) = ("", RecordValue.other)
                try field.message().forEachField { field in
                    if field.number == 1 { name = try field.string() }
                    if field.number == 2 { value = try RecordValue(field.message()) }
                }
                items.append(.init(name: name, value: value))
            }
        } catch let error as WireError {
            throw FleetError.malformed(reason: "in a record, \(error)")
        }
    }

    var wire: MessageBuilder {
        var builder = MessageBuilder()
        for item in items {
            var entry = MessageBuilder()
            entry.add(1, nonEmpty: item.name)
            entry.add(2, item.value.wire)
            builder.add(1, entry)
        }
        return builder
    }
}

extension RecordValue {
    init(_ message: WireMessage) throws {
        var value = RecordValue.other
        try message.forEachField { field in
            switch field.number {
            case 1: value = .double(try field.double())
            case 2: value = .integer(try field.zigzag())
            case 3: value = .integer(try field.integer())
            case 4: value = .bool(try field.bool())
            case 5: value = .string(try field.string())
            default: value = .other
            }
        }
        self = value
    }

    var wire: MessageBuilder {
        // The value is a oneof, so default values are present.
        var builder = MessageBuilder()
        switch self {
        case .double(let value): builder.add(1, value)
        case .integer(let value): builder.add(2, zigzag: value)
        case .bool(let value): builder.add(4, value)
        case .string(let value): builder.add(5, value)
        case .other: break
        }
        return builder
    }
}

extension FleetObject {
    /// Returns the names and IDs in a JSON object, which must be the IDs of the object's children, in the order of the children.
    ///
    /// A child may have several names, so their number has the limit of the objects.
    fileprivate func references() throws -> [(name: String, id: String)] {
        guard body.count <= 1 << 20,
            let object = try? JSONDecoder().decode([String: String].self, from: Data(body)),
            Set(object.values) == Set(childIDs), Set(childIDs).count == childIDs.count
        else { throw FleetError.malformed(reason: "an object of the type \(type) does not list its children") }
        let limit = IncomingMessage.maximumObjects
        guard object.count <= limit else {
            throw FleetError.malformed(
                reason: "an object of the type \(type) has \(object.count) names, expected at most \(limit)")
        }
        return childIDs.flatMap { id in
            object.filter { $0.value == id }.map { (name: $0.key, id: id) }.sorted { $0.name < $1.name }
        }
    }
}

/// JSON in the form of Python's `json.dumps`; the IDs of objects depend on it.
enum PythonJSON {
    static func object(_ items: [(name: String, tree: ObjectTree)]) -> [UInt8] {
        Array("{\(items.map { "\(string($0.name)): \(string($0.tree.objectID))" }.joined(separator: ", "))}".utf8)
    }

    static func string(_ text: String) -> String {
        var result = "\""
        for unit in text.utf16 {
            switch unit {
            case 0x22: result += "\\\""
            case 0x5C: result += "\\\\"
            case 0x20...0x7E: result.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            default:
                let digits = String(unit, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return result + "\""
    }
}
