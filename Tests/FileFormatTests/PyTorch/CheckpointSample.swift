import Foundation
import ImprintImages
import ImprintModel
import TestSupport
import Testing

@testable import ImprintInterop

/// Pickles and archives for tests of PyTorch checkpoints.
enum CheckpointSample {
    /// The folder of the files that Fixtures/make_checkpoints.py writes.
    static let folder = packageFolder.appending(path: "Tests/FileFormatTests/Fixtures/Checkpoints")

    static func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: folder.appending(path: name)))
    }

    static func join(_ parts: [UInt8]...) -> [UInt8] { parts.flatMap { $0 } }

    static func little<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian, Array.init)
    }

    // MARK: Pickles

    static func text(_ text: String) -> [UInt8] { join([0x58], little(UInt32(text.utf8.count)), Array(text.utf8)) }

    static func global(_ module: String, _ name: String) -> [UInt8] { Array("c\(module)\n\(name)\n".utf8) }

    static func integer(_ value: Int) -> [UInt8] {
        [0x8A, 8] + little(Int64(value))
    }

    static func tuple(_ parts: [[UInt8]]) -> [UInt8] { join([0x28], parts.flatMap { $0 }, [0x74]) }

    /// The opcodes of a tensor in the storage "0".
    static func tensor(
        size: [Int], strides: [Int], offset: Int = 0, storageCount: Int = 4, type: String = "FloatStorage",
        key: String = "0"
    ) -> [UInt8] {
        let storage = [text("storage"), global("torch", type), text(key), text("cpu"), integer(storageCount)]
        let arguments = [
            tuple(storage) + [0x51], integer(offset), tuple(size.map(integer)), tuple(strides.map(integer)), [0x89],
            global("collections", "OrderedDict") + [0x29, 0x52],
        ]
        return join(global("torch._utils", "_rebuild_tensor_v2"), tuple(arguments), [0x52])
    }

    /// A pickle of a dictionary with the key "a".
    static func pickle(_ value: [UInt8]) -> [UInt8] { join([0x80, 2, 0x7D], text("a"), value, [0x73, 0x2E]) }

    /// The storage "0": the numbers 0 to 3.
    static let storage: [UInt8] = (0..<4).flatMap { little(Float($0).bitPattern) }

    /// A checkpoint in the format of PyTorch before 1.6.
    static func legacy(_ pickle: [UInt8], keys: [String] = ["0"], count: Int = 4) -> [UInt8] {
        let magic: [UInt8] = [0x80, 2, 0x8A, 0x0A, 0x6C, 0xFC, 0x9C, 0x46, 0xF9, 0x20, 0x6A, 0xA8, 0x50, 0x19, 0x2E]
        let system = join([0x80, 2, 0x7D], text("little_endian"), [0x88, 0x73, 0x2E])
        let list = join([0x80, 2, 0x5D, 0x28], keys.flatMap(text), [0x65, 0x2E])
        return join(
            magic, [0x80, 2, 0x4D, 0xE9, 3, 0x2E], system, pickle, list,
            keys.flatMap { _ in little(Int64(count)) + storage })
    }

    // MARK: Archives

    /// An entry of a ZIP file.
    struct Entry {
        var name: String
        var content: [UInt8]
        var method: UInt16 = 0
        /// The checksum; nil for the right one.
        var checksum: UInt32?
        /// The size in the directory; nil for the right one.
        var size: UInt32?
        /// The offset of the header in the directory; nil for the right one.
        var offset: UInt32?
        /// Whether the directory has the size in a ZIP64 field.
        var isZIP64 = false
    }

    /// A checkpoint of one contiguous tensor of zeros.
    /// - Parameter byteCount: The size of an element in bytes.
    static func contiguous(_ count: Int, type: String, byteCount: Int) -> [UInt8] {
        archive(
            pickle(tensor(size: [count], strides: [1], storageCount: count, type: type)),
            storage: [UInt8](repeating: 0, count: count * byteCount))
    }

    /// A pickle of the tensors of torchvision's SqueezeNet 1.1 with 10 labels.
    ///
    /// Each tensor repeats an element of the storage "0".
    /// The files are small, so that mutations change the names and shapes of tensors.
    static func squeezeNet() throws -> [UInt8] {
        let example = try #require(
            PyTorchArchitectureTests.fixture.cases.first {
                $0.architecture == "squeezenet-1.1" && $0.flavour == "torchvision"
            })
        let tensors = example.tensors().enumerated().map { index, tensor in
            let strides = [Int](repeating: 0, count: tensor.shape.count)
            return join(text(tensor.name), Self.tensor(size: tensor.shape, strides: strides, offset: index % 4), [0x73])
        }
        return join([0x80, 2, 0x7D], tensors.flatMap { $0 }, [0x2E])
    }

    /// A checkpoint with a pickle and the storage "0" of four numbers.
    static func archive(_ pickle: [UInt8]) -> [UInt8] { archive(pickle, storage: storage) }

    /// A checkpoint with a pickle and the storage "0".
    static func archive(_ pickle: [UInt8], storage: [UInt8]) -> [UInt8] {
        archive([Entry(name: "a/data.pkl", content: pickle), Entry(name: "a/data/0", content: storage)])
    }

    static func archive(_ entries: [Entry], isZIP64: Bool = false) -> [UInt8] {
        var file: [UInt8] = []
        var directory: [UInt8] = []
        for entry in entries {
            let offset = entry.offset ?? UInt32(file.count)
            let (size, name) = (entry.size ?? UInt32(entry.content.count), Array(entry.name.utf8))
            let checksum = entry.checksum ?? entry.content.withUnsafeBytes(CRC32.checksum)
            file +=
                join(little(UInt32(0x0403_4B50)), [0, 0, 0, 0], little(entry.method), [0, 0, 0, 0], little(checksum))
            file += join(little(size), little(size), little(UInt16(name.count)), [0, 0], name, entry.content)
            let extra = entry.isZIP64 ? join([1, 0, 16, 0], little(UInt64(size)), little(UInt64(size))) : []
            let shown = entry.isZIP64 ? UInt32.max : size
            directory += join(little(UInt32(0x0201_4B50)), [0, 0, 0, 0, 0, 0], little(entry.method), [0, 0, 0, 0])
            directory += join(little(checksum), little(shown), little(shown), little(UInt16(name.count)))
            directory += join(
                little(UInt16(extra.count)), [UInt8](repeating: 0, count: 10), little(offset), name, extra)
        }
        let (start, count) = (UInt32(file.count), UInt16(entries.count))
        file += directory
        if isZIP64 {
            let record = UInt64(file.count)
            file += join(little(UInt32(0x0606_4B50)), little(UInt64(44)), [UInt8](repeating: 0, count: 12))
            file +=
                join(
                    little(UInt64(count)), little(UInt64(count)), little(UInt64(directory.count)), little(UInt64(start))
                )
            file += join(little(UInt32(0x0706_4B50)), [0, 0, 0, 0], little(record), [1, 0, 0, 0])
        }
        file += join(little(UInt32(0x0605_4B50)), [0, 0, 0, 0], little(count), little(count))
        return join(file, little(UInt32(directory.count)), little(isZIP64 ? UInt32.max : start), [0, 0])
    }
}

extension PyTorchCheckpoint {
    /// Reads a checkpoint from a file.
    init(_ file: MappedFile) throws {
        switch try ModelFormat(of: file) {
        case .pyTorch: try self.init(archive: file)
        case .legacyPyTorch: try self.init(legacy: file)
        case .safetensors: try self.init(safetensors: file)
        default: throw ImportError.Problem.unknownFormat
        }
    }

    /// Reads a checkpoint in memory.
    init(_ bytes: [UInt8]) throws { try self.init(MappedFile(bytes, named: "model.pth")) }

    /// Reads the values of all tensors, one after another.
    func readAll() throws {
        for name in tensors.names {
            let values = try tensors.values(of: name)
            #expect(values.count == tensors.shape(of: name)?.reduce(1, *))
        }
    }
}
