import Foundation
import TestSupport

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

extension HostileONNXTests {
    /// Small files that describe huge tensors or a huge number of operations.
    static let bombs: [HostileModel] = [
        graph("a filled constant of 2^40 elements", .unsupported, "ConstantOfShape") {
            $0.initializers = [.integers("shape", [1], [1 << 40])]
            $0.node("ConstantOfShape", ["shape"])
        },
        graph("2,000 filled constants of 65,536 elements", .exceedsLimit, "many times larger") { sample in
            sample.initializers = [.integers("shape", [1], [1 << 16])]
            for _ in 0..<2000 { sample.node("ConstantOfShape", ["shape"]) }
        },
        graph("a constant that doubles sixty times", .unsupported, "Concat") { sample in
            sample.initializers = [.integers("c", [1], [1])]
            for index in 0..<60 {
                let name = index == 0 ? "c" : "c\(index)"
                sample.node("Concat", [name, name], [.integer("axis", 0)], to: "c\(index + 1)")
            }
        },
        graph("channels that double sixty times", .exceedsLimit, "more than any image model") { sample in
            for index in 0..<60 {
                let name = index == 0 ? "image" : "c\(index)"
                sample.node("Concat", [name, name], [.integer("axis", 1)], to: "c\(index + 1)")
            }
        },
        graph("a gather of 2^16 from 2^15 elements", .unsupported, "Gather") {
            $0.initializers = [
                .bytes("data", type: 2, [1, 1 << 15], Array(repeating: 0, count: 1 << 15)),
                .bytes("indices", type: 2, [1 << 16], Array(repeating: 0, count: 1 << 16)),
            ]
            $0.node("Gather", ["data", "indices"], [.integer("axis", 0)])
        },
        graph("a broadcast sum of a row and a column", .unsupported, "Add") {
            $0.initializers = [
                .bytes("row", type: 2, [1, 1 << 15], Array(repeating: 0, count: 1 << 15)),
                .bytes("column", type: 2, [1 << 15, 1], Array(repeating: 0, count: 1 << 15)),
            ]
            $0.node("Add", ["row", "column"])
        },
        graph("100,000 weights scaled 2,000 times", .exceedsLimit, "already read too many times") { sample in
            sample.initializers = [.floats("w0", [100_000], Array(repeating: 1, count: 100_000))]
            for index in 0..<2000 { sample.node("Mul", ["w\(index)", "w0"], to: "w\(index + 1)") }
        },
        graph("100,000 weights scaled 100 times, all results kept", .exceedsLimit, "many times larger") {
            $0.initializers = [
                .floats("w", [100_000], Array(repeating: 1, count: 100_000)), .floats("two", [], [2]),
            ]
            for index in 0..<100 { $0.node("Mul", ["w", "two"], to: "w\(index)") }
            $0.node("Sum", (0..<100).map { "w\($0)" })
        },
        graph("a Constant of 100,000 elements that 2,000 nodes read", .exceedsLimit, "already read too many times") {
            sample in
            let many = ONNXSample.Tensor.floats("", [100_000], Array(repeating: 1, count: 100_000))
            sample.node("Constant", [], [.tensor("value", many)], to: "many")
            for index in 0..<2000 {
                sample.node("Clip", [index == 0 ? "image" : "c\(index - 1)", "many"], to: "c\(index)")
            }
        },
        graph("a transposed empty tensor with axes of 2^31", .malformed, "has the shape") {
            $0.initializers = [.floats("c", [0, 1 << 31, 1 << 31, 1 << 31], [])]
            $0.node("Transpose", ["c"])
        },
        graph("20,000 nodes with the same name", .malformed, "which no earlier") { sample in
            for index in 0..<20_000 {
                sample.node("Relu", [index == 0 ? "image" : "r\(index - 1)"], to: "r\(index)", named: "relu")
            }
            sample.node("Relu", ["undefined"])
        },
        graph("the same weights in 2,000 layers", .exceedsLimit, "many times") { sample in
            sample.initializers = [.floats("w", [64, 3, 16, 16], Array(repeating: 1, count: 64 * 768))]
            sample.image = [1, 3, 64, 64]
            for index in 0..<2000 { sample.node("Conv", ["image", "w"], to: "c\(index)") }
        },
        graph("2,000 factors of 100,000 channels", .exceedsLimit, "many times") { sample in
            sample.image = [1, 1, 400, 250]
            sample.initializers = [.floats("two", [], [2])]
            sample.node("Flatten", ["image"], [], to: "m0")
            sample.node("Softmax", ["m0"], [.integer("axis", 1)], to: "m1")
            for index in 1..<2000 { sample.node("Mul", ["m\(index)", "two"], to: "m\(index + 1)") }
        },
        graph("a constant of a million elements that 2,000 nodes read", .exceedsLimit, "already read too many times") {
            sample in
            sample.initializers = [.floats("many", [1 << 20], Array(repeating: 1, count: 1 << 20))]
            for index in 0..<2000 {
                sample.node("Clip", [index == 0 ? "image" : "c\(index - 1)", "many"], to: "c\(index)")
            }
        },
        graph("a permuted image of 2^28 elements", .exceedsLimit, "more than") {
            $0.image = [1, 3, 1 << 13, 1 << 13]
            $0.node("Flatten")
            $0.node("Softmax", ["Flatten0"], [.integer("axis", 1)])
        },
        graph("4 million labels", .exceedsLimit, "expected one for each label") {
            $0.image = [1, 1, 1 << 10, 1 << 8]
            $0.node("Flatten")
            $0.node("Softmax", ["Flatten0"], [.integer("axis", 1)])
        },
        graph("a row broadcast to a large image", .exceedsLimit, "many times") {
            $0.image = [1, 1, 1 << 13, 1 << 13]
            $0.initializers = [.bytes("row", type: 1, [1 << 13], Array(repeating: 0, count: 1 << 15))]
            $0.node("Add", ["image", "row"])
        },
        graph("a slice of 2^27 elements", .exceedsLimit, "more than 1048576 indices") {
            $0.image = [1, 1, 1 << 14, 1 << 14]
            $0.initializers = [.integers("a", [1], [0]), .integers("b", [1], [1 << 27]), .integers("axis", [1], [1])]
            $0.node("Flatten")
            $0.node("Slice", ["Flatten0", "a", "b", "axis"])
        },
        graph("200 shuffles of 100,000 channels", .exceedsLimit, "many times") { sample in
            sample.image = [1, 1, 400, 250]
            sample.initializers = [
                .integers("groups", [3], [1, 100, 1000]), .integers("vector", [2], [1, 100_000]),
            ]
            sample.node("Flatten", ["image"])
            sample.node("Softmax", nil, [.integer("axis", 1)], to: "s0")
            for index in 0..<200 {
                sample.node("Reshape", ["s\(index)", "groups"])
                sample.node("Transpose", nil, [.integers("perm", [0, 2, 1])], to: "t\(index)")
                sample.node("Reshape", ["t\(index)", "vector"], to: "s\(index + 1)")
            }
        },
        graph("a layer normalization whose scale is a row of a large image", .exceedsLimit, "many times") {
            $0.opset = 17
            $0.image = [1, 1, 1 << 13, 1 << 13]
            $0.initializers = [.bytes("row", type: 1, [1 << 13], Array(repeating: 0, count: 1 << 15))]
            $0.node("LayerNormalization", ["image", "row"], [.integer("axis", 1)])
        },
        graph("200 concatenations of 100,000 channels before a quantized layer", .exceedsLimit, "many times") {
            sample in
            sample.opset = 13
            sample.image = [1, 1, 400, 250]
            sample.initializers = [
                .floats("scale", [], [1]), .bytes("zero", type: 2, [], [10]),
                .bytes("weight", type: 3, [2, 100_200], Array(repeating: 1, count: 200_400)),
            ]
            sample.node("DequantizeLinear", ["weight", "scale"], to: "w")
            sample.node("GlobalAveragePool", ["image"])
            sample.node("Flatten", to: "mean")
            sample.node("Flatten", ["image"], to: "c0")
            for index in 0..<200 {
                sample.node("Concat", ["c\(index)", "mean"], [.integer("axis", 1)], to: "c\(index + 1)")
            }
            sample.node("QuantizeLinear", ["c200", "scale", "zero"], to: "q")
            sample.node("DequantizeLinear", ["q", "scale", "zero"], to: "d")
            sample.node("Gemm", ["d", "w"], [.integer("transB", 1)])
        },
    ]

