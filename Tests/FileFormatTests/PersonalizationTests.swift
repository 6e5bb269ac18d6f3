import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Personalization files.
@Suite struct PersonalizationTests {
    /// The content of a personalization.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var channels = 5
        var columns: [String] = []
        var added: [String] = []
        var hasBias = true
        var adapters: [(parameter: String, rows: Int, columns: Int, rank: Int)] = []

        func personalization(base: String = "0123") -> Personalization {
            Personalization(
                baseDigest: base, addedLabels: added,
                columns: columns.map { .sample($0, channels, hasBias: hasBias) },
                adapters: adapters.map { .sample($0.parameter, rows: $0.rows, columns: $0.columns, rank: $0.rank) },
                record: .init(
                    examples: Dictionary(uniqueKeysWithValues: columns.map { ($0, $0.utf8.count) }),
                    corrections: ["cat": 0]))
        }
    }

    static let cases = [
        Case(testDescription: "empty"),
        Case(testDescription: "one label of one channel", channels: 1, columns: ["cat"]),
        Case(testDescription: "without a bias", columns: ["dog", "cat"], hasBias: false),
        Case(testDescription: "only an added label", columns: ["new"], added: ["new"]),
        Case(
            testDescription: "added labels in another order", channels: 3,
            columns: ["b", "cat", "\"a\\\n😀", ""], added: ["\"a\\\n😀", "", "b"]),
        Case(
            testDescription: "only adapters", adapters: [("conv.weight", 18, 4, 3), ("middle.weight", 4, 5, 1)]),
        Case(
            testDescription: "all parts, of odd sizes", channels: 7, columns: ["é", "z"], added: ["z"],
            adapters: [("b.weight", 1, 1, 1), ("a.weight", 3, 1, 5), ("", 1, 7, 2)]),
    ]

    @Test("A personalization survives a round trip, and equal content gives equal bytes", arguments: cases)
    func roundTrip(_ example: Case) throws {
        let personalization = example.personalization()
        try withTemporaryFolder { folder in
            let (first, second) = (folder.appending(path: "first"), folder.appending(path: "second"))
            let length = try personalization.write(to: first)
            let bytes = try Data(contentsOf: first)
            #expect(length == bytes.count)
            let read = try Personalization(contentsOf: first)
            #expect(read == personalization && read.isFinite)
            #expect(Personalization.isPersonalization(at: first))
            #expect(FileKind(contentsOf: first) == .personalization)
            try read.write(to: second)
            #expect(try Data(contentsOf: second) == bytes)
            let header = try Safetensors.File(contentsOf: first).header
            #expect(header.tensors.allSatisfy { $0.elementType == .float16 })
            #expect(header.tensors.count == 2 + 2 * example.adapters.count)
            let weight = header.tensors.first { $0.name == "head.weight" }
            #expect(weight?.shape == [example.columns.isEmpty ? 0 : example.channels, example.columns.count])
        }
    }

    @Test("Personalizations that differ in any part are not equal, and neither are their files") func differences()
        throws
    {
        let base = try tunableModel()
        let sample = try samplePersonalization(of: base)
        func with(
            base: String? = nil, added: [String]? = nil, columns: [Personalization.Column]? = nil,
            adapters: [Personalization.LowRankAdapter]? = nil, record: Personalization.Record? = nil
        ) -> Personalization {
            Personalization(
                baseDigest: base ?? sample.baseDigest, addedLabels: added ?? sample.addedLabels,
                columns: columns ?? sample.columns,
                adapters: adapters ?? sample.adapters, record: record ?? sample.record)
        }
        let others = [
            with(base: "x"), with(added: []), with(columns: sample.columns.reversed()),
            with(columns: [sample.columns[1]]), with(adapters: []), with(adapters: sample.adapters.reversed()),
            with(record: .init(examples: ["dog": 3])),
        ]
        try withTemporaryFolder { folder in
            func bytes(_ personalization: Personalization) throws -> Data {
                let url = folder.appending(path: "x")
                try personalization.write(to: url)
                #expect(try Personalization(contentsOf: url) == personalization)
                return try Data(contentsOf: url)
            }
            #expect(with() == sample)
            let original = try bytes(sample)
            for other in others {
                #expect(other != sample)
                #expect(try bytes(other) != original)
            }
        }
    }

    @Test("Values are rounded to float16 at creation, ties to even")
    func rounding() {
        // 11 significant bits; the smallest float16 is 2⁻²⁴, and half of it rounds to 0.
        let values: [Float] = [1 / 3, 1 + 0x1p-11, 1 + 0x3p-11, 65504, 65519, 0x1p-24, 0x1p-25, -0.1]
        let rounded: [Float] = [0x1.554p-2, 1, 1 + 0x1p-9, 65504, 65504, 0x1p-24, 0, -0x1.998p-4]
        #expect(Personalization.Column(label: "a", weights: values, bias: 0.1).weights == rounded)
        #expect(Personalization.Column(label: "a", weights: [], bias: 0.1).bias == 0x1.998p-4)
        let adapter = Personalization.LowRankAdapter(parameter: "a", left: values, right: values.reversed(), rank: 4)
        #expect(adapter.left == rounded && adapter.right == rounded.reversed())
    }

    @Test(
        "Values that are not finite, or too large for float16, are neither saved nor applied",
        arguments: [Float.nan, .infinity, -.infinity, 65520, -1e30])
    func notFinite(value: Float) throws {
        let model = try tunableModel()
        let base = try model.identity
        let fine = [Float](repeating: 0, count: 4) + [1]
        func with(_ column: Personalization.Column, _ left: [Float], _ right: [Float]) -> Personalization {
            Personalization(
                baseDigest: base, addedLabels: [], columns: [column],
                adapters: [.init(parameter: "middle.weight", left: left, right: right, rank: 1)],
                record: .init(examples: [:]))
        }
        let column = Personalization.Column(label: "cat", weights: fine, bias: 0)
        let zeros = [Float](repeating: 0, count: 4)
        #expect(try model.personalized(with: with(column, zeros, fine)).labels == model.labels)
        let cases: [(Personalization, String)] = [
            (with(.init(label: "cat", weights: fine.dropLast() + [value], bias: 0), zeros, fine), "head.weight"),
            (with(.init(label: "cat", weights: fine, bias: value), zeros, fine), "head.bias"),
            (with(column, zeros.dropLast() + [value], fine), "middle.weight.left"),
            (with(column, zeros, fine.dropLast() + [value]), "middle.weight.right"),
        ]
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "me.imprint")
            for (personalization, tensor) in cases {
                #expect(!personalization.isFinite)
                let error = #expect(throws: ModelFileError.self) { try personalization.write(to: url) }
                #expect(error == ModelFileError(path: url.path, problem: .notFinite(tensor: tensor)))
                #expect(!FileManager.default.fileExists(atPath: url.path))
                #expect(throws: ModelFileError.self) { try model.personalized(with: personalization) }
            }
        }
    }

    @Test("An inconsistent personalization is not saved")
    func contradictions() throws {
        let cat = Personalization.Column.sample("cat", 5)
        let adapter = Personalization.LowRankAdapter.sample("conv.weight", rows: 18, columns: 4, rank: 1)
        func with(
            _ columns: [Personalization.Column], added: [String] = [], adapters: [Personalization.LowRankAdapter] = [],
            examples: [String: Int] = [:]
        ) -> Personalization {
            Personalization(
                baseDigest: "x", addedLabels: added, columns: columns, adapters: adapters,
                record: .init(examples: examples))
        }
        let cases: [(Personalization, String)] = [
            (with([cat, cat]), "a label twice"), (with([cat], added: ["new"]), "an added label without a column"),
            (with([cat], added: ["cat", "cat"]), "a label twice"),
            (with([cat, .sample("dog", 4)]), "different lengths"),
            (with([.sample("dog", 4), cat]), "different lengths"),
            (with([cat], adapters: [adapter, adapter]), "two adapters of one layer"),
            (with([cat], examples: ["cat": -1]), "negative"), (with([cat], examples: ["cat": .max]), "32 bits"),
        ]
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "me.imprint")
            for (personalization, text) in cases {
                let error = #expect(throws: ModelFileError.self) { try personalization.write(to: url) }
                #expect(error?.description.contains(text) == true, "\(String(describing: error))")
                #expect(!FileManager.default.fileExists(atPath: url.path))
            }
        }
    }

    @Test("A file of another kind is rejected with its kind") func kinds() throws {
        try withTemporaryFolder { folder in
            let modelURL = folder.appending(path: "model.imprint")
            let personalizationURL = folder.appending(path: "me.imprint")
            let checkpointURL = folder.appending(path: "run.imprint")
            let foreignURL = folder.appending(path: "foreign.safetensors")
            let model = try tunableModel()
            try model.write(to: modelURL)
            try samplePersonalization(of: model).write(to: personalizationURL)
            let layout = model.parameters.layout
            try Checkpoint(
                network: model.network, labels: model.labels, settings: [:],
                images: .init(digests: [], training: [], validation: [], leakage: nil),
                state: TrainingState(
                    progress: TrainingProgress(learningRate: 0.1, plannedRounds: 1),
                    parameters: [Float](repeating: 0, count: layout.count),
                    optimizer: ["velocities": [Float](repeating: 0, count: layout.trainableCount)])
            ).write(to: checkpointURL)
            try Safetensors.write([], to: foreignURL) { _ in [:] }
            let cacheURL = folder.appending(path: "features")
            try Safetensors.write([], to: cacheURL) { _ in ["imprint.features": "1"] }

            func text(_ url: URL, _ read: (URL) throws -> Void) -> String {
                let error = #expect(throws: ModelFileError.self) { try read(url) }
                #expect(error?.path == url.path)
                return error?.description ?? ""
            }
            func asPersonalization(_ url: URL) -> String { text(url) { _ = try Personalization(contentsOf: $0) } }
            func asModel(_ url: URL) -> String { text(url) { _ = try ModelFile(contentsOf: $0) } }
            #expect(asPersonalization(modelURL).contains("is a model, not a personalization"))
            #expect(asPersonalization(checkpointURL).contains("is the checkpoint of a run, not a personalization"))
            #expect(asPersonalization(foreignURL).contains("is a file of another program, not a personalization"))
            #expect(asPersonalization(cacheURL).contains("is a feature cache, not a personalization"))
            #expect(asModel(personalizationURL).contains("is a personalization, not a model"))
            #expect(asModel(checkpointURL).contains("is the checkpoint of a run, not a model"))
            #expect(asModel(cacheURL).contains("is a feature cache, not a model"))
            #expect(asModel(foreignURL).contains("not an Imprint model"))
            #expect(
                [modelURL, checkpointURL, foreignURL, folder].allSatisfy { !Personalization.isPersonalization(at: $0) })
            #expect(throws: FileError.self) {
                try Personalization(contentsOf: folder.appending(path: "missing.imprint"))
            }
        }
    }
}
