import Foundation
import Imprint
import TestSupport
import Testing

/// The example of the README, as it stands there.
private func example(photos: URL, model: URL, photo: URL) async throws {
    // README example begins
    var configuration = TrainingConfiguration()
    configuration.epochs = 10
    configuration.augmentation = Augmentation([.flip, .rotate, .blur])
    for try await event in Trainer(folder: try ImageFolder(at: photos), configuration: configuration).start() {
        switch event {
        case .epoch(let metrics, _): print(metrics.epoch, metrics.loss)
        case .finished(let result): try result.weights.write(to: model)
        default: break
        }
    }

    let classifier = try ImageClassifier(contentsOf: model)
    for observation in try classifier.classify(photo) {
        print(observation.label, observation.confidence)
    }
    // README example ends
}

@Suite struct ReadmeTests {
    @Test("The README's example is the code that this file compiles")
    func exampleIsCompiled() throws {
        let readme = try String(contentsOf: packageFolder.appending(path: "README.md"), encoding: .utf8)
        let source = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
        let first = try #require(lines.firstIndex { $0.hasSuffix("// README example begins") })
        let last = try #require(lines.firstIndex { $0.hasSuffix("// README example ends") })
        let example = lines[(first + 1)..<last].map { $0.hasPrefix("    ") ? $0.dropFirst(4) : $0 }
        #expect(readme.contains(example.joined(separator: "\n")))
    }

    @Test("The README's example runs")
    func exampleRuns() async throws {
        try await withTemporaryFolder { folder in
            for (label, value) in [("light", UInt8(200)), ("dark", 40)] {
                let photos = folder.appending(path: "photos/\(label)")
                try FileManager.default.createDirectory(at: photos, withIntermediateDirectories: true)
                for index in 0..<2 {
                    try ImageFile.write(
                        Image(width: 100, height: 100, filledWith: value), to: photos.appending(path: "\(index).png"))
                }
            }
            let model = folder.appending(path: "logo.imprint")
            try await example(
                photos: folder.appending(path: "photos"), model: model,
                photo: folder.appending(path: "photos/dark/0.png"))
            #expect(FileManager.default.fileExists(atPath: model.path))
        }
    }
}
