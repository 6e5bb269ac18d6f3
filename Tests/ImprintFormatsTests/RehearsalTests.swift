import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel

/// The features of photos that a model file may carry beside its parameters.
@Suite struct RehearsalTests {
    /// A shape of features, and how the file's parameters are stored.
    struct Case: Sendable, CustomTestStringConvertible {
        let photos: Int
        let places: Int
        let precision: Safetensors.Precision
        var testDescription: String { "\(photos) photos, \(places) places, \(precision)" }
    }

    private static let cases = Safetensors.Precision.allCases.flatMap { precision in
        [(1, 1), (3, 1), (1, 5), (7, 3)].map { Case(photos: $0, places: $1, precision: precision) }
    }

    /// Odd numbers of float16, after which float32 tensors would begin at odd places.
    private func rehearsal(photos: Int, places: Int = 1, channels: Int, scale: Float = 1) -> Rehearsal {
        var stream = RandomStream(seed: 9, "features")
        return Rehearsal(
            features: (0..<(photos * places * channels)).map { _ in scale * stream.uniform(in: -1...1) },
            places: places, labels: (0..<photos).map { $0 % 2 })
    }

    private func with(_ rehearsal: Rehearsal?, precision: Safetensors.Precision = .float32) throws -> ModelFile {
        let sample = try sampleWeights(precision: precision)
        return ModelFile(
            network: sample.network, parameters: sample.parameters, labels: sample.labels,
            preprocessing: sample.preprocessing, training: sample.training, base: sample.base, rehearsal: rehearsal,
            precision: precision)
    }

    private func channels() throws -> Int { try #require(try sampleWeights().network.headChannels) }

    @Test("Features come back as float16 has them, whatever the parameters are stored as", arguments: cases)
    func roundTrip(_ example: Case) throws {
        let rehearsal = rehearsal(photos: example.photos, places: example.places, channels: try channels())
        let weights = try with(rehearsal, precision: example.precision)
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            let digest = try weights.write(to: file)
            let read = try ModelFile(contentsOf: file)
            let found = try #require(read.rehearsal)
            #expect(found.labels == rehearsal.labels && found.places == example.places)
            #expect(found.channels == rehearsal.channels)
            #expect(found.features == roundedToFloat16(rehearsal.features))
            #expect(read.precision == example.precision && read.digest == digest)
            let expected = roundedIf(example.precision == .float16, weights.parameters)
            for (name, values) in expected { #expect(read.parameters[name] == values, "\(name)") }
            // What was read is written as it was.
            let again = folder.appending(path: "again.imprint")
            #expect(try read.write(to: again) == digest)
            #expect(try Data(contentsOf: again) == Data(contentsOf: file))
            #expect(try weights.tensorDigest() == digest && weights.identity == read.identity)
        }
    }

    private func roundedIf(_ rounds: Bool, _ parameters: Parameters) -> [(String, [Float]?)] {
        parameters.layout.entries.map { entry in
            (entry.name, parameters[entry.name].map { rounds ? roundedToFloat16($0) : $0 })
        }
    }

    @Test("Features too large for float16 come back as they were", arguments: Safetensors.Precision.allCases)
    func large(precision: Safetensors.Precision) throws {
        let rehearsal = rehearsal(photos: 5, channels: try channels(), scale: 1e6)
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            try with(rehearsal, precision: precision).write(to: file)
            let read = try ModelFile(contentsOf: file)
            #expect(read.rehearsal == rehearsal && read.precision == precision)
            let tensor = try Safetensors.File(contentsOf: file).header.tensors.first { $0.name == "imprint.rehearsal" }
            #expect(tensor?.elementType == .float32)
        }
    }

    @Test("The digest covers features, and a file without them reads as before") func digest() throws {
        let channels = try channels()
        let first = rehearsal(photos: 3, channels: channels)
        var features = first.features
        features[channels] = 0.5
        let second = Rehearsal(features: features, labels: first.labels)
        let identities = try [nil, first, second].map { try with($0).identity }
        #expect(Set(identities).count == 3)
        #expect(try identities[0] == sampleWeights().identity)
        try withTemporaryFolder { folder in
            let (plain, other) = (folder.appending(path: "plain"), folder.appending(path: "other"))
            try with(nil).write(to: plain)
            try sampleWeights().write(to: other)
            #expect(try Data(contentsOf: plain) == Data(contentsOf: other))
            let read = try ModelFile(contentsOf: plain)
            #expect(read.rehearsal == nil)
            #expect(try Safetensors.File(contentsOf: plain).header.metadata["imprint.rehearsal"] == nil)
        }
    }

    @Test("A calibrated model and a personalized one keep them") func kept() throws {
        let rehearsal = rehearsal(photos: 4, places: 2, channels: try channels())
        let weights = try with(rehearsal)
        #expect(try weights.calibrated(2)?.rehearsal == rehearsal)
        let nothing = Personalization(
            base: try weights.identity, addedLabels: [], columns: [], record: .init(examples: [:]))
        #expect(try weights.personalized(with: nothing).rehearsal == rehearsal)
    }

