import Foundation
import ImprintImages
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintTraining

/// Tests of training a detector on photos that are not in a folder.
@Suite("Photos of detectors in lists and in memory", .timeLimit(.minutes(10))) struct DetectorSourceTests {
    /// Photos that are loaded on demand.
    private struct Database: TrainingSource {
        let name = "the database"
        let labels: [String]
        let items: [TrainingPhoto]
        let digest = "1"

        func identifier(of item: TrainingPhoto) -> String { item.identifier }
    }

    /// Writes photos of coloured noise with a red square and photos of grey noise into a folder for each label.
    private func writePhotos(to folder: URL) throws -> ImageFolder {
        try writeNoise(to: folder, labels: ["cross", "other"], count: 6) { label, image, left, top in
            if label == "other" { image = image.converted(toChannels: 1).converted(toChannels: 3) }
            for y in 0..<24 where label == "cross" {
                for x in 0..<24 { image.samples[((top + y) * 120 + left + x) * 3] = 255 }
            }
        }
        return try ImageFolder(at: folder)
    }

    /// Returns the photos of a folder as bytes in memory, as decoded images, loaded on demand, and in a list in the folder.
    ///
    /// The decoded images without the logo have one channel.
    private func sources(_ photos: ImageFolder) throws -> [any TrainingSource] {
        var encoded = InMemorySource(labels: photos.labels)
        var decoded = InMemorySource(labels: photos.labels)
        for item in photos.items {
            let (labels, path) = ([photos.labels[item.label]], photos.identifier(of: item))
            try encoded.append(Data(contentsOf: item.url), labels: labels, identifier: path)
            let image = try ImageFile.decode(item.url)
            try decoded.append(
                labels == ["other"] ? image.converted(toChannels: 1) : image, labels: labels, identifier: path)
        }
        let loaded = Database(
            labels: photos.labels,
            items: photos.items.map { item in
                TrainingPhoto(identifier: photos.identifier(of: item), labels: item.labels) {
                    try Data(contentsOf: item.url)
                }
            })
        let lines = photos.items.map { "\(photos.identifier(of: $0)),\(photos.labels[$0.label])\n" }
        let list = photos.url.appending(path: "photos.csv")
        try Data(("photo,label\n" + lines.joined()).utf8).write(to: list)
        return [encoded, decoded, loaded, try LabelList(at: list)]
    }

    @Test(
        "Photos in memory, loaded on demand and in a list train the same detector as their folder",
        arguments: [0, 1 << 20])
    func equality(memoryLimit: Int) throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = try writePhotos(to: scratch.appending(path: "photos"))
            func model(_ source: any TrainingSource) throws -> ModelFile {
                try trainDetector(["cross": [artwork]], photos: source, steps: [1, 2], poolSize: 4) {
                    $0.memoryLimit = memoryLimit
                    $0.validation = .fraction(0.34)
                }.model
            }
            let expected = try model(photos)
            for source in try sources(photos) {
                let model = try model(source)
                #expect(model.labels == expected.labels && model.detector == expected.detector, "\(source.name)")
                #expect(model.training?.validationImages == expected.training?.validationImages, "\(source.name)")
                #expect(model.rehearsal == expected.rehearsal, "\(source.name)")
                for entry in expected.parameters.layout.entries {
                    let (values, others) = (model.parameters[entry.name] ?? [], expected.parameters[entry.name] ?? [])
                    #expect(!values.isEmpty && values.map(\.bitPattern) == others.map(\.bitPattern), "\(source.name)")
                }
            }
        }
    }

    @Test("A cross-validation of detectors gives the same result for photos in memory as for their folder")
    func crossValidation() throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = try writePhotos(to: scratch.appending(path: "photos"))
            var options = CrossValidation.Options()
            options.folds = 2
            let configuration = shortDetectorTraining(steps: [1, 1], poolSize: 4) { $0.validation = .none }
            func confidences(_ source: some TrainingSource) throws -> [[Float]] {
                let validation = CrossValidation(
                    artwork: ["cross": [artwork]], photos: source, configuration: configuration, options: options)
                return try #require(validation.run().evaluation).results.map(\.confidences)
            }
            let expected = try confidences(photos)
            #expect(expected.count == 12)
            #expect(try confidences(sources(photos)[0]) == expected)
        }
    }

    @Test("A validation folder is read by the labels of photos in memory") func validationFolder() throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = try writePhotos(to: scratch.appending(path: "photos"))
            let validation = scratch.appending(path: "validation")
            try writeNoise(to: validation, labels: ["a", "b", "cross"], count: 2) { _, _, _, _ in }
            let result = try trainDetector(
                ["cross": [artwork]], photos: sources(photos)[0], steps: [1, 1], poolSize: 4
            ) { $0.validationFolder = validation }
            #expect(result.model.training?.validationImages == ["cross": 2, "other": 4])
        }
    }

    @Test(
        "Inconsistent photos, and photos without exactly one label, are an error before training",
        arguments: [
            (["cross", "none", "none"], [("a", [0])], "the label \"none\" twice"),
            (["cross", "none"], [("a", [0]), ("b", [2])], "the label index 2 of the photo \"b\""),
            (["cross", "none"], [("a", [0, 1])], "2 labels of the photo \"a\""),
            (["cross", "none"], [("a", [0]), ("b", [])], "0 labels of the photo \"b\""),
        ] as [([String], [(String, [Int])], String)])
    func inconsistent(labels: [String], photos: [(String, [Int])], found: String) throws {
        let items = photos.map { identifier, labels in
            TrainingPhoto(identifier: identifier, labels: labels) { Data() }
        }
        let source = Database(labels: labels, items: items)
        try withTemporaryFolder { scratch in
            let artwork = ["cross": [try writeCross(to: scratch)]]
            let error = #expect(throws: ImageError.self) {
                try DetectorTrainer(artwork: artwork, photos: source).train()
            }
            guard case .invalidSource("the database", found, _) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }
}
