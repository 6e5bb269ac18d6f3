import Foundation
import ImprintImages
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Published models, compared to the output of other programs.
@Suite(
    "Core ML reference models",
    .enabled(if: ReferenceData.has("models/MNIST.mlmodel"), "the reference models are missing"))
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

    private func importModel(_ name: String) throws -> ImportedModel {
        try ModelImporter().read(ReferenceData.folder.appending(path: "models/\(name).mlmodel"))
    }

    private func images(_ folder: String) throws -> [(Expected.Image, RasterImage)] {
        let folder = ReferenceData.folder.appending(path: "reference/\(folder)")
        let expected = try JSONDecoder().decode(
            Expected.self, from: Data(contentsOf: folder.appending(path: "expected.json")))
        return try expected.images.map { ($0, try ImageFile.decode(folder.appending(path: $0.file))) }
    }

    private func probabilities(_ imported: ImportedModel, _ image: RasterImage) throws -> [Float] {
        try imported.model.result(imported.model.preprocessing.prepare(image).samples)
    }

    @Test("MNIST: grey image, int64 labels, channels-last flatten")
    func mnist() throws {
        let imported = try importModel("MNIST")
        #expect(imported.model.labels == (0...9).map { "\($0)" })
        for (expected, image) in try images("mnist") {
            let known = try #require(expected.mnist)
            #expect(maximumDifference(try probabilities(imported, image), known) < 1e-4, "\(expected.file)")
        }
    }

    @Test("Nudity: BGR image, batch normalizations with a scale, pools that round up")
    func nudity() throws {
        let imported = try importModel("Nudity")
        #expect(imported.model.preprocessing.mean == [104, 117, 123])
        for (expected, image) in try images("open_nsfw") {
            let found = try probabilities(imported, image)
            let known = try #require(expected.nudity)
            #expect(maximumDifference(found, known) < 1e-4, "\(expected.file)")
            let (isFirst, wasFirst) = (found[0] > found[1], known[0] > known[1])
            #expect(isFirst == wasFirst)
        }
    }

    @Test("EfficientNet-Lite0: exact axes, explicit padding, clips")
    func efficientNet() throws {
        let imported = try importModel("EfficientNetLite0")
        for (expected, image) in try images("efficientnet_lite0") {
            let found = try probabilities(imported, image)
            let top = try #require(expected.top5)
            let first = found.firstIndex(of: found.max() ?? 0)
            #expect(first == top[0].index)
            for known in top {
                let difference = abs(found[known.index] - known.prob)
                #expect(difference < 1e-4, "\(expected.file)")
                // The file has only the first of each class's names in ImageNet.
                let first = known.label.prefix { $0 != "," }
                #expect(imported.model.labels[known.index].hasPrefix(first))
            }
        }
    }

    @Test("A Create ML classifier is rejected with a fix")
    func createML() throws {
        let error = #expect(throws: ImportError.self) { try importModel("VigetLogoClassifier") }
        #expect(error?.description.contains("VisionFeaturePrint") == true)
        #expect(error?.description.contains("Train a new model on the same photos") == true)
    }
}
