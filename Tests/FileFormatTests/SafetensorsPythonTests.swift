import Foundation
import ImprintModel
import TestSupport
import Testing

private let checkSafetensors = "FileFormatTests/Fixtures/check_safetensors.py"

@Suite(.enabled(if: Python.path != nil, "IMPRINT_PYTHON names no Python; ./run test sets it"))
struct SafetensorsPythonTests {
    private struct Described: Decodable, Equatable {
        struct Tensor: Decodable, Equatable {
            let type: String
            let shape: [Int]
            let values: [String]
        }
        let metadata: [String: String]
        let tensors: [String: Tensor]
    }

    @Test("Python's safetensors reads what we write", arguments: Safetensors.Precision.allCases)
    func pythonReads(precision: Safetensors.Precision) throws {
        let metadata = ["plain": "text", "quoted \"key\"": "line\nbreak \u{1} \\ é 😀"]
        let tensors = [
            Safetensors.Tensor(name: "weights", shape: [2, 1, 3], values: [1, -2, 0.5, 65504, 0x1p-14, -0]),
            Safetensors.Tensor(name: "é", shape: [], values: [0.1]),
            Safetensors.Tensor(name: "empty", shape: [0, 4], values: []),
        ]
        let described = try withTemporaryFolder { folder in
            let url = folder.appending(path: "ours.safetensors")
            try Safetensors.write(tensors, as: precision, to: url) { _ in metadata }
            return try JSONDecoder().decode(
                Described.self, from: Python.output(of: checkSafetensors, ["describe", url.path]))
        }
        #expect(described.metadata == metadata)
        #expect(described.tensors.keys.sorted() == tensors.map(\.name).sorted())
        for tensor in tensors {
            let found = try #require(described.tensors[tensor.name])
            let expected = tensor.values.map { precision == .float32 ? $0 : Float(Float16($0)) }
            #expect(found.type == precision.rawValue)
            #expect(found.shape == tensor.shape)
            #expect(found.values.map { Float($0)?.bitPattern } == expected.map(\.bitPattern))
        }
    }

    @Test("We read what Python's safetensors writes")
    func weRead() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "theirs.safetensors")
            _ = try Python.output(of: checkSafetensors, ["write", url.path])
            let file = try Safetensors.File(contentsOf: url)
            #expect(file.header.metadata == ["greeting": "say \"hi\"\né😀", "two": "2"])
            let tensors = Dictionary(uniqueKeysWithValues: file.header.tensors.map { ($0.name, $0) })
            func check(_ name: String, _ type: Safetensors.ElementType, _ shape: [Int], _ values: [Float]?) throws {
                let tensor = try #require(tensors[name])
                #expect(tensor.elementType == type)
                #expect(tensor.shape == shape)
                if let values {
                    #expect(try file.values(of: tensor) == values)
                } else {
                    #expect(throws: SafetensorsError.self) { try file.values(of: tensor) }
                }
            }
            #expect(tensors.count == 6)
            try check("float32", .float32, [2, 3], (0..<6).map { Float($0) / 7 })
            try check("float16", .float16, [4], [1.5, -2, 65504, 0x1p-24])
            try check("int64", .int64, [2, 1], nil)
            try check("uint8", .uint8, [3], nil)
            try check("scalar", .float32, [], [0.25])
            try check("empty", .float32, [2, 0, 3], [])
        }
    }

    @Test("Python reads a model file, and computes the digest of the specification")
    func modelFile() throws {
        let model = try sampleModel()
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let digest = try model.write(to: url)
            let described = try JSONDecoder().decode(
                Described.self, from: Python.output(of: checkSafetensors, ["describe", url.path]))
            #expect(described.metadata["imprint.format"] == "1")
            #expect(described.metadata["imprint.labels"] == #"["logo","other"]"#)
            #expect(described.metadata["imprint.digest"] == digest)
            #expect(try Python.output(of: checkSafetensors, ["digest", url.path]) == Data(digest.utf8))
            #expect(described.tensors.count == model.parameters.layout.entries.count)
            for entry in model.parameters.layout.entries {
                let found = try #require(described.tensors[entry.name])
                #expect(found.shape == entry.parameter.shape)
                #expect(found.values.compactMap { Float($0) } == model.parameters[entry.name])
            }
        }
    }
}
