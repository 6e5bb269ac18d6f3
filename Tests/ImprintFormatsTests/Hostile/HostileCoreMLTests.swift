import Foundation
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Core ML networks that no writer makes: each is refused by name, in bounded time and memory.
@Suite struct HostileCoreMLTests {
    @Test(arguments: files + weights + windows + shapes + bombs)
    func refused(_ model: HostileModel) throws { try model.check() }

    private static func file(
        _ name: String, _ kind: HostileModel.Kind, _ words: String, _ fields: @escaping @Sendable () -> [WireField]
    ) -> HostileModel {
        HostileModel(name, kind, words) { WireField.encode(fields()) }
    }

    /// A network that `make` fills.
    private static func network(
        _ name: String, _ kind: HostileModel.Kind, _ words: String, width: Int = 4, height: Int = 4, colors: Int = 10,
        _ make: @escaping @Sendable (inout CoreMLSample) -> Void
    ) -> HostileModel {
        HostileModel(name, kind, words) {
            var sample = CoreMLSample(width: width, height: height, colors: colors)
            make(&sample)
            return sample.bytes
        }
    }

    private static let image = CoreMLSample().image

    private static let files: [HostileModel] = [
        file("pipelines in pipelines, a hundred deep", .malformed, "are nested more than") {
            (0..<100).reduce([.message(403, [])] as [WireField]) { inner, _ in
                [.integer(1, 4), .message(2, []), .message(202, [.message(1, inner)])]
            }
        },
        file("a version alone", .unknownFormat, "not a model file") { [.integer(1, 4)] },
        file("a network that is a number", .malformed, "the wrong wire type") {
            [.integer(1, 4), .message(2, []), .integer(403, 1)]
        },
        file("an empty pipeline", .unsuitableModel, "an empty pipeline") {
            [.integer(1, 4), .message(2, [image]), .message(202, [])]
        },
        file("300 models in a pipeline", .malformed, "more than 256 models") {
            [.integer(1, 4), .message(2, [image]), .message(202, (0..<300).map { _ in .message(1, []) })]
        },
        file("a linear model alone", .unsuitableModel, "without a preceding network") {
            [
                .integer(1, 4), .message(2, [image]),
                .message(400, [.message(1, [.doubles(1, [1])]), .message(100, [.text(1, "a"), .text(1, "b")])]),
            ]
        },
        file("a tree", .unsuitableModel, "a model with a part of the type") {
            [.integer(1, 4), .message(2, [image]), .message(402, [])]
        },
        file("no description", .unsuitableModel, "0 inputs") { [.integer(1, 4), .message(2, []), .message(403, [])] },
        file("two inputs", .unsuitableModel, "2 inputs") {
            [.integer(1, 4), .message(2, [image, image]), .message(403, [])]
        },
        file("a colour space of 99", .malformed, "color space 99") {
            [.integer(1, 4), .message(2, [CoreMLSample(colors: 99).image]), .message(403, [])]
        },
        network("an image of 2^40 columns", .malformed, "the parameter 1099511627776", width: 1 << 40) {
            $0.add("r", 130, [.message(10, [])])
        },
        network("an image of no columns", .malformed, "expected 1x1", width: 0) {
            $0.add("r", 130, [.message(10, [])])
        },
        file("a million layers", .malformed, "more than 65536 layers") {
            [.integer(1, 4), .message(2, [image]), .message(403, (0..<1_000_000).map { _ in .message(1, []) })]
        },
        network("a name that is not UTF-8", .malformed, "not UTF-8") {
            $0.layers = [.message(1, [.bytes(1, [0xC0, 0xAF])])]
        },
        network("a layer without a kind", .unsupported, "kind 0") { $0.layers = [.message(1, [.text(1, "l")])] },
        network("layers of other kinds", .unsupported, "custom Mine") {
            $0.add("a", 500, [.text(10, "Mine")])
            $0.add("b", 420)
        },
        network("more labels than outputs", .missing, "label for each of its 1 outputs, but 2") {
            $0.labels = [.message(100, [.text(1, "a"), .text(1, "b")])]
            $0.add("pool", 120, [.integer(1, 1), .integer(60, 1)])
        },
        network("settings of 5,000 fields", .malformed, "more than 4096 fields") {
            $0.add("r", 130, (0..<5000).map { _ in .integer(99, 1) })
        },
        network("a mean image of other size", .malformed, "its mean image has 3 values") {
            $0.preprocessing = [.message(2, [.text(1, "image"), .message(11, [.floats(1, [1, 2, 3])])])]
            $0.add("r", 130, [.message(10, [])])
        },
        network("a scale that is no number", .malformed, "its preprocessing has") {
            $0.preprocessing = [.message(2, [.text(1, "image"), .message(10, [.float(10, .nan)])])]
            $0.add("pool", 120, [.integer(1, 1), .integer(60, 1)])
        },
    ]

