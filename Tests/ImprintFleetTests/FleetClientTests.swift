import Foundation
import Imprint
import ImprintInterop
import ImprintModel
import Synchronization
import TestSupport
import Testing

@testable import ImprintFleet

/// Runs a client until a condition holds, and then cancels it.
/// - Returns: The events.
@discardableResult
func run(
    _ client: FleetClient, sourceLocation: SourceLocation = #_sourceLocation,
    until isDone: @escaping @Sendable ([FleetEvent]) throws -> Bool
) async throws -> [FleetEvent] {
    let events = Mutex<[FleetEvent]>([])
    let task = Task { try await client.run { event in events.withLock { $0.append(event) } } }
    let deadline = ContinuousClock.now + .seconds(120)
    while try !isDone(events.withLock { $0 }) {
        if ContinuousClock.now > deadline {
            Issue.record("the client did not finish: \(events.withLock { $0 })", sourceLocation: sourceLocation)
            break
        }
        try await Task.sleep(for: .milliseconds(5))
    }
    task.cancel()
    try await task.value
    return events.withLock { $0 }
}

@Suite(.serialized) struct FleetClientTests {
    @Test("A client registers, answers train, evaluate and query, and leaves") func wholeExchange() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            let trained = server.send("train", try fixture.content())
            let evaluated = server.send("evaluate", try fixture.content())
            let queried = server.send("query", RecordDictionary())
            let events = try await run(try fixture.client(server, hasKey: false, validates: true)) { _ in
                server.confirmed.count == 3
            }
            #expect(events.first == .joined(node: SimulatedSuperLink.node))
            let replies = try server.replies()
            #expect(replies.map(\.metadata.replyTo) == [trained, evaluated, queried])
            #expect(server.confirmed == [trained, evaluated, queried])
            for reply in replies {
                #expect(reply.error == nil && reply.metadata.source == SimulatedSuperLink.node)
                #expect(reply.metadata.destination == 1 && reply.metadata.runID == SimulatedSuperLink.run)
                #expect(reply.metadata.timeToLive > 3500 && reply.metadata.timeToLive <= 3600)
            }
            let expected = try change(fixture.device().answer("train", fixture.content(), squaredLoss: 0).content)
            #expect(try change(try #require(replies[0].content)) == expected)
            #expect(server.requests.suffix(2).map(\.name) == ["deactivate-node", "unregister-node"])
        }
    }

    @Test("A client with a key stays registered, and joins again as the same device") func rejoining() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            for _ in 0..<2 {
                server.send("train", try fixture.content())
                let before = server.confirmed.count
                try await run(try fixture.client(server)) { _ in server.confirmed.count == before + 1 }
            }
            #expect(server.requests.count { $0.name == "register-node" } == 1)
            #expect(server.requests.count { $0.name == "unregister-node" } == 0)
            #expect(Set(server.requests.map { $0.headers["flwr-public-key"] }).count == 1)
        }
    }

    @Test(
        "A client that is killed in the middle of an answer finishes it with the same key, and trains and adds noise only once",
        arguments: ["pull-object", "push-messages", "push-object", "confirm-message-received"])
    func killed(at request: String) async throws {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            let message = server.send("train", try fixture.content())
            server.freeze(request)
            // The killed process does not tell the server, so the device stays online.
            server.fail("deactivate-node", status: 500)
            try await run(try fixture.client(server, clip: 1, noise: 1)) { _ in
                server.requests.contains { $0.name == request }
            }
            server.unfreeze()
            let events = try await run(try fixture.client(server, clip: 1, noise: 1)) { _ in
                server.confirmed == [message]
            }
            #expect(events.contains(.resumed) && !events.contains { if case .dropped = $0 { true } else { false } })
            let replies = try server.replies()
            #expect(replies.count == 1 && replies[0].metadata.replyTo == message && replies[0].error == nil)
            let stored = try JSONDecoder().decode(
                FleetState.self, from: Data(contentsOf: fixture.key.appendingPathExtension("state")))
            #expect(stored.squaredLoss == 4 && stored.pending == nil)
        }
    }

    @Test("A client tries again after failures of the server") func retries() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            for name in ["activate-node", "pull-messages", "pull-object", "push-messages", "push-object"] {
                server.fail(name, status: 503, times: 2)
            }
            server.send("train", try fixture.content())
            let events = try await run(try fixture.client(server)) { _ in server.confirmed.count == 1 }
            let waiting = events.count { if case .waiting = $0 { true } else { false } }
            #expect(waiting == 10)
            #expect(try server.replies().count == 1)
        }
    }

    @Test("A cancelled client does not wait for a server that does not answer", .timeLimit(.minutes(10)))
    func silentServer() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            server.freeze("deactivate-node")
            server.send("query", RecordDictionary())
            try await run(try fixture.client(server)) { _ in server.confirmed.count == 1 }
            #expect(server.requests.last?.name == "deactivate-node")
        }
    }

    @Test("A client joins again if a restarted server does not know it any more") func restartedServer() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            server.fail("pull-messages", status: 401)
            server.send("train", try fixture.content())
            let events = try await run(try fixture.client(server)) { _ in server.confirmed.count == 1 }
            #expect(events.count { if case .joined = $0 { true } else { false } } == 2)
        }
    }

    /// Sends three messages that the server delivers in one response, and returns their IDs.
    private func sendBatch(_ server: SimulatedSuperLink, _ fixture: FleetFixture) throws -> [String] {
        server.deliver(3)
        return [
            server.send("query", RecordDictionary()), server.send("train", try fixture.content()),
            server.send("evaluate", try fixture.content()),
        ]
    }

    @Test("A client that must join again answers all messages of a batch") func rejectedInBatch() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            let messages = try sendBatch(server, fixture)
            server.fail("push-messages", status: 401)
            let events = try await run(try fixture.client(server)) { _ in server.confirmed == messages }
            #expect(events.count { if case .joined = $0 { true } else { false } } == 2)
        }
    }

    @Test("A client drops the answer to which the response is oversized, and answers the other messages of a batch")
    func oversizedInBatch() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            let others = Array(try sendBatch(server, fixture).dropFirst())
            server.fail("push-messages", status: 200, body: String(repeating: " ", count: 1 << 20))
            let events = try await run(try fixture.client(server)) { _ in server.confirmed == others }
            #expect(events.count { if case .dropped = $0 { true } else { false } } == 1)
        }
    }

    @Test("A client that is killed answers all messages of a batch with the same key")
    func killedInBatch() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            let messages = try sendBatch(server, fixture)
            server.freeze("push-messages")
            server.fail("deactivate-node", status: 500)
            try await run(try fixture.client(server)) { _ in
                server.requests.contains { $0.name == "push-messages" }
            }
            server.unfreeze()
            let events = try await run(try fixture.client(server)) { _ in server.confirmed == messages }
            #expect(events.contains(.resumed))
            let stored = try JSONDecoder().decode(
                FleetState.self, from: Data(contentsOf: fixture.key.appendingPathExtension("state")))
            #expect(stored.pending == nil && stored.waiting == nil)
        }
    }

    @Test("A rejected signature and an unknown key end the client") func wrongKey() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            server.fail("activate-node", status: 401)
            let client = try fixture.client(server)
            await #expect(throws: FleetError.rejectedSignature(url: "http://127.0.0.1:8000")) { try await client.run() }
            server.fail("register-node", status: 412, body: "{\"code\": 2001, \"detail\": \"disabled\"}")
            let error = await #expect(throws: FleetError.self) { try await client.run() }
            guard case .unknownKey(_, client.publicKey) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test("A message for another model is answered with an error, and the client continues") func wrongModel()
        async throws
    {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            server.send("train", try fixture.content(base: String(repeating: "f", count: 64)))
            server.send("train.secret", try fixture.content())
            server.send("train", try fixture.content())
            let events = try await run(try fixture.client(server)) { _ in server.confirmed.count == 3 }
            let replies = try server.replies()
            #expect(replies.count == 3)
            #expect(replies[0].error?.reason.contains("The message is for the model") == true)
            #expect(replies[1].error?.reason.contains("train.secret") == true)
            #expect(replies[0].error?.code == 2 && replies[2].error == nil)
            #expect(events.count { if case .refused = $0 { true } else { false } } == 2)
        }
    }

    @Test("Oversized and malformed responses are refused, and the client continues") func hostileServer() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            server.send("train", try fixture.content())
            server.damageObjects()
            let client = try fixture.client(server)
            try await run(client) { _ in server.confirmed.count == 1 }
            #expect(try server.replies()[0].error?.reason.contains("SHA-256") == true)

            for response in [[UInt8](repeating: 0x1A, count: 1 << 20), Array("<html>".utf8), [0x12, 0xFF, 0xFF, 0x7F]] {
                server.replace("pull-messages", with: response)
                try await run(client) { $0.contains { if case .refused = $0 { true } else { false } } }
            }
            server.replace("pull-messages", with: nil)
            server.send("train", try fixture.content())
            server.replace("pull-object", with: [UInt8](repeating: 0, count: 1 << 20))
            try await run(client) { _ in server.confirmed.count == 2 }
            #expect(try server.replies()[1].error?.reason.contains("more than") == true)
        }
    }

    @Test("An expired message, or one of a finished run, is dropped") func droppedMessages() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            server.send("train", try fixture.content(), timeToLive: -1)
            server.send("train", try fixture.content())
            server.fail("push-messages", status: 412, body: "{\"code\": 2007, \"detail\": \"Run finished.\"}")
            server.send("train", try fixture.content())
            let events = try await run(try fixture.client(server)) { _ in server.confirmed.count == 1 }
            #expect(events.count { if case .dropped = $0 { true } else { false } } == 2)
            #expect(try server.replies().count == 1)
        }
    }

    @Test("Settings out of range are errors") func settings() throws {
        var settings = FleetConfiguration()
        settings.personalization.blocks = 1
        #expect(
            throws: ImprintError.invalidSetting(
                name: "blocks", found: "1", expected: "0, because a fleet trains only the head")
        ) { try settings.check() }
        settings = FleetConfiguration()
        settings.noise = 1
        #expect(throws: ImprintError.self) { try settings.check() }
        settings = FleetConfiguration()
        settings.heartbeatInterval = .seconds(9)
        #expect(
            throws: ImprintError.invalidSetting(
                name: "heartbeatInterval", found: "9.0 seconds", expected: "10 to 1800 seconds")
        ) { try settings.check() }
        #expect(throws: FleetError.unsupportedURL("/tmp/x")) {
            _ = try FleetConnection(
                URL(filePath: "/tmp/x"), FleetKey(), transport: SimulatedSuperLink(), limit: 1)
        }
    }
}
