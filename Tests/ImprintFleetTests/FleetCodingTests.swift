import Foundation
import ImprintInterop
import TestSupport
import Testing

@testable import ImprintFleet

/// Messages that Flower's own classes encoded; Fixtures/make_messages.py has their values.
struct FlowerMessages: Decodable {
    struct Parts: Decodable {
        let message: String
        let tree: String
        let id: String
        let objects: [String: String]
    }

    let metadata: String
    let register: String
    let activate: String
    let node: String
    let heartbeat: String
    let pullMessages: String
    let pullObject: String
    let pushObject: String
    let pushMessages: String
    let pushed: String
    let pulledObject: String
    let pulledMessages: String
    let instruction: Parts
    let reply: Parts
    let error: Parts
    let doubles: String
    let fortran: String
    let integers: String
    let weights: String
    let biases: String

    static func read() throws -> FlowerMessages {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures/messages.json")
        return try JSONDecoder().decode(FlowerMessages.self, from: Data(contentsOf: file))
    }
}

/// Returns the bytes of hexadecimal digits.
func bytes(_ digits: String) -> [UInt8] {
    let digits = Array(digits.utf8)
    return stride(from: 0, to: digits.count, by: 2).map {
        UInt8(String(decoding: digits[$0..<($0 + 2)], as: UTF8.self), radix: 16)!
    }
}

func wire(_ bytes: [UInt8]) -> WireMessage { WireMessage(MappedFile(bytes, named: "test")) }

private let node: UInt64 = 17_446_744_073_709_551_615
private let run: UInt64 = 12_345_678_901_234_567_890
private let weights = FleetArray(shape: [3, 2], values: [0.5, -1.25, 2, 0, 3e-5, 65504])
private let biases = FleetArray(shape: [2], values: [0.125, -0.125])

private var instructionMetadata: MessageMetadata {
    var metadata = MessageMetadata()
    (metadata.runID, metadata.source, metadata.destination) = (run, 1, node)
    (metadata.groupID, metadata.type) = ("7", "train")
    (metadata.createdAt, metadata.timeToLive, metadata.sourceTask) = (1_790_000_000.25, 3600.5, 5)
    return metadata
}

private var replyMetadata: MessageMetadata {
    var metadata = instructionMetadata
    metadata.messageID = "ab"
    return metadata.reply(from: node, at: 1_790_000_060)
}

private func store(_ parts: FlowerMessages.Parts) -> ObjectStore {
    var store = ObjectStore()
    for (id, content) in parts.objects { store.insert(bytes(content), id: id) }
    return store
}

@Suite struct FleetCodingTests {
    private let messages: FlowerMessages

    init() throws { messages = try FlowerMessages.read() }

    @Test("Requests have the bytes of Flower's own messages") func requests() {
        let requests: [(name: String, found: MessageBuilder, expected: String)] = [
            ("metadata", instructionMetadata.wire, messages.metadata),
            ("register-node", FleetRequest.register(publicKey: "key"), messages.register),
            ("activate-node", FleetRequest.activate(publicKey: "key", heartbeatInterval: 30), messages.activate),
            ("deactivate-node", FleetRequest.node(node), messages.node),
            ("send-node-heartbeat", FleetRequest.heartbeat(node: node, interval: 30), messages.heartbeat),
            ("pull-messages", FleetRequest.pullMessages(node: node), messages.pullMessages),
            ("pull-object", FleetRequest.pullObject("ab", node: node, run: run), messages.pullObject),
            (
                "push-object", FleetRequest.pushObject("ab", Array("xyz".utf8), node: node, run: run, session: "s"),
                messages.pushObject
            ),
        ]
        for request in requests {
            #expect(request.found.immediateBytes == bytes(request.expected), "\(request.name)")
        }
    }

    @Test("A reply has the IDs and bytes of Flower's own objects") func reply() throws {
        var content = RecordDictionary()
        content.arrays = [
            .init(
                name: "arrays",
                value: ArrayRecord([
                    .init(name: "head.weight", value: weights), .init(name: "head.bias", value: biases),
                ]))
        ]
        content.metrics = [
            .init(
                name: "metrics",
                value: ValueRecord([
                    ("num-examples", .integer(20)), ("loss", .double(0.75)), ("change", .integer(-3)),
                ]))
        ]
        let reply = OutgoingMessage(replyMetadata, content)
        #expect(reply.metadata.messageID == messages.reply.id)
        #expect(reply.tree.wire.immediateBytes == bytes(messages.reply.tree))
        #expect(reply.objects == store(messages.reply))
        #expect(FleetRequest.pushMessage(reply, node: node).immediateBytes == bytes(messages.pushMessages))
    }

