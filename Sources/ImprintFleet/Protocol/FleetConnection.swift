internal import Dispatch
internal import Foundation
internal import ImprintInterop
internal import ImprintStore
internal import Synchronization

/// Sends requests to a server; tests replace it to read every byte.
protocol FleetTransport: Sendable {
    /// Sends a POST request and returns the status and the body of the response.
    /// - Parameter limit: The maximum size of the body in bytes.
    func post(
        _ url: URL, headers: [String: String], body: [UInt8], limit: Int
    ) async throws -> (
        status: Int, body: [UInt8]
    )
}

/// The transport over the network.
struct HTTPTransport: FleetTransport {
    /// The time limits of a request.
    struct TimeLimits: Equatable {
        /// The slowest connection that is sufficient, in bytes per second.
        private static let minimumSpeed = 10_000

        /// The time until the answer begins, and between its parts.
        let answer: Duration
        /// The time until the end of the answer.
        let total: Duration

        /// - Parameters:
        ///   - byteCount: The number of bytes to send.
        ///   - limit: The maximum number of bytes to receive.
        init(sending byteCount: Int, receiving limit: Int) {
            answer = .seconds(60 + byteCount / Self.minimumSpeed)
            total = answer + .seconds(limit / Self.minimumSpeed)
        }
    }

    func post(
        _ url: URL, headers: [String: String], body: [UInt8], limit: Int
    ) async throws -> (
        status: Int, body: [UInt8]
    ) {
        let received = Mutex((status: 0, body: [UInt8]()))
        let exchange = HTTPExchange(
            onResponse: { response in received.withLock { $0.status = response.status } },
            onData: { data in
                try received.withLock { received in
                    guard received.body.count + data.count <= limit else {
                        throw FleetError.oversized(url: url.redacted, limit: limit)
                    }
                    received.body += data
                }
            })
        let times = TimeLimits(sending: body.count, receiving: limit)
        let limits = DownloadLimits(interval: times.answer, bytesPerInterval: 1, time: times.total)
        do {
            switch try await exchange.run(
                HTTPRequest(url, headers: headers, body: body), until: .now() + times.total.dispatchInterval, limits)
            {
            case .complete: break
            case .redirect:
                throw FleetError.rejected(
                    url: url.redacted, status: 302, code: nil, detail: "it redirects to another address")
            }
        } catch let error as HTTPError {
            throw FleetError(error, of: url)
        } catch StoreError.tooSlow {
            throw FleetError.unavailable(url: url.redacted, reason: "it did not answer in \(times.answer)")
        } catch is StoreError {
            throw FleetError.unavailable(url: url.redacted, reason: "its answer did not end in \(times.total)")
        }
        return received.withLock { $0 }
    }
}

extension FleetError {
    /// Creates the error of a failed request.
    init(_ error: HTTPError, of url: URL) {
        switch error {
        case .untrusted, .noProxy: self = .noConnection(error.storeError(url: url, byteCount: 0))
        case .failed, .invalidResponse: self = .unavailable(url: url.redacted, reason: error.reason)
        }
    }
}

/// The Fleet API of a SuperLink: signed protobuf requests over HTTP.
struct FleetConnection: Sendable {
    /// Flower's numbers of errors (flwr/supercore/error/base.py).
    enum ErrorCode {
        static let publicKeyInUse = 23
        static let registrationDisabled = 2001
        static let activationFailed = 2004
    }

    let url: URL
    let key: FleetKey
    let transport: any FleetTransport
    /// The maximum size of a response in bytes.
    let limit: Int

    /// - Throws: `FleetError.unsupportedURL`.
    init(_ url: URL, _ key: FleetKey, transport: any FleetTransport, limit: Int) throws(FleetError) {
        guard url.isWeb else { throw .unsupportedURL(url.redacted) }
        self.url = url
        self.key = key
        self.transport = transport
        self.limit = limit
    }