    /// Creates a model with external weights.
    private static func external(
        _ name: String, _ kind: HostileModel.Kind, _ message: String, _ entries: KeyValuePairs<String, String>,
        prepare: @escaping @Sendable (URL) throws -> Void = { _ in }
    ) -> HostileModel {
        HostileModel(name, kind, message) { folder in
            let inner = folder.appending(path: "model")
            try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
            try Data(repeating: 0, count: 12).write(to: folder.appending(path: "outside"))
            try Data(repeating: 0, count: 12).write(to: inner.appending(path: "inside"))
            try prepare(inner)
            var sample = ONNXSample()
            sample.initializers = [.external("w", [1, 3, 1, 1], entries)]
            sample.node("Conv", ["image", "w"])
            let url = inner.appending(path: "model.onnx")
            try Data(sample.bytes).write(to: url)
            return (url, ModelImporter())
        }
    }

    private static func link(_ name: String, to target: String) -> @Sendable (URL) throws -> Void {
        {
            try FileManager.default.createSymbolicLink(
                atPath: $0.appending(path: name).path, withDestinationPath: target)
        }
    }

    static let external: [HostileModel] = [
        external(
            "a file in the folder above", .malformed, "expected a file in the model's folder",
            ["location": "../outside"]),
        external(
            "a path that leaves the folder in the middle", .malformed, "expected a file in",
            ["location": "a/../../outside"]),
        external("an absolute path", .malformed, "expected a file in", ["location": "/etc/hostname"]),
        external(
            "a link to a file outside of the folder", .malformed, "expected a file in", ["location": "l"],
            prepare: link("l", to: "../outside")),
        external(
            "a link to a device", .malformed, "expected a file in", ["location": "l"],
            prepare: link("l", to: "/dev/zero")),
        external("a link to itself", .unreadable, "cannot be read", ["location": "l"], prepare: link("l", to: "l")),
        external("the folder itself", .malformed, "expected a file in", ["location": "."]),
        external("no path", .malformed, "no path of its external data", ["offset": "0"]),
        external("a path with a zero byte", .malformed, "expected a file in", ["location": "inside\0"]),
        external("a missing file", .unreadable, "cannot be read", ["location": "missing"]),
        external("an offset beyond the end", .malformed, "an offset beyond", ["location": "inside", "offset": "13"]),
        external("a negative offset", .malformed, "an offset beyond", ["location": "inside", "offset": "-4"]),
        external(
            "an offset of 2^64", .malformed, "an offset beyond",
            ["location": "inside", "offset": "18446744073709551616"]),
        external("a length beyond the end", .malformed, "more elements than", ["location": "inside", "length": "13"]),
        external(
            "a length that overflows", .malformed, "more elements than",
            ["location": "inside", "offset": "4", "length": "9223372036854775807"]),
        external(
            "fewer elements than the shape", .malformed, "8 bytes for the shape", ["location": "inside", "length": "8"]),
        external("a pipe", .unreadable, "expected a regular file", ["location": "pipe"]) {
            _ = mkfifo($0.appending(path: "pipe").path, 0o600)
        },
    ]
}
