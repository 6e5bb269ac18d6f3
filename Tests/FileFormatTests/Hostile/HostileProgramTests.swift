import Foundation
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Invalid Core ML programs and packages: each is rejected with the expected error, within limits of time and memory.
@Suite struct HostileProgramTests {
    @Test("An invalid Core ML program is rejected with its error", arguments: values + stored + operations + bombs)
    func refused(_ model: HostileModel) throws { try model.check() }

    @Test("An invalid Core ML package is rejected with its error", arguments: packages)
    func refusedPackages(_ model: HostileModel) throws { try model.check() }

    /// Creates a model with the program that `make` builds, and its weight file.
    private static func program(
        _ name: String, _ kind: HostileModel.Kind, _ message: String,
        prepare: @escaping @Sendable (URL) throws -> Void = { _ in },
        _ make: @escaping @Sendable (inout ProgramSample) -> Void
    ) -> HostileModel {
        HostileModel(name, kind, message) { folder in
            var sample = ProgramSample()
            make(&sample)
            let url = folder.appending(path: "model.mlmodel")
            try Data(sample.bytes).write(to: url)
            try Data(sample.weights).write(to: folder.appending(path: "weights"))
            try prepare(folder)
            return (url, ModelImporter())
        }
    }

    private static func ones(_ count: Int) -> [Float] { Array(repeating: 1, count: count) }

    /// Creates a program with a convolution of this weight.
    private static func weight(
        _ name: String, _ kind: HostileModel.Kind, _ message: String,
        _ argument: @escaping @Sendable () -> ProgramSample.Argument
    ) -> HostileModel {
        program(name, kind, message) { $0.add("conv", ["weight": argument()]) }
    }

    private static let values: [HostileModel] = [
        weight("fewer elements than the shape", .malformed, "2 elements for the shape") {
            .floats([1, 3, 1, 1], ones(2))
        },
        weight("a product of lengths beyond 2^64", .malformed, "the shape [4294967296, 4294967296]") {
            .floats([1 << 32, 1 << 32], [1])
        },
        weight("a negative length", .malformed, "the shape [-1") { .floats([-1, 3, 1, 1], [1]) },
        weight("lengths of 0 and 2^62", .malformed, "the shape [0") { .floats([0, 1 << 62, 1 << 62], []) },
        weight("seventeen axes", .malformed, "more than 16 axes") { .floats(Array(repeating: 1, count: 17), [1]) },
        weight("a string as a weight", .malformed, "has a string as its weight") { .text("weight") },
        weight("a NaN", .malformed, "not finite") { .floats([1, 3, 1, 1], [1, .nan, 1]) },
        weight("no value", .malformed, "neither an immediate value") { .value([]) },
        weight("the element type 99", .malformed, "the element type 99") {
            .value([.message(2, [.message(1, [.integer(1, 99)])]), .message(3, [.message(1, [])])])
        },
        weight("a dictionary", .malformed, "neither a tensor nor a list") { .value([.message(3, [.message(4, [])])]) },
        weight("values of three bytes", .malformed, "the wrong wire type") {
            .value([
                .message(2, [.message(1, [.integer(1, 11)])]),
                .message(3, [.message(1, [.message(1, [.bytes(1, [1, 2, 3])])])]),
            ])
        },
        weight("an undefined name", .malformed, "which no earlier") { .name("undefined") },
        weight("the image as a weight", .unsupported, "depends on the image") { .name("image") },
    ]

    /// Creates a program with a convolution, whose weight is in the weight file.
    private static func blob(
        _ name: String, _ kind: HostileModel.Kind, _ message: String, file: String = "@model_path/weights",
        _ store: @escaping @Sendable (inout ProgramSample) -> Int = { $0.store(Array(repeating: 0, count: 12)) },
        prepare: @escaping @Sendable (URL) throws -> Void = { _ in }
    ) -> HostileModel {
        program(name, kind, message, prepare: prepare) {
            let offset = store(&$0)
            $0.constant("w", .stored(.float32, [1, 3, 1, 1], at: offset, file: file))
            $0.add("conv", ["weight": .name("w")])
        }
    }

    private static func link(_ name: String, to target: String) -> @Sendable (URL) throws -> Void {
        {
            try FileManager.default.createSymbolicLink(
                atPath: $0.appending(path: name).path, withDestinationPath: target)
        }
    }

