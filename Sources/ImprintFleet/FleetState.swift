internal import Foundation
internal import ImprintCore
internal import ImprintInterop

/// The state of a device that survives the end of its process: its node, the messages to answer, and the privacy loss of its answers.
///
/// A device that is killed while it answers a message finishes the answer when it joins again with the same key, and then answers the other
/// messages that it had received: a server delivers each message only once.
struct FleetState: Codable, Equatable {
    static let newestFormat = 1

    var format = newestFormat
    /// The URL of the server that the node and the message belong to.
    var server = ""
    /// The node ID of the device on the server; 0 before it joins.
    var node: UInt64 = 0
    /// The squared privacy loss of all answers that the device has sent or is sending; nil if one of them had no noise.
    var squaredLoss: Double? = 0
    /// The message in progress.
    var pending: Pending?
    /// The messages to answer after the one in progress; nil if there are none.
    var waiting: [Pending]?

    /// Adds messages that the server has delivered.
    mutating func add(_ messages: [IncomingMessage]) {
        waiting = (waiting ?? []) + messages.map { Pending($0) }
        if pending == nil { startNext() }
    }

    /// Forgets the message in progress, and continues with the next one.
    mutating func startNext() {
        var rest = waiting ?? []
        pending = rest.isEmpty ? nil : rest.removeFirst()
        waiting = rest.isEmpty ? nil : rest
    }

    struct Pending: Codable, Equatable {
        /// The metadata and the object tree of the message, in the protobuf format.
        let metadata: Data
        let tree: Data
        /// The reply, if it has been computed.
        var reply: Reply?

        init(_ message: IncomingMessage) {
            metadata = Data(message.metadata.wire.immediateBytes)
            tree = Data(message.tree.wire.immediateBytes)
        }

        func message() throws -> IncomingMessage {
            try stored {
                IncomingMessage(metadata: try MessageMetadata(metadata.wire), tree: try ObjectTree(stored: tree))
            }
        }
    }

    /// A computed reply.
    ///
    /// It is stored, because noise must be added only once: the mean of two noisy replies has less noise.
    struct Reply: Codable, Equatable {
        let metadata: Data
        let tree: Data
        let error: Data?
        let objects: [String: Data]
    }
}

extension FleetState.Reply {
    init(_ reply: OutgoingMessage) {
        metadata = Data(reply.metadata.wire.immediateBytes)
        tree = Data(reply.tree.wire.immediateBytes)
        error = reply.error.map { Data($0.wire.immediateBytes) }
        objects = reply.objects.contents.mapValues { Data($0) }
    }

    func message() throws -> OutgoingMessage {
        try stored {
            var store = ObjectStore()
            for (id, bytes) in objects { store.insert(Array(bytes), id: id) }
            return OutgoingMessage(
                metadata: try MessageMetadata(metadata.wire), error: try error.map { try MessageError($0.wire) },
                tree: try ObjectTree(stored: tree), objects: store)
        }
    }
}

extension Data {
    fileprivate var wire: WireMessage { WireMessage(MappedFile(Array(self), named: "state")) }
}

extension ObjectTree {
    fileprivate init(stored data: Data) throws {
        var budget = IncomingMessage.maximumObjects
        try self.init(data.wire, budget: &budget)
    }
}

/// Reads a message of the state.
private func stored<Message>(_ read: () throws -> Message) throws -> Message {
    do {
        return try read()
    } catch let error as WireError {
        throw FleetError.malformed(reason: "in the state file, \(error)")
    }
}

/// The file of a key's state, beside the key, which one process at a time may use.
final class FleetStateFile: Sendable {
    /// The largest file that is read: enough for a reply of 200 million values.
    private static let maximumByteCount = 2 << 30

    private let url: URL
    /// The lock of the key.
    private let lock: FileLock

    /// Locks the key for this process.
    /// - Throws: `FleetError.keyInUse`, or `FileError` if the key cannot be locked.
    init(key: URL) throws {
        guard let lock = try FileLock(file: key) else { throw FleetError.keyInUse(path: key.path) }
        self.lock = lock
        url = key.appendingPathExtension("state")
    }

    /// Reads the state; a new one if there is no file.
    /// - Throws: `FleetError.damagedState` if its content is invalid, `FleetError.newerState`, or `FileError` if the file cannot be read.
    func read() throws -> FleetState {
        let path = url.path
        // A new state starts the privacy loss from zero, so it requires that there is neither a file nor a link to a missing file.
        var status = stat()
        if lstat(path, &status) != 0 && errno == ENOENT { return FleetState() }
        guard let bytes = try RegularFile(path).contents(limit: Self.maximumByteCount) else {
            throw FileError.cannotRead(
                path: path, reason: "it has more than \(Self.maximumByteCount) bytes, the maximum of a state")
        }
        struct Version: Decodable { let format: Int }
        if let found = try? JSONDecoder().decode(Version.self, from: bytes).format, found > FleetState.newestFormat {
            throw FleetError.newerState(path: path, found: found, newest: FleetState.newestFormat)
        }
        guard let state = try? JSONDecoder().decode(FleetState.self, from: bytes),
            state.format == FleetState.newestFormat, state.squaredLoss ?? 0 >= 0
        else { throw FleetError.damagedState(path: path) }
        return state
    }

    /// Replaces the state; only the user can read the file.
    func write(_ state: FleetState) throws {
        try AtomicFile.write(Array(try JSONEncoder().encode(state)), to: url, permissions: 0o600, isLocked: true)
    }
}
