import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintSynthesis
import ImprintTraining
import TestSupport
import Testing

// Each function has an example of a page, word for word.

private func training(photos: URL, model: URL, photo: URL) async throws {
    // Example of README.md begins
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
    // Example ends
}

private func detectorTraining(photos: URL, leaf: URL, crest: URL, others: URL, model: URL) async throws {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainADetector.md begins
    // Example of docs/how-to/logo-detection.md begins
    let trainer = DetectorTrainer(
        artwork: ["Leaf": [try Artwork(contentsOf: leaf)], "Crest": [try Artwork(contentsOf: crest)]],
        photos: try ImageFolder(at: photos, minimumLabels: 1), backgrounds: try ImageFolder.images(in: others))
    for try await case .finished(let result) in trainer.start() {
        try result.model.write(to: model)
    }
    // Example ends
}

private func personalization(base: URL, photo: URL, otherPhoto: URL, thirdPhoto: URL, file: URL) throws {
    // Example of README.md begins
    // Example of Sources/Imprint/Imprint.docc/Personalize.md begins
    // Example of docs/how-to/personalization.md begins
    let session = try PersonalizationSession(ImageClassifier(contentsOf: base))
    try session.teach(photo, as: "MyLogo")
    try session.correct(otherPhoto, isNot: "MyLogo")
    let best = try session.classifier.classify(thirdPhoto)[0]
    try session.save(to: file)
    // Example ends
    print(best.label)
}

private func requests(classifier: ImageClassifier, upload: Data) async throws {
    // Example of Sources/Imprint/Imprint.docc/ClassifyAndDetect.md begins
    // Example of docs/how-to/apps.md begins
    var request = ClassificationRequest(classifier, rule: ConfidenceRule(threshold: .confidence(0.5)))
    request.regionOfInterest = NormalizedRectangle(x: 0.25, y: 0, width: 0.5, height: 1)
    let classifications = try await request.perform(on: .data(upload))
    // Example ends
    print(classifications.count)
}

private func detection(photo: URL) async throws {
    // Example of Sources/Imprint/Imprint.docc/ClassifyAndDetect.md begins
    // Example of docs/how-to/apps.md begins
    let detector = try ImageClassifier(contentsOf: URL(filePath: "logos.imprint"))
    for object in try await DetectionRequest(detector).perform(on: .file(photo)) {
        print(object.label, object.confidence, object.box)
    }
    // Example ends
}

private struct Camera {
    let frames: AsyncStream<ImageSource>
}

private struct Overlay {
    func show(_ box: NormalizedRectangle, label: String, id: Int) { print(box, label, id) }
}

private func tracking(detector: ImageClassifier, camera: Camera, overlay: Overlay) async throws {
    // Example of Sources/Imprint/Imprint.docc/CameraStreams.md begins
    // Example of docs/how-to/apps.md begins
    let request = DetectionRequest(detector)
    for try await element in request.detections(for: camera.frames, every: .milliseconds(100)) {
        for tracked in element.objects {
            overlay.show(tracked.object.box, label: tracked.object.label, id: tracked.id)
        }
    }
    // Example ends
}

private func tracker(request: DetectionRequest, camera: Camera) throws -> DetectionStream {
    // Example of Sources/Imprint/Imprint.docc/CameraStreams.md begins
    // Example of docs/how-to/apps.md begins
    let tracker = try ObjectTracker(minimumIoU: 0.2, maximumMissedFrames: 10)
    let stream = request.detections(for: camera.frames, every: .zero, tracker: tracker)
    // Example ends
    return stream
}

@Suite struct DocumentedExampleTests {
    @Test("The examples of the pages are identical to the code in these files")
    func examplesAreIdentical() throws {
        for (page, examples) in try Self.examples() {
            let text = try String(contentsOf: packageFolder.appending(path: page), encoding: .utf8)
            for example in examples {
                #expect(text.contains(example), "an example of \(page) differs:\n\(example)")
            }
        }
    }

