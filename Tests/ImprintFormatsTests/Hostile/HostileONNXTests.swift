import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// ONNX files that no writer makes: each is refused by name, in bounded time and memory.
@Suite struct HostileONNXTests {
    @Test(arguments: bytes + tensors + layers + shapes + bombs)
    func refused(_ model: HostileModel) throws { try model.check() }

    @Test(arguments: external)
    func refusedExternalData(_ model: HostileModel) throws { try model.check() }

    /// A graph that `make` fills.
    static func graph(
        _ name: String, _ kind: HostileModel.Kind, _ words: String,
        _ make: @escaping @Sendable (inout ONNXSample) -> Void
    ) -> HostileModel {
        HostileModel(name, kind, words) {
            var sample = ONNXSample()
            make(&sample)
            return sample.bytes
        }
    }

    private static let bytes: [HostileModel] = [
        HostileModel("an empty file", .unknownFormat, "not a model file") { [] },
        HostileModel("letters", .unknownFormat, "not a model file") { Array("not a model at all".utf8) },
        HostileModel("a graph beyond the end", .unknownFormat, "not a model file") {
            [0x08, 8, 0x3A, 0xFF, 0xFF, 0x7F, 0x0A]
        },
        HostileModel("a length of 2^63", .unknownFormat, "not a model file") {
            [0x08, 8, 0x3A] + Array(repeating: 0x80, count: 9) + [1]
        },
        HostileModel("a node beyond its graph", .malformed, "truncated in the middle of the field at byte 4") {
            [0x08, 8, 0x3A, 2, 0x0A, 0x7F, 0x42, 2, 0x10, 13]
        },
        HostileModel("a number of eleven bytes", .malformed, "more than ten bytes") {
            WireField.encode([
                .integer(1, 8), .bytes(7, [0x08] + Array(repeating: 0xFF, count: 11)), .message(8, [.integer(2, 13)]),
            ])
        },
        HostileModel("a field number of 0", .malformed, "no valid protobuf field") {
            WireField.encode([.integer(1, 8), .bytes(7, [0x02, 0]), .message(8, [.integer(2, 13)])])
        },
        HostileModel("a group, as protobuf had long ago", .malformed, "no valid protobuf field") {
            WireField.encode([.integer(1, 8), .bytes(7, [0x0B]), .message(8, [.integer(2, 13)])])
        },
        HostileModel("a graph without nodes", .malformed, "no graph of nodes") {
            WireField.encode([.integer(1, 8), .message(7, [.text(2, "graph")]), .message(8, [.integer(2, 13)])])
        },
        graph("a name that is not UTF-8", .malformed, "is not UTF-8 text") { sample in
            sample.node([.text(1, "image"), .bytes(2, [0xFF, 0xFE]), .text(4, "Relu")], to: "y")
        },
        graph("a name that is a number", .malformed, "the wrong wire type") { sample in
            sample.node([.integer(1, 7), .text(2, "y"), .text(4, "Relu")], to: "y")
        },
        graph("no version of the operators", .unsuitableModel, "a model of opset 0") {
            $0.opset = nil
            $0.node("Relu")
        },
        graph("version 999", .unsuitableModel, "a model of opset 999") {
            $0.opset = 999
            $0.node("Relu")
        },
        graph("a negative version", .unsuitableModel, "a model of opset -1") {
            $0.opset = -1
            $0.node("Relu")
        },
        graph("a million nodes", .malformed, "more than 65536 nodes") { sample in
            for _ in 0..<1_000_000 { sample.node([], to: "") }
        },
        graph("two inputs", .unsuitableModel, "2 inputs") {
            $0.node("Relu")
            $0.more = [.message(11, ONNXSample.value("mask", [1, 3, 4, 4]))]
        },
        graph("five channels", .unsuitableModel, "5 channels") {
            $0.image = [1, 5, 4, 4]
            $0.node("Relu")
        },
        graph("an image of 2^40 rows", .exceedsLimit, "1099511627776") {
            $0.image = [1, 3, 1 << 40, 4]
            $0.node("Relu")
        },
        graph("seventeen axes", .malformed, "more than 16 axes") {
            $0.image = Array(repeating: 1, count: 17)
            $0.node("Relu")
        },
    ]

    /// A convolution with this weight.
    private static func weight(
        _ name: String, _ kind: HostileModel.Kind, _ words: String,
        _ tensor: @escaping @Sendable () -> ONNXSample.Tensor
    ) -> HostileModel {
        graph(name, kind, words) {
            $0.initializers = [tensor()]
            $0.node("Conv", ["image", "w"], [])
        }
    }