    private static let stored: [HostileModel] = [
        blob("a record before the first", .malformed, "at byte 0") { _ in 0 },
        blob("a record at a negative offset", .malformed, "at byte -64") { _ in -64 },
        blob("a record beyond the end", .malformed, "at byte 4611686018427387904") { _ in 1 << 62 },
        blob("an invalid record", .malformed, "no record at that offset") {
            $0.store(Array(repeating: 0, count: 64)) + 64
        },
        blob("data beyond the end", .malformed, "more elements than") {
            $0.store(ones(12).map { _ in 0 }, offset: 1 << 40)
        },
        blob("data of 2^63 bytes", .malformed, "more elements than") { $0.store([0, 0, 0, 0], length: .max) },
        blob("data at a negative offset", .malformed, "more elements than") { $0.store([0, 0, 0, 0], offset: -4) },
        blob("fewer elements than the shape", .malformed, "8 bytes for the shape") {
            $0.store(Array(repeating: 0, count: 8))
        },
        blob(
            "a file without a header", .malformed, "not a weight file of version 2",
            prepare: { try Data([1, 2, 3]).write(to: $0.appending(path: "weights")) }),
        blob(
            "an empty file", .malformed, "not a weight file of version 2",
            prepare: { try Data().write(to: $0.appending(path: "weights")) }),
        blob(
            "a file of another version", .malformed, "not a weight file of version 2",
            prepare: { try Data(repeating: 9, count: 400).write(to: $0.appending(path: "weights")) }),
        blob(
            "a file in the folder above", .malformed, "expected a file in the model's folder",
            file: "@model_path/../weights"),
        blob(
            "an absolute path", .malformed, "expected a file in the model's folder", file: "@model_path//etc/hostname"),
        blob(
            "a path without the prefix", .malformed, "expected a path that starts with @model_path/",
            file: "/etc/hostname"
        ),
        blob(
            "a link to a device", .malformed, "expected a file in the model's folder", file: "@model_path/l",
            prepare: link("l", to: "/dev/zero")),
        blob("a link to itself", .unreadable, "cannot be read", file: "@model_path/l", prepare: link("l", to: "l")),
        blob(
            "a path with a zero byte", .malformed, "expected a file in the model's folder",
            file: "@model_path/weights\0"),
        blob("a missing file", .unreadable, "cannot be read", file: "@model_path/missing"),
        blob(
            "a pipe", .unreadable, "expected a regular file", file: "@model_path/pipe",
            prepare: { _ = mkfifo($0.appending(path: "pipe").path, 0o600) }),
    ]

    /// Creates a program with a convolution, whose weight an operation decompresses.
    private static func codes(
        _ name: String, _ message: String, _ type: String,
        _ parameters: @escaping @Sendable () -> KeyValuePairs<String, ProgramSample.Argument>
    ) -> HostileModel {
        program(name, .malformed, message) {
            $0.add(type, parameters(), readsLast: false, to: ["w"])
            $0.add("conv", ["x": .name("image"), "weight": .name("w")], readsLast: false)
        }
    }

    private static func bytes(_ shape: [Int], _ values: [UInt8]) -> ProgramSample.Argument {
        .value([
            .message(
                2,
                [
                    .message(
                        1,
                        [.integer(1, 31), .integer(2, shape.count)]
                            + shape.map { .message(3, [.message(1, [.integer(1, $0)])]) })
                ]),
            .message(3, [.message(1, [.message(7, [.bytes(1, values)])])]),
        ])
    }