    @Test("All Swift code in the pages and DocC catalogs is compiled")
    func blocksAreCompiled() throws {
        let examples = try Self.examples().mapValues { $0.map(Self.code) }
        let programs = try ["docs/examples/Sources", "Tests/TutorialApp"].flatMap { folder in
            try packageFiles(in: folder, extension: "swift").map { file in
                Self.code(try String(contentsOf: packageFolder.appending(path: file), encoding: .utf8))
            }
        }
        var count = 0
        let pages = try ["docs", "Sources"].flatMap { try packageFiles(in: $0, extension: "md") }
            .filter { !$0.hasPrefix("docs/api/") }
        for page in pages + ["README.md", "CONTRIBUTING.md"] {
            let text = try String(contentsOf: packageFolder.appending(path: page), encoding: .utf8)
            // SwiftPM reads the package manifests in DocumentedManifestTests.
            for block in Self.swiftBlocks(of: text) where !block.hasPrefix("// swift-tools-version") {
                let code = Self.code(block)
                let isCompiled = examples[page]?.contains(code) == true || programs.contains { $0.contains(code) }
                #expect(isCompiled, "\(page): this code is not compiled:\n\(block)")
                count += 1
            }
        }
        #expect(count > 100)
    }

    /// The examples in files of tests, by page.
    ///
    /// An example starts after one comment for each page that has it.
    private static func examples() throws -> [String: [String]] {
        let files =
            ["AppGuideExamples", "CatalogExamples", "NetworkCatalogExamples", "TrainingGuideExamples"].map {
                "Tests/ImprintTests/\($0).swift"
            } + [
                "Tests/ImprintTests/DocumentedExampleTests.swift",
                "Tests/ImprintNetworkTests/DocumentedLayerTests.swift",
            ]
        var examples: [String: [String]] = [:]
        for file in files {
            let source = try String(contentsOf: packageFolder.appending(path: file), encoding: .utf8)
            var pages: [String] = []
            var lines: [Substring] = []
            for line in source.split(separator: "\n", omittingEmptySubsequences: false) {
                if line.hasPrefix("    // Example of "), line.hasSuffix(" begins") {
                    pages.append(String(line.dropFirst("    // Example of ".count).dropLast(" begins".count)))
                    lines = []
                } else if line == "    // Example ends" {
                    for page in pages { examples[page, default: []].append(lines.joined(separator: "\n")) }
                    pages = []
                } else {
                    lines.append(line.hasPrefix("    ") ? line.dropFirst(4) : line)
                }
            }
            #expect(pages.isEmpty, "an example of \(file) does not end")
        }
        return examples
    }

    /// The fenced blocks of Swift in a page.
    private static func swiftBlocks(of page: String) -> [String] {
        var blocks: [String] = []
        var block: [Substring]?
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            let isFence = line.drop { $0 == " " }.hasPrefix("```")
            if let lines = block, isFence {
                blocks.append(lines.joined(separator: "\n"))
                block = nil
            } else if isFence, line.lowercased().contains("```swift") {
                block = []
            } else {
                block?.append(line)
            }
        }
        return blocks
    }

    /// Returns whole lines of code without indentation, and without the imports and comments at the beginning.
    private static func code(_ source: String) -> String {
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            line.drop { $0 == " " }
        }
        let code = lines.drop { line in
            line.isEmpty || ["import ", "internal import ", "// "].contains { line.hasPrefix($0) }
        }
        return "\n" + code.joined(separator: "\n") + "\n"
    }

    @Test("The examples of summaries, custom layers, observers, objectives and optimizers run")
    func networkExamples() throws {
        let summary = try networkSummary()
        let page = try String(
            contentsOf: packageFolder.appending(path: "Sources/ImprintNetwork/ImprintNetwork.docc/ImprintNetwork.md"),
            encoding: .utf8)
        #expect(page.contains("```\n\(summary)\n```"))
        #expect(try scaledOutput() == (0..<12).map { Float($0) / 2 })
        let mean = try #require(try meanActivations()["probabilities"])
        #expect(abs(mean - 0.5) < 1e-5)
        let samples: [(input: [Float], target: Float)] = [([1, 0], 2), ([0, 1], -1), ([1, 1], 1), ([2, 1], 3)]
        for weights in [try fittedWeights(samples: samples), try weightsOfAdagrad(samples: samples)] {
            #expect(weights.count == 2 && abs(weights[0] - 2) < 0.1 && abs(weights[1] + 1) < 0.1)
        }
    }

    @Test("The examples of training and personalization run")
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
            try await training(
                photos: folder.appending(path: "photos"), model: model,
                photo: folder.appending(path: "photos/dark/0.png"))
            #expect(FileManager.default.fileExists(atPath: model.path))
            let mine = folder.appending(path: "mine")
            try personalization(
                base: model, photo: folder.appending(path: "photos/dark/0.png"),
                otherPhoto: folder.appending(path: "photos/light/0.png"),
                thirdPhoto: folder.appending(path: "photos/light/1.png"), file: mine)
            #expect(FileManager.default.fileExists(atPath: mine.path))
        }
    }
}
