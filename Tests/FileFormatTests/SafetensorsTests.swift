import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel

@Suite struct SafetensorsTests {
    private static let tensors = [
        Safetensors.Tensor(name: "b", shape: [2, 2], values: [1, -0.0, .leastNonzeroMagnitude, 3e38]),
        Safetensors.Tensor(name: "a/weights", shape: [3], values: [.pi, .infinity, -1e-30]),
        Safetensors.Tensor(name: "empty", shape: [4, 0], values: []),
        Safetensors.Tensor(name: "", shape: [], values: [0.1]),
        Safetensors.Tensor(name: "quote\" \\ \n é", shape: [1], values: [7]),
    ]

    @Test("Float32 tensors survive a round trip bitwise, with shapes, order and metadata")
    func float32() throws {
        let metadata = ["": "", "b": "control \u{1F} \t\r\n", "a": "😀 é \" \\ /"]
        try withWritten(Self.tensors, metadata: { _ in metadata }) { file, _ in
            #expect(file.header.metadata == metadata)
            #expect(file.header.tensors.map(\.name) == ["", "a/weights", "b", "empty", "quote\" \\ \n é"])
            for tensor in Self.tensors {
                let description = try #require(file.header.tensors.first { $0.name == tensor.name })
                #expect(description.shape == tensor.shape)
                #expect(description.elementType == .float32)
                #expect(description.count == tensor.values.count)
                #expect(try file.values(of: description).map(\.bitPattern) == tensor.values.map(\.bitPattern))
            }
        }
    }

    @Test("Float16 values are rounded to nearest, and take two bytes each")
    func float16() throws {
        let values: [Float] = [1, 0.1, -65504, 1e-5, 3e-8, 1e-9, -0.0, 1234.567]
        try withWritten([.init(name: "t", shape: [8], values: values)], as: .float16) { file, _ in
            let description = try #require(file.header.tensors.first)
            #expect(description.elementType == .float16)
            #expect(description.byteRange == 0..<16)
            for (found, value) in zip(try file.values(of: description), values) {
                // Half an ulp: 2⁻¹¹ of the value, or half the spacing of subnormals, 2⁻²⁴.
                #expect(abs(found - value) <= max(abs(value) * 0x1p-11, 0x1p-25))
            }
        }
    }

    @Test("A value beyond float16 is rejected with the name of its tensor, and no file is written")
    func beyondFloat16() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model")
            let error = #expect(throws: SafetensorsError.self) {
                try Safetensors.write(
                    [.init(name: "dense/weights", shape: [2], values: [1, 70000])], as: .float16, to: url
                ) { _ in [:] }
            }
            #expect(error?.problem == .exceedsFloat16(tensor: "dense/weights", value: 70000))
            #expect(
                error?.description.contains("the tensor dense/weights contains 70000.0, expected at most ±65504")
                    == true)
            #expect(!FileManager.default.fileExists(atPath: url.path))
        }
    }

    @Test("A header that is too long for readers is not written") func headerLimit() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "checkpoint")
            let error = #expect(throws: SafetensorsError.self) {
                try Safetensors.write([TensorSource](), inOrder: true, to: url, checksumKey: nil, headerLimit: 200) {
                    _ in ["photos": String(repeating: "a", count: 200)]
                }
            }
            #expect(error?.problem == .headerExceedsLimit(byteCount: 248, limit: 200))
            #expect(error?.description.contains("would have 248 bytes, expected at most 200") == true)
            #expect(!FileManager.default.fileExists(atPath: url.path))
        }
    }

    @Test("The digest that the writer passes equals that of the reader")
    func digest() throws {
        var given = ""
        func metadata(_ digest: String) -> [String: String] {
            given = digest
            return [:]
        }
        try withWritten(Self.tensors, metadata: metadata) { file, bytes in
            #expect(given == SHA256.hexadecimal(of: Array(bytes.suffix(9 * 4))))
            let found = try file.dataDigest()
            #expect(found == given)
        }
        let long = Safetensors.Tensor(name: "t", shape: [300_000], values: (0..<300_000).map { Float($0) })
        try withWritten([long], metadata: metadata) { file, _ in  // 1.2 MB, which takes several reads.
            let found = try file.dataDigest()
            #expect(found == given)
        }
    }

    @Test("Equal content in any order gives equal bytes, with the data aligned to 64 bytes")
    func reproducible() throws {
        let metadata = Dictionary(uniqueKeysWithValues: (0..<20).map { ("key \($0)", "\($0)") })
        try withWritten(Self.tensors, metadata: { _ in metadata }) { _, first in
            #expect((first.count - 9 * 4) % 64 == 0)
            try withWritten(Self.tensors.reversed(), metadata: { _ in metadata }) { _, second in
                #expect(first == second)
            }
        }
    }

    @Test("A file may have no tensors and no metadata")
    func empty() throws {
        try withWritten([]) { file, _ in
            #expect(file.header.tensors.isEmpty && file.header.metadata.isEmpty)
            let digest = try file.dataDigest()
            #expect(digest == SHA256.hexadecimal(of: []))
        }
    }

    @Test("A header may have tensors in any order, white space, escapes and padding")
    func unusualHeader() throws {
        let text = """
            {"b" : {"data_offsets":[8 , 9],\t"shape":[],"dtype":"U8"},
            "\\u0061\\ud83d\\ude00\\/":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]} , "__metadata__":{ } }   
            """
        let header = try Safetensors.Header(Array(text.utf8), dataLength: 9)
        #expect(header.tensors.map(\.name) == ["a😀/", "b"])
        #expect(header.tensors.map(\.byteRange) == [0..<8, 8..<9])
    }

    @Test("The size of an element type matches its name", arguments: Safetensors.ElementType.allCases)
    func elementSizes(type: Safetensors.ElementType) {
        let bits = type == .bool ? 8 : Int(type.rawValue.drop { !$0.isNumber })
        #expect(bits == type.byteCount * 8)
    }

    /// Writes a file, opens it, and passes it and its bytes to `body`.
    private func withWritten(
        _ tensors: [Safetensors.Tensor], as precision: Safetensors.Precision = .float32,
        metadata: (String) -> [String: String] = { _ in [:] },
        _ body: (_ file: Safetensors.File, _ bytes: Data) throws -> Void
    ) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.safetensors")
            try Safetensors.write(tensors, as: precision, to: url, metadata: metadata)
            try body(Safetensors.File(contentsOf: url), Data(contentsOf: url))
        }
    }
}