    /// Sends one request and returns the response.
    func send(_ name: String, _ request: MessageBuilder) async throws -> WireMessage {
        let target = url.appending(path: "v1/fleet/\(name)")
        let timestamp = Self.timestamp(.now)
        let headers = [
            "Content-Type": "application/protobuf", "Accept": "application/protobuf", "Accept-Encoding": "identity",
            "flwr-public-key": Data(key.publicPEM.utf8).base64EncodedString(), "flwr-timestamp": timestamp,
            "flwr-signature": try key.signature(for: timestamp).base64EncodedString(),
        ]
        let (status, body) = try await transport.post(
            target, headers: headers, body: request.immediateBytes, limit: limit)
        switch status {
        case 200: return WireMessage(MappedFile(body, named: name))
        case 401: throw FleetError.rejectedSignature(url: url.redacted)
        default:
            let problem = try? JSONDecoder().decode(Problem.self, from: Data(body))
            let detail = problem.map { String($0.detail.prefix(200)) } ?? "no reason given"
            throw FleetError.rejected(url: target.redacted, status: status, code: problem?.code, detail: detail)
        }
    }

    /// Sends one request and reads the response with `read`.
    func send<Response>(
        _ name: String, _ request: MessageBuilder, _ read: (WireMessage) throws -> Response
    ) async throws -> Response {
        let response = try await send(name, request)
        do {
            return try read(response)
        } catch let error as WireError {
            throw FleetError.malformed(reason: "in the response to \(name), \(error)")
        }
    }

    /// The body of a response with an error.
    private struct Problem: Decodable {
        var code: Int?
        let detail: String
    }

    /// The time in the format of Python's `datetime.isoformat()`.
    static func timestamp(_ date: Date) -> String {
        date.formatted(.iso8601.year().month().day().time(includingFractionalSeconds: true)) + "+00:00"
    }
}

extension FleetConnection {
    /// Returns the ID of the node in the response to `register-node` and `activate-node`.
    private func node(_ name: String, _ request: MessageBuilder) async throws -> UInt64 {
        try await send(name, request) { response in
            var id: UInt64 = 0
            try response.forEachField { if $0.number == 1 { id = try $0.unsigned() } }
            guard id != 0 else { throw FleetError.malformed(reason: "the response to \(name) has no node ID") }
            return id
        }
    }

    func register() async throws {
        _ = try await node("register-node", FleetRequest.register(publicKey: key.publicPEM))
    }

    func activate(heartbeatInterval: Double) async throws -> UInt64 {
        try await node(
            "activate-node",
            FleetRequest.activate(publicKey: key.publicPEM, heartbeatInterval: heartbeatInterval))
    }

    /// Returns whether the server knows the node.
    func heartbeat(node: UInt64, interval: Double) async throws -> Bool {
        try await send("send-node-heartbeat", FleetRequest.heartbeat(node: node, interval: interval)) { response in
            var success = false
            try response.forEachField { if $0.number == 1 { success = try $0.bool() } }
            return success
        }
    }

    func deactivate(node: UInt64) async throws { _ = try await send("deactivate-node", FleetRequest.node(node)) }

    func unregister(node: UInt64) async throws { _ = try await send("unregister-node", FleetRequest.node(node)) }

    func pullMessages(node: UInt64) async throws -> [IncomingMessage] {
        try await send("pull-messages", FleetRequest.pullMessages(node: node)) { try PulledMessages($0).messages }
    }

    func pullObject(_ id: String, node: UInt64, run: UInt64) async throws -> PulledObject {
        try await send("pull-object", FleetRequest.pullObject(id, node: node, run: run)) { try PulledObject($0) }
    }

    func confirm(_ id: String, node: UInt64, run: UInt64) async throws {
        _ = try await send("confirm-message-received", FleetRequest.confirm(id, node: node, run: run))
    }

    func push(_ reply: OutgoingMessage, node: UInt64) async throws -> PushedMessages {
        try await send("push-messages", FleetRequest.pushMessage(reply, node: node)) { try PushedMessages($0) }
    }

    /// Returns whether the server stored the object.
    func pushObject(_ id: String, _ content: [UInt8], node: UInt64, run: UInt64, session: String) async throws -> Bool {
        let request = FleetRequest.pushObject(id, content, node: node, run: run, session: session)
        return try await send("push-object", request) { response in
            var stored = false
            try response.forEachField { if $0.number == 1 { stored = try $0.bool() } }
            return stored
        }
    }
}
