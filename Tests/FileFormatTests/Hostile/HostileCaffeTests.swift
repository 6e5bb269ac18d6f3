import Foundation
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Invalid Caffe models: each is rejected with the expected error, within limits of time and memory.
@Suite struct HostileCaffeTests {
    @Test("An invalid Caffe model is rejected with its error", arguments: texts + architectures + layers + weights)
    func refused(_ model: HostileModel) throws { try model.check() }

    /// Creates a model of an architecture and weights.
    private static func model(
        _ name: String, _ kind: HostileModel.Kind, _ message: String,
        weights: @escaping @Sendable () -> [UInt8] = { dense },
        _ prototxt: @escaping @Sendable () -> String
    ) -> HostileModel {
        HostileModel(name, kind, message) { folder in
            let (architecture, url) = (
                folder.appending(path: "deploy.prototxt"), folder.appending(path: "model.caffemodel")
            )
            try Data(prototxt().utf8).write(to: architecture)
            try Data(weights()).write(to: url)
            var importer = ModelImporter()
            importer.prototxt = architecture
            return (url, importer)
        }
    }

    private static let dense = caffeWeights([("d", [([2, 16], Array(repeating: 1, count: 32)), ([2], [0, 0])])])
    private static let input = "input: 'x' input_shape { dim: 1 dim: 1 dim: 4 dim: 4 } "

    /// Creates a model with one layer, which reads the image.
    private static func layer(
        _ name: String, _ kind: HostileModel.Kind, _ message: String, _ type: String, _ settings: String = "",
        weights: @escaping @Sendable () -> [UInt8] = { dense }
    ) -> HostileModel {
        model(name, kind, message, weights: weights) {
            input + "layer { name: 'd' type: '\(type)' bottom: 'x' top: 'y' \(settings) }"
        }
    }

    private static let texts: [HostileModel] = [
        model("an empty architecture", .unsuitableModel, "0 inputs") { "" },
        model("100,000 nested messages", .malformed, "too deep") { String(repeating: "a{", count: 100_000) },
        model("100,000 nested lists", .malformed, "expected a name or a value") {
            String(repeating: "a:[", count: 100_000)
        },
        model("an unterminated string", .malformed, "without a closing quote") {
            input + "name: \"" + String(repeating: "a", count: 100_000)
        },
        model("a string that ends in a backslash", .malformed, "without a closing quote") { "name: \"\\" },
        model("a string over two lines", .malformed, "line 1: a string without a closing quote") { "name: \"a\nb\"" },
        model("an unterminated message", .malformed, "the text ends inside a message") { input + "layer { name: 'a'" },
        model("a closing brace without an opening one", .malformed, "without a matching {") { input + "}" },
        model("a name without a value", .malformed, "the end, expected a name or a value") { input + "name:" },
        model("zero bytes", .malformed, "expected a name or a value") { String(repeating: "\0", count: 1000) },
        model("a million values", .malformed, "more than 131072 values") {
            String(repeating: "a:1 ", count: 1_000_000)
        },
        model("five million spaces", .malformed, "5000000 bytes") { String(repeating: " ", count: 5_000_000) },
        model("layers in both formats", .malformed, "mixes the old format") {
            input + "layer { } layers { }"
        },
        HostileModel("weights without an architecture", .missing, "deploy.prototxt") { dense },
    ]

    private static let architectures: [HostileModel] = [
        model("two inputs", .unsuitableModel, "2 inputs") { input + "input: 'z'" },
        model("an input of two axes", .unsuitableModel, "the input shape [1, 3]") {
            "input: 'x' input_dim: 1 input_dim: 3"
        },
        model("an input with a length that is a word", .unsuitableModel, "the input shape [1, 3]") {
            "input: 'x' input_dim: 1 input_dim: 3 input_dim: many input_dim: 4e9"
        },
        model("an image of 2^62 rows", .malformed, "4611686018427387904") {
            "input: 'x' input_shape { dim: 1 dim: 1 dim: 4611686018427387904 dim: 1 }"
        },
        model("an image with a negative height", .malformed, "expected 1x1") {
            "input: 'x' input_shape { dim: 1 dim: 1 dim: -4 dim: 4 }"
        },
        model("no layers", .malformed, "no layers") { input },
        model("a layer with an undefined input", .malformed, "which no earlier") {
            input + "layer { name: 'a' type: 'ReLU' bottom: 'b' top: 'a' }"
        },
        model("layers in a cycle", .malformed, "which no earlier") {
            input
                + "layer { name: 'a' type: 'ReLU' bottom: 'b' top: 'a' } layer { name: 'b' type: 'ReLU' bottom: 'a' top: 'b' }"
        },
        model("a layer without inputs", .malformed, "has no inputs") {
            input + "layer { name: 'a' type: 'ReLU' top: 'a' }"
        },
        model("a layer without outputs", .malformed, "no layers") {
            input + "layer { name: 'a' type: 'ReLU' bottom: 'x' }"
        },
        model("unsupported layer types", .unsupported, "Python \"p\"") {
            input
                + "layer { name: 'p' type: 'Python' bottom: 'x' top: 'p' } layer { type: 'Crop' bottom: 'p' top: 'c' }"
        },
        model("a layer without a type", .unsupported, "operators that Imprint does not support") {
            input + "layer { bottom: 'x' top: 'p' }"
        },
    ]