    /// A convolution of one channel, its window 1x1 where nothing else is said.
    private static func convolution(
        _ name: String, _ kind: HostileModel.Kind, _ words: String, _ settings: @escaping @Sendable () -> [WireField]
    ) -> HostileModel {
        network(name, kind, words) {
            $0.add("conv", 100, [.integer(1, 1), .integer(2, 1), .integers(20, [1, 1])] + settings())
        }
    }

    /// Weights of the one number of a convolution.
    private static func weight(
        _ name: String, _ kind: HostileModel.Kind, _ words: String, _ fields: @escaping @Sendable () -> [WireField]
    ) -> HostileModel {
        convolution(name, kind, words) { [.message(50, []), .message(90, fields())] }
    }

    private static func codes(_ bytes: [UInt8], bits: Int, _ rule: WireField...) -> [WireField] {
        [.bytes(30, bytes), .message(40, [.integer(1, bits)] + rule)]
    }

    private static let weights: [HostileModel] = [
        weight("no numbers", .malformed, "0 values, expected 1") { [] },
        weight("two numbers", .malformed, "2 values, expected 1") { [.floats(1, [1, 2])] },
        weight("numbers of three bytes", .malformed, "the wrong wire type") { [.bytes(1, [1, 2, 3])] },
        weight("half numbers of three bytes", .malformed, "3 bytes, expected 2") { [.bytes(2, [1, 2, 3])] },
        weight("a number that is none", .malformed, "not finite") { [.floats(1, [.nan])] },
        weight("a half number that is infinite", .malformed, "not finite") { [.bytes(2, [0, 0x7C])] },
        weight("codes without a rule", .malformed, "codes without quantization") { [.bytes(30, [1])] },
        weight("codes of 0 bits", .malformed, "codes of 0 bits") { codes([1], bits: 0) },
        weight("codes of 2^31 - 1 bits", .malformed, "expected 1 to 8") { codes([1], bits: 1 << 31 - 1) },
        weight("codes with no factor", .malformed, "0 scales") { codes([1], bits: 8, .message(101, [])) },
        weight("two factors for one number", .malformed, "2 scales") {
            codes([1], bits: 8, .message(101, [.floats(1, [1, 2])]))
        },
        weight("a table shorter than its codes", .malformed, "a lookup table of 3 values, expected 4") {
            codes([0xFF], bits: 2, .message(102, [.floats(1, [1, 2, 3])]))
        },
        weight("more codes than numbers", .malformed, "2 bytes of codes") {
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
        network("a matrix of 2^62 numbers", .malformed, "values, expected") {
            $0.add("dense", 140, [.integer(1, 1 << 31 - 1), .integer(2, 1 << 31 - 1), .weights(20, [1])])
        },
    ]

    private static let windows: [HostileModel] = [
        convolution("2^40 outputs", .malformed, "the parameter 1099511627776") {
            [.integer(1, 1 << 40), .message(50, []), .weights(90, [1])]
        },
        convolution("four numbers of a window", .malformed, "the kernel size, stride or factor [1, 1, 2147483647") {
            [.integers(20, [1 << 31 - 1, 1 << 31 - 1]), .message(50, []), .weights(90, [1])]
        },
        convolution("a negative number of outputs", .malformed, "weights of the shape [-1") {
            [.integer(1, -1), .message(50, []), .weights(90, [1])]
        },
        convolution("a step of 0", .malformed, "expected two values of at least 1") {
            [.integers(30, [0, 0]), .message(50, []), .weights(90, [1])]
        },
        convolution("a step of three numbers", .malformed, "expected two values") {
            [.integers(30, [1, 1, 1]), .message(50, []), .weights(90, [1])]
        },
        convolution("a dilation of 2^31 - 1", .network, "dilation") {
            [.integers(40, [1 << 31 - 1, 1 << 31 - 1]), .message(51, [.integer(1, 1)]), .weights(90, [1])]
        },
        convolution("seven groups", .malformed, "in 7 groups") {
            [.integer(10, 7), .message(50, []), .weights(90, [1])]
        },
        convolution("a border of 2^31 - 1", .network, "padding") {
            [
                .message(50, [.message(1, [.message(10, [.integer(1, 1 << 31 - 1)]), .message(10, [])])]),
                .weights(90, [1]),
            ]
        },
        convolution("three borders", .malformed, "has 3 padding amounts") {
            [.message(50, [.message(1, (0..<3).map { _ in .message(10, []) })]), .weights(90, [1])]
        },
        network("a window larger than the image", .network, "larger than the image") {
            $0.add("pool", 120, [.integer(1, 0), .integers(10, [9, 9]), .message(30, [])])
        },
        network("a window of squares", .unsupported, "(L2)") { $0.add("pool", 120, [.integer(1, 2)]) },
        network("a norm over -3 channels", .network, "size") {
            $0.add("response", 180, [.integer(3, -3), .float(4, 1)])
        },
        network("a border around 2^31 - 1 rows", .network, "at most 32768") {
            $0.add(
                "pad", 200,
                [.message(1, []), .message(10, [.message(10, [.integer(1, 1 << 31 - 1)]), .message(10, [])])])
        },
        network("a mirror larger than the image", .network, "less than the image") {
            $0.add("pad", 200, [.message(2, []), .message(10, [.message(10, [.integer(1, 4)]), .message(10, [])])])
        },
        network("2^31 - 1 times as many rows", .network, "factor") {
            $0.add("up", 210, [.integers(1, [1 << 31 - 1, 1 << 31 - 1])])
        },
        network("a limit that is no number", .network, "minimum") {
            $0.add("clip", 660, [.float(1, .nan), .float(2, .nan)])
        },
    ]

    private static let shapes: [HostileModel] = [
        network("layers in a circle", .malformed, "which no earlier") {
            $0.add("a", 130, [.message(10, [])], from: ["b"])
            $0.add("b", 130, [.message(10, [])], from: ["a"])
        },
        network("a shape of 2^93", .unsupported, "reshape") {
            $0.add("shape", 300, [.integers(1, [1 << 31 - 1, 1 << 31 - 1, 1 << 31 - 1])])
        },
        network("a shape of less than nothing", .unsupported, "reshape") {
            $0.add("shape", 300, [.integers(1, [-4, -4, 1])])
        },
        network("parts that are not whole", .malformed, "splits 3 elements into", colors: 20) {
            $0.add("split", 330, [.integer(1, 2)], to: ["a", "b"])
        },
        network("parts of 2^31 - 1 and less than nothing", .malformed, "splits 3 elements into", colors: 20) {
            $0.add("split", 975, [.integer(1, -3), .integers(3, [1 << 31 - 1, 4 - 1 << 31])], to: ["a", "b"])
        },
        network("no channels", .malformed, "selects 1 to 1 of 3", colors: 20) {
            $0.add("slice", 350, [.integer(1, 1), .integer(2, 1), .integer(3, 1)])
        },
        network("an order with an axis twice", .malformed, "has the permutation") {
            $0.add("turn", 310, [.integers(1, [0, 1, 1, 2])])
        },
        network("an order with axis 9", .malformed, "has the permutation") {
            $0.add("turn", 310, [.integers(1, [0, 1, 2, 9])])
        },
        network("4,000 more axes", .exceedsLimit, "axes") {
            $0.add("more", 1125, [.integers(1, Array(0..<4000))])
            $0.add("less", 1140, [.integers(1, Array(repeating: 1, count: 3999) + [-1])])
        },
        network("the mean over one axis nine times", .malformed, "without duplicates") {
            $0.add("mean", 1280, [.integers(1, Array(repeating: -1, count: 9))])
        },
        network("a result that the image has no part in", .malformed, "depends on the image") {
            $0.add("constant", 290, [.integers(1, [1]), .weights(2, [1])], from: [])
        },
    ]

    private static let bombs: [HostileModel] = [
        network(
            "channels that double eighty times", .exceedsLimit, "more than any image model", width: 1, height: 1
        ) {
            sample in
            for turn in 0..<80 {
                sample.add(
                    "layer\(turn)", 320, from: Array(repeating: turn == 0 ? "image" : "layer\(turn - 1)", count: 2))
            }
        },
        network("a plane of a row", .exceedsLimit, "many times", width: 1 << 14, height: 1 << 14) {
            $0.add("bias", 250, [.integers(1, [1, 1, 1 << 14]), .weights(2, Array(repeating: 1, count: 1 << 14))])
        },
        network(
            "an image of 2^28 numbers in another order", .exceedsLimit, "more than any image model", width: 1 << 14,
            height: 1 << 14
        ) {
            $0.add("flat", 301)
            $0.add("softmax", 175)
        },
        network("20,000 layers of one name", .malformed, "which no earlier") { sample in
            for turn in 0..<20_000 {
                sample.layers.append(
                    .message(
                        1,
                        [
                            .text(1, "same"), .text(2, turn == 0 ? "image" : "r\(turn - 1)"), .text(3, "r\(turn)"),
                            .message(130, [.message(10, [])]),
                        ]))
            }
            sample.add("last", 130, [.message(10, [])], from: ["nothing"])
        },
        network("numbers of one layer in 2,000", .exceedsLimit, "many times", width: 400, height: 250) { sample in
            sample.add(
                "constant", 290, [.integers(1, [1, 250, 400]), .weights(2, Array(repeating: 1, count: 100_000))],
                from: [])
            for turn in 0..<2000 {
                sample.add("sum\(turn)", 230, from: [turn == 0 ? "image" : "scale\(turn - 1)", "constant"])
                sample.add("scale\(turn)", 130, [.message(10, [])])
            }
        },
    ]
}
