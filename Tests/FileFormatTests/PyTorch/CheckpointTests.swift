import Foundation
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Checkpoints that PyTorch and safetensors wrote (Fixtures/make_checkpoints.py), compared to the values that PyTorch lists.
@Suite struct CheckpointTests {
    private struct Described: Decodable {
        let name: String
        let shape: [Int]
        let values: [String]
    }

    private func expected(_ key: String) throws -> [Described] {
        let all = try JSONDecoder().decode(
            [String: [Described]].self, from: Data(CheckpointSample.bytes("expected.json")))
        return try #require(all[key])
    }

    private func read(_ name: String) throws -> PyTorchCheckpoint {
        try PyTorchCheckpoint(MappedFile(contentsOf: CheckpointSample.folder.appending(path: name)))
    }

    private func compare(_ found: StateDictionary, _ expected: [Described], inOrder: Bool = true) throws {
        #expect(
            inOrder
                ? found.names == expected.map(\.name) : found.names.sorted() == expected.map(\.name).sorted())
        for tensor in expected {
            #expect(found.shape(of: tensor.name) == tensor.shape, "\(tensor.name)")
            let values = try found.values(of: tensor.name)
            #expect(values.map(\.bitPattern) == tensor.values.map { Float($0)?.bitPattern }, "\(tensor.name)")
        }
    }

    @Test(
        "Tensors of all types and strides have the values that PyTorch lists, in the order of the file",
        arguments: ["zip", "zip-protocol5", "legacy", "legacy-protocol4"])
    func tensors(name: String) throws {
        let checkpoint = try read("\(name).pth")
        try compare(checkpoint.tensors, expected("tensors"))
        #expect(checkpoint.notes.isEmpty)
    }

    @Test("Tensors of a safetensors file have the values that PyTorch lists")
    func safetensors() throws {
        try compare(read("tensors.safetensors").tensors, expected("tensors"), inOrder: false)
    }

    @Test("The header of a safetensors file comes from the mapped bytes, if another file replaces it at its path")
    func replacedFile() throws {
        let bytes = try CheckpointSample.bytes("tensors.safetensors")
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.safetensors")
            try Data("another file".utf8).write(to: url)
            let mapped = MappedFile(bytes, named: url.path)
            try compare(PyTorchCheckpoint(safetensors: mapped).tensors, expected("tensors"), inOrder: false)
        }
    }

    @Test("A training checkpoint is read without its optimizer, and without the prefix of DataParallel")
    func wrapped() throws {
        let checkpoint = try read("wrapped.pth")
        try compare(checkpoint.tensors, expected("model"))
        #expect(checkpoint.notes.isEmpty)
    }

    @Test("Of a checkpoint with averaged weights, the weights of training are read, with a note")
    func averaged() throws {
        let checkpoint = try read("averaged.pth")
        try compare(checkpoint.tensors, expected("model"))
        #expect(checkpoint.notes == [#"The file has several models. Imprint uses "model", not "model_ema"."#])
    }

    @Test("A whole module is rejected by the name of its class, with the fix")
    func module() throws {
        let error = #expect(throws: ImportError.self) {
            try ModelImporter().read(CheckpointSample.folder.appending(path: "module.pth"))
        }
        let text = "\(error.map { "\($0)" } ?? "")"
        #expect(text.contains("torch.nn.modules.container.Sequential"), "\(text)")
        #expect(text.contains("torch.save(model.state_dict(), path)"), "\(text)")
    }

    @Test("Files of Python 2 have byte strings, and dictionaries from lists of pairs")
    func python2() throws {
        typealias Sample = CheckpointSample
        func string(_ text: String) -> [UInt8] { Sample.join([0x55, UInt8(text.utf8.count)], Array(text.utf8)) }
        let storage = [
            string("storage"), Sample.global("torch", "FloatStorage"), string("0"), string("cpu"), [0x4B, 4],
        ]
        let arguments = [
            Sample.join(Sample.tuple(storage + [[0x4E]]), [0x51]), [0x4B, 1], [0x4B, 3, 0x85], [0x4B, 1, 0x85],
        ]
        let tensor = Sample.join(Sample.global("torch._utils", "_rebuild_tensor"), Sample.tuple(arguments), [0x52])
        let pair = Sample.join([0x5D, 0x28], string("a"), tensor, [0x65])
        let pickle =
            Sample.join(
                [0x80, 2], Sample.global("collections", "OrderedDict"), [0x5D], pair, [0x61, 0x85, 0x52, 0x2E])
        let tensors = try PyTorchCheckpoint(Sample.legacy(pickle)).tensors
        #expect(try tensors.names == ["a"] && tensors.values(of: "a") == [1, 2, 3])
    }

    @Test(
        "The stride of a dimension of length 1 can be any number",
        arguments: [
            ([2, 1], [2, .max], [0, 2]), ([2, 1], [1, .max], [0, 1]), ([1, 2], [.max, 2], [0, 2]),
            ([1, 2], [.max, 1], [0, 1]), ([1, 1], [.max, .max], [0]), ([2, 1, 2], [1, .max, 2], [0, 2, 1, 3]),
        ] as [([Int], [Int], [Int])])
    func unusedStrides(size: [Int], strides: [Int], expected: [Int]) throws {
        typealias Sample = CheckpointSample
        let tensor = Sample.tensor(size: size, strides: strides)
        let floats = try PyTorchCheckpoint(Sample.archive(Sample.pickle(tensor))).tensors
        #expect(try floats.values(of: "a") == expected.map(Float.init))
        let doubles = try PyTorchCheckpoint(
            Sample.archive([
                Sample.Entry(
                    name: "a/data.pkl",
                    content: Sample.pickle(Sample.tensor(size: size, strides: strides, type: "DoubleStorage"))),
                Sample.Entry(name: "a/data/0", content: (0..<4).flatMap { Sample.little(Double($0).bitPattern) }),
            ])
        ).tensors
        #expect(try doubles.values(of: "a") == expected.map(Float.init))
    }

    @Test("The legacy format has views of storages")
    func legacyView() throws {
        typealias Sample = CheckpointSample
        func pickle(view: (Int, Int)) -> [UInt8] {
            let view = Sample.tuple([Sample.text("v"), Sample.integer(view.0), Sample.integer(view.1)])
            let storage = [
                Sample.text("storage"), Sample.global("torch", "FloatStorage"), Sample.text("0"), Sample.text("cpu"),
                Sample.integer(4), view,
            ]
            let arguments = [
                Sample.join(Sample.tuple(storage), [0x51]), Sample.integer(1), [0x4B, 2, 0x85], [0x4B, 1, 0x85],
            ]
            return Sample.pickle(
                Sample.join(Sample.global("torch._utils", "_rebuild_tensor"), Sample.tuple(arguments), [0x52]))
        }
        let tensors = try PyTorchCheckpoint(Sample.legacy(pickle(view: (1, 3)))).tensors
        #expect(try tensors.values(of: "a") == [2, 3])
        for view in [(1, 2), (2, 3), (-1, 3), (5, 0), (Int.max, 1), (1, Int.max)] {
            #expect(throws: ImportError.Problem.self) { try PyTorchCheckpoint(Sample.legacy(pickle(view: view))) }
        }
    }

    @Test("Archives with ZIP64 directories and a comment at the end are read", arguments: [false, true])
    func zip64(isEntry: Bool) throws {
        typealias Sample = CheckpointSample
        let pickle = Sample.pickle(Sample.tensor(size: [4], strides: [1]))
        var bytes = Sample.archive(
            [
                Sample.Entry(name: "a/data.pkl", content: pickle, isZIP64: isEntry),
                Sample.Entry(name: "a/data/0", content: Sample.storage, isZIP64: isEntry),
            ], isZIP64: !isEntry)
        #expect(try PyTorchCheckpoint(bytes).tensors.values(of: "a") == [0, 1, 2, 3])
        bytes[bytes.count - 2] = 5
        #expect(try PyTorchCheckpoint(bytes + Array("hello".utf8)).tensors.values(of: "a") == [0, 1, 2, 3])
    }

    @Test("The checksum is the same as in ZIP files")
    func checksum() {
        // The check value of CRC-32/ISO-HDLC in the catalogue of parametrised CRC algorithms.
        #expect(Array("123456789".utf8).withUnsafeBytes(CRC32.checksum) == 0xCBF4_3926)
        #expect([UInt8]().withUnsafeBytes(CRC32.checksum) == 0)
    }

    @Test("Formats are detected by content, and an Imprint model file is not a checkpoint")
    func detection() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.pth")
            func text(_ bytes: [UInt8], _ change: (inout ModelImporter) -> Void = { _ in }) throws -> String {
                try Data(bytes).write(to: url)
                var importer = ModelImporter()
                change(&importer)
                do {
                    _ = try importer.read(url)
                    return ""
                } catch { return "\(error)" }
            }
            #expect(try text(SeedModels.modelFile()).contains("already an Imprint file"))
            let personalization = Array(
                #"{"__metadata__":{"imprint.personalization":"1"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#
                    .utf8)
            let length = withUnsafeBytes(of: UInt64(personalization.count).littleEndian) { Array($0) }
            #expect(try text(length + personalization + [0, 0, 0, 0]).contains("already an Imprint file"))
            #expect(
                try text(CheckpointSample.archive([.init(name: "a.txt", content: [1])])).contains("not a model file"))
            var safetensors = try CheckpointSample.bytes("tensors.safetensors")
            #expect(try text(Array(safetensors.prefix(20))).contains("was cut off"))
            safetensors[3] = 0x80
            #expect(try text(safetensors).contains("is damaged: its first 8 bytes are not the length of a header"))
            let bytes = try CheckpointSample.bytes("zip.pth")
            let missing = try text(bytes)
            #expect(missing.contains("the file has no architecture"), "\(missing)")
            for architecture in ModelImporter.architectures { #expect(missing.contains(architecture), "\(missing)") }
            #expect(try text(bytes) { $0.architecture = "none" }.contains(#"no architecture that is named "none""#))
            #expect(try text(bytes) { $0.prototxt = url }.contains("a PyTorch checkpoint, which needs no prototxt"))
            #expect(
                try text(SeedModels.onnx()[0]) { $0.architecture = "resnet18" }
                    .contains("an ONNX model, which contains its architecture. Import it without an architecture"))
        }
    }
}
