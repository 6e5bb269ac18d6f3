internal import ImprintInterop

// The messages of the Fleet API (flwr/proto/{fleet,message,node,heartbeat,error}.proto of flwr 1.42) that a device needs. Fields of other
// numbers are ignored, as in every protobuf reader.

/// The metadata of a message between the server and a device.
struct MessageMetadata: Equatable, Sendable {
    var runID: UInt64 = 0
    /// The ID of the message's object; empty while the ID is computed.
    var messageID = ""
    var source: UInt64 = 0
    var destination: UInt64 = 0
    var replyTo = ""
    var groupID = ""
    /// The time in seconds for which the message is valid.
    var timeToLive = 0.0
    /// "train", "evaluate" or "query", with an optional ".action".
    var type = ""
    /// The seconds since 1970.
    var createdAt = 0.0
    var sourceTask: UInt64?
    var destinationTask: UInt64?

    init() {}

    init(_ message: WireMessage) throws {
        try message.forEachField { field in
            switch field.number {
            case 1: runID = try field.unsigned()
            case 2: messageID = try field.string()
            case 3: source = try field.unsigned()
            case 4: destination = try field.unsigned()
            case 5: replyTo = try field.string()
            case 6: groupID = try field.string()
            case 7: timeToLive = try field.double()
            case 8: type = try field.string()
            case 9: createdAt = try field.double()
            case 10: sourceTask = try field.unsigned()
            case 11: destinationTask = try field.unsigned()
            default: break
            }
        }
    }

    var wire: MessageBuilder {
        var builder = MessageBuilder()
        builder.add(1, unsigned: runID)
        builder.add(2, nonEmpty: messageID)
        builder.add(3, unsigned: source)
        builder.add(4, unsigned: destination)
        builder.add(5, nonEmpty: replyTo)
        builder.add(6, nonEmpty: groupID)
        builder.add(7, nonZero: timeToLive)
        builder.add(8, nonEmpty: type)
        builder.add(9, nonZero: createdAt)
        if let sourceTask { builder.add(10, Int(bitPattern: UInt(sourceTask))) }
        if let destinationTask { builder.add(11, Int(bitPattern: UInt(destinationTask))) }
        return builder
    }

    /// Returns the metadata of a reply from `node`, without its ID.
    func reply(from node: UInt64, at time: Double) -> MessageMetadata {
        var reply = self
        reply.messageID = ""
        (reply.source, reply.destination) = (node, source)
        (reply.sourceTask, reply.destinationTask) = (destinationTask, sourceTask)
        reply.replyTo = messageID
        reply.createdAt = time
        reply.timeToLive = createdAt + timeToLive - time
        return reply
    }
}

/// The reason why a device could not answer a message.
struct MessageError: Equatable, Sendable {
    /// Flower's code for an exception in the client app.
    static let clientAppRaisedException = 2

    let code: Int
    let reason: String

    init(code: Int = clientAppRaisedException, reason: String) {
        self.code = code
        self.reason = reason
    }

    init(_ message: WireMessage) throws {
        var (code, reason) = (0, "")
        try message.forEachField { field in
            switch field.number {
            case 1: code = try field.zigzag()
            case 2: reason = try field.string()
            default: break
            }
        }
        self.init(code: code, reason: reason)
    }

    var wire: MessageBuilder {
        var builder = MessageBuilder()
        if code != 0 { builder.add(1, zigzag: code) }
        builder.add(2, nonEmpty: reason)
        return builder
    }
}

/// The IDs of an object and of the objects that it refers to.
struct ObjectTree: Equatable, Sendable {
    let objectID: String
    var children: [ObjectTree] = []

    init(objectID: String, children: [ObjectTree] = []) {
        self.objectID = objectID
        self.children = children
    }

    /// - Parameter budget: The number of objects that the tree may still have.
    init(_ message: WireMessage, budget: inout Int) throws {
        budget -= 1
        guard budget >= 0 else { throw FleetError.malformed(reason: "an object tree has too many objects") }
        var (objectID, children) = ("", [ObjectTree]())
        try message.forEachField { field in
            switch field.number {
            case 1: objectID = try field.string()
            case 2: children.append(try ObjectTree(field.message(), budget: &budget))
            default: break
            }
        }
        guard FleetObject.isID(objectID) else {
            throw FleetError.malformed(reason: "an object ID is not a SHA-256 digest")
        }
        self.init(objectID: objectID, children: children)
    }

    var wire: MessageBuilder {
        var builder = MessageBuilder()
        builder.add(1, nonEmpty: objectID)
        for child in children { builder.add(2, child.wire) }
        return builder
    }

    /// All IDs, children before their parents.
    var objectIDs: [String] { children.flatMap(\.objectIDs) + [objectID] }
}

/// A message from the server: its metadata and the objects of its content.
struct IncomingMessage: Equatable, Sendable {
    let metadata: MessageMetadata
    let tree: ObjectTree

    /// The maximum number of objects of a message: its records, arrays and chunks.
    static let maximumObjects = 256
}

/// The response to `pull-messages`.
struct PulledMessages {
    /// The maximum number of messages; a SuperLink delivers them one by one.
    static let maximumMessages = 256