    private static let tensors: [HostileModel] = [
        weight("a product of lengths beyond 2^64", .malformed, "has the shape") {
            .floats("w", [1 << 32, 1 << 32], [1])
        },
        weight("a negative length", .malformed, "has the shape [-1, 3, 1, 1]") {
            .floats("w", [-1, 3, 1, 1], [1, 1, 1])
        },
        weight("lengths of 2^62 and 0", .malformed, "has the shape") { .floats("w", [0, 1 << 62, 1 << 62, 1], []) },
        weight("lengths of 2^40 and 0", .malformed, "has the shape") { .floats("w", [0, 1 << 40, 1, 1], []) },
        weight("2^39 numbers in no bytes", .malformed, "elements") { .floats("w", [1 << 39, 1, 1, 1], []) },
        weight("fewer numbers than the shape", .malformed, "2 elements for the shape") {
            .floats("w", [1, 3, 1, 1], [1, 2])
        },
        weight("fewer bytes than the shape", .malformed, "11 bytes for the shape") {
            .bytes("w", type: 1, [1, 3, 1, 1], Array(repeating: 0, count: 11))
        },
        weight("more bytes than the shape", .malformed, "16 bytes for the shape") {
            .bytes("w", type: 1, [1, 3, 1, 1], Array(repeating: 0, count: 16))
        },
        weight("texts as numbers", .unsupported, "the element type 8") {
            .bytes("w", type: 8, [1, 3, 1, 1], [1, 2, 3])
        },
        weight("a type that there is not", .unsupported, "the element type 99") {
            .bytes("w", type: 99, [3], [1, 2, 3])
        },
        weight("a number that is none", .malformed, "not finite") { .floats("w", [1, 3, 1, 1], [1, .nan, 1]) },
        weight("an infinite number", .malformed, "not finite") { .floats("w", [1, 3, 1, 1], [1, 1, -.infinity]) },
        weight("numbers of three bytes", .malformed, "the wrong wire type") {
            ONNXSample.Tensor(fields: [.integers(1, [3]), .integer(2, 1), .bytes(4, [1, 2, 3]), .text(8, "w")])
        },
        weight("weights of three axes", .unsupported, "expected four axes") { .floats("w", [1, 3, 1], [1, 1, 1]) },
        weight("weights for other channels", .malformed, "for 2 channels in 1 groups, but reads 3") {
            .floats("w", [1, 2, 1, 1], [1, 1])
        },
        weight("weights without outputs", .unsupported, "four axes of at least 1") { .floats("w", [0, 3, 1, 1], []) },
        weight("no weights", .malformed, "which no earlier") { .floats("v", [1, 3, 1, 1], [1, 1, 1]) },
        graph("two weights of one name", .malformed, "two initializers have the name \"w\"") {
            $0.initializers = [.floats("w", [1, 3, 1, 1], [1, 1, 1]), .floats("w", [1, 3, 1, 1], [2, 2, 2])]
            $0.node("Conv", ["image", "w"])
        },
        graph("a negative variance", .malformed, "expected variances") {
            $0.initializers =
                ["scale", "shift", "mean"].map { .floats($0, [3], [1, 1, 1]) } + [.floats("variance", [3], [1, -1, 1])]
            $0.node("BatchNormalization", ["image", "scale", "shift", "mean", "variance"])
            $0.node("GlobalAveragePool")
        },
        graph("statistics of fewer channels", .malformed, "2 values for runningMean, expected 3") {
            $0.initializers =
                ["scale", "shift", "variance"].map { .floats($0, [3], [1, 1, 1]) } + [.floats("mean", [2], [1, 1])]
            $0.node("BatchNormalization", ["image", "scale", "shift", "mean", "variance"])
        },
    ]

    /// A convolution of three channels with these properties.
    private static func convolution(
        _ name: String, _ kind: HostileModel.Kind, _ words: String, _ attributes: [ONNXSample.Attribute],
        outputs: Int = 1
    ) -> HostileModel {
        graph(name, kind, words) {
            $0.initializers = [.floats("w", [outputs, 3, 1, 1], Array(repeating: 1, count: 3 * outputs))]
            $0.node("Conv", ["image", "w"], attributes)
        }
    }

