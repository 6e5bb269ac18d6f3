import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel

/// Replay features of a model file.
@Suite struct RehearsalTests {
    /// A shape of the features, and the precision of the parameters.
    struct Case: Sendable, CustomTestStringConvertible {
        let photos: Int
        let positions: Int
        let precision: Safetensors.Precision
        var testDescription: String { "\(photos) photos, \(positions) positions, \(precision)" }
    }

    private static let cases = Safetensors.Precision.allCases.flatMap { precision in
        [(1, 1), (3, 1), (1, 5), (7, 3)].map { Case(photos: $0, positions: $1, precision: precision) }
    }

    /// Returns replay features; with an odd number of float16 values, float32 tensors behind them are not aligned.
    private func rehearsal(photos: Int, positions: Int = 1, channels: Int, scale: Float = 1) -> Rehearsal {
        var stream = RandomStream(seed: 9, "features")
        return Rehearsal(
            features: (0..<(photos * positions * channels)).map { _ in scale * stream.uniform(in: -1...1) },
            positions: positions, labels: (0..<photos).map { $0 % 2 })
    }

    private func model(with rehearsal: Rehearsal?, precision: Safetensors.Precision = .float32) throws -> ModelFile {
        let sample = try sampleModel(precision: precision)
        return ModelFile(
            network: sample.network, parameters: sample.parameters, labels: sample.labels,
            preprocessing: sample.preprocessing, training: sample.training, baseDigest: sample.baseDigest,
            rehearsal: rehearsal,
            storagePrecision: precision)
    }

    private func channels() throws -> Int { try #require(try sampleModel().network.headChannels) }

    @Test("Features are stored as float16, for any precision of the parameters", arguments: cases)
    func roundTrip(_ example: Case) throws {
        let rehearsal = rehearsal(photos: example.photos, positions: example.positions, channels: try channels())
        let model = try model(with: rehearsal, precision: example.precision)
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            let digest = try model.write(to: file)
            let read = try ModelFile(contentsOf: file)
            let found = try #require(read.rehearsal)
            #expect(found.labels == rehearsal.labels && found.positions == example.positions)
            #expect(found.channels == rehearsal.channels)
            #expect(found.features == roundedToFloat16(rehearsal.features))
            #expect(read.storagePrecision == example.precision && read.digest == digest)
            let expected = roundedIf(example.precision == .float16, model.parameters)
            for (name, values) in expected { #expect(read.parameters[name] == values, "\(name)") }
            // Writing the model again gives the same bytes.
            let again = folder.appending(path: "again.imprint")
            #expect(try read.write(to: again) == digest)
            #expect(try Data(contentsOf: again) == Data(contentsOf: file))
            #expect(try model.tensorDigest() == digest && model.identity == read.identity)
        }
    }

    private func roundedIf(_ rounds: Bool, _ parameters: Parameters) -> [(String, [Float]?)] {
        parameters.layout.entries.map { entry in
            (entry.name, parameters[entry.name].map { rounds ? roundedToFloat16($0) : $0 })
        }
    }

    @Test("Features beyond float16 are stored as float32", arguments: Safetensors.Precision.allCases)
    func large(precision: Safetensors.Precision) throws {
        let rehearsal = rehearsal(photos: 5, channels: try channels(), scale: 1e6)
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            try model(with: rehearsal, precision: precision).write(to: file)
            let read = try ModelFile(contentsOf: file)
            #expect(read.rehearsal == rehearsal && read.storagePrecision == precision)
            let tensor = try Safetensors.File(contentsOf: file).header.tensors.first { $0.name == "imprint.rehearsal" }
            #expect(tensor?.elementType == .float32)
        }
    }

    @Test("The digest covers the features, and files without features are unchanged") func digest() throws {
        let channels = try channels()
        let first = rehearsal(photos: 3, channels: channels)
        var features = first.features
        features[channels] = 0.5
        let second = Rehearsal(features: features, labels: first.labels)
        let identities = try [nil, first, second].map { try model(with: $0).identity }
        #expect(Set(identities).count == 3)
        #expect(try identities[0] == sampleModel().identity)
        try withTemporaryFolder { folder in
            let (plain, other) = (folder.appending(path: "plain"), folder.appending(path: "other"))
            try model(with: nil).write(to: plain)
            try sampleModel().write(to: other)
            #expect(try Data(contentsOf: plain) == Data(contentsOf: other))
            let read = try ModelFile(contentsOf: plain)
            #expect(read.rehearsal == nil)
            #expect(try Safetensors.File(contentsOf: plain).header.metadata["imprint.rehearsal"] == nil)
        }
    }

    @Test("Calibrated and personalized models keep the features, unless adapters change the layers that compute them")
    func kept() throws {
        let rehearsal = rehearsal(photos: 4, positions: 2, channels: try channels())
        let model = try model(with: rehearsal)
        #expect(try model.calibrated(2)?.rehearsal == rehearsal)
        let personalization = Personalization(
            baseDigest: try model.identity, addedLabels: [], columns: [], record: .init(examples: [:]))
        #expect(try model.personalized(with: personalization).rehearsal == rehearsal)
        let entry = try #require(model.parameters.layout["conv2.weight"])
        let columns = try #require(entry.parameter.shape.last)
        let adapter = Personalization.LowRankAdapter.sample(
            entry.name, rows: entry.parameter.count / columns, columns: columns, rank: 1)
        let adapted = Personalization(
            baseDigest: try model.identity, addedLabels: [], columns: [], adapters: [adapter],
            record: .init(examples: [:]))
        #expect(try model.personalized(with: adapted).rehearsal == nil)
    }