    var messages: [IncomingMessage] = []

    init(_ response: WireMessage) throws {
        var (metadata, trees) = ([MessageMetadata](), [ObjectTree]())
        try response.forEachField { field in
            switch field.number {
            case 2:
                var found = MessageMetadata()
                try field.message().forEachField { if $0.number == 1 { found = try MessageMetadata($0.message()) } }
                metadata.append(found)
            case 3:
                var budget = IncomingMessage.maximumObjects
                trees.append(try ObjectTree(field.message(), budget: &budget))
            default: break
            }
        }
        guard metadata.count == trees.count else {
            throw FleetError.malformed(reason: "there are \(metadata.count) messages and \(trees.count) object trees")
        }
        guard metadata.count <= Self.maximumMessages else {
            throw FleetError.malformed(
                reason: "there are \(metadata.count) messages, expected at most \(Self.maximumMessages)")
        }
        messages = zip(metadata, trees).map { IncomingMessage(metadata: $0, tree: $1) }
    }
}

/// The response to `push-messages`.
struct PushedMessages {
    /// The IDs of the objects that the server does not have yet.
    var missing: Set<String> = []
    var sessionID = ""

    init(_ response: WireMessage) throws {
        try response.forEachField { field in
            switch field.number {
            case 3: missing.insert(try field.string())
            case 4: sessionID = try field.string()
            default: break
            }
        }
    }
}

/// The response to `pull-object`.
struct PulledObject {
    var isFound = false
    var isAvailable = false
    var content: [UInt8] = []

    init(_ response: WireMessage) throws {
        try response.forEachField { field in
            switch field.number {
            case 1: isFound = try field.bool()
            case 2: isAvailable = try field.bool()
            case 3: content = Array(response.file.bytes(try field.bytes()))
            default: break
            }
        }
    }
}

/// The requests of the Fleet API.
enum FleetRequest {
    static func register(publicKey: String) -> MessageBuilder {
        var builder = MessageBuilder()
        builder.add(1, nonEmpty: publicKey)
        return builder
    }

    static func activate(publicKey: String, heartbeatInterval: Double) -> MessageBuilder {
        var builder = register(publicKey: publicKey)
        builder.add(2, nonZero: heartbeatInterval)
        return builder
    }

    /// A request with only the node's ID: `deactivate-node` and `unregister-node`.
    static func node(_ id: UInt64) -> MessageBuilder {
        var builder = MessageBuilder()
        builder.add(1, unsigned: id)
        return builder
    }

    static func heartbeat(node id: UInt64, interval: Double) -> MessageBuilder {
        var builder = ofNode(id)
        builder.add(2, nonZero: interval)
        return builder
    }

    static func pullMessages(node id: UInt64) -> MessageBuilder { ofNode(id) }

    static func pullObject(_ objectID: String, node id: UInt64, run: UInt64) -> MessageBuilder {
        var builder = ofNode(id)
        builder.add(2, unsigned: run)
        builder.add(3, nonEmpty: objectID)
        return builder
    }

    /// The fields are those of `pull-object`.
    static func confirm(_ objectID: String, node id: UInt64, run: UInt64) -> MessageBuilder {
        pullObject(objectID, node: id, run: run)
    }

    static func pushMessage(_ reply: OutgoingMessage, node id: UInt64) -> MessageBuilder {
        var message = MessageBuilder()
        message.add(1, reply.metadata.wire)
        if let error = reply.error { message.add(3, error.wire) } else { message.add(2, MessageBuilder()) }
        var builder = ofNode(id)
        builder.add(2, message)
        builder.add(3, reply.tree.wire)
        builder.add(4, bytes: [UInt8](repeating: 0, count: 8))
        return builder
    }

    static func pushObject(
        _ objectID: String, _ content: [UInt8], node id: UInt64, run: UInt64, session: String
    ) -> MessageBuilder {
        var builder = pullObject(objectID, node: id, run: run)
        builder.add(4, bytes: content)
        builder.add(5, nonEmpty: session)
        return builder
    }

    /// A message whose first field is a `Node`.
    private static func ofNode(_ id: UInt64) -> MessageBuilder {
        var builder = MessageBuilder()
        builder.add(1, node(id))
        return builder
    }
}

extension WireMessage.Field {
    /// Returns the value as a uint64.
    func unsigned() throws -> UInt64 { UInt64(UInt(bitPattern: try integer())) }

    /// Returns the value as a sint64.
    func zigzag() throws -> Int {
        let bits = UInt(bitPattern: try integer())
        return Int(bits >> 1) ^ -Int(bits & 1)
    }
}

extension MessageBuilder {
    // proto3 omits fields with their default values.

    mutating func add(_ field: Int, unsigned value: UInt64) {
        if value != 0 { add(field, Int(bitPattern: UInt(value))) }
    }

    /// Adds a sint64; 0 is not omitted.
    mutating func add(_ field: Int, zigzag value: Int) { add(field, value << 1 ^ value >> 63) }

    mutating func add(_ field: Int, nonEmpty text: String) {
        if !text.isEmpty { add(field, text) }
    }

    mutating func add(_ field: Int, nonZero value: Double) {
        if value != 0 { add(field, value) }
    }
}
