import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintModel

/// The novelty rule of a model file.
@Suite struct NoveltyRuleTests {
    private func channels() throws -> Int { try #require(try sampleModel().network.headChannels) }

    /// Returns a rule with a mean for each label.
    private func rule(
        labels: [Int] = [0, 1], channels: Int, threshold: Float = 0.125, acceptance: Double = 0.95, images: Int = 40
    ) -> NoveltyRule {
        var means: [Float] = []
        for label in labels {
            var stream = RandomStream(seed: 3, "mean", label)
            let values = (0..<channels).map { _ in stream.uniform(in: 0...1) }
            let length = values.reduce(0) { $0 + $1 * $1 }.squareRoot()
            means += values.map { $0 / length }
        }
        return NoveltyRule(labels: labels, means: means, threshold: threshold, acceptance: acceptance, images: images)
    }

    private func model(
        _ rule: NoveltyRule?, precision: Safetensors.Precision = .float32
    ) throws -> ModelFile {
        var model = try sampleModel(precision: precision)
        model.noveltyRule = rule
        return model
    }

    @Test(
        "A rule survives a round trip, for any storage of the parameters",
        arguments: ModelFile.Storage.allCases, [[0, 1], [1]])
    func roundTrip(storage: ModelFile.Storage, labels: [Int]) throws {
        let rule = rule(labels: labels, channels: try channels(), threshold: 0.1, acceptance: 1, images: 1)
        let model = try model(rule)
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            try model.write(to: file, as: storage)
            #expect(try ModelFile(contentsOf: file).noveltyRule == rule)
        }
    }

    @Test("A rule changes neither the digest, the format nor the tensors, so older versions read the file")
    func compatible() throws {
        let rule = rule(channels: try channels())
        try withTemporaryFolder { folder in
            let (plain, ruled) = (folder.appending(path: "plain"), folder.appending(path: "ruled"))
            #expect(try model(nil).write(to: plain) == model(rule).write(to: ruled))
            let headers = try [plain, ruled].map { try Safetensors.File(contentsOf: $0).header }
            #expect(headers[0].tensors.map(\.name) == headers[1].tensors.map(\.name))
            var metadata = headers[1].metadata
            #expect(metadata.removeValue(forKey: "imprint.novelty") != nil)
            #expect(metadata == headers[0].metadata)
            #expect(try ModelFile(contentsOf: plain).noveltyRule == nil)
        }
    }

