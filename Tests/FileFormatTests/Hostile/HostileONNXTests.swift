import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Invalid ONNX files: each is rejected with the expected error, within limits of time and memory.
@Suite struct HostileONNXTests {
    @Test("An invalid ONNX file is rejected with its error", arguments: bytes + tensors + layers + shapes + bombs)
    func refused(_ model: HostileModel) throws { try model.check() }

    @Test("An ONNX file with invalid external data is rejected with its error", arguments: external)
    func refusedExternalData(_ model: HostileModel) throws { try model.check() }

    /// Creates a model with the graph that `make` builds.
    static func graph(
        _ name: String, _ kind: HostileModel.Kind, _ message: String,
        _ make: @escaping @Sendable (inout ONNXSample) -> Void
    ) -> HostileModel {
        HostileModel(name, kind, message) {
            var sample = ONNXSample()
            make(&sample)
            return sample.bytes
        }
    }

    private static let bytes: [HostileModel] = [
        HostileModel("an empty file", .unknownFormat, "not a model file") { [] },
        HostileModel("text", .unknownFormat, "not a model file") { Array("not a model at all".utf8) },
        HostileModel("a graph beyond the end", .unknownFormat, "not a model file") {
            [0x08, 8, 0x3A, 0xFF, 0xFF, 0x7F, 0x0A]
        },
        HostileModel("a length of 2^63", .unknownFormat, "not a model file") {
            [0x08, 8, 0x3A] + Array(repeating: 0x80, count: 9) + [1]
        },
        HostileModel("a node beyond its graph", .malformed, "truncated in the middle of the field at byte 4") {
            [0x08, 8, 0x3A, 2, 0x0A, 0x7F, 0x42, 2, 0x10, 13]
        },
        HostileModel("a varint of eleven bytes", .malformed, "more than ten bytes") {
            WireField.encode([
                .integer(1, 8), .bytes(7, [0x08] + Array(repeating: 0xFF, count: 11)), .message(8, [.integer(2, 13)]),
            ])
        },
        HostileModel("a field number of 0", .malformed, "no valid protobuf field") {
            WireField.encode([.integer(1, 8), .bytes(7, [0x02, 0]), .message(8, [.integer(2, 13)])])
        },
        HostileModel("a deprecated protobuf group", .malformed, "no valid protobuf field") {
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
        graph("no opset", .unsuitableModel, "a model of opset 0") {
            $0.opset = nil
            $0.node("Relu")
        },
        graph("opset 999", .unsuitableModel, "a model of opset 999") {
            $0.opset = 999
            $0.node("Relu")
        },
        graph("a negative opset", .unsuitableModel, "a model of opset -1") {
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

    /// Creates a model with a convolution of this weight.
    private static func weight(
        _ name: String, _ kind: HostileModel.Kind, _ message: String,
        _ tensor: @escaping @Sendable () -> ONNXSample.Tensor
    ) -> HostileModel {
        graph(name, kind, message) {
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
        weight("2^39 elements without data", .malformed, "elements") { .floats("w", [1 << 39, 1, 1, 1], []) },
        weight("fewer elements than the shape", .malformed, "2 elements for the shape") {
            .floats("w", [1, 3, 1, 1], [1, 2])
        },
        weight("fewer bytes than the shape", .malformed, "11 bytes for the shape") {
            .bytes("w", type: 1, [1, 3, 1, 1], Array(repeating: 0, count: 11))
        },
        weight("more bytes than the shape", .malformed, "16 bytes for the shape") {
            .bytes("w", type: 1, [1, 3, 1, 1], Array(repeating: 0, count: 16))
        },
        weight("strings as weights", .unsupported, "the element type 8") {
            .bytes("w", type: 8, [1, 3, 1, 1], [1, 2, 3])
        },
        weight("an unknown element type", .unsupported, "the element type 99") {
            .bytes("w", type: 99, [3], [1, 2, 3])
        },
        weight("a NaN", .malformed, "not finite") { .floats("w", [1, 3, 1, 1], [1, .nan, 1]) },
        weight("an infinite value", .malformed, "not finite") { .floats("w", [1, 3, 1, 1], [1, 1, -.infinity]) },
        weight("values of three bytes", .malformed, "the wrong wire type") {
            ONNXSample.Tensor(fields: [.integers(1, [3]), .integer(2, 1), .bytes(4, [1, 2, 3]), .text(8, "w")])
        },
        weight("weights of three axes", .unsupported, "expected four axes") { .floats("w", [1, 3, 1], [1, 1, 1]) },
        weight("weights for other channels", .malformed, "for 2 channels in 1 groups, but reads 3") {
            .floats("w", [1, 2, 1, 1], [1, 1])
        },
        weight("weights without outputs", .unsupported, "four axes of at least 1") { .floats("w", [0, 3, 1, 1], []) },
        weight("missing weights", .malformed, "which no earlier") { .floats("v", [1, 3, 1, 1], [1, 1, 1]) },
        graph("two weights with the same name", .malformed, "two initializers have the name \"w\"") {
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

    /// Creates a model with a convolution of three channels and these attributes.
    private static func convolution(
        _ name: String, _ kind: HostileModel.Kind, _ message: String, _ attributes: [ONNXSample.Attribute],
        outputs: Int = 1
    ) -> HostileModel {
        graph(name, kind, message) {
            $0.initializers = [.floats("w", [outputs, 3, 1, 1], Array(repeating: 1, count: 3 * outputs))]
            $0.node("Conv", ["image", "w"], attributes)
        }
    }

    private static let layers: [HostileModel] = [
        convolution("a stride of 0", .network, "stride", [.integers("strides", [0, 1])]),
        convolution("a stride of 2^62", .network, "stride", [.integers("strides", [1 << 62, 1])]),
        convolution("a dilation of 0", .network, "dilation", [.integers("dilations", [0, 0])]),
        convolution(
            "three strides", .unsupported, "strides [1, 1, 1], expected two", [.integers("strides", [1, 1, 1])]),
        convolution("0 groups", .malformed, "in 0 groups", [.integer("group", 0)]),
        convolution("2^62 groups", .malformed, "groups", [.integer("group", 1 << 62)]),
        convolution("padding of 2^63 - 1", .network, "padding", [.integers("pads", [.max, .max, .max, .max])]),
        convolution("negative padding", .network, "padding", [.integers("pads", [-1, 0, 0, 0])]),
        graph("groups that do not divide the outputs", .network, "a divisor of") {
            $0.initializers = [.floats("w", [4, 1, 1, 1], [1, 1, 1, 1])]
            $0.node("Conv", ["image", "w"], [.integer("group", 3)])
        },
        graph("a padding layer before a padding of 2^63 - 1", .network, "padding") {
            $0.initializers = [.floats("w", [1, 3, 1, 1], [1, 1, 1])]
            $0.node("Pad", ["image"], [.integers("pads", [0, 0, 1, 1, 0, 0, 1, 1])])
            $0.opset = 10
            $0.node("Conv", ["Pad0", "w"], [.integers("pads", [.max, .max, .max, .max])])
        },
        graph("a padding layer of 2^40", .network, "at most 32768") {
            $0.node("Pad", ["image"], [.integers("pads", [0, 0, 1 << 40, 0, 0, 0, 0, 0])])
        },
        graph("a negative padding layer", .network, "at least 0") {
            $0.node("Pad", ["image"], [.integers("pads", [0, 0, .min, 0, 0, 0, 0, 0])])
        },
        graph("a pooling window larger than the image", .network, "larger than the image") {
            $0.node("MaxPool", ["image"], [.integers("kernel_shape", [9, 9])])
        },
        graph("a pooling window of 0", .network, "kernelSize") {
            $0.node("AveragePool", ["image"], [.integers("kernel_shape", [0, 0])])
        },
        graph("a pooling without a window", .malformed, "no kernel_shape") { $0.node("MaxPool") },
        graph("a response normalization over 0 channels", .network, "size") {
            $0.node("LRN", ["image"], [.integer("size", 0)])
        },
        graph("a response normalization with NaN", .network, "alpha") {
            $0.node("LRN", ["image"], [.integer("size", 3), .float("alpha", .nan)])
        },
        graph("an upsampling factor of 2^40", .network, "factor") {
            $0.initializers = [.floats("scales", [4], [1, 1, 0x1p40, 1])]
            $0.opset = 9
            $0.node("Upsample", ["image", "scales"])
        },
        graph("a matrix of another width", .malformed, "multiplies") {
            $0.initializers = [.floats("w", [2, 2], [1, 1, 1, 1])]
            $0.node("Flatten")
            $0.node("Gemm", ["Flatten0", "w"])
        },
        graph("several unsupported operators", .unsupported, "Expand \"Expand0\"") {
            $0.node("Expand")
            $0.node("Tile")
            $0.node("DepthToSpace")
        },
    ]

    private static let shapes: [HostileModel] = [
        graph("nodes in a cycle", .malformed, "which no earlier") {
            $0.node("Relu", ["b"], to: "a")
            $0.node("Relu", ["a"], to: "b")
        },
        graph("a node that reads itself", .malformed, "which no earlier") {
            $0.node("Relu", ["a"], to: "a")
        },
        graph("two nodes with the same output", .malformed, "which already exists") {
            $0.node("Relu", ["image"], to: "a")
            $0.node("Sigmoid", ["image"], to: "a")
        },
        graph("a node whose output is the image", .malformed, "which already exists") {
            $0.node("Relu", ["image"], to: "image")
        },
        graph("a shape of 2^40", .malformed, "gives [1, 3, 4, 4] the shape") {
            $0.initializers = [.integers("shape", [2], [1, 1 << 40])]
            $0.node("Reshape", ["image", "shape"])
        },
        graph("a shape with 2^62 twice", .malformed, "gives [1, 3, 4, 4] the shape") {
            $0.initializers = [.integers("shape", [3], [1 << 62, 1 << 62, 0])]
            $0.node("Reshape", ["image", "shape"], [.integer("allowzero", 1)])
        },
        graph("an empty tensor reshaped to 2^40 empty rows", .unsupported, "Reshape") {
            $0.initializers = [.floats("none", [0], []), .integers("shape", [2], [1 << 40, 0])]
            $0.node("Reshape", ["none", "shape"], [.integer("allowzero", 1)])
            $0.node("Relu", ["image"])
        },
        graph(
            "an unsupported operator, and an unsupported attribute on another branch", .unsupported,
            "expected the same axes"
        ) {
            $0.node("InstanceNormalization", ["image"], to: "unknown")
            $0.node("Relu", ["unknown"], to: "dependent")
            $0.node("Transpose", ["image"], [.integers("perm", [0, 1, 3, 2])], to: "transposed")
            $0.node("Add", ["image", "transposed"])
        },
        graph("a transposed gate", .unsupported, "expected the same axes") {
            $0.node("Transpose", ["image"], [.integers("perm", [0, 1, 3, 2])], to: "transposed")
            $0.node("Sigmoid", ["transposed"], to: "gate")
            $0.node("Mul", ["image", "gate"])
        },
        graph("two inferred axes", .malformed, "gives [1, 3, 4, 4] the shape") {
            $0.initializers = [.integers("shape", [2], [-1, -1])]
            $0.node("Reshape", ["image", "shape"])
        },
        graph("65,535 axes", .exceedsLimit, "expected at most 16") {
            $0.initializers = [.integers("shape", [65_535], [48] + Array(repeating: 1, count: 65_534))]
            $0.node("Reshape", ["image", "shape"])
        },
        graph("a slice with a step of 0", .malformed, "an invalid axis or step") {
            $0.initializers = [.integers("a", [1], [0]), .integers("b", [1], [.max])]
            $0.node("Slice", ["image", "a", "b", "a", "a"])
        },
        graph("a slice along axis 2^62", .malformed, "an invalid axis or step") {
            $0.initializers = [
                .integers("a", [1], [.min]), .integers("b", [1], [.max]), .integers("axis", [1], [1 << 62]),
            ]
            $0.node("Slice", ["image", "a", "b", "axis"])
        },
        graph("an empty slice", .unsupported, "selects nothing") {
            $0.initializers = [
                .integers("a", [1], [1 << 62]), .integers("b", [1], [.max]), .integers("axis", [1], [1]),
            ]
            $0.node("Slice", ["image", "a", "b", "axis"])
        },
        graph("a permutation with an axis twice", .malformed, "has the permutation") {
            $0.node("Transpose", ["image"], [.integers("perm", [0, 0, 1, 1])])
        },
        graph("a mean over one axis five times", .malformed, "without duplicates") {
            $0.node("ReduceMean", ["image"], [.integers("axes", [3, 3, -1, 3, 3]), .integer("keepdims", 0)])
        },
        graph("a mean over axis 2^62", .malformed, "has the axes") {
            $0.node("ReduceMean", ["image"], [.integers("axes", [1 << 62])])
        },
        graph("a concatenation of tensors with other axes", .unsupported, "tensors with the same axes") {
            $0.node("GlobalAveragePool")
            $0.node("Flatten")
            $0.node("Concat", ["image", "Flatten1"], [.integer("axis", 1)])
        },
        graph("a concatenation of images of other heights", .network, "must be the same") {
            $0.node("MaxPool", ["image"], [.integers("kernel_shape", [2, 2])])
            $0.node("Concat", ["image", "MaxPool0"], [.integer("axis", 1)])
        },
        graph("a split into 2^62 and a negative part", .malformed, "splits 3 elements into") {
            $0.node(
                [
                    .text(1, "image"), .text(2, "a"), .text(2, "b"), .text(4, "Split"),
                    .message(5, [.text(1, "axis"), .integer(3, 1)]),
                    .message(5, [.text(1, "split"), .integers(8, [1 << 62, 3 - 1 << 62])]),
                ], to: "a")
        },
        graph("a split whose sum overflows to the correct value", .malformed, "splits 3 elements into") {
            $0.node(
                [
                    .text(1, "image"), .text(2, "a"), .text(2, "b"), .text(2, "c"), .text(2, "d"), .text(4, "Split"),
                    .message(5, [.text(1, "axis"), .integer(3, 1)]),
                    .message(5, [.text(1, "split"), .integers(8, [1 << 62, 1 << 62, 1 << 62, 1 << 62 + 3])]),
                ], to: "a")
        },
        graph("an axis out of range", .malformed, "has the axes [7]") {
            $0.node("Squeeze", ["image"], [.integers("axes", [7])])
        },
        graph("an output that does not depend on the image", .unsuitableModel, "does not depend on the image") {
            $0.node("Shape")
        },
    ]
}
