import Foundation
import ImprintInterop
import TestSupport
import Testing

/// Checkpoints that are imported without an architecture.
@Suite struct FittingArchitectureTests {
    /// Returns a safetensors file with float32 tensors.
    private func safetensors(_ tensors: [(name: String, shape: [Int], values: [Float])]) throws -> Data {
        var header: [String: Any] = [:]
        var content = Data()
        for tensor in tensors {
            let start = content.count
            tensor.values.withUnsafeBytes { content.append(contentsOf: $0) }
            header[tensor.name] = ["dtype": "F32", "shape": tensor.shape, "data_offsets": [start, content.count]]
        }
        let json = try JSONSerialization.data(withJSONObject: header)
        return withUnsafeBytes(of: UInt64(json.count).littleEndian) { Data($0) } + json + content
    }

    /// Returns the error of an import without an architecture.
    private func message(_ tensors: [(name: String, shape: [Int], values: [Float])]) throws -> String {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "model.safetensors")
            try safetensors(tensors).write(to: file)
            let error = #expect(throws: ImportError.self) { try ModelImporter().read(file) }
            return error?.description ?? ""
        }
    }

    @Test("Without an architecture, the error names those that fit, otherwise the closest")
    func fitting() throws {
        let example = try #require(
            PyTorchArchitectureTests.fixture.cases.first {
                $0.architecture == "squeezenet-1.1" && $0.flavour == "torchvision"
            })
        let tensors = example.tensors()
        #expect(
            try message(tensors).contains(
                "the file has no architecture, only tensors. Its tensors fit squeezenet-1.1."))
        let other = try message(Array(tensors.dropLast()))
        #expect(
            other.contains("The closest architecture is squeezenet-1.1: the file has 51 of its 52 tensors."), "\(other)"
        )
        let more = try message(tensors + [(name: "more.weight", shape: [1], values: [0])])
        #expect(more.contains("the file has 52 of its 52 tensors and 1 unknown one."), "\(more)")
        let unknown = try message([(name: "layer.weight", shape: [1], values: [0])])
        #expect(unknown.contains("Its tensors fit none of resnet-18, resnet-34, "), "\(unknown)")
    }
}
