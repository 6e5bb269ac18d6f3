import Foundation
import ImprintImages
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Real models against what other programs compute with them.
@Suite(
    "Core ML reference models",
    .enabled(if: ReferenceData.has("models/MNIST.mlmodel"), "the reference models are not here"))
struct CoreMLReferenceTests {
    private struct Expected: Decodable {
        struct Image: Decodable {
            struct Top: Decodable {
                let index: Int
                let label: String
                let prob: Float
            }
            let file: String
            let top5: [Top]?
            let mnist: [Float]?
            let nudity: [Float]?

            enum CodingKeys: String, CodingKey {
                case file, top5, mnist = "MNIST.mlmodel", nudity = "nudity_mlmodel_as_shipped_bias"
            }
        }
        let images: [Image]
    }

    private func model(_ name: String) throws -> ImportedModel {
        try ModelImporter().read(ReferenceData.folder.appending(path: "models/\(name).mlmodel"))
    }

    private func images(_ folder: String) throws -> [(Expected.Image, RasterImage)] {
        let folder = ReferenceData.folder.appending(path: "reference/\(folder)")
        let expected = try JSONDecoder().decode(
            Expected.self, from: Data(contentsOf: folder.appending(path: "expected.json")))
        return try expected.images.map { ($0, try ImageFile.decode(folder.appending(path: $0.file))) }
    }

    private func probabilities(_ model: ImportedModel, _ image: RasterImage) throws -> [Float] {
        try model.weights.result(model.weights.preprocessing.prepare(image).samples)
    }

    @Test("MNIST: grey, int64 labels, flattened with channels last")
    func mnist() throws {
        let model = try model("MNIST")
        #expect(model.weights.labels == (0...9).map(String.init))
        for (expected, image) in try images("mnist") {
            let known = try #require(expected.mnist)
            #expect(greatestDifference(try probabilities(model, image), known) < 1e-4, "\(expected.file)")
        }
    }

    @Test("Nudity: blue first, norms with a scale behind them, pools that round up")
    func nudity() throws {
        let model = try model("Nudity")
        #expect(model.weights.preprocessing.mean == [104, 117, 123])
        for (expected, image) in try images("open_nsfw") {
            let found = try probabilities(model, image)
            let known = try #require(expected.nudity)
            #expect(greatestDifference(found, known) < 1e-4, "\(expected.file)")
            let (isFirst, wasFirst) = (found[0] > found[1], known[0] > known[1])
            #expect(isFirst == wasFirst)
        }
    }

    @Test("EfficientNet-Lite0: exact axes, borders of their own, clips")
    func efficientNet() throws {
        let model = try model("EfficientNetLite0")
        for (expected, image) in try images("efficientnet_lite0") {
            let found = try probabilities(model, image)
            let top = try #require(expected.top5)
            let first = found.firstIndex(of: found.max() ?? 0)
            #expect(first == top[0].index)
            for known in top {
                let difference = abs(found[known.index] - known.prob)
                #expect(difference < 1e-4, "\(expected.file)")
                // The file has the first word alone of each of ImageNet's names.
                let first = known.label.prefix { $0 != "," }
                #expect(model.weights.labels[known.index].hasPrefix(first))
            }
        }
    }

    @Test("A classifier of Create ML is refused in words")
    func createML() throws {
        let error = #expect(throws: ImportError.self) { try model("VigetLogoClassifier") }
        #expect(error?.description.contains("VisionFeaturePrint") == true)
        #expect(error?.description.contains("imprint train") == true)
    }
}
