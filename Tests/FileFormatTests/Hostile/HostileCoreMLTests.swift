import Foundation
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Invalid Core ML networks: each is rejected with the expected error, within limits of time and memory.
@Suite struct HostileCoreMLTests {
    @Test(
        "An invalid Core ML network is rejected with its error", arguments: files + weights + windows + shapes + bombs)
    func refused(_ model: HostileModel) throws { try model.check() }

    private static func file(
        _ name: String, _ kind: HostileModel.Kind, _ message: String, _ fields: @escaping @Sendable () -> [WireField]
    ) -> HostileModel {
        HostileModel(name, kind, message) { WireField.encode(fields()) }
    }

    /// Creates a network with the layers that `make` adds.
    private static func network(
        _ name: String, _ kind: HostileModel.Kind, _ message: String, width: Int = 4, height: Int = 4, colors: Int = 10,
        _ make: @escaping @Sendable (inout CoreMLSample) -> Void
    ) -> HostileModel {
        HostileModel(name, kind, message) {
            var sample = CoreMLSample(width: width, height: height, colors: colors)
            make(&sample)
            return sample.bytes
        }
    }

    private static let image = CoreMLSample().image

    private static let files: [HostileModel] = [
        file("a hundred nested pipelines", .malformed, "are nested more than") {
            (0..<100).reduce([.message(403, [])] as [WireField]) { inner, _ in
                [.integer(1, 4), .message(2, []), .message(202, [.message(1, inner)])]
            }
        },
        file("only a version", .unknownFormat, "not a model file") { [.integer(1, 4)] },
        file("a network that is a number", .malformed, "the wrong wire type") {
            [.integer(1, 4), .message(2, []), .integer(403, 1)]
        },
        file("an empty pipeline", .unsuitableModel, "an empty pipeline") {
            [.integer(1, 4), .message(2, [image]), .message(202, [])]
        },
        file("300 models in a pipeline", .malformed, "more than 256 models") {
            [.integer(1, 4), .message(2, [image]), .message(202, (0..<300).map { _ in .message(1, []) })]
        },
        file("only a linear model", .unsuitableModel, "without a preceding network") {
            [
                .integer(1, 4), .message(2, [image]),
                .message(400, [.message(1, [.doubles(1, [1])]), .message(100, [.text(1, "a"), .text(1, "b")])]),
            ]
        },
        file("a decision tree", .unsuitableModel, "a model with a part of the type") {
            [.integer(1, 4), .message(2, [image]), .message(402, [])]
        },
        file("no description", .unsuitableModel, "0 inputs") { [.integer(1, 4), .message(2, []), .message(403, [])] },
        file("two inputs", .unsuitableModel, "2 inputs") {
            [.integer(1, 4), .message(2, [image, image]), .message(403, [])]
        },
        file("the color space 99", .malformed, "color space 99") {
            [.integer(1, 4), .message(2, [CoreMLSample(colors: 99).image]), .message(403, [])]
        },
        network("an image of 2^40 columns", .malformed, "the parameter 1099511627776", width: 1 << 40) {
            $0.add("r", 130, [.message(10, [])])
        },
        network("an image without columns", .malformed, "expected 1x1", width: 0) {
            $0.add("r", 130, [.message(10, [])])
        },
        file("a million layers", .malformed, "more than 65536 layers") {
            [.integer(1, 4), .message(2, [image]), .message(403, (0..<1_000_000).map { _ in .message(1, []) })]
        },
        network("a name that is not UTF-8", .malformed, "not UTF-8") {
            $0.layers = [.message(1, [.bytes(1, [0xC0, 0xAF])])]
        },
        network("a layer without a type", .unsupported, "kind 0") { $0.layers = [.message(1, [.text(1, "l")])] },
        network("unsupported layers", .unsupported, "custom Mine") {
            $0.add("a", 500, [.text(10, "Mine")])
            $0.add("b", 420)
        },
        network("more labels than outputs", .missing, "matching labels: 2 for 1 output") {
            $0.labels = [.message(100, [.text(1, "a"), .text(1, "b")])]
            $0.add("pool", 120, [.integer(1, 1), .integer(60, 1)])
        },
        network("a layer with 5,000 fields", .malformed, "more than 4096 fields") {
            $0.add("r", 130, (0..<5000).map { _ in .integer(99, 1) })
        },
        network("a mean image of another size", .malformed, "its mean image has 3 values") {
            $0.preprocessing = [.message(2, [.text(1, "image"), .message(11, [.floats(1, [1, 2, 3])])])]
            $0.add("r", 130, [.message(10, [])])
        },
        network("a scale that is NaN", .malformed, "its preprocessing has") {
            $0.preprocessing = [.message(2, [.text(1, "image"), .message(10, [.float(10, .nan)])])]
            $0.add("pool", 120, [.integer(1, 1), .integer(60, 1)])
        },
    ]

    /// Creates a network with a convolution of one channel, by default 1x1.
    private static func convolution(
        _ name: String, _ kind: HostileModel.Kind, _ message: String, _ settings: @escaping @Sendable () -> [WireField]
    ) -> HostileModel {
        network(name, kind, message) {
            $0.add("conv", 100, [.integer(1, 1), .integer(2, 1), .integers(20, [1, 1])] + settings())
        }
    }

