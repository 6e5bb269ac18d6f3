internal import Foundation
internal import ImprintCore
internal import ImprintInterop

/// A part of a message's content, which is stored and sent under the SHA-256 of its bytes.
///
/// The bytes are the header `type SP child IDs, separated by commas SP length of the body`, a NUL, and the body
/// (flwr/supercore/inflatable/inflatable_object.py).
struct FleetObject: Equatable, Sendable {
    let type: String
    let childIDs: [String]
    let body: [UInt8]

    /// Whether a text is an object ID.
    static func isID(_ text: String) -> Bool { FileDigest.isDigest(text) }

    init(type: String, childIDs: [String] = [], body: [UInt8]) {
        self.type = type
        self.childIDs = childIDs
        self.body = body
    }

    /// Reads an object, and checks its digest and its header.
    init(_ bytes: [UInt8], id: String) throws(FleetError) {
        guard Self.id(of: bytes) == id else {
            throw .malformed(reason: "the bytes of the object \(id) do not match its SHA-256")
        }
        guard let end = bytes.firstIndex(of: 0), end <= 1 << 16,
            let header = String(validating: bytes[..<end], as: UTF8.self)
        else { throw .malformed(reason: "the object \(id) has no header") }
        let parts = header.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, let length = Int(parts[2]), length == bytes.count - end - 1 else {
            throw .malformed(
                reason: "the header of the object \(id) does not match its \(counted(bytes.count - end - 1, "byte"))")
        }
        let children = parts[1].isEmpty ? [] : parts[1].split(separator: ",").map(String.init)
        guard children.allSatisfy(Self.isID) else {
            throw .malformed(reason: "the object \(id) refers to something that is not an object ID")
        }
        self.init(type: String(parts[0]), childIDs: children, body: Array(bytes[(end + 1)...]))
    }

    var bytes: [UInt8] { Array("\(type) \(childIDs.joined(separator: ",")) \(body.count)\u{0}".utf8) + body }

    static func id(of bytes: [UInt8]) -> String {
        var hash = SHA256()
        hash.update(bytes.span.bytes)
        return hash.hexadecimal
    }
}

/// Objects by their IDs, for building and resolving a message.
struct ObjectStore: Equatable, Sendable {
    /// The bytes of each object.
    private(set) var contents: [String: [UInt8]] = [:]

    /// Adds an object and returns its tree.
    mutating func add(_ type: String, children: [ObjectTree] = [], body: [UInt8]) -> ObjectTree {
        var seen = Set<String>()
        let unique = children.filter { seen.insert($0.objectID).inserted }
        let bytes = FleetObject(type: type, childIDs: unique.map(\.objectID), body: body).bytes
        let id = FleetObject.id(of: bytes)
        contents[id] = bytes
        return ObjectTree(objectID: id, children: unique)
    }

    /// Adds bytes from the server, which are checked by `object(_:type:)`.
    mutating func insert(_ bytes: [UInt8], id: String) { contents[id] = bytes }

    /// Returns the object of an ID.
    func object(_ id: String, type: String) throws -> FleetObject {
        guard let bytes = contents[id] else { throw FleetError.malformed(reason: "the object \(id) is missing") }
        let object = try FleetObject(bytes, id: id)
        guard object.type == type else {
            throw FleetError.malformed(
                reason: "the object \(id) is of the type \(shown(object.type)), expected \(type)")
        }
        return object
    }
}

/// Returns the beginning of a text of the server, quoted and on one line.
func shown(_ text: String) -> String { String(text.prefix(80)).debugDescription }

/// The reply to a message.
struct OutgoingMessage: Equatable, Sendable {
    /// The metadata, with the ID of the message's object.
    let metadata: MessageMetadata
    let error: MessageError?
    let tree: ObjectTree
    let objects: ObjectStore

    /// Creates a reply from its parts.
    init(metadata: MessageMetadata, error: MessageError?, tree: ObjectTree, objects: ObjectStore) {
        self.metadata = metadata
        self.error = error
        self.tree = tree
        self.objects = objects
    }

    /// Creates a reply with content.
    init(_ metadata: MessageMetadata, _ content: RecordDictionary) {
        var objects = ObjectStore()
        let records = content.add(to: &objects)
        self.init(metadata, nil, [records], objects)
    }

    /// Creates a reply with an error.
    init(_ metadata: MessageMetadata, _ error: MessageError) { self.init(metadata, error, [], ObjectStore()) }

    private init(
        _ metadata: MessageMetadata, _ error: MessageError?, _ children: [ObjectTree], _ objects: ObjectStore
    ) {
        var (metadata, objects) = (metadata, objects)
        var body = MessageBuilder()
        metadata.messageID = ""
        body.add(1, metadata.wire)
        if let error { body.add(3, error.wire) }
        let tree = objects.add("Message", children: children, body: body.immediateBytes)
        metadata.messageID = tree.objectID
        self.init(metadata: metadata, error: error, tree: tree, objects: objects)
    }
}
