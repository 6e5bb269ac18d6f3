import Foundation
import ImprintInterop
import Synchronization

@testable import ImprintFleet

/// A server in memory that answers a client as a SuperLink does, and records every byte that it receives.
final class SimulatedSuperLink: FleetTransport {
    struct Request: Sendable {
        let name: String
        let headers: [String: String]
        let body: [UInt8]
    }

    /// A reply of a device.
    struct Reply: Sendable {
        let metadata: MessageMetadata
        let error: MessageError?
        let content: RecordDictionary?
    }

    private struct State {
        var requests: [Request] = []
        var queue: [OutgoingMessage] = []
        var batchSize = 1
        var objects: [String: [UInt8]] = [:]
        var pushed: [(metadata: MessageMetadata, error: MessageError?, tree: ObjectTree)] = []
        var isOnline = false
        var isRegistered = false
        var confirmed: [String] = []
        var failures: [String: [(status: Int, body: String)]] = [:]
        var isFrozen: Set<String> = []
        var replacement: [String: [UInt8]] = [:]
    }

    static let node: UInt64 = 9_223_372_036_854_775_809
    static let run: UInt64 = 42
    private let state = Mutex(State())

    var requests: [Request] { state.withLock { $0.requests } }
    var confirmed: [String] { state.withLock { $0.confirmed } }

    /// The complete replies so far.
    func replies() throws -> [Reply] {
        try state.withLock { state in
            try state.pushed.filter { $0.tree.objectIDs.allSatisfy { state.objects[$0] != nil } }.map { reply in
                var store = ObjectStore()
                for id in reply.tree.objectIDs { store.insert(state.objects[id]!, id: id) }
                return Reply(
                    metadata: reply.metadata, error: reply.error,
                    content: try reply.tree.children.first.map {
                        try RecordDictionary($0, in: store, maximumValues: 1 << 20)
                    })
            }
        }
    }

    /// Sends a message to the device.
    @discardableResult
    func send(_ type: String, _ content: RecordDictionary, timeToLive: Double = 3600) -> String {
        var metadata = MessageMetadata()
        (metadata.runID, metadata.source, metadata.destination) = (Self.run, 1, Self.node)
        (metadata.type, metadata.createdAt, metadata.timeToLive) = (type, Date.now.timeIntervalSince1970, timeToLive)
        let message = OutgoingMessage(metadata, content)
        state.withLock { state in
            state.queue.append(message)
            state.objects.merge(message.objects.contents) { $1 }
        }
        return message.metadata.messageID
    }

    /// Sets the number of messages in one response.
    func deliver(_ count: Int) { state.withLock { $0.batchSize = count } }

    /// Lets the next requests of a name fail.
    func fail(_ name: String, status: Int, body: String = "{\"detail\": \"failed\"}", times: Int = 1) {
        state.withLock { $0.failures[name, default: []] += [(Int, String)](repeating: (status, body), count: times) }
    }

    /// Lets requests of a name wait forever, as if the device lost its power in the middle of them.
    func freeze(_ name: String) { state.withLock { _ = $0.isFrozen.insert(name) } }

    func unfreeze() { state.withLock { $0.isFrozen = [] } }

    /// Replaces the response to a name.
    func replace(_ name: String, with body: [UInt8]?) { state.withLock { $0.replacement[name] = body } }

    /// Replaces the bytes of every object that devices pull.
    func damageObjects() { state.withLock { state in state.objects = state.objects.mapValues { $0 + [0] } } }

    func post(
        _ url: URL, headers: [String: String], body: [UInt8], limit: Int
    ) async throws -> (
        status: Int, body: [UInt8]
    ) {
        let name = url.lastPathComponent
        let isFrozen = state.withLock { state in
            state.requests.append(Request(name: name, headers: headers, body: body))
            return state.isFrozen.contains(name)
        }
        if isFrozen { try await Task.sleep(for: .seconds(3600)) }
        let (status, response) = try state.withLock { try answer(name, wire(body), &$0) }
        guard response.count <= limit else { throw FleetError.oversized(url: url.absoluteString, limit: limit) }
        return (status, response)
    }

    private func answer(_ name: String, _ request: WireMessage, _ state: inout State) throws -> (Int, [UInt8]) {
        if var failures = state.failures[name], !failures.isEmpty {
            let failure = failures.removeFirst()
            state.failures[name] = failures
            return (failure.status, Array(failure.body.utf8))
        }
        if let body = state.replacement[name] { return (200, body) }
        func problem(_ code: Int) -> (Int, [UInt8]) { (412, Array("{\"code\": \(code), \"detail\": \"no\"}".utf8)) }
        var texts: [Int: String] = [:]
        var content: [UInt8] = []
        try request.forEachField { field in
            guard field.isPacked else { return }
            if name == "push-object" && field.number == 4 {
                content = Array(request.file.bytes(try field.bytes()))
            } else if name != "push-messages" {
                texts[field.number] = try? field.string()
            }
        }
        switch name {
        case "register-node":
            guard !state.isRegistered else { return problem(FleetConnection.ErrorCode.publicKeyInUse) }
            state.isRegistered = true
            return (200, FleetRequest.node(Self.node).immediateBytes)
        case "activate-node":
            guard state.isRegistered, !state.isOnline else {
                return problem(FleetConnection.ErrorCode.activationFailed)
            }
            state.isOnline = true
            return (200, FleetRequest.node(Self.node).immediateBytes)
        case "send-node-heartbeat": return (200, [8, state.isRegistered ? 1 : 0])
        case "deactivate-node":
            state.isOnline = false
            return (200, [])
        case "unregister-node":
            state.isRegistered = false
            return (200, [])
        case "pull-messages":
            guard !state.queue.isEmpty else { return (200, []) }
            var response = MessageBuilder()
            for message in state.queue.prefix(state.batchSize) {
                var pulled = MessageBuilder()
                pulled.add(1, message.metadata.wire)
                response.add(2, pulled)
                response.add(3, message.tree.wire)
            }
            state.queue.removeFirst(min(state.batchSize, state.queue.count))
            return (200, response.immediateBytes)
        case "pull-object":
            var response = MessageBuilder()
            if let bytes = state.objects[texts[3] ?? ""] {
                response.add(1, true)
                response.add(2, true)
                response.add(3, bytes: bytes)
            }
            return (200, response.immediateBytes)
        case "push-messages":
            var (metadata, error) = (MessageMetadata(), MessageError?.none)
            var tree: ObjectTree?
            try request.forEachField { field in
                if field.number == 2 {
                    try field.message().forEachField { field in
                        if field.number == 1 { metadata = try MessageMetadata(field.message()) }
                        if field.number == 3 { error = try MessageError(field.message()) }
                    }
                }
                var budget = 1000
                if field.number == 3 { tree = try ObjectTree(field.message(), budget: &budget) }
            }
            let found = tree!
            if !state.pushed.contains(where: { $0.metadata.messageID == metadata.messageID }) {
                state.pushed.append((metadata, error, found))
            }
            var response = MessageBuilder()
            for id in found.objectIDs where state.objects[id] == nil { response.add(3, id) }
            response.add(4, "session")
            return (200, response.immediateBytes)
        case "push-object":
            state.objects[texts[3] ?? ""] = content
            return (200, [8, 1])
        case "confirm-message-received":
            state.confirmed.append(texts[3] ?? "")
            return (200, [])
        default: return (404, [])
        }
    }
}