    @Test("Saving features that do not match the model is rejected") func notWritten() throws {
        let channels = try channels()
        func reason(_ rehearsal: Rehearsal) throws -> String? {
            try withTemporaryFolder { folder in
                let file = folder.appending(path: "m.imprint")
                let error = #expect(throws: ModelFileError.self) { try model(with: rehearsal).write(to: file) }
                #expect(!FileManager.default.fileExists(atPath: file.path))
                return error?.description
            }
        }
        let values = [Float](repeating: 1, count: channels)
        #expect(try reason(.init(features: values, labels: [2]))?.contains("a photo has label 2 of 2") == true)
        #expect(try reason(.init(features: values, labels: [-1]))?.contains("a photo has label -1 of 2") == true)
        #expect(
            try reason(.init(features: values + [1], labels: [0]))?.contains(
                "features of \(channels + 1) values for a head with \(channels) input channels") == true)
        #expect(try reason(.init(features: values.dropLast() + [.nan], labels: [0]))?.contains("finite") == true)
        #expect(try reason(.init(features: values.dropLast() + [.infinity], labels: [0]))?.contains("finite") == true)
    }

    /// A change of a file.
    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var labels: String? = "[0,1,1]"
        /// The shape of the tensor instead of [3, 1, channels], with -1 for the channels; nil removes the tensor.
        var shape: [Int]?
        var value: Float = 0.5
        let message: String
    }

    @Test(
        "Features that do not match the model are rejected",
        arguments: [
            Change(
                testDescription: "label out of range", labels: "[0,1,2]", shape: [3, 1, -1],
                message: "a photo has label 2 of 2"),
            Change(
                testDescription: "negative label", labels: "[0,-1,1]", shape: [3, 1, -1],
                message: "a photo has label -1 of 2"),
            Change(testDescription: "no list", labels: "{}", shape: [3, 1, -1], message: "imprint.rehearsal"),
            Change(testDescription: "strings", labels: "[\"logo\"]", shape: [1, 1, -1], message: "imprint.rehearsal"),
            Change(
                testDescription: "more labels", labels: "[0,1,1,0]", shape: [3, 1, -1], message: "for 4 photos"),
            Change(testDescription: "no labels", labels: "[]", shape: [3, 1, -1], message: "for 0 photos"),
            Change(testDescription: "no photos", labels: "[]", shape: [0, 1, -1], message: "for 0 photos"),
            Change(testDescription: "no tensor", shape: nil, message: "its tensor is missing"),
            Change(testDescription: "two axes", shape: [3, -1], message: "a tensor of shape [3, "),
            Change(testDescription: "four axes", shape: [3, 1, 1, -1], message: "a tensor of shape [3, 1, 1, "),
            Change(testDescription: "no positions", shape: [3, 0, -1], message: "a tensor of shape [3, 0, "),
            Change(testDescription: "no channels", shape: [3, 1, 0], message: "a tensor of shape [3, 1, 0]"),
            Change(testDescription: "other channels", shape: [3, 1, 4], message: "features of 4 values"),
            Change(
                testDescription: "2⁵⁹ empty positions", shape: [3, 1 << 59, 0], message: "a tensor of shape [3, "),
            Change(testDescription: "NaN", shape: [3, 1, -1], value: .nan, message: "not a finite number"),
            Change(
                testDescription: "a tensor without labels", labels: nil, shape: [3, 1, -1],
                message: "not in the network: imprint.rehearsal"),
        ])
    func refused(_ example: Change) throws {
        let channels = try channels()
        let sample = try model(with: rehearsal(photos: 3, channels: channels))
        try withChanged(sample, metadata: ["imprint.rehearsal": example.labels]) { tensors in
            tensors.removeAll { $0.name == "imprint.rehearsal" }
            if let axes = example.shape {
                let shape = axes.map { $0 < 0 ? channels : $0 }
                let count = shape.contains(0) ? 0 : shape.reduce(1, *)
                tensors.append(
                    .init(
                        name: "imprint.rehearsal", shape: shape, values: [Float](repeating: example.value, count: count)
                    )
                )
            }
        } _: { url in
            let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: url) }
            #expect(error?.description.contains(example.message) == true, "\(String(describing: error))")
            #expect(error?.path == url.path)
        }
    }

    @Test("Features of a detector, with several positions per photo, survive a round trip") func detector() throws {
        let network = try Network.logoDetector(logos: 2)
        let rehearsal = Rehearsal(
            features: (0..<(3 * 4 * 128)).map { Float($0 % 31) / 32 }, positions: 4, labels: [2, 0, 1])
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: ["leaf", "crest", "other"],
            preprocessing: Preprocessing(width: 96, height: 96),
            detector: DetectorHead(
                levels: [96], stride: 16, span: 44, logos: [.init(label: "crest"), .init(label: "leaf")]),
            rehearsal: rehearsal)
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            try model.write(to: file)
            #expect(try ModelFile(contentsOf: file).rehearsal == rehearsal)
        }
    }
}
