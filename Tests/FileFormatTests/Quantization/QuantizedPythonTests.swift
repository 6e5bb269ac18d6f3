import Foundation
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel

/// Quantized models in ONNX Runtime and coremltools (Fixtures/check_quantized.py).
@Suite(
    .serialized,
    .enabled(
        if: Python.readsExports, "IMPRINT_PYTHON is not a Python with onnx, onnxruntime and coremltools; see ./run"))
struct QuantizedPythonTests {
    private static let imageCount = 8

    private func write(_ values: [Float], to url: URL) throws {
        try values.withUnsafeBytes { try Data($0).write(to: url) }
    }

    private func values(in url: URL) throws -> [Float] {
        try Data(contentsOf: url).withUnsafeBytes { bytes in
            stride(from: 0, to: bytes.count, by: 4).map { bytes.loadUnaligned(fromByteOffset: $0, as: Float.self) }
        }
    }

    /// Writes images, channels first.
    private func writeImages(of item: QuantizedCase, to folder: URL) throws {
        let shape = item.network.input
        let images = (0..<Self.imageCount).flatMap { index in
            let image = item.image(index + 40)
            return (0..<shape.count).map { position in
                let (channel, pixel) = position.quotientAndRemainder(dividingBy: shape.pixels)
                return image[pixel * shape.channels + channel]
            }
        }
        try write(images, to: folder.appending(path: "images"))
        try JSONEncoder().encode([Self.imageCount, shape.channels, shape.height, shape.width])
            .write(to: folder.appending(path: "shape.json"))
    }

    private func predictions(_ model: ModelFile, of item: QuantizedCase) throws -> [Float] {
        try (0..<Self.imageCount).flatMap { try model.prediction(item.image($0 + 40)) }
    }

    @Test("ONNX Runtime predicts the same as Imprint in int8", arguments: QuantizedCase.all)
    func exported(_ item: QuantizedCase) throws {
        try withTemporaryFolder { folder in
            let model = try item.model()
            try model.writeONNX(to: folder.appending(path: "model.onnx"))
            try model.writeCoreML(to: folder.appending(path: "model.mlmodel"))
            try writeImages(of: item, to: folder)
            let report = try Python.output(of: "FileFormatTests/Fixtures/check_quantized.py", ["run", folder.path])
            let expected = try predictions(model, of: item)
            let found = try values(in: folder.appending(path: "outputs"))
            try #require(found.count == expected.count)
            #expect(maximumDifference(found, expected) < 0.01)
            let weights = try JSONDecoder().decode([String: [Float]].self, from: report)
            #expect(weights.count == model.parameters.quantization?.weights.count)
        }
    }

    @Test(
        "A model that quantize_static has quantized predicts the same as in ONNX Runtime", arguments: QuantizedCase.all,
        ["uint8", "int8"])
    func quantized(_ item: QuantizedCase, type: String) throws {
        try withTemporaryFolder { folder in
            let model = try item.model()
            let float = ModelFile(
                network: model.network, parameters: try model.parameters.copy(), labels: model.labels,
                preprocessing: model.preprocessing)
            try float.writeONNX(to: folder.appending(path: "float.onnx"))
            try writeImages(of: item, to: folder)
            _ = try Python.output(of: "FileFormatTests/Fixtures/check_quantized.py", ["quantize", folder.path, type])
            let imported = try ModelImporter().read(folder.appending(path: "model.onnx"))
            let quantization = try #require(imported.model.parameters.quantization)
            #expect(!quantization.weights.isEmpty)
            let expected = try values(in: folder.appending(path: "outputs"))
            let found = try predictions(imported.model, of: item)
            try #require(found.count == expected.count)
            print(
                "\(item.name) \(type): \(quantization.weights.count) int8 layers, differ by \(maximumDifference(found, expected))"
            )
            #expect(maximumDifference(found, expected) < 0.02)
        }
    }
}