    @Test("Features that do not fit the model are refused when saving") func notWritten() throws {
        let channels = try channels()
        func reason(_ rehearsal: Rehearsal) throws -> String? {
            try withTemporaryFolder { folder in
                let file = folder.appending(path: "m.imprint")
                let error = #expect(throws: ModelFileError.self) { try with(rehearsal).write(to: file) }
                #expect(!FileManager.default.fileExists(atPath: file.path))
                return error?.description
            }
        }
        let values = [Float](repeating: 1, count: channels)
        #expect(try reason(.init(features: values, labels: [2]))?.contains("a photo has label 2 of 2") == true)
        #expect(try reason(.init(features: values, labels: [-1]))?.contains("a photo has label -1 of 2") == true)
        #expect(
            try reason(.init(features: values + [1], labels: [0]))?.contains(
                "features of \(channels + 1) numbers for a head that reads \(channels)") == true)
        #expect(try reason(.init(features: values.dropLast() + [.nan], labels: [0]))?.contains("finite") == true)
        #expect(try reason(.init(features: values.dropLast() + [.infinity], labels: [0]))?.contains("finite") == true)
    }

    /// What a damaged or foreign file may hold.
    struct Damage: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var labels: String? = "[0,1,1]"
        /// The axes of the tensor, where the sample has [3, 1, channels]; none for no tensor.
        var shape: [Int]?
        var value: Float = 0.5
        let message: String
    }

    @Test(
        "Features that do not fit the model are refused when reading",
        arguments: [
            Damage(
                testDescription: "label beyond", labels: "[0,1,2]", shape: [3, 1, -1],
                message: "a photo has label 2 of 2"),
            Damage(
                testDescription: "negative label", labels: "[0,-1,1]", shape: [3, 1, -1],
                message: "a photo has label -1 of 2"),
            Damage(testDescription: "no list", labels: "{}", shape: [3, 1, -1], message: "imprint.rehearsal"),
            Damage(testDescription: "words", labels: "[\"logo\"]", shape: [1, 1, -1], message: "imprint.rehearsal"),
            Damage(
                testDescription: "more labels", labels: "[0,1,1,0]", shape: [3, 1, -1], message: "for 4 photos"),
            Damage(testDescription: "no labels", labels: "[]", shape: [3, 1, -1], message: "for 0 photos"),
            Damage(testDescription: "nothing at all", labels: "[]", shape: [0, 1, -1], message: "for 0 photos"),
            Damage(testDescription: "no tensor", shape: nil, message: "its tensor is missing"),
            Damage(testDescription: "two axes", shape: [3, -1], message: "a tensor of shape [3, "),
            Damage(testDescription: "four axes", shape: [3, 1, 1, -1], message: "a tensor of shape [3, 1, 1, "),
            Damage(testDescription: "no places", shape: [3, 0, -1], message: "a tensor of shape [3, 0, "),
            Damage(testDescription: "no channels", shape: [3, 1, 0], message: "a tensor of shape [3, 1, 0]"),
            Damage(testDescription: "other channels", shape: [3, 1, 4], message: "features of 4 numbers"),
            Damage(
                testDescription: "2⁵⁹ places of nothing", shape: [3, 1 << 59, 0], message: "a tensor of shape [3, "),
            Damage(testDescription: "no number", shape: [3, 1, -1], value: .nan, message: "not a finite number"),
            Damage(
                testDescription: "a tensor without labels", labels: nil, shape: [3, 1, -1],
                message: "not in the network: imprint.rehearsal"),
        ])
    func refused(_ damage: Damage) throws {
        let channels = try channels()
        let sample = try with(rehearsal(photos: 3, channels: channels))
        try withChanged(sample, metadata: ["imprint.rehearsal": damage.labels]) { tensors in
            tensors.removeAll { $0.name == "imprint.rehearsal" }
            if let axes = damage.shape {
                // −1 stands for as many as there are channels.
                let shape = axes.map { $0 < 0 ? channels : $0 }
                let count = shape.contains(0) ? 0 : shape.reduce(1, *)
                tensors.append(
                    .init(
                        name: "imprint.rehearsal", shape: shape, values: [Float](repeating: damage.value, count: count))
                )
            }
        } _: { url in
            let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: url) }
            #expect(error?.description.contains(damage.message) == true, "\(String(describing: error))")
            #expect(error?.path == url.path)
        }
    }

    @Test("Rehearsal features at several positions of each photo survive a round trip of a detector") func detector() throws {
        let network = try Network.logoDetector(marks: 2)
        let rehearsal = Rehearsal(
            features: (0..<(3 * 4 * 128)).map { Float($0 % 31) / 32 }, places: 4, labels: [2, 0, 1])
        let weights = ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: ["leaf", "crest", "other"],
            preprocessing: Preprocessing(width: 96, height: 96),
            detector: DetectorHead(
                levels: [96], stride: 16, span: 44, marks: [.init(label: "crest"), .init(label: "leaf")]),
            rehearsal: rehearsal)
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            try weights.write(to: file)
            #expect(try ModelFile(contentsOf: file).rehearsal == rehearsal)
        }
    }
}
