import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintFleet
@testable import ImprintModel

/// A small untrained model, and a folder of photos.
struct FleetFixture {
    let folder: URL
    let classifier: ImageClassifier
    let photos: ImageFolder
    var model: ModelFile { classifier.model }
    var key: URL { folder.appending(path: "device.pem") }
    let server = URL(string: "http://127.0.0.1:8000")!

    init(_ folder: URL, photoCount: Int = 6) throws {
        self.folder = folder
        let network = try Network.logonet(labels: 2, inputSize: 16, width: 0.1)
        classifier = try ImageClassifier(
            ModelFile(
                network: network, parameters: try Parameters(network, seed: 1), labels: ["bright", "dark"],
                preprocessing: Preprocessing(width: 16, height: 16, cropAndScale: .scaleFit)))
        for index in 0..<photoCount {
            let label = index % 2 == 0 ? "bright" : "dark"
            var stream = RandomStream(seed: 1, "pictures", index)
            var image = RasterImage(width: 20, height: 24)
            for sample in image.samples.indices {
                image.samples[sample] = UInt8(stream.uniform(in: label == "dark" ? 0...150 : 105...255))
            }
            let file = folder.appending(path: "photos/\(label)/holiday-\(index).png")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try ImageFile.write(image, to: file)
        }
        photos = try ImageFolder(at: folder.appending(path: "photos"), minimumLabels: 1)
    }

    var channels: Int { model.headShape!.channels }

    func training(diverges: Bool = false) throws -> LocalTraining {
        var configuration = PersonalizationConfiguration()
        // The product of the penalty and the number of channels overflows.
        if diverges { configuration.penalty = .greatestFiniteMagnitude }
        return try LocalTraining(classifier, photos, configuration: configuration)
    }

    func device(
        clip: Double? = nil, noise: Double? = nil, validates: Bool = false, diverges: Bool = false
    ) throws -> FleetDevice {
        try FleetDevice(
            model, training(diverges: diverges), validation: validates ? training() : nil,
            privacy: UpdatePrivacy(clip: clip, noise: noise, delta: 1e-5))
    }

    /// The content of a message for the model.
    func content(
        weights: [Float]? = nil, biases: [Float] = [0, 0], base: String? = nil, round: Int = 3
    ) throws -> RecordDictionary {
        var content = RecordDictionary()
        content.arrays = [
            .init(
                name: "arrays",
                value: ArrayRecord([
                    .init(
                        name: "head.weight",
                        value: FleetArray(
                            shape: [channels, 2], values: weights ?? [Float](repeating: 0, count: 2 * channels))),
                    .init(name: "head.bias", value: FleetArray(shape: [2], values: biases)),
                ]))
        ]
        content.configurations = [
            .init(
                name: "config",
                value: ValueRecord([
                    ("imprint.base", .string(try base ?? model.identity)), ("server-round", .integer(round)),
                ]))
        ]
        return content
    }

    func client(
        _ transport: SimulatedSuperLink, hasKey: Bool = true, clip: Double? = nil, noise: Double? = nil,
        validates: Bool = false
    ) throws -> FleetClient {
        var configuration = FleetConfiguration()
        configuration.pollInterval = .milliseconds(5)
        configuration.maximumBackoff = .milliseconds(20)
        (configuration.clip, configuration.noise) = (clip, noise)
        var attempts = 0
        while true {
            do {
                return try FleetClient(
                    server, classifier: classifier, photos: photos, validation: validates ? photos : nil,
                    key: hasKey ? key : nil, configuration: configuration, transport: transport)
            } catch FleetError.keyInUse where attempts < 200 {
                // The task of an earlier client releases it shortly after its end.
                attempts += 1
                usleep(10_000)
            }
        }
    }
}

/// Returns the change in the arrays of a message.
func change(_ content: RecordDictionary) throws -> HeadChange {
    let items = try #require(content.arrays.first).value.items
    #expect(items.map(\.name) == ["head.weight", "head.bias"])
    return HeadChange(
        weights: try #require(items.first { $0.name == "head.weight" }).value.values,
        biases: try #require(items.first { $0.name == "head.bias" }).value.values)
}

func norm(_ values: [Float]) -> Double { values.reduce(0.0) { $0 + Double($1) * Double($1) }.squareRoot() }
