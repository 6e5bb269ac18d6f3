import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

@Suite("Training source") struct TrainingSourceTests {
    /// Returns the model that `photos` train.
    private func model(
        _ photos: some TrainingSource, checkpoints: CheckpointOptions? = nil,
        shouldStop: @escaping () -> Bool = { false },
        onEvent: @escaping (TrainingEvent) -> Void = { _ in }
    ) throws -> ModelFile {
        let configuration = quickTraining(epochs: 2) { $0.validation = .fraction(0.25) }
        return try ClassifierTrainer(photos: photos, configuration: configuration, checkpoints: checkpoints)
            .train(onEvent: onEvent, shouldStop: shouldStop).model
    }

    /// Writes a list of the photos of a folder, and returns its URL.
    private func list(_ folder: URL) throws -> URL {
        let photos = try ImageFolder(at: folder)
        let lines = photos.items.reversed().map { "\(photos.path(of: $0)),\(photos.labels[$0.label])\r\n" }
        let url = folder.appending(path: "photos.csv")
        try Data(("photo,label\r\n" + lines.joined()).utf8).write(to: url)
        return url
    }

    /// Checks that two models have bitwise equal parameters and the same metrics.
    private func expectEqual(_ first: ModelFile, _ second: ModelFile) {
        #expect(first.labels == second.labels)
        #expect(first.training?.history == second.training?.history)
        #expect(first.training?.validationImages == second.training?.validationImages)
        for entry in first.parameters.layout.entries {
            let (values, others) = (first.parameters[entry.name] ?? [], second.parameters[entry.name] ?? [])
            #expect(!values.isEmpty && values.map(\.bitPattern) == others.map(\.bitPattern))
        }
    }

    @Test("A list and photos in memory train the same parameters as their folder") func equality() throws {
        try withImages(perLabel: 8) { folder in
            let photos = try ImageFolder(at: folder)
            let expected = try model(photos)
            expectEqual(try model(LabelList(at: list(folder))), expected)
            var decoded = InMemorySource(labels: photos.labels)
            var encoded = InMemorySource(labels: photos.labels)
            for item in photos.items {
                let (labels, path) = ([photos.labels[item.label]], photos.path(of: item))
                decoded.append(try ImageFile.decode(item.url), labels: labels, identifier: path)
                encoded.append(try Data(contentsOf: item.url), labels: labels, identifier: path)
            }
            expectEqual(try model(decoded), expected)
            expectEqual(try model(encoded), expected)
            let evaluation = try ImageClassifier(expected).evaluate(on: photos)
            let inMemory = try ImageClassifier(expected).evaluate(on: encoded)
            #expect(inMemory.results.map(\.confidences) == evaluation.results.map(\.confidences))
        }
    }

    @Test("A run on a list resumes from its checkpoint to the same model") func resumes() throws {
        try withImages(perLabel: 8) { folder in
            let photos = try LabelList(at: list(folder))
            let expected = try bytes(of: model(photos))
            try withTemporaryFolder { checkpoints in
                func options(resumes: Bool) -> CheckpointOptions {
                    CheckpointOptions(folder: checkpoints, interval: .zero, resumes: resumes)
                }
                var steps = 0
                _ = try model(
                    photos, checkpoints: options(resumes: false), shouldStop: { steps >= 3 },
                    onEvent: { if case .batch = $0 { steps += 1 } })
                #expect(steps == 3)
                #expect(try bytes(of: model(photos, checkpoints: options(resumes: true))) == expected)
            }
        }
    }

    @Test("A photo in memory that cannot be decoded is skipped by its identifier") func unreadable() throws {
        try withImages(perLabel: 6) { folder in
            let photos = try ImageFolder(at: folder)
            var source = InMemorySource(labels: photos.labels)
            for item in photos.items {
                source.append(try Data(contentsOf: item.url), labels: [photos.labels[item.label]])
            }
            source.append(Data("text".utf8), labels: ["left"], identifier: "broken photo")
            var skipped: [SkippedImage] = []
            _ = try model(source, onEvent: { if case .started(let start) = $0 { skipped = start.skipped } })
            #expect(skipped.count == 1)
            #expect("\(try #require(skipped.first).reason)".contains("broken photo"))
        }
    }

    @Test("The audit of a list finds near-duplicates with different labels") func audit() throws {
        try withImages(perLabel: 2) { folder in
            try FileManager.default.copyItem(
                at: folder.appending(path: "left/0.png"), to: folder.appending(path: "right/copy.png"))
            let audit = Audit(try LabelList(at: list(folder)), workers: Workers(1))
            #expect(audit.images == 5)
            #expect(audit.findings.filter { $0.kind == .acrossLabels }.map(\.reason) == ["left, right"])
        }
    }
}
