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
        let lines = photos.items.reversed().map { "\(photos.identifier(of: $0)),\(photos.labels[$0.label])\r\n" }
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
                let (labels, path) = ([photos.labels[item.label]], photos.identifier(of: item))
                try decoded.append(ImageFile.decode(item.url), labels: labels, identifier: path)
                try encoded.append(Data(contentsOf: item.url), labels: labels, identifier: path)
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
                try source.append(Data(contentsOf: item.url), labels: [photos.labels[item.label]])
            }
            try source.append(Data("text".utf8), labels: ["left"], identifier: "broken photo")
            var skipped: [SkippedImage] = []
            _ = try model(source, onEvent: { if case .started(let start) = $0 { skipped = start.skipped } })
            #expect(skipped.count == 1)
            #expect("\(try #require(skipped.first).reason)".contains("broken photo"))
        }
    }

    /// Photos that are loaded on demand.
    private struct Database: TrainingSource {
        let name = "the database"
        var labels = ["left", "right"]
        let items: [TrainingPhoto]
        let digest = "1"
        func identifier(of item: TrainingPhoto) -> String { item.identifier }
    }

    @Test("Photos that a source loads on demand train the same parameters as their folder") func onDemand() throws {
        try withImages(perLabel: 8) { folder in
            let photos = try ImageFolder(at: folder)
            let database = Database(
                items: photos.items.map { item in
                    TrainingPhoto(identifier: photos.identifier(of: item), labels: item.labels) {
                        try Data(contentsOf: item.url)
                    }
                })
            let trained = try model(database)
            expectEqual(trained, try model(photos))
            let classifier = try ImageClassifier(trained)
            let confidences = try classifier.evaluate(on: photos).results.map(\.confidences)
            #expect(try classifier.evaluate(on: database).results.map(\.confidences) == confidences)
        }
    }

    @Test("A photo that cannot be loaded is skipped with the reason") func notLoaded() throws {
        struct Offline: LocalizedError {
            let errorDescription: String? = "the server is offline."
        }
        try withImages(perLabel: 6) { folder in
            let photos = try ImageFolder(at: folder)
            let broken = TrainingPhoto(identifier: "scan 7", labels: [1]) { throw Offline() }
            var skipped: [SkippedImage] = []
            _ = try model(
                Database(items: photos.items + [broken]),
                onEvent: { if case .started(let start) = $0 { skipped = start.skipped } })
            #expect(skipped.map(\.reason) == [.notLoaded(photo: "scan 7", reason: "the server is offline")])
        }
    }

    @Test(
        "Inconsistent labels or photos of a source are an error before anything is computed",
        arguments: [
            (["left", "right", "left"], [("a", [0])], "the label \"left\" twice"),
            (["left", "right"], [("a", [0]), ("b", [2])], "the label index 2 of the photo \"b\""),
            (["left", "right"], [("a", [-1])], "the label index -1 of the photo \"a\""),
            (["left", "right"], [("a", [0]), ("a", [1])], "two photos with the identifier \"a\""),
        ] as [([String], [(String, [Int])], String)])
    func inconsistent(labels: [String], photos: [(String, [Int])], found: String) throws {
        let items = photos.map { identifier, labels in
            TrainingPhoto(identifier: identifier, labels: labels) { Data() }
        }
        let source = Database(labels: labels, items: items)
        let classifier = try smallModel(labels: ["left", "right"])
        let operations: [() throws -> Void] = [
            { _ = try ClassifierTrainer(photos: source, configuration: quickTraining()).train() },
            { _ = try CrossValidation(photos: source, configuration: quickTraining()).run() },
            { _ = try classifier.evaluate(on: source) }, { _ = try classifier.evaluateMultiLabel(on: source) },
            { _ = try Audit(source) }, { _ = try Audit(InMemorySource(labels: []), validation: source) },
        ]
        for operation in operations {
            let error = #expect(throws: ImageError.self) { try operation() }
            guard case .invalidSource("the database", found, _) = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }

    @Test("Training without photos is an error") func noPhotos() throws {
        let trainer = ClassifierTrainer(
            photos: InMemorySource(labels: ["a", "b"]), configuration: try quickTraining())
        #expect(throws: ImageError.self) { try trainer.train() }
    }

    @Test("Identifiers that differ only in their Unicode normalization are different") func normalization() throws {
        let photos = ["caf\u{e9}", "cafe\u{301}"].map { TrainingPhoto(identifier: $0, labels: [0]) { Data() } }
        try Database(items: photos).checkLabelsAndIdentifiers()
    }

    @Test("The audit finds similar labels, also between training and validation photos", arguments: [true, false])
    func similarLabels(isSeparate: Bool) throws {
        func source(_ labels: [String]) throws -> InMemorySource {
            var source = InMemorySource(labels: labels)
            for (index, label) in labels.enumerated() {
                let image = RasterImage(width: 64, height: 64, filledWith: UInt8(40 * index))
                try source.append(image, labels: [label], identifier: labels.joined() + label)
            }
            return source
        }
        let audit =
            try isSeparate
            ? Audit(source(["cat", "dog", "chair", "chiar"]), validation: source(["CAT", "dog"]))
            : Audit(source(["CAT", "cat", "dog", "chair", "chiar"]))
        let findings = audit.findings.filter { $0.kind == .similarLabels }
        #expect(
            findings.map(\.reason) == ["\"CAT\", \"cat\"", "\"chair\", \"chiar\""]
                && findings.allSatisfy { $0.files.isEmpty })
        let page = AuditReport(audit, title: "Cats", workers: Workers(1)).html
        #expect(page.contains("Labels with almost the same spelling"))
    }

    @Test("Validation labels without training photos are findings, which name a similar label") func untrainedLabels()
        throws
    {
        func source(_ labels: [String]) throws -> InMemorySource {
            var source = InMemorySource(labels: labels)
            for (index, label) in labels.enumerated() {
                let image = RasterImage(width: 64, height: 64, filledWith: UInt8(40 * index))
                try source.append(image, labels: [label], identifier: labels.joined() + label)
            }
            return source
        }
        let audit = try Audit(source(["cat", "dog"]), validation: source(["Dog", "bird", "cat"]))
        let findings = audit.findings.filter { $0.kind == .untrainedLabels }
        #expect(findings.map(\.reason) == ["\"Dog\" (similar to \"dog\"): 1 photo", "\"bird\": 1 photo"])
        #expect(findings.allSatisfy { $0.files.isEmpty })
        #expect(
            try Audit(source(["cat", "dog"]), validation: source(["cat"])).findings.allSatisfy {
                $0.kind != .untrainedLabels
            })
    }

    @Test("The audit of a list finds near-duplicates with different labels") func audit() throws {
        try withImages(perLabel: 2) { folder in
            try FileManager.default.copyItem(
                at: folder.appending(path: "left/0.png"), to: folder.appending(path: "right/copy.png"))
            let audit = try Audit(LabelList(at: list(folder)))
            #expect(audit.images == 5)
            #expect(audit.findings.filter { $0.kind == .acrossLabels }.map(\.reason) == ["left, right"])
        }
    }
}