    private static let operations: [HostileModel] = [
        codes("a lookup table of three values", "a lookup table of 3 values", "constexpr_lut_to_dense") {
            ["indices": bytes([1], [0xFF]), "lut": .floats([3], ones(3)), "shape": .integers([1, 3, 1, 1])]
        },
        codes("more weights than codes", "codes that do not match", "constexpr_lut_to_dense") {
            [
                "indices": bytes([1], [0xFF]), "lut": .floats([2], ones(2)),
                "shape": .integers([1 << 20, 1 << 20, 1, 1]),
            ]
        },
        codes("a negative number of codes", "codes that do not match", "constexpr_lut_to_dense") {
            ["indices": bytes([1], [0xFF]), "lut": .floats([2], ones(2)), "shape": .integers([-1, -3, 1, 1])]
        },
        codes("codes larger than a byte", "codes that do not match", "constexpr_lut_to_dense") {
            ["indices": .integers([1000]), "lut": .floats([2], ones(2)), "shape": .integers([1, 3, 1, 1])]
        },
        codes("scales along axis 9", "has the axis 9", "constexpr_affine_dequantize") {
            [
                "quantized_data": bytes([1, 3, 1, 1], [1, 2, 3]), "scale": .float(1), "zero_point": .integer(0),
                "axis": .integer(9),
            ]
        },
        codes("two scales for an axis of length 3", "has 2 scales", "constexpr_affine_dequantize") {
            [
                "quantized_data": bytes([1, 3, 1, 1], [1, 2, 3]), "scale": .floats([2], ones(2)),
                "zero_point": .integer(0), "axis": .integer(1),
            ]
        },
        codes("no scales", "has the axis 0", "constexpr_affine_dequantize") {
            [
                "quantized_data": bytes([1, 3, 1, 1], [1, 2, 3]), "scale": .floats([0], []), "zero_point": .integer(0),
                "axis": .integer(0),
            ]
        },
        codes("blocks that do not divide the axis", "has scales [1, 2, 1, 1]", "constexpr_blockwise_shift_scale") {
            ["data": bytes([1, 3, 1, 1], [1, 2, 3]), "scale": .floats([1, 2, 1, 1], ones(2))]
        },
        codes("an empty tensor with an axis of 2^36", "the shape [68719476736, 0]", "constexpr_blockwise_shift_scale") {
            ["data": bytes([1 << 36, 0], []), "scale": .floats([1, 1], ones(1))]
        },
        program("a cast to integers", .unsupported, "to int32, expected fp16 or fp32") {
            $0.add("cast", ["dtype": .text("int32")])
        },
        program("17 axes", .exceedsLimit, "expected at most 16") {
            $0.add("expand_dims", ["axes": .integers(Array(0..<13))])
        },
        codes("no blocks", "has scales [0, 3, 1, 1]", "constexpr_blockwise_shift_scale") {
            ["data": bytes([1, 3, 1, 1], [1, 2, 3]), "scale": .floats([0, 3, 1, 1], [])]
        },
        program("a stride of 0", .unsupported, "expected two values of at least 1") {
            $0.add("conv", ["weight": .floats([1, 3, 1, 1], ones(3)), "strides": .integers([0, 0])])
        },
        program("0 groups", .malformed, "in 0 groups") {
            $0.add("conv", ["weight": .floats([1, 3, 1, 1], ones(3)), "groups": .integer(0)])
        },
        program("a padding of 2^31 - 1", .network, "padding") {
            $0.add(
                "conv",
                [
                    "weight": .floats([1, 3, 1, 1], ones(3)), "pad_type": .text("custom"),
                    "pad": .integers([1 << 31 - 1, 0, 0, 0]),
                ])
        },
        program("a padding of 2^40", .malformed, "not 32-bit integers") {
            $0.add("pad", ["pad": .integers([1 << 40, 0])])
        },
        program("a pooling window larger than the image", .network, "larger than the image") {
            $0.add("max_pool", ["kernel_sizes": .integers([9, 9]), "pad_type": .text("valid")])
        },
        program(
            "a response normalization of a transposed image", .unsupported, "expected batch, channels, height and width"
        ) {
            $0.add("transpose", ["perm": .integers([0, 2, 3, 1])])
            $0.add("local_response_norm", ["size": .integer(3)])
        },
        program("a shape of 2^62", .malformed, "to [2147483647, 2147483647]") {
            $0.add("reshape", ["shape": .integers([1 << 31 - 1, 1 << 31 - 1])])
        },
        program("a mean over one axis nine times", .malformed, "without duplicates") {
            $0.add("reduce_mean", ["axes": .integers(Array(repeating: -1, count: 9)), "keep_dims": .bool(false)])
        },
        program("a split into 2^31 - 1 and a negative part", .malformed, "splits 3 elements into") {
            $0.add(
                "split", ["axis": .integer(1), "split_sizes": .integers([1 << 31 - 1, 4 - 1 << 31])], to: ["a", "b"])
        },
        program("operations in a cycle", .malformed, "which no earlier") {
            $0.add("relu", ["x": .name("b")], readsLast: false, to: ["a"])
            $0.add("relu", ["x": .name("a")], readsLast: false, to: ["b"])
        },
        program("an operation whose output is the image", .malformed, "depends on the image") {
            $0.add("mul", ["x": .name("image"), "y": .float(1)], readsLast: false, to: ["image"])
            $0.add("const", readsLast: false, to: ["c"])
        },
        program("unsupported operations", .unsupported, "while_loop \"while_loop0\"") {
            $0.add("while_loop")
            $0.add("custom_layer")
        },
        program("a negative variance", .malformed, "expected variances") {
            $0.add("batch_norm", ["mean": .floats([3], ones(3)), "variance": .floats([3], [1, -1, 1])])
            $0.add("reduce_mean", ["axes": .integers([2, 3]), "keep_dims": .bool(false)])
        },
        program("a classifier without class names", .malformed, "has no classes") {
            $0.add("classify", ["probabilities": .name("image")], readsLast: false)
        },
    ]