    private static let layers: [HostileModel] = [
        convolution("a step of 0", .network, "stride", [.integers("strides", [0, 1])]),
        convolution("a step of 2^62", .network, "stride", [.integers("strides", [1 << 62, 1])]),
        convolution("a dilation of 0", .network, "dilation", [.integers("dilations", [0, 0])]),
        convolution("three steps", .unsupported, "strides [1, 1, 1], expected two", [.integers("strides", [1, 1, 1])]),
        convolution("no groups", .malformed, "in 0 groups", [.integer("group", 0)]),
        convolution("2^62 groups", .malformed, "groups", [.integer("group", 1 << 62)]),
        convolution("borders of 2^63 - 1", .network, "padding", [.integers("pads", [.max, .max, .max, .max])]),
        convolution("negative borders", .network, "padding", [.integers("pads", [-1, 0, 0, 0])]),
        graph("groups that do not divide", .network, "a divisor of") {
            $0.initializers = [.floats("w", [4, 1, 1, 1], [1, 1, 1, 1])]
            $0.node("Conv", ["image", "w"], [.integer("group", 3)])
        },
        graph("a border within a border of 2^63 - 1", .network, "padding") {
            $0.initializers = [.floats("w", [1, 3, 1, 1], [1, 1, 1])]
            $0.node("Pad", ["image"], [.integers("pads", [0, 0, 1, 1, 0, 0, 1, 1])])
            $0.opset = 10
            $0.node("Conv", ["Pad0", "w"], [.integers("pads", [.max, .max, .max, .max])])
        },
        graph("a border of 2^40", .network, "at most 32768") {
            $0.node("Pad", ["image"], [.integers("pads", [0, 0, 1 << 40, 0, 0, 0, 0, 0])])
        },
        graph("a border that takes away", .network, "at least 0") {
            $0.node("Pad", ["image"], [.integers("pads", [0, 0, .min, 0, 0, 0, 0, 0])])
        },
        graph("a window larger than the image", .network, "larger than the image") {
            $0.node("MaxPool", ["image"], [.integers("kernel_shape", [9, 9])])
        },
        graph("a window of 0", .network, "kernelSize") {
            $0.node("AveragePool", ["image"], [.integers("kernel_shape", [0, 0])])
        },
        graph("no window", .malformed, "no kernel_shape") { $0.node("MaxPool") },
        graph("a norm over 0 channels", .network, "size") { $0.node("LRN", ["image"], [.integer("size", 0)]) },
        graph("a norm with a number that is none", .network, "alpha") {
            $0.node("LRN", ["image"], [.integer("size", 3), .float("alpha", .nan)])
        },
        graph("2^40 times as many rows", .network, "factor") {
            $0.initializers = [.floats("scales", [4], [1, 1, 0x1p40, 1])]
            $0.opset = 9
            $0.node("Upsample", ["image", "scales"])
        },
        graph("a matrix of another width", .malformed, "multiplies") {
            $0.initializers = [.floats("w", [2, 2], [1, 1, 1, 1])]
            $0.node("Flatten")
            $0.node("Gemm", ["Flatten0", "w"])
        },
        graph("operators of another domain, and such that there are not", .unsupported, "Expand \"Expand0\"") {
            $0.node("Expand")
            $0.node("Tile")
            $0.node("DepthToSpace")
        },
    ]

