import Foundation
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Invalid PyTorch checkpoints: each is rejected with the expected error, within limits of time and memory.
@Suite struct HostileCheckpointTests {
    private typealias Sample = CheckpointSample

    /// The memory that reading may use beyond twice the file; a pickle of many small values uses the most.
    private static let allowance = 48 << 20

    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let kind: HostileModel.Kind
        let message: String
        let bytes: @Sendable () -> [UInt8]

        init(_ name: String, _ kind: HostileModel.Kind, _ message: String, _ bytes: @escaping @Sendable () -> [UInt8]) {
            (testDescription, self.kind, self.message, self.bytes) = (name, kind, message, bytes)
        }
    }

    @Test("Files are rejected", arguments: pickles + bombs + tensors + archives + legacy)
    func rejected(_ example: Case) throws {
        let bytes = example.bytes()
        let file = MappedFile(bytes, named: "model.pth")
        let trial = ImportTrial { try PyTorchCheckpoint(file).readAll() }
        let problem = try #require(trial.error as? ImportError.Problem, "\(String(describing: trial.error))")
        let kind: HostileModel.Kind? =
            switch problem {
            case .unknownFormat: .unknownFormat
            case .malformed: .malformed
            case .exceedsLimit: .exceedsLimit
            case .unsuitableModel: .unsuitableModel
            default: nil
            }
        #expect(kind == example.kind, "\(problem)")
        let text = "\(ImportError(path: "model.pth", problem: problem))"
        #expect(text.contains(example.message), "\(text)")
        if let peak = trial.peak { #expect(peak <= 2 * bytes.count + Self.allowance, "\(peak) of \(bytes.count)") }
        #expect(trial.seconds < (trial.peak == nil ? 20 : 4), "\(trial.seconds) s")
    }

    /// A case of a pickle in an archive; `value` is in a dictionary.
    private static func pickle(
        _ name: String, _ kind: HostileModel.Kind, _ message: String, _ value: @escaping @Sendable () -> [UInt8]
    ) -> Case {
        Case(name, kind, message) { Sample.archive(Sample.pickle(value())) }
    }

    private static let pickles: [Case] = [
        pickle("os.system", .unsuitableModel, "a pickle that uses os.system, which Imprint does not run") {
            Sample.join(Sample.global("os", "system"), Sample.tuple([Sample.text("touch /tmp/hacked")]), [0x52])
        },
        pickle("builtins.eval by STACK_GLOBAL", .unsuitableModel, "builtins.eval") {
            Sample.join(Sample.text("builtins"), Sample.text("eval"), [0x93])
        },
        pickle("_load_from_bytes", .unsuitableModel, "torch.save(model.state_dict(), path)") {
            Sample.global("torch.storage", "_load_from_bytes")
        },
        pickle("an opcode that does not exist", .unsuitableModel, "the opcode 0xFE at offset") { [0xFE] },
        pickle("an opcode of protocol 0", .unsuitableModel, "the opcode 0x69 (INST)") { Array("ios\nsystem\n".utf8) },
        pickle("an extension", .unsuitableModel, "the opcode 0x82 (EXT1)") { [0x82, 1] },
        pickle("a protocol of the future", .unsuitableModel, "protocol 6") { [0x80, 6] },
        pickle("a memo entry that does not exist", .malformed, "the value 200") { [0x68, 200] },
        pickle("a mark that does not exist", .malformed, "no opcode before it pushes") { [0x74] },
        pickle("a value below the mark", .malformed, "no opcode before it pushes") { [0x4E, 0x28, 0x52] },
        pickle("a text beyond the end", .malformed, "inside a value") { [0x58, 0xFF, 0xFF, 0xFF, 0xFF] },
        pickle("a text of 2^64 - 1 bytes", .malformed, "its pickle has a value of") {
            [0x8D] + [UInt8](repeating: 0xFF, count: 8)
        },
        pickle("a text of a negative length", .malformed, "inside a value") { [0x54, 0xFF, 0xFF, 0xFF, 0xFF] },
        pickle("a function name that never ends", .malformed, "a name of more than 1024 bytes") {
            [0x63] + [UInt8](repeating: 0x61, count: 100_000)
        },
        pickle("a call of a text", .malformed, "unexpected arguments") { Sample.text("exit") + [0x29, 0x52] },
        pickle("a call without a tuple", .malformed, "without arguments") {
            Sample.global("collections", "OrderedDict") + [0x4E, 0x52]
        },
        pickle("elements for an integer", .malformed, "adds elements") { [0x4B, 1, 0x4B, 1, 0x61] },
        pickle("the state of an integer", .malformed, "sets the state") { [0x4B, 1, 0x7D, 0x62] },
        pickle("a storage without a name", .malformed, "a storage without a type") {
            Sample.tuple([Sample.text("storage")]) + [0x51]
        },
        pickle("a tensor without a storage", .malformed, "a tensor without a storage") {
            Sample.global("torch._utils", "_rebuild_tensor_v2") + [0x4B, 1, 0x4B, 1, 0x4B, 1, 0x87, 0x52]
        },
        pickle("a dictionary that contains itself", .unsuitableModel, "without a dictionary of tensors") {
            [0x7D, 0x71, 0, 0x58, 1, 0, 0, 0, 0x61, 0x68, 0, 0x73]
        },
        Case("no dictionary", .unsuitableModel, "without a dictionary") { Sample.archive([0x80, 2, 0x4E, 0x2E]) },
        Case("an empty pickle", .malformed, "ends at offset") { Sample.archive([]) },
    ]

    private static let bombs: [Case] = [
        pickle("a million tuples inside each other", .exceedsLimit, "too many values") {
            [0x29] + [UInt8](repeating: 0x85, count: 1_000_000)
        },
        // Below the limit of values: the tuples are freed.
        pickle("200,000 tuples inside each other", .unsuitableModel, "without a dictionary of tensors") {
            [0x29] + [UInt8](repeating: 0x85, count: 200_000)
        },
        pickle("a million lists inside each other", .exceedsLimit, "nests values more than") {
            ([0x5D, 0x28] as [UInt8]).repeated(1_000_000)
        },
        pickle("a million MARK opcodes", .exceedsLimit, "nests values more than") {
            [UInt8](repeating: 0x28, count: 1_000_000)
        },
        pickle("a million values on the stack", .exceedsLimit, "a stack of more than") {
            [UInt8](repeating: 0x4E, count: 1_000_000)
        },
        pickle("a memo index of 2^32 - 1", .exceedsLimit, "too many values") { [0x4E, 0x72, 0xFF, 0xFF, 0xFF, 0xFF] },
        pickle("a memo index of 1,000,000", .unsuitableModel, "without a dictionary of tensors") {
            [0x4E, 0x72, 0x40, 0x42, 0x0F, 0]
        },
        pickle("tuples that double 60 times", .unsuitableModel, "without a dictionary of tensors") {
            Sample.join([0x29], (0..<60).flatMap { [0x71, UInt8($0), 0x68, UInt8($0), 0x86] as [UInt8] })
        },
        pickle("a dictionary of pairs that is copied 1,000 times", .exceedsLimit, "too many values") {
            let pair: [UInt8] = [0x5D, 0x4E, 0x61, 0x4E, 0x61, 0x71, 1, 0x30]
            let list = Sample.join([0x5D, 0x71, 0, 0x28], ([0x68, 1] as [UInt8]).repeated(10_000), [0x65, 0x30])
            return Sample.join(
                pair, list, Sample.global("collections", "OrderedDict"), [0x71, 2],
                ([0x68, 2, 0x68, 0, 0x85, 0x52, 0x30] as [UInt8]).repeated(1000))
        },
        Case("a long name that 100,000 tensors have", .exceedsLimit, "a name of 1000000 bytes") {
            let tensor = Sample.join(Sample.tensor(size: [4], strides: [1]), [0x71, 1, 0x30])
            let name = Sample.join(Sample.text(String(repeating: "a", count: 1_000_000)), [0x71, 0, 0x30])
            return Sample.archive(
                Sample.join(
                    [0x80, 2], tensor, name, [0x7D], ([0x68, 0, 0x68, 1, 0x73] as [UInt8]).repeated(100_000), [0x2E]))
        },
        Case("100,000 tensors", .exceedsLimit, "16385 tensors, expected at most 16384") {
            let tensor = Sample.join(Sample.tensor(size: [4], strides: [1]), [0x71, 1, 0x30])
            let entries: [UInt8] = (0..<100_000).flatMap { Sample.join(Sample.text("\($0)"), [0x68, 1, 0x73]) }
            return Sample.archive(Sample.join([0x80, 2], tensor, [0x7D], entries, [0x2E]))
        },
        pickle("a stack of 200,000 values below 1,000,000 small lists", .exceedsLimit, "too many values") {
            Sample.join(
                [UInt8](repeating: 0x4E, count: 200_000),
                ([0x5D, 0x28, 0x4E, 0x65, 0x30] as [UInt8]).repeated(1_000_000))
        },
    ]

    private static func tensor(
        _ name: String, _ kind: HostileModel.Kind, _ message: String, size: [Int], strides: [Int], offset: Int = 0,
        storageCount: Int = 4, type: String = "FloatStorage", key: String = "0"
    ) -> Case {
        pickle(name, kind, message) {
            Sample.tensor(
                size: size, strides: strides, offset: offset, storageCount: storageCount, type: type, key: key)
        }
    }

    private static let tensors: [Case] = [
        tensor("too many elements", .malformed, "not within its storage of 4 elements", size: [5], strides: [1]),
        tensor("a stride beyond the storage", .malformed, "not within its storage", size: [2, 2], strides: [3, 1]),
        tensor("an offset beyond the storage", .malformed, "not within", size: [1], strides: [1], offset: 4),
        tensor("a stride of 2^62", .malformed, "not within", size: [3, 3], strides: [1 << 62, 1 << 62]),
        tensor("an offset of 2^63 - 1", .malformed, "not within", size: [2], strides: [1], offset: .max),
        tensor("a negative offset", .malformed, "offset -1", size: [1], strides: [1], offset: -1),
        tensor("a negative size", .malformed, "not within", size: [-1], strides: [1]),
        tensor("two negative sizes", .malformed, "not within", size: [-2, -2], strides: [1, 1]),
        tensor("a negative stride", .malformed, "not within", size: [2], strides: [-1], offset: 1),
        tensor(
            "2^62 repeated elements", .exceedsLimit, #"the largest "a" of the shape [2147483648, 2147483648]"#,
            size: [1 << 31, 1 << 31], strides: [0, 0]),
        tensor("2^80 repeated elements", .malformed, "not within", size: [1 << 40, 1 << 40], strides: [0, 0]),
        tensor(
            "2 million repeated elements", .exceedsLimit, "its tensors take 8 MB as float32", size: [2_000_000],
            strides: [0]),
        Case("1,000 tensors that view one storage", .exceedsLimit, "its tensors take 40 MB as float32") {
            let tensor = Sample.join(
                Sample.tensor(size: [10_000], strides: [1], storageCount: 10_000), [0x71, 1, 0x30])
            let entries: [UInt8] = (0..<1000).flatMap { Sample.join(Sample.text("\($0)"), [0x68, 1, 0x73]) }
            return Sample.archive(
                Sample.join([0x80, 2], tensor, [0x7D], entries, [0x2E]),
                storage: [UInt8](repeating: 0, count: 40_000))
        },
        Case("3 million 8-bit integers", .exceedsLimit, "its tensors take 12 MB as float32") {
            Sample.contiguous(3_000_000, type: "CharStorage", byteCount: 1)
        },
        Case("3 million booleans", .exceedsLimit, "expected at most 11 MB for a file of 4 MB") {
            Sample.contiguous(3_000_000, type: "BoolStorage", byteCount: 1)
        },
        tensor("more strides than dimensions", .malformed, "not within", size: [2], strides: [1, 1]),
        tensor(
            "nine dimensions", .exceedsLimit, "9 dimensions, expected at most 8",
            size: Array(repeating: 1, count: 9), strides: Array(repeating: 1, count: 9)),
        tensor(
            "100,000 dimensions", .exceedsLimit, "9 dimensions", size: Array(repeating: 1, count: 100_000),
            strides: Array(repeating: 1, count: 100_000)),
        tensor("a storage with too few bytes", .malformed, "16 bytes", size: [5], strides: [1], storageCount: 5),
        tensor(
            "a storage of 2^62 elements", .malformed, "too few", size: [5], strides: [1], storageCount: 1 << 62),
        tensor("a negative storage", .malformed, "a storage without", size: [1], strides: [1], storageCount: -4),
        tensor("a wider type", .malformed, "too few", size: [4], strides: [1], type: "DoubleStorage"),
        tensor(
            "complex numbers", .unsuitableModel, "torch.ComplexFloatStorage", size: [1], strides: [1],
            type: "ComplexFloatStorage"),
        tensor("a storage that is missing", .malformed, #"no entry "a/data/7""#, size: [1], strides: [1], key: "7"),
        tensor("a storage outside of its folder", .malformed, "no entry", size: [1], strides: [1], key: "../data.pkl"),
    ]

    /// A case of an archive with a valid pickle, whose entry of the storage is changed.
    private static func archive(
        _ name: String, _ kind: HostileModel.Kind, _ message: String,
        _ change: @escaping @Sendable (inout [CheckpointSample.Entry]) -> Void
    ) -> Case {
        Case(name, kind, message) {
            var entries = [
                Sample.Entry(name: "a/data.pkl", content: Sample.pickle(Sample.tensor(size: [4], strides: [1]))),
                Sample.Entry(name: "a/data/0", content: Sample.storage),
            ]
            change(&entries)
            return Sample.archive(entries)
        }
    }

    private static let archives: [Case] = [
        archive("a wrong checksum", .malformed, #"the checksum of the entry "a/data/0""#) { $0[1].checksum = 1 },
        archive("a wrong checksum of the pickle", .malformed, #"the checksum of the entry "a/data.pkl""#) {
            $0[0].checksum = 1
        },
        archive("a deflated entry", .unsuitableModel, #"the compressed entry "a/data/0""#) { $0[1].method = 8 },
        archive("a deflated pickle", .unsuitableModel, "Save the checkpoint again") { $0[0].method = 8 },
        archive("a size beyond the file", .malformed, "beyond the end") { $0[1].size = 1_000_000 },
        archive("a size of 2^32 - 2", .malformed, "beyond the end") { $0[1].size = .max - 1 },
        archive("a size that is too large by one", .malformed, "beyond the end") { $0[1].size = 17 },
        archive("a size that is too small", .malformed, "8 bytes") {
            $0[1].size = 8
            $0[1].checksum = Array(Sample.storage.prefix(8)).withUnsafeBytes(CRC32.checksum)
        },
        archive("entries that overlap", .malformed, "overlap") { $0[0].size = UInt32($0[0].content.count + 10) },
        archive("an offset beyond the file", .malformed, "without a header") { $0[1].offset = 1_000_000 },
        archive("the offset of another entry", .malformed, "another name") { $0[1].offset = 0 },
        archive("two entries of the same name", .malformed, "twice") { $0.append($0[1]) },
        archive("a ZIP64 size without a field", .malformed, "ZIP64") { $0[1].size = .max },
        archive("numbers of another byte order", .unsuitableModel, "big-endian") {
            $0.append(Sample.Entry(name: "a/byteorder", content: Array("big".utf8)))
        },
        archive("TorchScript", .unsuitableModel, "a TorchScript program") {
            $0.append(Sample.Entry(name: "a/constants.pkl", content: [0x80, 2, 0x29, 0x2E]))
        },
        archive("no pickle", .unknownFormat, "not a model file") { $0.removeFirst() },
        Case("a directory of 65534 entries that do not exist", .malformed, "a directory beyond the end") {
            var bytes = Sample.archive([CheckpointSample.Entry]())
            bytes.replaceSubrange(0..<0, with: CheckpointSample.little(UInt32(0x0403_4B50)))
            bytes[14] = 0xFE
            bytes[15] = 0xFF
            return bytes
        },
        Case("only the first bytes of an archive", .malformed, "no directory at its end") {
            Sample.join([0x50, 0x4B, 3, 4], [UInt8](repeating: 0, count: 200_000))
        },
    ]

    private static let legacy: [Case] = [
        Case("another version", .malformed, "version 1001") {
            var bytes = Sample.legacy([])
            bytes[18] = 1
            return bytes
        },
        Case("numbers of another byte order (legacy)", .unsuitableModel, "big-endian") {
            var bytes = Sample.legacy(Sample.pickle(Sample.tensor(size: [4], strides: [1])))
            bytes[bytes.firstIndex(of: 0x88) ?? 0] = 0x89
            return bytes
        },
        Case("another element count", .malformed, "has 5 elements, expected 4") {
            Sample.legacy(Sample.pickle(Sample.tensor(size: [4], strides: [1])), count: 5)
        },
        Case("a negative element count", .malformed, "18446744073709551615 elements, expected 4") {
            Sample.legacy(Sample.pickle(Sample.tensor(size: [4], strides: [1])), count: -1)
        },
        Case("a storage of 2^61 elements", .malformed, "ends inside the storage") {
            Sample.legacy(
                Sample.pickle(Sample.tensor(size: [4], strides: [1], storageCount: 1 << 61)), count: 1 << 61)
        },
        Case("a storage that no tensor uses", .malformed, "one that no tensor uses") {
            Sample.legacy(Sample.pickle(Sample.tensor(size: [4], strides: [1])), keys: ["0", "1"])
        },
        Case("a storage that the list does not have", .malformed, "missing in its list") {
            Sample.legacy(Sample.pickle(Sample.tensor(size: [4], strides: [1])), keys: [])
        },
        Case("a storage that the list has twice", .malformed, "twice") {
            Sample.legacy(Sample.pickle(Sample.tensor(size: [4], strides: [1])), keys: ["0", "0"])
        },
        Case("a storage of two types", .malformed, "two sizes") {
            let tensors =
                Sample.join(
                    Sample.tensor(size: [4], strides: [1]),
                    Sample.tensor(size: [2], strides: [1], storageCount: 2, type: "DoubleStorage"), [0x86])
            return Sample.legacy(Sample.pickle(tensors))
        },
    ]

    @Test(
        "Tensors that take at most twice the file and 4 MiB as float32 are read",
        arguments: [
            (3_000_000, "HalfStorage", 2), (3_000_000, "FloatStorage", 4), (2_000_000, "CharStorage", 1),
            (2_000_000, "ByteStorage", 1),
        ])
    func withinLimit(count: Int, type: String, byteCount: Int) throws {
        let checkpoint = try PyTorchCheckpoint(Sample.contiguous(count, type: type, byteCount: byteCount))
        #expect(try checkpoint.tensors.values(of: "a").count == count)
    }

    @Test("Truncated files of every length are rejected", arguments: ["zip.pth", "legacy.pth"])
    func truncated(name: String) throws {
        let bytes = try Sample.bytes(name)
        try PyTorchCheckpoint(bytes).readAll()
        for count in 0..<bytes.count {
            #expect(throws: ImportError.Problem.self, "\(count) bytes") {
                try PyTorchCheckpoint(Array(bytes[..<count])).readAll()
            }
        }
    }
}

extension Array {
    fileprivate func repeated(_ count: Int) -> [Element] {
        var result: [Element] = []
        result.reserveCapacity(count * self.count)
        for _ in 0..<count { result += self }
        return result
    }
}
