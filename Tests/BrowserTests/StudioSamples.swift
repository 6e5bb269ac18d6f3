import Foundation
import Imprint
import ImprintBaseModels
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintStudio
import ImprintSynthesis
import ImprintTraining
import TestSupport

/// Generated images, models and camera frames for tests of the studio.
enum StudioSamples {
    /// The content of an image: noise around a grey level, with or without stripes.
    enum Kind: String, CaseIterable {
        case bright = "Bright"
        case dark = "Dark"
        case stripes = "<b>Wide + dark & bright"
    }

    static func image(_ kind: Kind, seed: UInt64, width: Int = 96, height: Int = 72) -> RasterImage {
        var stream = RandomStream(seed: seed, kind.rawValue)
        var image = RasterImage(width: width, height: height)
        for row in 0..<height {
            for index in (row * width * 3)..<((row + 1) * width * 3) {
                let base =
                    switch kind {
                    case .bright: 190
                    case .dark: 20
                    case .stripes: row / (height / 6) % 2 == 0 ? 200 : 10
                    }
                image.samples[index] = UInt8(base + stream.index(below: 50))
            }
        }
        return image
    }

    static func write(_ kind: Kind, seed: UInt64 = 100, to folder: URL) throws -> URL {
        let file = folder.appending(path: "\(kind)-\(seed).jpg")
        try ImageFile.write(image(kind, seed: seed, width: 640, height: 480), to: file)
        return file
    }

    /// Trains a small model that distinguishes bright from dark, and writes it to a file.
    static func model(in folder: URL) async throws -> URL {
        let photos = folder.appending(path: "photos")
        for kind in [Kind.bright, .dark] {
            let labelFolder = photos.appending(path: kind.rawValue)
            try FileManager.default.createDirectory(at: labelFolder, withIntermediateDirectories: true)
            for index in 0..<12 {
                try ImageFile.write(image(kind, seed: UInt64(index)), to: labelFolder.appending(path: "\(index).png"))
            }
        }
        var configuration = ClassifierConfiguration()
        configuration.start = .network("logonet", width: 0.125)
        configuration.inputSize = 16
        configuration.batchSize = 8
        configuration.epochs = 6
        configuration.validation = .none
        let model = folder.appending(path: "model.imprint")
        for try await case .finished(let result) in ClassifierTrainer(
            photos: try ImageFolder(at: photos), configuration: configuration
        ).start() {
            // The camera frames of these tests are larger than the photos, so that their noise is unlike that of the photos.
            var trained = result.model
            trained.noveltyRule = nil
            try trained.write(to: model)
        }
        return model
    }

    /// Returns a small detector of the labels "leaf" and "crest" with random parameters, which finds several objects in noise.
    static func detector() throws -> ImageClassifier {
        let network = try Network.logoDetector(logos: 2, regressesBoxes: true)
        return try ImageClassifier(
            ModelFile(
                network: network, parameters: try Parameters(network, seed: 2), labels: ["crest", "leaf", "none"],
                preprocessing: .logoDetector,
                detector: DetectorHead(
                    levels: [96, 136], stride: 16, span: 44,
                    logos: [.init(label: "crest", slope: 0.5, offset: 1), .init(label: "leaf", slope: 0.5, offset: 1)],
                    regressesBoxes: true)))
    }

    /// Runs `body` with a studio with the small detector.
    static func withDetector<Value>(
        _ body: (_ studio: Studio, _ folder: URL) async throws -> Value
    ) async throws -> Value {
        try await withStudio(name: "logos", installer: installer) { _ in
            try detector()
        } _: {
            try await body($0, $1)
        }
    }

    /// Writes camera frames: some seconds of each kind in turn, at 30 frames per second.
    static func camera(_ kinds: [Kind], seconds: Double = 1, in folder: URL) throws -> URL {
        let file = folder.appending(path: "camera.mjpeg")
        let frames = try kinds.flatMap { kind in
            let frame = try ImageFile.encodeJPEG(Self.image(kind, seed: 50, width: 640, height: 480))
            return Array(repeating: frame, count: Int(30 * seconds)).joined()
        }
        try Data(frames).write(to: file)
        return file
    }

    /// Returns an installer with the standard catalog and an empty folder of base models.
    static func installer(_ folder: URL) -> BaseModelInstaller {
        BaseModelInstaller(into: BaseModels(folder: folder.appending(path: "home/models")))
    }

    /// Runs `body` with a studio with a model of bright and dark, or without a model.
    /// - Parameter port: The port of the studio; if nil, the first free default port.
    static func withStudio<Value>(
        hasModel: Bool = true, categories: [String: [String]]? = nil, port: Int? = nil,
        installer: (_ folder: URL) throws -> BaseModelInstaller = Self.installer,
        _ body: (_ studio: Studio, _ folder: URL) async throws -> Value
    ) async throws -> Value {
        try await withStudio(name: hasModel ? "bright" : nil, port: port, installer: installer) { folder in
            var model = hasModel ? try ModelFile(contentsOf: try await Self.model(in: folder)) : nil
            model?.categories = try categories.map { try Categories($0) }
            return try model.map { try ImageClassifier($0) }
        } _: {
            try await body($0, $1)
        }
    }

    /// Runs `body` with a studio with a model created in its folder.
    static func withStudio<Value>(
        name: String?, port: Int? = nil, installer: (_ folder: URL) throws -> BaseModelInstaller,
        classifier: (_ folder: URL) async throws -> ImageClassifier?,
        _ body: (_ studio: Studio, _ folder: URL) async throws -> Value
    ) async throws -> Value {
        try await withTemporaryFolder { folder in
            let studio = try await Studio(
                try await classifier(folder), name: name, port: port, installer: try installer(folder))
            do {
                let value = try await body(studio, folder)
                await studio.stop()
                return value
            } catch {
                await studio.stop()
                throw error
            }
        }
    }

    /// Opens a studio in the browser and performs steps.
    static func look<Values: Decodable & Sendable>(
        _ studio: Studio, _ view: Browser.View, _ steps: [Browser.Step], timeout: Int = 300
    ) async throws -> Browser.Sight<Values> {
        try await Browser.visit(
            studio.url, view, waitingFor: "document.body.dataset.ready === 'true'", steps: steps, timeout: timeout)
    }
}