    @Test("Calibrated and personalized models keep the rule; adapters before the head remove it") func kept() throws {
        let rule = rule(channels: try channels())
        let model = try model(rule)
        #expect(try model.calibrated(2)?.noveltyRule == rule)
        func personalized(_ adapters: [Personalization.LowRankAdapter]) throws -> NoveltyRule? {
            try model.personalized(
                with: Personalization(
                    baseDigest: model.identity, addedLabels: [], columns: [], adapters: adapters,
                    record: .init(examples: [:])
                )
            ).noveltyRule
        }
        #expect(try personalized([]) == rule)
        let head = try #require(model.network.denseHeadName)
        let entry = try #require(
            model.parameters.layout.entries.last { $0.parameter.shape.count > 1 && $0.node != head })
        let (rows, columns) = (entry.parameter.shape.dropLast().reduce(1, *), entry.parameter.shape.last ?? 0)
        let adapter = Personalization.LowRankAdapter(
            parameter: entry.name, left: [Float](repeating: 0.5, count: rows),
            right: [Float](repeating: 0.5, count: columns), rank: 1)
        #expect(try personalized([adapter]) == nil)
    }

    @Test("The novelty is the distance to the nearest mean, relative to the threshold") func novelty() {
        let rule = NoveltyRule(labels: [0, 2], means: [1, 0, 0, 0.6, 0.8, 0], threshold: 0.25, images: 20)
        // The means are rounded to float16.
        #expect(abs(rule.novelty(of: [5, 0, 0])) < 1e-6)
        #expect(abs(rule.novelty(of: [0, 3, 0]) - (1 - 0.8) / 0.25) < 0.01)
        #expect(abs(rule.novelty(of: [0, 0, 1]) - 4) < 1e-6)
        #expect(abs(rule.novelty(of: [-1, 0, 0]) - 1.6 / 0.25) < 0.01)
        #expect(rule.novelty(of: [0, 0, 0]) == 4)
    }

    @Test(
        "A novelty above 1 is rejected, an unknown one is not",
        arguments: [(nil, false), (0, false), (1, false), (Float(1).nextUp, true)] as [(Float?, Bool)])
    func rejects(novelty: Float?, isRejected: Bool) { #expect(NoveltyRule.rejects(novelty) == isRejected) }

    /// Values that Tests/FileFormatTests/Fixtures/novelty.py computed.
    private struct Reference: Decodable {
        let labels: [Int]
        let means: [Float]
        let threshold: Float
        let features: [[Float]]
        let novelty: [Float]
    }

    @Test("The novelty agrees with NumPy") func reference() throws {
        let url = packageFolder.appending(path: "Tests/FileFormatTests/Fixtures/novelty.json")
        let reference = try JSONDecoder().decode(Reference.self, from: Data(contentsOf: url))
        let rule = NoveltyRule(
            labels: reference.labels, means: reference.means, threshold: reference.threshold, images: 20)
        #expect(reference.features.count == 12)
        for (feature, expected) in zip(reference.features, reference.novelty) {
            #expect(abs(rule.novelty(of: feature) - expected) <= 1e-5 * max(expected, 1))
        }
    }

    /// A rule in a file that does not fit the model.
    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let change: @Sendable (inout [String: Any]) -> Void
        let message: String
    }

    @Test(
        "A damaged rule is rejected",
        arguments: [
            Change(
                testDescription: "label out of range", change: { $0["labels"] = [0, 2] },
                message: "a mean of label 2 of 2"),
            Change(
                testDescription: "negative label", change: { $0["labels"] = [-1, 0] },
                message: "a mean of label -1 of 2"),
            Change(testDescription: "label twice", change: { $0["labels"] = [1, 1] }, message: "not ascending"),
            Change(testDescription: "no labels", change: { $0["labels"] = [] as [Int] }, message: "of 0 labels"),
            Change(testDescription: "one label", change: { $0["labels"] = [0] }, message: "for a head with"),
            Change(testDescription: "no means", change: { $0["means"] = "" }, message: "0 bytes"),
            Change(testDescription: "an odd number of bytes", change: { $0["means"] = "AAAA" }, message: "3 bytes"),
            Change(testDescription: "no base64", change: { $0["means"] = "?" }, message: "means"),
            Change(testDescription: "missing means", change: { $0["means"] = nil }, message: "means is missing"),
            Change(testDescription: "no threshold", change: { $0["threshold"] = 0 }, message: "a threshold of 0.0"),
            Change(
                testDescription: "a tiny threshold", change: { $0["threshold"] = 1e-7 },
                message: "a threshold of 1e-07, expected at least 1e-06"),
            Change(testDescription: "NaN", change: { $0["threshold"] = "NaN" }, message: "a threshold of nan"),
            Change(
                testDescription: "infinity", change: { $0["threshold"] = "Infinity" }, message: "a threshold of inf"),
            Change(testDescription: "acceptance", change: { $0["acceptance"] = 1.5 }, message: "an acceptance of 1.5"),
            Change(testDescription: "no images", change: { $0["images"] = 0 }, message: "on 0 images"),
            Change(
                testDescription: "means of length 0",
                change: { $0["means"] = Data(count: 2 * 2 * 9999).base64EncodedString() },
                message: "means of 9999 values"),
            Change(
                testDescription: "means that are not finite",
                change: { object in
                    let count = Data(base64Encoded: object["means"] as? String ?? "")?.count ?? 0
                    object["means"] = Data([UInt8](repeating: 0x7C, count: count)).base64EncodedString()
                }, message: "not a finite number"),
            Change(
                testDescription: "zeros",
                change: { object in
                    let count = Data(base64Encoded: object["means"] as? String ?? "")?.count ?? 0
                    object["means"] = Data(count: count).base64EncodedString()
                }, message: "a mean of length 0.0"),
        ])
    func damaged(_ example: Change) throws {
        let sample = try model(rule(channels: try channels()))
        let text = try json(sample.noveltyRule)
        var object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        example.change(&object)
        let changed = String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
        try withChanged(sample, metadata: ["imprint.novelty": changed]) { url in
            let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: url) }
            let text = error?.description ?? ""
            #expect(text.contains(example.message) && text.contains("imprint.novelty"), "\(text)")
            #expect(error?.path == url.path)
        }
    }

    @Test("A rule that does not fit the model is not written") func notWritten() throws {
        let channels = try channels()
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            let other = try model(rule(channels: channels + 1))
            let error = #expect(throws: ModelFileError.self) { try other.write(to: file) }
            #expect(error?.description.contains("for a head with \(channels) input channels") == true)
            #expect(!FileManager.default.fileExists(atPath: file.path))
        }
    }
}