    private static func convolution(
        _ name: String, _ kind: HostileModel.Kind, _ message: String, _ settings: String, shape: [Int] = [2, 1, 1, 1],
        values: [Float] = [1, 1]
    ) -> HostileModel {
        let kernel = shape.count == 4 ? "kernel_h: \(shape[2]) kernel_w: \(shape[3])" : "kernel_size: 1"
        return layer(
            name, kind, message, "Convolution",
            "convolution_param { num_output: \(shape[0]) bias_term: false \(kernel) \(settings) }"
        ) {
            caffeWeights([("d", [(shape, values)])])
        }
    }

    private static let layers: [HostileModel] = [
        convolution("a stride of 0", .network, "stride", "stride: 0"),
        convolution("a stride of 2^62", .network, "stride", "stride_h: 4611686018427387904"),
        convolution("a padding of 2^63 - 1", .network, "padding", "pad: 9223372036854775807"),
        convolution("a negative padding", .network, "padding", "pad: -1"),
        convolution("0 groups", .malformed, "0 groups", "group: 0"),
        convolution("groups that do not divide the channels", .malformed, "3 groups", "group: 3"),
        convolution("a dilation of 0", .network, "dilation", "dilation: 0"),
        convolution("weights of two axes", .unsupported, "expected four axes", "", shape: [2, 1]),
        convolution("weights for other channels", .malformed, "for 2 channels", "", shape: [1, 2, 1, 1]),
        convolution(
            "weights larger than the image", .network, "larger than the image", "", shape: [1, 1, 25, 1],
            values: Array(repeating: 1, count: 25)),
        convolution("a weight that is NaN", .malformed, "not finite", "", values: [1, .nan]),
        layer("a pooling window of 0", .network, "kernelSize", "Pooling"),
        layer(
            "a pooling window larger than the image", .network, "larger than the image", "Pooling",
            "pooling_param { kernel_size: 9 }"),
        layer(
            "a pooling window of 2^62", .network, "kernelSize", "Pooling",
            "pooling_param { pool: AVE kernel_size: 4611686018427387904 }"),
        layer(
            "stochastic pooling", .unsupported, "STOCHASTIC", "Pooling",
            "pooling_param { pool: STOCHASTIC kernel_size: 2 }"),
        layer(
            "a response normalization over -2^63 channels", .network, "size", "LRN",
            "lrn_param { local_size: -9223372036854775808 }"),
        layer(
            "a matrix with a wrong number of outputs", .malformed, "32 weights for 3 outputs", "InnerProduct",
            "inner_product_param { num_output: 3 }"),
        layer(
            "2^62 outputs", .malformed, "32 weights for 4611686018427387904", "InnerProduct",
            "inner_product_param { num_output: 4611686018427387904 }"),
        layer(
            "a shape of 2^62", .malformed, "reshapes [1, ", "Reshape",
            "reshape_param { shape { dim: 4611686018427387904 dim: 4611686018427387904 } }"),
        layer(
            "a shape with an inferred length that is not an integer", .malformed, "to [5, -1]", "Reshape",
            "reshape_param { shape { dim: 5 dim: -1 } }"),
        layer("a negative shape", .malformed, "to [-5, -3]", "Reshape", "reshape_param { shape { dim: -5 dim: -3 } }"),
        layer(
            "a slice point beyond the end", .malformed, "splits 1 elements into [9, -8]", "Slice",
            "top: 'z' slice_param { slice_point: 9 }"),
        layer("a slice along axis 9", .malformed, "axis 9", "Slice", "slice_param { axis: 9 }"),
        layer(
            "a concatenation along axis 2^62", .malformed, "an invalid axis", "Concat",
            "concat_param { axis: 4611686018427387904 }"),
        layer(
            "addends for other channels", .malformed, "2 factors or addends", "Scale", "scale_param { bias_term: true }"
        ) {
            caffeWeights([("d", [([1], [2]), ([2], [1, 1])])])
        },
        layer("no factors", .malformed, "factors", "Scale") { caffeWeights([("d", [([0], [])])]) },
        layer("factors for other channels", .malformed, "3 factors or addends", "Scale") {
            caffeWeights([("d", [([3], [1, 2, 3])])])
        },
        layer("a hexadecimal number", .malformed, "expected a decimal number", "Power", "power_param { scale: 0x10 }"),
        layer("a power of 2", .unsupported, "power other than 1", "Power", "power_param { power: 2 }"),
        layer("limits that are NaN", .network, "minimum", "Clip", "clip_param { min: nan max: nan }"),
        model("channels that double sixty times", .exceedsLimit, "more than any image model") {
            input
                + (0..<60).map { "layer { name: 'c' type: 'Concat' bottom: 'x' bottom: 'x' top: 'x' }\n# \($0)\n" }
                .joined()
        },
        model("1,000 factors of 160,000 channels", .exceedsLimit, "many times") {
            "input: 'x' input_shape { dim: 1 dim: 1 dim: 400 dim: 400 } "
                + "layer { name: 'f' type: 'Flatten' bottom: 'x' top: 'x' } layer { name: 's' type: 'Softmax' bottom: 'x' top: 'x' } "
                + String(
                    repeating: "layer { name: 'p' type: 'Power' bottom: 'x' top: 'x' power_param { scale: 2 } } ",
                    count: 1000)
        },
    ]