    @Test("A reply with an error has the ID and bytes of Flower's own object") func error() throws {
        let reply = OutgoingMessage(replyMetadata, MessageError(reason: "The model differs."))
        #expect(reply.metadata.messageID == messages.error.id)
        #expect(reply.objects == store(messages.error))
        let stored = try FleetState.Reply(reply).message()
        #expect(stored == reply)
    }

    @Test("A message of Flower is read with its metadata, settings and arrays") func instruction() throws {
        let pulled = try PulledMessages(wire(bytes(messages.pulledMessages))).messages
        let message = try #require(pulled.first)
        var expected = instructionMetadata
        expected.messageID = messages.instruction.id
        #expect(pulled.count == 1 && message.metadata == expected)
        let root = try #require(message.tree.children.first)
        let content = try RecordDictionary(root, in: store(messages.instruction), maximumValues: 8)
        let arrays = try #require(content.arrays.first?.value.items)
        #expect(content.arrays.first?.name == "arrays" && arrays.count == 2)
        #expect(arrays.first { $0.name == "head.weight" }?.value == weights)
        #expect(arrays.first { $0.name == "head.bias" }?.value == biases)
        #expect(content.setting("server-round") == .integer(3))
        #expect(content.setting("imprint.base") == .string("d1gést"))
        #expect(content.setting("on") == .bool(true) && content.setting("rate") == .double(-0.5))
        #expect(content.setting("list") == .other && content.setting("missing") == nil)
        #expect(try FleetState.Pending(message).message() == message)
    }

    @Test("Responses of Flower are read") func responses() throws {
        let pushed = try PushedMessages(wire(bytes(messages.pushed)))
        #expect(pushed.missing == ["cd", "ef"] && pushed.sessionID == "s")
        let object = try PulledObject(wire(bytes(messages.pulledObject)))
        #expect(object.isFound && object.isAvailable && object.content == Array("xyz".utf8))
    }

    @Test("Arrays are read and written as numpy does") func arrays() throws {
        #expect(weights.npy == bytes(messages.weights) && biases.npy == bytes(messages.biases))
        #expect(try FleetArray(npy: bytes(messages.weights)) == weights)
        #expect(try FleetArray(npy: bytes(messages.doubles)) == weights)
    }

    @Test("A long array is sent in chunks of at most 5 MiB, equal chunks once") func chunks() throws {
        let array = FleetArray(shape: [3_000_000], values: [Float](repeating: 0, count: 3_000_000))
        var store = ObjectStore()
        let tree = array.add(to: &store)
        // The first chunk has the header, the second has only zeros, and the third is shorter.
        #expect(tree.children.count == 3)
        #expect(store.contents.values.allSatisfy { $0.count <= FleetArray.chunkSize + 64 })
        var budget = 3_000_000
        #expect(try FleetArray(tree.objectID, in: store, budget: &budget) == array && budget == 0)
    }

    @Test("An array repeats the index of a chunk that occurs twice, as in Flower") func repeatedChunks() throws {
        let count = 4_000_000
        let array = FleetArray(shape: [count], values: [Float](repeating: 0, count: count))
        var store = ObjectStore()
        let tree = array.add(to: &store)
        let body = String(decoding: try store.object(tree.objectID, type: "Array").body, as: UTF8.self)
        #expect(body.hasSuffix("\"arraychunk_ids\": [0, 1, 1, 2]}") && tree.children.count == 3)
        var budget = count
        #expect(try FleetArray(tree.objectID, in: store, budget: &budget) == array && budget == 0)
    }

    @Test(
        "Strings in JSON have the escapes of Python",
        arguments: [("a", "\"a\""), ("\"\\\n", "\"\\\"\\\\\\u000a\""), ("é🙂", "\"\\u00e9\\ud83d\\ude42\"")])
    func json(text: String, expected: String) { #expect(PythonJSON.string(text) == expected) }
}

@Suite struct MalformedMessageTests {
    private let messages: FlowerMessages

    init() throws { messages = try FlowerMessages.read() }

    private func expectMalformed(_ reason: String, _ body: () throws -> Void) {
        do {
            try body()
            Issue.record("no error, expected one about \(reason)")
        } catch let error as FleetError {
            guard case .malformed(let found) = error else {
                Issue.record("unexpected error: \(error)")
                return
            }
            #expect(found.contains(reason), "\(found)")
        } catch {
            Issue.record("unexpected error: \(error)")
        }
    }

    @Test("An object whose bytes do not match its ID is rejected") func wrongDigest() {
        let (id, content) = messages.instruction.objects.first!
        var changed = bytes(content)
        changed[changed.count - 1] ^= 1
        expectMalformed("do not match its SHA-256") { _ = try FleetObject(changed, id: id) }
    }

