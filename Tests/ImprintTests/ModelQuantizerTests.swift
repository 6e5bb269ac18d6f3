import Dispatch
import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintModel
@testable import ImprintTraining

/// The quantization of a model with photos.
@Suite struct ModelQuantizerTests {
    /// Writes photos of noise, and returns their URLs.
    private static func writePhotos(_ count: Int, to folder: URL) throws -> [URL] {
        try (0..<count).map { index in
            let url = folder.appending(path: "\(index).png")
            var stream = RandomStream(seed: 7, "photo \(index)")
            let samples = (0..<(40 * 30 * 3)).map { _ in UInt8(128 + 60 * stream.uniform(in: -1...1)) }
            try ImageFile.write(RasterImage(width: 40, height: 30, channels: 3, samples: samples), to: url)
            return url
        }
    }

    private static func withPhotos(_ count: Int, _ body: ([URL]) throws -> Void) throws {
        try withTemporaryFolder { folder in try body(writePhotos(count, to: folder)) }
    }

    private static func model() throws -> ModelFile {
        let network = try Network.named("mobilenet-v1", labels: 4, inputSize: 32)
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b", "c", "d"],
            preprocessing: Preprocessing(width: 32, height: 32))
    }

    @Test("A quantized classifier predicts in int8, and its file keeps the confidences") func classifier() throws {
        try Self.withPhotos(8) { photos in
            let model = try Self.model()
            let quantized = try model.quantized(for: photos, options: QuantizationOptions(errorLimit: 1))
            #expect(quantized.calibrationPhotos == 6 && quantized.measuredPhotos == 2)
            #expect(quantized.integerLayers.count == 28 && quantized.floatLayers == [] && quantized.skipped.isEmpty)
            let classifier = try ImageClassifier(quantized.model)
            #expect(classifier.precision == .int8)
            #expect(try ImageClassifier(quantized.model, precision: .float32).precision == .float32)
            let url = photos[0].deletingLastPathComponent().appending(path: "q.imprint")
            try quantized.model.write(to: url)
            let read = try ImageClassifier(contentsOf: url)
            for photo in photos {
                let (float, integer) = try (
                    ImageClassifier(model).confidences(of: photo), classifier.confidences(of: photo)
                )
                #expect(zip(float, integer).allSatisfy { abs($0 - $1) < 0.05 } && float != integer)
                #expect(try read.confidences(of: photo) == integer)
            }
        }
    }

    @Test("An asynchronous quantization gives the model of a blocking one") func asynchronous() async throws {
        try await withTemporaryFolder { folder in
            let (model, photos) = (try Self.model(), try Self.writePhotos(8, to: folder))
            let options = QuantizationOptions(errorLimit: 1)
            func blocking() throws -> QuantizedModel { try model.quantized(for: photos, options: options) }
            let quantized = try await model.quantized(for: photos, options: options)
            let expected = try blocking()
            #expect(quantized.error == expected.error && quantized.integerLayers == expected.integerLayers)
            #expect(try bytes(of: quantized.model) == bytes(of: expected.model))
        }
    }

    @Test(
        "Cancelling the task ends a quantization within each step", .timeLimit(.minutes(10)),
        arguments: ["reading photos", "calibrating"])
    func cancellation(step: String) async throws {
        try await withTemporaryFolder { folder in
            let (model, photos) = (try Self.model(), try Self.writePhotos(8, to: folder))
            let (started, continuation) = AsyncStream.makeStream(of: Void.self)
            let isCancelled = DispatchSemaphore(value: 0)
            let task = Task {
                try await model.quantized(for: photos) { current, _, _ in
                    guard current == step else { return }
                    continuation.yield()
                    isCancelled.wait()
                    // Further photos of the step do not wait.
                    isCancelled.signal()
                }
            }
            for await _ in started { break }
            task.cancel()
            isCancelled.signal()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test("int8 needs a quantized model") func notQuantized() throws {
        let error = try #require(throws: ImprintError.self) { try ImageClassifier(Self.model(), precision: .int8) }
        #expect("\(error)".contains("int8"))
    }

    @Test("A quantized model cannot be quantized again, and no layer at all is an error") func invalid() throws {
        try Self.withPhotos(4) { photos in
            let model = try Self.model()
            let quantized = try model.quantized(for: photos, options: QuantizationOptions(errorLimit: 1)).model
            let quantizedModel = ImprintError.invalidSetting(
                name: "the precision of the model", found: "int8",
                expected: "float32, as in the model from which it was quantized")
            #expect(throws: quantizedModel) { try quantized.quantized(for: photos) }
            let smallLimit = ImprintError.invalidSetting(
                name: "errorLimit", found: "1e-09",
                expected:
                    "a larger number: the outputs differ by more than this even if only one layer computes in int8")
            #expect(throws: smallLimit) {
                try model.quantized(for: photos, options: QuantizationOptions(errorLimit: 1e-9))
            }
            #expect(throws: Self.tooFewReadable) { try model.quantized(for: Array(photos.prefix(3))) }
        }
    }

    @Test("Options for fewer than four photos are an error", arguments: [3, 0, -1]) func tooFewPhotos(
        photos: Int
    ) throws {
        let error = ImprintError.invalidSetting(name: "photoCount", found: "\(photos)", expected: "at least 4")
        #expect(throws: error) { try Self.model().quantized(for: [], options: QuantizationOptions(photoCount: photos)) }
    }

    @Test(
        "An error limit that is not more than 0 is an error before photos are read",
        arguments: zip([0, -0.1, Double.nan], ["0", "-0.1", "nan"]))
    func invalidErrorLimit(limit: Double, found: String) throws {
        let error = ImprintError.invalidSetting(name: "errorLimit", found: found, expected: "more than 0")
        #expect(throws: error) { try Self.model().quantized(for: [], options: QuantizationOptions(errorLimit: limit)) }
    }

    @Test("Unreadable photos are skipped, unless there are too few others") func unreadable() throws {
        try Self.withPhotos(5) { photos in
            try Data("no image".utf8).write(to: photos[1])
            let quantized = try Self.model().quantized(for: photos)
            #expect(quantized.skipped.map(\.url) == [photos[1]])
            try Data("no image".utf8).write(to: photos[2])
            #expect(throws: Self.tooFewReadable) { try Self.model().quantized(for: photos) }
        }
    }

    private static let tooFewReadable = ImprintError.invalidSetting(
        name: "photos", found: "3 readable files", expected: "at least 4 photos")

    @Test("The levels of a detector's pyramid are quantized") func detector() throws {
        try Self.withPhotos(4) { photos in
            let labels = ["logo", "other"]
            let network = try Network.logoDetector(logos: 1, regressesBoxes: true, height: 96, width: 96)
            let model = ModelFile(
                network: network, parameters: try Parameters(network, seed: 2), labels: labels,
                preprocessing: .logoDetector,
                detector: DetectorHead(
                    levels: [96, 136], stride: 16, span: 44, logos: [.init(label: "logo")], regressesBoxes: true))
            let quantized = try model.quantized(for: photos)
            #expect(!quantized.integerLayers.isEmpty)
            let detector = try ImageClassifier(quantized.model)
            for photo in photos { #expect(try detector.confidences(of: photo).allSatisfy { $0.isFinite }) }
        }
    }
}