    private static let weights: [HostileModel] = [
        layer("an empty file", .unknownFormat, "not a model file", "ReLU") { [] },
        layer("an HDF5 file", .unsuitableModel, "HDF5", "ReLU") { [0x89] + Array("HDF\r\n".utf8) + [0x1A, 0x0A] },
        layer("a blob beyond its layer", .malformed, "truncated in the middle", "ReLU") {
            WireField.encode([.text(1, "n"), .bytes(100, [0x3A, 0x7F, 0x2A])])
        },
        layer("1,000 nested messages", .malformed, "no layers with weights", "ReLU") {
            var bytes: [UInt8] = []
            for _ in 0..<1000 { bytes = WireField.encode([.bytes(100, bytes)]) }
            return bytes
        },
        layer("a layer in the first format", .unsuitableModel, "first format", "ReLU") {
            WireField.encode([.text(1, "n"), .message(2, [.message(1, [.text(1, "n")])])])
        },
        layer("a layer without blobs", .malformed, "no layers with weights", "ReLU") {
            WireField.encode([.text(1, "n"), .message(100, [.text(1, "d")])])
        },
        layer("a name that is not UTF-8", .malformed, "not UTF-8", "ReLU") {
            WireField.encode([.message(100, [.bytes(1, [0xFF]), .message(7, [.floats(5, [1])])])])
        },
        layer("65 blobs", .malformed, "more than 64 blobs", "ReLU") {
            WireField.encode([.message(100, [.text(1, "d")] + (0..<65).map { _ in .message(7, []) })])
        },
        layer(
            "no bias", .malformed, "has 1 blobs in the .caffemodel, expected 2", "InnerProduct",
            "inner_product_param { num_output: 2 }"
        ) {
            caffeWeights([("d", [([2, 16], Array(repeating: 1, count: 32))])])
        },
        layer(
            "weights of another layer", .malformed, "has 0 blobs", "InnerProduct",
            "inner_product_param { num_output: 2 }"
        ) {
            caffeWeights([("other", [([2, 16], Array(repeating: 1, count: 32))])])
        },
        layer(
            "a shape with 2^62 twice", .malformed, "values for the shape", "InnerProduct",
            "inner_product_param { num_output: 2 }"
        ) {
            caffeWeights([("d", [([1 << 62, 1 << 62], [1]), ([2], [0, 0])])])
        },
        layer(
            "a negative shape", .malformed, "values for the shape", "InnerProduct",
            "inner_product_param { num_output: 2 }"
        ) {
            caffeWeights([("d", [([-2, -16], Array(repeating: 1, count: 32)), ([2], [0, 0])])])
        },
        layer("a shape of 33 axes", .malformed, "more than 32 axes", "ReLU") {
            caffeWeights([("d", [(Array(repeating: 1, count: 33), [1])])])
        },
        layer(
            "values of three bytes", .malformed, "the wrong wire type", "InnerProduct",
            "inner_product_param { num_output: 2 }"
        ) {
            WireField.encode([.message(100, [.text(1, "d"), .message(7, [.bytes(5, [1, 2, 3])]), .message(7, [])])])
        },
        layer("a negative variance", .malformed, "expected variances", "BatchNorm") {
            caffeWeights([("d", [([1], [0]), ([1], [-1]), ([1], [1])])])
        },
        layer("statistics with a subnormal factor", .malformed, "not finite", "BatchNorm") {
            caffeWeights([("d", [([1], [1]), ([1], [1]), ([1], [.leastNonzeroMagnitude])])])
        },
        layer(
            "statistics of the image", .unsupported, "use_global_stats: false, expected running statistics",
            "BatchNorm", "batch_norm_param { use_global_stats: false }"
        ) {
            caffeWeights([("d", [([1], [0]), ([1], [1]), ([1], [1])])])
        },
        layer("statistics of other channels", .malformed, "expected 1", "BatchNorm") {
            caffeWeights([("d", [([2], [1, 1]), ([2], [1, 1]), ([1], [1])])])
        },
    ]
}
