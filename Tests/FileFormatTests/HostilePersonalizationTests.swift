import Foundation
import ImprintCore
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel

/// Invalid personalization files: each is rejected with an error, and none crashes the process.
@Suite struct HostilePersonalizationTests {
    private let sample: Personalization

    init() throws { sample = try samplePersonalization(of: tunableModel()) }

    private func withBytes(_ body: (URL, [UInt8]) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "me.imprint")
            try sample.write(to: url)
            try body(url, [UInt8](try Data(contentsOf: url)))
        }
    }

    @Test("A file truncated at any length, or with trailing bytes, is rejected") func truncated() throws {
        try withBytes { url, bytes in
            for length in bytes.indices {
                try Data(bytes.prefix(length)).write(to: url)
                #expect(throws: SafetensorsError.self, "\(length) bytes") { try Personalization(contentsOf: url) }
            }
            try Data(bytes + [0]).write(to: url)
            #expect(throws: SafetensorsError.self) { try Personalization(contentsOf: url) }
            try Data(bytes).write(to: url)
            #expect(try Personalization(contentsOf: url) == sample)
        }
    }

    @Test("A flipped bit in the tensors is detected") func flippedData() throws {
        try withBytes { url, bytes in
            let length = try #require(try Safetensors.File(contentsOf: url).header.tensors.last?.byteRange.upperBound)
            for offset in (bytes.count - length)..<bytes.count {
                for bit in 0..<8 {
                    var changed = bytes
                    changed[offset] ^= 1 << UInt8(bit)
                    try Data(changed).write(to: url)
                    let error = #expect(throws: ModelFileError.self) { try Personalization(contentsOf: url) }
                    guard case .damaged? = error?.problem else {
                        Issue.record("bit \(bit) of byte \(offset): \(String(describing: error))")
                        return
                    }
                }
            }
        }
    }

    /// Each argument flips another bit of every byte.
    @Test("A flipped bit in the header is detected, or has no effect", arguments: 0..<8)
    func flippedHeader(bit: Int) throws {
        try withBytes { url, bytes in
            let length = try #require(try Safetensors.File(contentsOf: url).header.tensors.last?.byteRange.upperBound)
            var refused = 0
            for offset in 0..<(bytes.count - length) {
                var changed = bytes
                changed[offset] ^= 1 << UInt8((bit + offset) % 8)
                try Data(changed).write(to: url)
                do {
                    let read = try Personalization(contentsOf: url)
                    #expect(read == sample, "bit \((bit + offset) % 8) of byte \(offset)")
                } catch {
                    #expect(error is ModelFileError || error is SafetensorsError, "\(error)")
                    refused += 1
                }
            }
            #expect(refused > (bytes.count - length) * 9 / 10)
        }
    }

    @Test(
        "Another format is rejected with its version",
        arguments: [
            ("2", .newerFormat(found: 2, newest: 1)), ("999", .newerFormat(found: 999, newest: 1)),
            ("0", .unknownFormat(found: "0", newest: 1)),
            ("-1", .unknownFormat(found: "-1", newest: 1)), ("", .unknownFormat(found: "", newest: 1)),
            ("one", .unknownFormat(found: "one", newest: 1)),
            ("99999999999999999999", .unknownFormat(found: "99999999999999999999", newest: 1)),
            (nil, .notAPersonalization(found: "a file of another program")),
        ] as [(String?, ModelFileError.Problem)])
    func formats(format: String?, problem: ModelFileError.Problem) throws {
        // The rest of the metadata of another format is ignored.
        for metadata in [
            ["imprint.personalization": format], ["imprint.personalization": format, "imprint.textDigest": "x"],
        ] {
            try withChanged(sample, metadata: metadata) { url in
                let error = #expect(throws: ModelFileError.self) { try Personalization(contentsOf: url) }
                #expect(error == ModelFileError(path: url.path, problem: problem))
                #expect(error?.description.contains("reads up to 5") == false)
            }
        }
    }

    @Test(
        "A missing metadata key is rejected by name",
        arguments: [
            "imprint.base", "imprint.labels", "imprint.columns", "imprint.examples", "imprint.digest",
            "imprint.textDigest",
        ])
    func missing(key: String) throws {
        try withChanged(sample, metadata: [key: nil]) { url in
            let error = #expect(throws: ModelFileError.self) { try Personalization(contentsOf: url) }
            #expect(error?.problem == .missingMetadata(key: key))
        }
    }

    @Test("The tensors of adapters are unexpected if the list of adapters is missing") func missingAdapters() throws {
        try expectRefused(["imprint.factors": nil], "4 tensors besides the head's for 0 layers")
    }

    @Test(
        "Metadata that is not valid JSON of its type is rejected by its key",
        arguments: ["imprint.labels", "imprint.columns", "imprint.factors", "imprint.examples"],
        ["", "{", "null", "7", "\"text\"", "[[]]", "{\"unknown\":1}", "[1,2]", "[null]", "\u{0}"])
    func notJSON(key: String, value: String) throws {
        try expectRefused([key: value], key)
    }

    @Test("Very deeply nested brackets are rejected", arguments: ["imprint.labels", "imprint.examples"])
    func nested(key: String) throws {
        try expectRefused([key: String(repeating: "[", count: 100_000)], "nested more than 64 levels deep")
    }

    @Test(
        "Invalid labels, adapters and photo counts are rejected with their reason",
        arguments: [
            (["imprint.columns": "[\"dog\",\"dog\"]", "imprint.labels": "[]"], "a label twice"),
            (["imprint.columns": "[\"dog\",\"cat\"]"], "an added label without a column"),
            (["imprint.labels": "[\"dog\",\"dog\"]"], "a label twice"),
            (["imprint.labels": "[]", "imprint.columns": "[]"], "0 labels for 2 columns"),
            (["imprint.columns": "[\"dog\"]", "imprint.labels": "[]"], "1 label for 2 columns"),
            (["imprint.columns": "[\"dog\",\"\\\"new\\\"\",\"cat\"]"], "3 labels for 2 columns"),
            (["imprint.factors": "[\"conv.weight\",\"conv.weight\"]"], "two adapters of one layer"),
            (["imprint.factors": "[\"conv.weight\"]"], "4 tensors besides the head's for 1 layers"),
            (["imprint.factors": "[\"conv.weight\",\"other\"]"], "there is no tensor of that name"),
            (["imprint.examples": "{\"examples\":{\"dog\":-1},\"corrections\":{}}"], "negative"),
            (["imprint.examples": "{\"examples\":{},\"corrections\":{\"dog\":-1}}"], "negative"),
            (
                ["imprint.examples": "{\"examples\":{\"a\":9223372036854775807,\"b\":1},\"corrections\":{}}"],
                "beyond 32 bits"
            ),
            (["imprint.examples": "{\"examples\":{\"a\":9223372036854775808},\"corrections\":{}}"], "imprint.examples"),
            (["imprint.examples": "{\"examples\":{\"a\":0.5},\"corrections\":{}}"], "imprint.examples"),
            (["imprint.examples": "{\"examples\":{\"a\":1}}"], "corrections is missing"),
            (["imprint.digest": ""], "is damaged"), (["imprint.textDigest": ""], "is damaged"),
        ] as [([String: String], String)])
    func contradictions(metadata: [String: String], text: String) throws {
        try expectRefused(metadata.mapValues { $0 }, text)
    }

    /// A tensor that replaces the one of the same name, or the removal of that tensor.
    struct Replacement: Sendable, CustomTestStringConvertible {
        let name: String
        let shape: [Int]?
        var value: Float = 0.5
        let text: String
        var testDescription: String { "\(name) \(shape.map { "\($0)" } ?? "missing") \(value)" }
    }

    private static let huge = 1 << 61

    @Test(
        "Tensors with wrong names, shapes or values are rejected",
        arguments: [
            Replacement(name: "head.weight", shape: nil, text: "there is no tensor of that name with 2 axes"),
            Replacement(name: "head.bias", shape: nil, text: "there is no tensor of that name with 1 axes"),
            Replacement(name: "conv.weight.left", shape: nil, text: "3 tensors besides the head's for 2 layers"),
            Replacement(name: "middle.weight.right", shape: nil, text: "3 tensors besides the head's for 2 layers"),
            Replacement(name: "extra", shape: [1], text: "5 tensors besides the head's for 2 layers"),
            Replacement(name: "head.weight", shape: [10], text: "with 2 axes"),
            Replacement(name: "head.weight", shape: [5, 2, 1], text: "with 2 axes"),
            Replacement(name: "head.weight", shape: [], text: "with 2 axes"),
            Replacement(name: "head.weight", shape: [2, 5], text: "2 labels for 5 columns"),
            Replacement(name: "head.weight", shape: [0, 1], text: "2 labels for 1 column and"),
            Replacement(name: "head.weight", shape: [huge, 0], text: "2 labels for 0 columns"),
            Replacement(name: "head.weight", shape: [0, huge], text: "2 labels for \(huge) columns"),
            Replacement(name: "head.bias", shape: [3], text: "2 labels for 2 columns and 3 biases"),
            Replacement(name: "head.bias", shape: [0], text: "2 labels for 2 columns and 0 biases"),
            Replacement(name: "head.bias", shape: [1, 2], text: "with 1 axes"),
            Replacement(
                name: "conv.weight.left", shape: [18, 3], text: "adapter matrices of shapes [18, 3] and [2, 4]"),
            Replacement(name: "conv.weight.left", shape: [36], text: "with 2 axes"),
            Replacement(
                name: "conv.weight.right", shape: [1, 8], text: "adapter matrices of shapes [18, 2] and [1, 8]"),
            Replacement(name: "conv.weight.left", shape: [0, 2], text: "adapter matrices of shapes [0, 2]"),
            Replacement(
                name: "conv.weight.right", shape: [2, 0], text: "adapter matrices of shapes [18, 2] and [2, 0]"),
            Replacement(name: "head.weight", shape: [5, 2], value: .nan, text: "the tensor head.weight has a value"),
            Replacement(name: "head.bias", shape: [2], value: .infinity, text: "the tensor head.bias has a value"),
            Replacement(name: "conv.weight.left", shape: [18, 2], value: .nan, text: "the tensor conv.weight.left"),
            Replacement(name: "conv.weight.right", shape: [2, 4], value: .nan, text: "the tensor conv.weight.right"),
        ])
    func tensors(_ replacement: Replacement) throws {
        try expectRefused([:], replacement.text) {
            replace(replacement.name, replacement.shape, &$0, replacement.value)
        }
    }

    private func replace(_ name: String, _ shape: [Int]?, _ tensors: inout [Safetensors.Tensor], _ value: Float = 0.5) {
        tensors.removeAll { $0.name == name }
        guard let shape else { return }
        let count = shape.contains(0) ? 0 : shape.reduce(1, *)
        tensors.append(.init(name: name, shape: shape, values: [Float](repeating: value, count: count)))
    }

    @Test("A file with thousands of adapters is read as it was written") func manyAdapters() throws {
        let adapters = (0..<3000).map {
            Personalization.LowRankAdapter(parameter: "layer \($0)", left: [1], right: [1], rank: 1)
        }
        let personalization = Personalization(
            baseDigest: sample.baseDigest, addedLabels: [], columns: [.sample("dog", 5)], adapters: adapters,
            record: .init(examples: [:]))
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "me.imprint")
            try personalization.write(to: url)
            #expect(try Personalization(contentsOf: url) == personalization)
        }
    }

    @Test("Empty adapters with any rank are rejected", arguments: [0, 1, huge])
    func emptyAdapters(rank: Int) throws {
        try expectRefused([:], "adapter matrices of shapes") { tensors in
            replace("conv.weight.left", [0, rank], &tensors)
            replace("conv.weight.right", [rank, 0], &tensors)
        }
    }

    @Test("A head of another size is rejected when the personalization is applied") func otherSize() throws {
        let model = try tunableModel()
        for channels in [0, 4, 6] {
            try withChanged(sample) {
                replace("head.weight", [channels, 2], &$0)
            } _: { url in
                let read = try Personalization(contentsOf: url)
                let error = #expect(throws: ModelFileError.self) { try model.personalized(with: read) }
                #expect(error?.path == url.path)
                #expect(error?.description.contains("a column of \(channels) weights for features of 5") == true)
            }
        }
    }

    private func expectRefused(
        _ metadata: [String: String?], _ text: String,
        tensors: (inout [Safetensors.Tensor]) -> Void = { _ in }, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try withChanged(sample, metadata: metadata, tensors: tensors) { url in
            let error = #expect(throws: ModelFileError.self, sourceLocation: sourceLocation) {
                try Personalization(contentsOf: url)
            }
            #expect(
                error?.description.contains(text) == true, "\(String(describing: error))",
                sourceLocation: sourceLocation)
            #expect(error?.path == url.path, sourceLocation: sourceLocation)
        }
    }
}
