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

    @Test("Without an architecture, the error names those that fit, or all if none fits")
    func fitting() throws {
        let example = try #require(
            PyTorchArchitectureTests.fixture.cases.first {
                $0.architecture == "squeezenet-1.1" && $0.flavour == "torchvision"
            })
        let tensors = example.tensors()
        #expect(
            try message(tensors).contains(
                "the file has no architecture, only tensors. They fit squeezenet-1.1. Set this architecture"))
        let other = try message(Array(tensors.dropLast()))
        #expect(other.contains("They fit none of resnet-18, resnet-34, "), "\(other)")
        #expect(other.contains("Set the closest one to see the tensors that differ"), "\(other)")
    }
}
