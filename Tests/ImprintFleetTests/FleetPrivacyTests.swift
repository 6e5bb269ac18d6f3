import Foundation
import ImprintInterop
import ImprintModel
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintFleet

@Suite struct FleetPrivacyTests {
    /// Reads every byte that a client sends while it answers all kinds of messages, and explains it.
    ///
    /// Each request is decoded and encoded again, so that it has no other bytes. The decoded values must be values that the server knows, the
    /// change of the head, the number of photos or, for an evaluation, two measurements.
    @Test("Every byte that a client sends is explained by the model's head, counts and the protocol") func everyByte()
        async throws
    {
        try await withTemporaryFolder { folder in
            let fixture = try FleetFixture(folder)
            let server = SimulatedSuperLink()
            var known: Set<String> = [""]
            for type in ["train", "evaluate", "query", "train.other"] {
                known.insert(server.send(type, type == "query" ? RecordDictionary() : try fixture.content()))
            }
            known.insert(server.send("train", try fixture.content(base: String(repeating: "0", count: 64))))
            // A photo that vanishes must not appear in an error either.
            let client = try fixture.client(server, validates: true)
            try FileManager.default.removeItem(at: folder.appending(path: "photos"))
            try await run(client) { _ in server.confirmed.count == 5 }

            let key = try FleetKey(contentsOf: fixture.key)
            let (node, run) = (SimulatedSuperLink.node, SimulatedSuperLink.run)
            let replies = try server.replies()
            #expect(replies.count == 5)
            var objects: [String: [UInt8]] = [:]
            var counts: [String: Int] = [:]
            for request in server.requests {
                counts[request.name, default: 0] += 1
                #expect(
                    request.headers.keys.sorted() == [
                        "Accept", "Accept-Encoding", "Content-Type", "flwr-public-key", "flwr-signature",
                        "flwr-timestamp",
                    ])
                #expect(request.headers["flwr-public-key"] == Data(key.publicPEM.utf8).base64EncodedString())
                let allowed: [[UInt8]]
                switch request.name {
                case "register-node": allowed = [FleetRequest.register(publicKey: key.publicPEM).immediateBytes]
                case "activate-node":
                    allowed = [FleetRequest.activate(publicKey: key.publicPEM, heartbeatInterval: 30).immediateBytes]
                case "send-node-heartbeat": allowed = [FleetRequest.heartbeat(node: node, interval: 30).immediateBytes]
                case "pull-messages": allowed = [FleetRequest.pullMessages(node: node).immediateBytes]
                case "deactivate-node": allowed = [FleetRequest.node(node).immediateBytes]
                case "confirm-message-received", "pull-object":
                    let id = try text(3, in: request.body)
                    #expect(FleetObject.isID(id))
                    allowed = [FleetRequest.pullObject(id, node: node, run: run).immediateBytes]
                case "push-object":
                    let (id, content) = (try text(3, in: request.body), try content(4, in: request.body))
                    objects[id] = content
                    allowed = [
                        FleetRequest.pushObject(id, content, node: node, run: run, session: "session").immediateBytes
                    ]
                case "push-messages":
                    // Checked below through the reply.
                    allowed = replies.map { reply in
                        var metadata = reply.metadata
                        metadata.messageID = ""
                        return FleetRequest.pushMessage(
                            reply.content.map { OutgoingMessage(metadata, $0) }
                                ?? OutgoingMessage(metadata, reply.error!), node: node
                        ).immediateBytes
                    }
                default: allowed = []
                }
                #expect(allowed.contains(request.body), "\(request.name)")
            }
            #expect(counts["push-messages"] == 5 && counts["push-object"]! > 5)

            // The replies have these values, and no object is left over.
            let device = try FleetFixture(folder).device(validates: true)
            var explained: [String: [UInt8]] = [:]
            for reply in replies {
                #expect(known.contains(reply.metadata.replyTo))
                #expect(abs(reply.metadata.createdAt - Date.now.timeIntervalSince1970) < 600)
                var metadata = reply.metadata
                metadata.messageID = ""
                let again: OutgoingMessage
                if let content = reply.content {
                    let answer = try device.answer(
                        reply.metadata.type, reply.metadata.type == "query" ? RecordDictionary() : fixture.content(),
                        squaredLoss: 0)
                    #expect(content == answer.content)
                    again = OutgoingMessage(metadata, answer.content)
                } else {
                    let reason = try #require(reply.error).reason
                    #expect(!reason.contains(folder.path) && !reason.contains("holiday"))
                    again = OutgoingMessage(metadata, try #require(reply.error))
                }
                explained.merge(again.objects.contents) { $1 }
            }
            // Equal objects are sent only once, for example the records of two answers.
            for (id, content) in objects { #expect(explained[id] == content, "an object that no value explains") }
        }
    }

    private func text(_ field: Int, in body: [UInt8]) throws -> String {
        String(decoding: try content(field, in: body), as: UTF8.self)
    }

    private func content(_ number: Int, in body: [UInt8]) throws -> [UInt8] {
        var found: [UInt8] = []
        let message = wire(body)
        try message.forEachField { if $0.number == number { found = Array(message.file.bytes(try $0.bytes())) } }
        return found
    }
}