    /// Creates a network with a convolution of one weight, which `fields` encode.
    private static func weight(
        _ name: String, _ kind: HostileModel.Kind, _ message: String, _ fields: @escaping @Sendable () -> [WireField]
    ) -> HostileModel {
        convolution(name, kind, message) { [.message(50, []), .message(90, fields())] }
    }

    private static func codes(_ bytes: [UInt8], bits: Int, _ quantization: WireField...) -> [WireField] {
        [.bytes(30, bytes), .message(40, [.integer(1, bits)] + quantization)]
    }

    private static let weights: [HostileModel] = [
        weight("no values", .malformed, "0 values, expected 1") { [] },
        weight("two values", .malformed, "2 values, expected 1") { [.floats(1, [1, 2])] },
        weight("values of three bytes", .malformed, "the wrong wire type") { [.bytes(1, [1, 2, 3])] },
        weight("float16 values of three bytes", .malformed, "3 bytes, expected 2") { [.bytes(2, [1, 2, 3])] },
        weight("a NaN", .malformed, "not finite") { [.floats(1, [.nan])] },
        weight("an infinite float16 value", .malformed, "not finite") { [.bytes(2, [0, 0x7C])] },
        weight("codes without quantization", .malformed, "codes without quantization") { [.bytes(30, [1])] },
        weight("codes of 0 bits", .malformed, "codes of 0 bits") { codes([1], bits: 0) },
        weight("codes of 2^31 - 1 bits", .malformed, "expected 1 to 8") { codes([1], bits: 1 << 31 - 1) },
        weight("codes without a scale", .malformed, "0 scales") { codes([1], bits: 8, .message(101, [])) },
        weight("two scales for one value", .malformed, "2 scales") {
            codes([1], bits: 8, .message(101, [.floats(1, [1, 2])]))
        },
        weight("a lookup table shorter than its codes", .malformed, "a lookup table of 3 values, expected 4") {
            codes([0xFF], bits: 2, .message(102, [.floats(1, [1, 2, 3])]))
        },
        weight("more codes than weights", .malformed, "2 bytes of codes") {
            codes([1, 2], bits: 8, .message(101, [.floats(1, [1])]))
        },
        weight("signed codes", .unsupported, "signed codes") { [.bytes(31, [1])] },
        convolution("no weights", .malformed, "has no weights") { [.message(50, [])] },
        network("a negative variance", .malformed, "expected variances") {
            $0.add("norm", 160, [.integer(1, 1)] + (15...17).map { .weights($0, [1]) } + [.weights(18, [-1])])
            $0.add("pool", 120, [.integer(1, 1), .integer(60, 1)])
        },
        network("2^31 - 1 channels of statistics", .malformed, "expected 2147483647") {
            $0.add("norm", 160, [.integer(1, 1 << 31 - 1)] + (15...18).map { .weights($0, [1]) })
        },
        network("a matrix of 2^62 elements", .malformed, "1 value, expected") {
            $0.add("dense", 140, [.integer(1, 1 << 31 - 1), .integer(2, 1 << 31 - 1), .weights(20, [1])])
        },
    ]

    private static let windows: [HostileModel] = [
        convolution("2^40 outputs", .malformed, "the parameter 1099511627776") {
            [.integer(1, 1 << 40), .message(50, []), .weights(90, [1])]
        },
        convolution("a kernel size of four values", .malformed, "the kernel size, stride or factor [1, 1, 2147483647") {
            [.integers(20, [1 << 31 - 1, 1 << 31 - 1]), .message(50, []), .weights(90, [1])]
        },
        convolution("a negative number of outputs", .malformed, "weights of the shape [-1") {
            [.integer(1, -1), .message(50, []), .weights(90, [1])]
        },
        convolution("a stride of 0", .malformed, "expected two values of at least 1") {
            [.integers(30, [0, 0]), .message(50, []), .weights(90, [1])]
        },
        convolution("a stride of three values", .malformed, "expected two values") {
            [.integers(30, [1, 1, 1]), .message(50, []), .weights(90, [1])]
        },
        convolution("a dilation of 2^31 - 1", .network, "dilation") {
            [.integers(40, [1 << 31 - 1, 1 << 31 - 1]), .message(51, [.integer(1, 1)]), .weights(90, [1])]
        },
        convolution("seven groups for one channel", .malformed, "in 7 groups") {
            [.integer(10, 7), .message(50, []), .weights(90, [1])]
        },
        convolution("a padding of 2^31 - 1", .network, "padding") {
            [
                .message(50, [.message(1, [.message(10, [.integer(1, 1 << 31 - 1)]), .message(10, [])])]),
                .weights(90, [1]),
            ]
        },
        convolution("three padding amounts", .malformed, "has 3 padding amounts") {
            [.message(50, [.message(1, (0..<3).map { _ in .message(10, []) })]), .weights(90, [1])]
        },
        network("a pooling window larger than the image", .network, "larger than the image") {
            $0.add("pool", 120, [.integer(1, 0), .integers(10, [9, 9]), .message(30, [])])
        },
        network("an L2 pooling", .unsupported, "(L2)") { $0.add("pool", 120, [.integer(1, 2)]) },
        network("a response normalization over -3 channels", .network, "size") {
            $0.add("response", 180, [.integer(3, -3), .float(4, 1)])
        },
        network("a padding layer of 2^31 - 1 rows", .network, "at most 32768") {
            $0.add(
                "pad", 200,
                [.message(1, []), .message(10, [.message(10, [.integer(1, 1 << 31 - 1)]), .message(10, [])])])
        },
        network("a reflection larger than the image", .network, "smaller than the reflected image") {
            $0.add("pad", 200, [.message(2, []), .message(10, [.message(10, [.integer(1, 4)]), .message(10, [])])])
        },
        network("an upsampling factor of 2^31 - 1", .network, "factor") {
            $0.add("up", 210, [.integers(1, [1 << 31 - 1, 1 << 31 - 1])])
        },
        network("a limit that is NaN", .network, "minimum") {
            $0.add("clip", 660, [.float(1, .nan), .float(2, .nan)])
        },
    ]

