import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Small valid models, from which the tests make invalid ones.
enum SeedModels {
    /// Returns a network with the most common layers.
    private static func classifier() throws -> ModelFile {
        var net = NetworkBuilder(name: "seed", input: TensorShape(height: 8, width: 8, channels: 3))
        net.add(
            Convolution(outputChannels: 4, kernelSize: 3, stride: 2, padding: .same, hasBias: false), named: "first")
        net.add(BatchNormalization())
        let shortcut = net.add(ReLU6())
        net.add(Convolution(outputChannels: 4, kernelSize: 3, padding: .all(1), groups: 4))
        let sum = net.add(AddLayer(), to: [net.last, shortcut])
        net.add(MaxPool(kernelSize: 2, stride: 1), to: [sum])
        let left = net.add(AveragePool(kernelSize: 2, padding: .all(1)))
        net.add(LocalResponseNormalization(size: 3), to: [left])
        net.add(Concat(), to: [net.last, left])
        net.add(PReLU())
        net.add(Flatten())
        net.add(Dense(outputChannels: 3))
        net.add(Softmax())
        let network = try net.network()
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 8), labels: ["a", "b", "c"],
            preprocessing: Preprocessing(width: 8, height: 8, channels: 3))
    }

    private static func written(_ write: (ModelFile, URL) throws -> Void) throws -> [UInt8] {
        let model = try classifier()
        return try withTemporaryFolder { folder in
            let url = folder.appending(path: "model")
            try write(model, url)
            return [UInt8](try Data(contentsOf: url))
        }
    }

    /// Returns ONNX files: float32, float16 with preprocessing, and one that computes shapes.
    static func onnx() throws -> [[UInt8]] {
        var shapes = ONNXSample()
        shapes.node("Shape", ["image"], to: "shape")
        shapes.node("Constant", [], [.tensor("value", .integers("", [2], [0, 1]))], to: "chosen")
        shapes.node("Gather", ["shape", "chosen"], [.integer("axis", 0)], to: "some")
        shapes.node("Slice", ["some"], [.integers("starts", [0]), .integers("ends", [1])], to: "batch")
        shapes.initializers.append(.integers("rest", [1], [-1]))
        shapes.node("Concat", ["batch", "rest"], [.integer("axis", 0)], to: "target")
        shapes.node("Cast", ["target"], [.integer("to", 7)], to: "whole")
        shapes.node("Transpose", ["image"], [.integers("perm", [0, 1, 2, 3])], to: "turned")
        shapes.node("Reshape", ["turned", "whole"], to: "flat")
        shapes.initializers.append(.floats("weight", [48, 2], Array(repeating: 0.5, count: 96)))
        shapes.initializers.append(.bytes("bias", type: 10, [2], [0, 0x3C, 0, 0xC0]))
        shapes.node("Gemm", ["flat", "weight", "bias"], [.float("alpha", 0.5)], to: "scores")
        shapes.node("Softmax", ["scores"], [.integer("axis", 1)], to: "probabilities")
        return try [
            written { try $0.writeONNX(to: $1) },
            written {
                try $0.writeONNX(to: $1, options: ONNXOptions(storagePrecision: .float16, containsPreprocessing: true))
            },
            shapes.bytes,
        ]
    }

    /// Returns Core ML files: float32, float16, updatable, and one with weights of 1 and 4 bits.
    static func coreML() throws -> [[UInt8]] {
        var codes = CoreMLSample(width: 4, height: 4)
        codes.labels = [.message(100, [.text(1, "a"), .text(1, "b")])]
        codes.add(
            "conv", 100,
            [
                .integer(1, 4), .integer(2, 1), .integers(20, [2, 2]), .message(50, []),
                .message(
                    90,
                    [.bytes(30, [0x12, 0x34]), .message(40, [.integer(1, 1), .message(102, [.floats(1, [-1, 1])])])]),
            ])
        codes.add("flat", 301)
        codes.add(
            "dense", 140,
            [
                .integer(1, 36), .integer(2, 2),
                .message(
                    20,
                    [
                        .bytes(30, Array(repeating: 0x5A, count: 36)),
                        .message(40, [.integer(1, 4), .message(101, [.floats(1, [0.5]), .floats(2, [-1])])]),
                    ]),
            ])
        codes.add("probabilities", 175)
        return try [
            written { try $0.writeCoreML(to: $1) },
            written { try $0.writeCoreML(to: $1, options: CoreMLOptions(storagePrecision: .float16)) },
            written { try $0.writeCoreML(to: $1, options: CoreMLOptions(isUpdatable: true)) },
            codes.bytes,
        ]
    }

    /// Returns an Imprint model file.
    static func modelFile() throws -> [UInt8] { try written { try $0.write(to: $1) } }

    /// Returns Caffe architectures with their weights; single spaces separate the words.
    static func caffe() -> [(prototxt: [UInt8], weights: [UInt8])] {
        let new = """
            name: "new" layer { name: "image" type: "Input" top: "image" input_param { shape { dim: 1 dim: 3 dim: 6 dim: 6 } } } \
            layer { name: "conv" type: "Convolution" bottom: "image" top: "conv" convolution_param { \
            num_output: 4 pad: 1 kernel_size: 3 stride: 2 bias_term: false } } \
            layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "conv" batch_norm_param { eps: 1e-4 } } \
            layer { name: "scale" type: "Scale" bottom: "conv" top: "conv" scale_param { bias_term: true } } \
            layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" } \
            layer { name: "cut" type: "Slice" bottom: "conv" top: "left" top: "right" slice_param { slice_point: 2 } } \
            layer { name: "sum" type: "Eltwise" bottom: "left" bottom: "right" top: "sum" eltwise_param { coeff: 1 coeff: -1 } } \
            layer { name: "both" type: "Concat" bottom: "sum" bottom: "left" top: "both" } \
            layer { name: "response" type: "LRN" bottom: "both" top: "response" lrn_param { local_size: 3 alpha: 0.1 } } \
            layer { name: "pool" type: "Pooling" bottom: "response" top: "pool" pooling_param { pool: AVE kernel_size: 2 stride: 2 } } \
            layer { name: "dense" type: "InnerProduct" bottom: "pool" top: "dense" inner_product_param { num_output: 2 } } \
            layer { name: "probabilities" type: "Softmax" bottom: "dense" top: "probabilities" }
            """
        let old = """
            input: "data" input_dim: 1 input_dim: 1 input_dim: 4 input_dim: 4 \
            layers { name: "conv" type: CONVOLUTION bottom: "data" top: "conv" convolution_param { \
            num_output: 2 kernel_size: 3 group: 1 } blobs_lr: 1 } \
            layers { name: "relu" type: RELU bottom: "conv" top: "conv" relu_param { negative_slope: 0.1 } } \
            layers { name: "pool" type: POOLING bottom: "conv" top: "pool" pooling_param { pool: MAX kernel_size: 2 } } \
            layers { name: "drop" type: DROPOUT bottom: "pool" top: "pool" } \
            layers { name: "dense" type: INNER_PRODUCT bottom: "pool" top: "dense" inner_product_param { num_output: 3 } } \
            layers { name: "probabilities" type: SOFTMAX bottom: "dense" top: "probabilities" }
            """
        func ones(_ count: Int) -> [Float] { Array(repeating: 0.5, count: count) }
        return [
            (
                Array(new.utf8),
                caffeWeights([
                    ("conv", [([4, 3, 3, 3], ones(108))]), ("norm", [([4], ones(4)), ([4], ones(4)), ([1], [1])]),
                    ("scale", [([4], ones(4)), ([4], ones(4))]), ("dense", [([2, 16], ones(32)), ([2], ones(2))]),
                ])
            ),
            (
                Array(old.utf8),
                WireField.encode([
                    .text(1, "old"),
                    .message(2, [.text(4, "conv"), .integer(5, 4), oldBlob([2, 1, 3, 3]), oldBlob([1, 1, 1, 2])]),
                    .message(2, [.text(4, "dense"), .integer(5, 14), oldBlob([1, 1, 3, 2]), oldBlob([1, 1, 1, 3])]),
                ])
            ),
        ]
    }

    private static func oldBlob(_ shape: [Int]) -> WireField {
        .message(
            6,
            zip(1..., shape).map { .integer($0, $1) } + [.floats(5, Array(repeating: 0.25, count: shape.reduce(1, *)))])
    }
}

/// Encodes a `.caffemodel` of layers with blobs.
func caffeWeights(_ layers: [(name: String, blobs: [(shape: [Int], values: [Float])])]) -> [UInt8] {
    WireField.encode(
        layers.map { layer in
            .message(
                100,
                [.text(1, layer.name)]
                    + layer.blobs.map { .message(7, [.message(7, [.integers(1, $0.shape)]), .floats(5, $0.values)]) })
        })
}
