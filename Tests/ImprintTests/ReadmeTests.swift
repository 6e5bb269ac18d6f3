import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintSynthesis
import ImprintTraining
import TestSupport
import Testing

/// The examples of the README, word for word.
private func example(photos: URL, model: URL, photo: URL) async throws {
    // README example begins
    var configuration = ClassifierConfiguration()
    configuration.epochs = 10
    configuration.augmentation = Augmentation([.flip, .rotate, .blur])
    let trainer = ClassifierTrainer(photos: try ImageFolder(at: photos), configuration: configuration)
    for try await event in trainer.start() {
        switch event {
        case .epoch(let metrics, _): print(metrics.epoch, metrics.loss)
        case .finished(let result): try result.model.write(to: model)
        default: break
        }
    }

    let classifier = try ImageClassifier(contentsOf: model)
    for classification in try classifier.classify(photo) {
        print(classification.label, classification.confidence)
    }
    // README example ends
}

private func artworkExample(photos: URL, leaf: URL, crest: URL, others: URL, model: URL, photo: URL) async throws {
    // README example begins
    let trainer = DetectorTrainer(
        artwork: ["Leaf": [try Artwork(contentsOf: leaf)], "Crest": [try Artwork(contentsOf: crest)]],
        photos: try ImageFolder(at: photos, minimumClasses: 1), backgrounds: try ImageFolder.images(in: others))
    for try await case .finished(let result) in trainer.start() {
        try result.model.write(to: model)
    }

    for classification in try ImageClassifier(contentsOf: model).classify(photo) {
        if let box = classification.box { print(classification.label, classification.confidence, box.x, box.y) }
    }
    // README example ends
}

private func personalizationExample(model: URL, photo: URL, other: URL, mine: URL) throws {
    // README example begins
    let session = try PersonalizationSession(try ImageClassifier(contentsOf: model))
    try session.teach(photo, as: "MyLogo")
    try session.correct(other, isNot: "MyLogo")
    let best = try session.classifier.classify(other)[0]  // no lock: this may be any thread
    print(best.label, best.confidence)
    try session.undo()
    try session.save(to: mine)
    // README example ends
}

private func appExample(model: URL, upload: Data, frames: AsyncStream<ImageSource>) async throws {
    // README example begins
    let classifier = try ImageClassifier(contentsOf: model)
    var request = ClassificationRequest(classifier, rule: ConfidenceRule(threshold: .confidence(0.5)))
    request.regionOfInterest = NormalizedRectangle(x: 0.25, y: 0, width: 0.5, height: 1)
    let suspects = try await request.perform(on: .data(upload))  // off the caller's thread
    print(suspects.map(\.label))

    // Once per second, the newest frame:
    for try await seen in classifier.classifications(for: frames) {
        let confidence = seen.classifications.groupedConfidence(excluding: ["Other"])
        print(confidence > 0.5 ? "The logo is in view." : "It is not.")
    }
    // README example ends
}

@Suite struct ReadmeTests {
    @Test("The README's examples are identical to the code in this file")
    func examplesAreCompiled() throws {
        let readme = try String(contentsOf: packageFolder.appending(path: "README.md"), encoding: .utf8)
        let source = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
        let first = lines.indices.filter { lines[$0].hasSuffix("// README example begins") }
        let last = lines.indices.filter { lines[$0].hasSuffix("// README example ends") }
        #expect(first.count == 4 && last.count == 4)
        for (first, last) in zip(first, last) {
            let example = lines[(first + 1)..<last].map { $0.hasPrefix("    ") ? $0.dropFirst(4) : $0 }
            #expect(readme.contains(example.joined(separator: "\n")))
        }
    }

    @Test("The README's training and personalization examples run")
    func exampleRuns() async throws {
        try await withTemporaryFolder { folder in
            for (label, value) in [("light", UInt8(200)), ("dark", 40)] {
                let photos = folder.appending(path: "photos/\(label)")
                try FileManager.default.createDirectory(at: photos, withIntermediateDirectories: true)
                for index in 0..<2 {
                    try ImageFile.write(
                        RasterImage(width: 100, height: 100, filledWith: value),
                        to: photos.appending(path: "\(index).png"))
                }
            }
            let model = folder.appending(path: "logo.imprint")
            try await example(
                photos: folder.appending(path: "photos"), model: model,
                photo: folder.appending(path: "photos/dark/0.png"))
            #expect(FileManager.default.fileExists(atPath: model.path))
            let mine = folder.appending(path: "mine")
            try personalizationExample(
                model: model, photo: folder.appending(path: "photos/dark/0.png"),
                other: folder.appending(path: "photos/light/0.png"), mine: mine)
            #expect(FileManager.default.fileExists(atPath: mine.path))
        }
    }
}