    @Test(
        "An object with a damaged header is rejected",
        arguments: ["", "Array", "Array  5\u{0}123", "Array x 3\u{0}123", "Array  3 4\u{0}123", "Array  -1\u{0}"])
    func header(content: String) {
        let content = Array(content.utf8)
        expectMalformed("object") { _ = try FleetObject(content, id: FleetObject.id(of: content)) }
    }

    @Test("An array of another type or order is rejected", arguments: [\FlowerMessages.fortran, \.integers])
    func types(file: KeyPath<FlowerMessages, String> & Sendable) {
        expectMalformed("not a .npy file") { _ = try FleetArray(npy: bytes(messages[keyPath: file])) }
    }

    @Test("Every truncation of an array is rejected") func truncation() {
        let file = bytes(messages.weights)
        for length in file.indices {
            #expect(throws: FleetError.self, "\(length) bytes") { _ = try FleetArray(npy: Array(file[..<length])) }
        }
    }

    @Test("A shape whose product overflows is rejected") func overflow() {
        var file = FleetArray(shape: [2], values: [1, 2]).npy
        let text = Array("(4294967296, 4294967296, 4294967296), }".utf8)
        let start = file.firstIndex(of: UInt8(ascii: "("))!
        file.replaceSubrange(start..<(start + text.count), with: text)
        expectMalformed("its shape") { _ = try FleetArray(npy: file) }
    }

    @Test("Arrays with more values than the head are rejected") func oversized() throws {
        let pulled = try PulledMessages(wire(bytes(messages.pulledMessages))).messages[0]
        expectMalformed("larger than the head") {
            _ = try RecordDictionary(pulled.tree.children[0], in: store(messages.instruction), maximumValues: 7)
        }
    }

    /// Returns the ID of an array of one value with these chunks and indices, which may be invalid.
    private func array(_ chunks: [String], _ indices: [Int], in store: inout ObjectStore) -> String {
        let body = #"{"dtype":"float32","shape":[1],"stype":"numpy.ndarray","arraychunk_ids":\#(indices)}"#
        let bytes = FleetObject(type: "Array", childIDs: chunks, body: Array(body.utf8)).bytes
        let id = FleetObject.id(of: bytes)
        store.insert(bytes, id: id)
        return id
    }

    @Test("A chunk that is empty or listed twice is rejected") func invalidChunks() {
        let file = FleetArray(shape: [1], values: [1]).npy
        var store = ObjectStore()
        let whole = store.add("ArrayChunk", body: file).objectID
        let empty = store.add("ArrayChunk", body: []).objectID
        for (chunks, indices, reason) in [
            ([whole, empty], [0, 1, 1], "an empty chunk"), ([whole, whole], [0], "a chunk twice"),
            ([whole], [0, 1], "a chunk that does not exist"), ([whole], [-1], "a chunk that does not exist"),
        ] {
            var budget = 1
            let id = array(chunks, indices, in: &store)
            expectMalformed(reason) { _ = try FleetArray(id, in: store, budget: &budget) }
        }
    }

    @Test("A chunk with a long header is parsed once, however often it is repeated", .timeLimit(.minutes(1)))
    func repeatedHeaders() {
        // 60,000 times 64 KB would take minutes to hash.
        let children = (0..<1000).map { FleetObject.id(of: Array("\($0)".utf8)) }
        let bytes = FleetObject(type: "ArrayChunk", childIDs: children, body: [0]).bytes
        let chunk = FleetObject.id(of: bytes)
        var store = ObjectStore()
        store.insert(bytes, id: chunk)
        let id = array([chunk], [Int](repeating: 0, count: 60_000), in: &store)
        var budget = 1
        expectMalformed("not a .npy file") { _ = try FleetArray(id, in: store, budget: &budget) }
    }

    /// Adds a parent whose children have these names, and returns its tree.
    private func parent(
        _ type: String, _ items: [(name: String, tree: ObjectTree)], in store: inout ObjectStore
    ) -> ObjectTree {
        store.add(type, children: items.map(\.tree), body: PythonJSON.object(items))
    }

    @Test("An array or record with several names is read once") func severalNames() throws {
        var store = ObjectStore()
        let array = FleetArray(shape: [2], values: [1, 2]).add(to: &store)
        let record = parent("ArrayRecord", [("a", array), ("b", array)], in: &store)
        let other = parent("ArrayRecord", [("c", array)], in: &store)
        let root = parent("RecordDict", [("x", record), ("y", record), ("z", other)], in: &store)
        // The budget is that of one array.
        let content = try RecordDictionary(root, in: store, maximumValues: 2)
        #expect(content.arrays.map(\.name) == ["x", "y", "z"])
        #expect(content.arrays.map { $0.value.items.map(\.name) } == [["a", "b"], ["a", "b"], ["c"]])
        #expect(content.arrays.allSatisfy { $0.value.items.allSatisfy { $0.value.values == [1, 2] } })
    }