    private static let bombs: [HostileModel] = [
        program("channels that double sixty times", .exceedsLimit, "more than any image model") { sample in
            for index in 0..<60 {
                let name = index == 0 ? "image" : "c\(index)"
                sample.add(
                    "concat", ["values": .names([name, name]), "axis": .integer(1)], readsLast: false,
                    to: ["c\(index + 1)"])
            }
        },
        program("a constant that 1,000 layers read", .exceedsLimit, "many times") { sample in
            sample.constant("w", .floats([3, 3, 128, 128], ones(9 * 128 * 128)))
            (sample.width, sample.height) = (256, 256)
            for index in 0..<1000 {
                sample.add("conv", ["x": .name("image"), "weight": .name("w")], readsLast: false, to: ["c\(index)"])
            }
        },
        program("500 records of the whole file", .exceedsLimit, "many times") { sample in
            (sample.width, sample.height) = (256, 256)
            let offsets = (0..<500).map { sample.store([], length: 3 * 100 * 100 * 4, offset: $0 * 64) }
            sample.blobs += Array(repeating: 0, count: 120_000)
            for (index, offset) in offsets.enumerated() {
                sample.constant("w\(index)", .stored(.float32, [1, 3, 100, 100], at: offset))
                sample.add(
                    "conv", ["x": .name("image"), "weight": .name("w\(index)")], readsLast: false, to: ["c\(index)"])
            }
        },
        program("1,000 lookup tables with the codes of one record", .exceedsLimit, "already read too many times") {
            sample in
            let offset = sample.store(Array(repeating: 0, count: 1 << 14))
            let lookup: KeyValuePairs<String, ProgramSample.Argument> = [
                "indices": .stored(.uint8, [1 << 14], at: offset), "lut": .floats([2], ones(2)),
                "shape": .integers([1 << 17]),
            ]
            for index in 0..<1000 {
                sample.add("constexpr_lut_to_dense", lookup, readsLast: false, to: ["w\(index)"])
            }
        },
        program("a large constant that 2,000 operations read", .exceedsLimit, "already read too many times") { sample in
            sample.constant("many", .floats([1 << 18], ones(1 << 18)))
            for index in 0..<2000 { sample.add("leaky_relu", ["alpha": .name("many")], to: ["r\(index)"]) }
        },
        program("a slice of 12 million elements", .exceedsLimit, "more than 1048576 indices") { sample in
            (sample.width, sample.height) = (1 << 11, 1 << 11)
            sample.add("flatten2d", ["axis": .integer(1)])
            sample.add("slice_by_index", ["begin": .integers([0, 0]), "end": .integers([1, 3 << 22 - 1])])
        },
        program("20,000 products of the image", .malformed, "which no earlier") { sample in
            for index in 0..<20_000 {
                sample.add("mul", ["x": .name("image"), "y": .float(2)], readsLast: false, to: ["m\(index)"])
            }
            sample.add("relu", ["x": .name("undefined")], readsLast: false)
        },
    ]

    /// Creates a package with this manifest.
    private static func package(
        _ name: String, _ kind: HostileModel.Kind, _ message: String, _ manifest: @escaping @Sendable () -> String,
        prepare: @escaping @Sendable (URL) throws -> Void = { _ in }
    ) -> HostileModel {
        HostileModel(name, kind, message) { folder in
            let url = folder.appending(path: "model.mlpackage")
            try FileManager.default.createDirectory(at: url.appending(path: "Data"), withIntermediateDirectories: true)
            try Data(manifest().utf8).write(to: url.appending(path: "Manifest.json"))
            try prepare(url)
            return (url, ModelImporter())
        }
    }

    private static func root(_ path: String) -> String {
        #"{"itemInfoEntries":{"m":{"path":"\#(path)"}},"rootModelIdentifier":"m"}"#
    }

    private static let packages: [HostileModel] = [
        package("an empty manifest", .malformed, "does not name the model") { "" },
        package("100,000 nested lists", .malformed, "does not name the model") {
            String(repeating: "[", count: 100_000)
        },
        package("a manifest without items", .malformed, "does not name the model") {
            #"{"itemInfoEntries":{},"rootModelIdentifier":"m"}"#
        },
        package("a manifest of 2 MB", .malformed, "does not name the model") {
            root("a") + String(repeating: " ", count: 2 << 20)
        },
        package(
            "a model in the folder above", .malformed, "expected a file in the model's folder",
            { root("../Manifest.json") }),
        package(
            "a model with an absolute path", .malformed, "expected a file in the model's folder",
            { root("/etc/hostname") }),
        package("a model without a path", .malformed, "expected a file in the model's folder", { root("") }),
        package("a missing model", .unreadable, "cannot be read", { root("missing") }),
        package(
            "a model that is a link to a device", .malformed, "expected a file in the model's folder", { root("l") }
        ) {
            try link("l", to: "/dev/zero")($0.appending(path: "Data"))
        },
        package("a model that is a folder", .unreadable, "expected a regular file", { root("f") }) {
            try FileManager.default.createDirectory(at: $0.appending(path: "Data/f"), withIntermediateDirectories: true)
        },
    ]
}