    private static let shapes: [HostileModel] = [
        network("layers in a cycle", .malformed, "which no earlier") {
            $0.add("a", 130, [.message(10, [])], from: ["b"])
            $0.add("b", 130, [.message(10, [])], from: ["a"])
        },
        network("a shape of 2^93", .unsupported, "reshape") {
            $0.add("shape", 300, [.integers(1, [1 << 31 - 1, 1 << 31 - 1, 1 << 31 - 1])])
        },
        network("a negative shape", .unsupported, "reshape") {
            $0.add("shape", 300, [.integers(1, [-4, -4, 1])])
        },
        network("a split into unequal parts", .malformed, "splits 3 elements into", colors: 20) {
            $0.add("split", 330, [.integer(1, 2)], to: ["a", "b"])
        },
        network("a split into 2^31 - 1 and a negative part", .malformed, "splits 3 elements into", colors: 20) {
            $0.add("split", 975, [.integer(1, -3), .integers(3, [1 << 31 - 1, 4 - 1 << 31])], to: ["a", "b"])
        },
        network("a slice without channels", .malformed, "selects 1 to 1 of 3", colors: 20) {
            $0.add("slice", 350, [.integer(1, 1), .integer(2, 1), .integer(3, 1)])
        },
        network("a permutation with an axis twice", .malformed, "has the permutation") {
            $0.add("permute", 310, [.integers(1, [0, 1, 1, 2])])
        },
        network("a permutation with axis 9", .malformed, "has the permutation") {
            $0.add("permute", 310, [.integers(1, [0, 1, 2, 9])])
        },
        network("4,000 inserted axes", .exceedsLimit, "axes") {
            $0.add("more", 1125, [.integers(1, Array(0..<4000))])
            $0.add("less", 1140, [.integers(1, Array(repeating: 1, count: 3999) + [-1])])
        },
        network("a mean over one axis nine times", .malformed, "without duplicates") {
            $0.add("mean", 1280, [.integers(1, Array(repeating: -1, count: 9))])
        },
        network("an output that does not depend on the image", .malformed, "depends on the image") {
            $0.add("constant", 290, [.integers(1, [1]), .weights(2, [1])], from: [])
        },
    ]

    private static let bombs: [HostileModel] = [
        network(
            "channels that double eighty times", .exceedsLimit, "more than any image model", width: 1, height: 1
        ) {
            sample in
            for index in 0..<80 {
                sample.add(
                    "layer\(index)", 320, from: Array(repeating: index == 0 ? "image" : "layer\(index - 1)", count: 2))
            }
        },
        network("a row broadcast to a large image", .exceedsLimit, "many times", width: 1 << 14, height: 1 << 14) {
            $0.add("bias", 250, [.integers(1, [1, 1, 1 << 14]), .weights(2, Array(repeating: 1, count: 1 << 14))])
        },
        network(
            "a permuted image of 2^28 elements", .exceedsLimit, "more than any image model", width: 1 << 14,
            height: 1 << 14
        ) {
            $0.add("flat", 301)
            $0.add("softmax", 175)
        },
        network("20,000 layers with the same name", .malformed, "which no earlier") { sample in
            for index in 0..<20_000 {
                sample.layers.append(
                    .message(
                        1,
                        [
                            .text(1, "same"), .text(2, index == 0 ? "image" : "r\(index - 1)"), .text(3, "r\(index)"),
                            .message(130, [.message(10, [])]),
                        ]))
            }
            sample.add("last", 130, [.message(10, [])], from: ["undefined"])
        },
        network("a constant that 2,000 layers read", .exceedsLimit, "many times", width: 400, height: 250) { sample in
            sample.add(
                "constant", 290, [.integers(1, [1, 250, 400]), .weights(2, Array(repeating: 1, count: 100_000))],
                from: [])
            for index in 0..<2000 {
                sample.add("sum\(index)", 230, from: [index == 0 ? "image" : "scale\(index - 1)", "constant"])
                sample.add("scale\(index)", 130, [.message(10, [])])
            }
        },
    ]
}