    private static let shapes: [HostileModel] = [
        graph("nodes in a circle", .malformed, "which no earlier") {
            $0.node("Relu", ["b"], to: "a")
            $0.node("Relu", ["a"], to: "b")
        },
        graph("a node that reads itself", .malformed, "which no earlier") {
            $0.node("Relu", ["a"], to: "a")
        },
        graph("two nodes that make one thing", .malformed, "which already exists") {
            $0.node("Relu", ["image"], to: "a")
            $0.node("Sigmoid", ["image"], to: "a")
        },
        graph("a node that makes the image", .malformed, "which already exists") {
            $0.node("Relu", ["image"], to: "image")
        },
        graph("a shape of 2^40", .malformed, "gives [1, 3, 4, 4] the shape") {
            $0.initializers = [.integers("shape", [2], [1, 1 << 40])]
            $0.node("Reshape", ["image", "shape"])
        },
        graph("a shape of 2^62 twice", .malformed, "gives [1, 3, 4, 4] the shape") {
            $0.initializers = [.integers("shape", [3], [1 << 62, 1 << 62, 0])]
            $0.node("Reshape", ["image", "shape"], [.integer("allowzero", 1)])
        },
        graph("nothing as 2^40 rows of nothing", .unsupported, "Reshape") {
            $0.initializers = [.floats("none", [0], []), .integers("shape", [2], [1 << 40, 0])]
            $0.node("Reshape", ["none", "shape"], [.integer("allowzero", 1)])
            $0.node("Relu", ["image"])
        },
        graph("an operator that there is not, and a form on another branch", .unsupported, "expected the same axes") {
            $0.node("InstanceNormalization", ["image"], to: "lost")
            $0.node("Relu", ["lost"], to: "lost too")
            $0.node("Transpose", ["image"], [.integers("perm", [0, 1, 3, 2])], to: "turned")
            $0.node("Add", ["image", "turned"])
        },
        graph("a gate that is turned", .unsupported, "expected the same axes") {
            $0.node("Transpose", ["image"], [.integers("perm", [0, 1, 3, 2])], to: "turned")
            $0.node("Sigmoid", ["turned"], to: "gate")
            $0.node("Mul", ["image", "gate"])
        },
        graph("two open axes", .malformed, "gives [1, 3, 4, 4] the shape") {
            $0.initializers = [.integers("shape", [2], [-1, -1])]
            $0.node("Reshape", ["image", "shape"])
        },
        graph("65,535 axes", .exceedsLimit, "expected at most 16") {
            $0.initializers = [.integers("shape", [65_535], [48] + Array(repeating: 1, count: 65_534))]
            $0.node("Reshape", ["image", "shape"])
        },
        graph("a slice of no step", .malformed, "an invalid axis or step") {
            $0.initializers = [.integers("a", [1], [0]), .integers("b", [1], [.max])]
            $0.node("Slice", ["image", "a", "b", "a", "a"])
        },
        graph("a slice along axis 2^62", .malformed, "an invalid axis or step") {
            $0.initializers = [
                .integers("a", [1], [.min]), .integers("b", [1], [.max]), .integers("axis", [1], [1 << 62]),
            ]
            $0.node("Slice", ["image", "a", "b", "axis"])
        },
        graph("a slice of nothing", .unsupported, "selects nothing") {
            $0.initializers = [
                .integers("a", [1], [1 << 62]), .integers("b", [1], [.max]), .integers("axis", [1], [1]),
            ]
            $0.node("Slice", ["image", "a", "b", "axis"])
        },
        graph("axes that are moved twice", .malformed, "has the permutation") {
            $0.node("Transpose", ["image"], [.integers("perm", [0, 0, 1, 1])])
        },
        graph("the mean over one axis five times", .malformed, "without duplicates") {
            $0.node("ReduceMean", ["image"], [.integers("axes", [3, 3, -1, 3, 3]), .integer("keepdims", 0)])
        },
        graph("the mean over axis 2^62", .malformed, "has the axes") {
            $0.node("ReduceMean", ["image"], [.integers("axes", [1 << 62])])
        },
        graph("images of other sizes side by side", .unsupported, "tensors with the same axes") {
            $0.node("GlobalAveragePool")
            $0.node("Flatten")
            $0.node("Concat", ["image", "Flatten1"], [.integer("axis", 1)])
        },
        graph("images of other heights side by side", .network, "must be the same") {
            $0.node("MaxPool", ["image"], [.integers("kernel_shape", [2, 2])])
            $0.node("Concat", ["image", "MaxPool0"], [.integer("axis", 1)])
        },
        graph("parts of 2^62 and less than nothing", .malformed, "splits 3 elements into") {
            $0.node(
                [
                    .text(1, "image"), .text(2, "a"), .text(2, "b"), .text(4, "Split"),
                    .message(5, [.text(1, "axis"), .integer(3, 1)]),
                    .message(5, [.text(1, "split"), .integers(8, [1 << 62, 3 - 1 << 62])]),
                ], to: "a")
        },
        graph("parts whose sum is right because it overflows", .malformed, "splits 3 elements into") {
            $0.node(
                [
                    .text(1, "image"), .text(2, "a"), .text(2, "b"), .text(2, "c"), .text(2, "d"), .text(4, "Split"),
                    .message(5, [.text(1, "axis"), .integer(3, 1)]),
                    .message(5, [.text(1, "split"), .integers(8, [1 << 62, 1 << 62, 1 << 62, 1 << 62 + 3])]),
                ], to: "a")
        },
        graph("an axis that is not there", .malformed, "has the axes [7]") {
            $0.node("Squeeze", ["image"], [.integers("axes", [7])])
        },
        graph("a result that the image has no part in", .unsuitableModel, "does not depend on the image") {
            $0.node("Shape")
        },
    ]
}