    @Test("Records and arrays with more than 256 names are rejected") func tooManyNames() throws {
        func names(_ count: Int, of tree: ObjectTree) -> [(name: String, tree: ObjectTree)] {
            (0..<count).map { ("\($0)", tree) }
        }
        var store = ObjectStore()
        let array = FleetArray(shape: [1], values: [1]).add(to: &store)
        let record = parent("ArrayRecord", names(256, of: array), in: &store)
        let root = parent("RecordDict", names(256, of: record), in: &store)
        #expect(try RecordDictionary(root, in: store, maximumValues: 1).arrays.count == 256)
        let records = parent("RecordDict", names(257, of: record), in: &store)
        expectMalformed("the type RecordDict has 257 names, expected at most 256") {
            _ = try RecordDictionary(records, in: store, maximumValues: 1)
        }
        let large = parent("ArrayRecord", names(257, of: array), in: &store)
        let arrays = parent("RecordDict", [("arrays", large)], in: &store)
        expectMalformed("the type ArrayRecord has 257 names, expected at most 256") {
            _ = try RecordDictionary(arrays, in: store, maximumValues: 1)
        }
    }

    @Test("A record of settings with too many values is rejected") func tooManySettings() throws {
        func root(_ count: Int, in store: inout ObjectStore) -> ObjectTree {
            let record = ValueRecord((0..<count).map { ("\($0)", RecordValue.integer($0)) })
            return parent(
                "RecordDict", [("config", store.add("ConfigRecord", body: record.wire.immediateBytes))], in: &store)
        }
        var store = ObjectStore()
        let largest = root(ValueRecord.maximumItems, in: &store)
        #expect(try RecordDictionary(largest, in: store, maximumValues: 1).setting("1023") == .integer(1023))
        let tooLarge = root(ValueRecord.maximumItems + 1, in: &store)
        expectMalformed("more than 1024 values") {
            _ = try RecordDictionary(tooLarge, in: store, maximumValues: 1)
        }
    }

    @Test("A message without one of its objects is rejected") func missing() throws {
        let pulled = try PulledMessages(wire(bytes(messages.pulledMessages))).messages[0]
        for id in messages.instruction.objects.keys where id != messages.instruction.id {
            var rest = ObjectStore()
            for (other, content) in messages.instruction.objects where other != id {
                rest.insert(bytes(content), id: other)
            }
            expectMalformed("missing") {
                _ = try RecordDictionary(pulled.tree.children[0], in: rest, maximumValues: 8)
            }
        }
    }

    @Test("A tree with too many objects is rejected, however deep") func trees() {
        let leaf = ObjectTree(objectID: String(repeating: "a", count: 64))
        let wide = ObjectTree(objectID: leaf.objectID, children: [ObjectTree](repeating: leaf, count: 256))
        var budget = IncomingMessage.maximumObjects
        expectMalformed("too many objects") { _ = try ObjectTree(wire(wide.wire.immediateBytes), budget: &budget) }
        var deep = leaf
        for _ in 0..<100 { deep = ObjectTree(objectID: leaf.objectID, children: [deep]) }
        budget = IncomingMessage.maximumObjects
        #expect(throws: WireError.self) { _ = try ObjectTree(wire(deep.wire.immediateBytes), budget: &budget) }
    }

    @Test("A response with too many messages is rejected") func tooManyMessages() {
        var response = MessageBuilder()
        for _ in 0...PulledMessages.maximumMessages {
            response.add(2, MessageBuilder())
            response.add(3, ObjectTree(objectID: String(repeating: "a", count: 64)).wire)
        }
        expectMalformed("257 messages, expected at most 256") {
            _ = try PulledMessages(wire(response.immediateBytes))
        }
    }

    @Test("Random damage to a response throws an error or reads a message, but never crashes") func damage() {
        let response = bytes(messages.pulledMessages)
        var (readCount, rejectedCount) = (0, 0)
        for seed in 0..<2000 {
            var damaged = response
            damaged[seed * 7919 % damaged.count] ^= UInt8(1 + seed % 255)
            if seed % 3 == 0 { damaged = Array(damaged.prefix(seed * 31 % damaged.count)) }
            if (try? PulledMessages(wire(damaged))) == nil { rejectedCount += 1 } else { readCount += 1 }
        }
        #expect(readCount > 0 && rejectedCount > 0)
    }
}
