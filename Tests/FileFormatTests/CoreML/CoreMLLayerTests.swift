import Foundation
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// The output of each Core ML layer for a small image, compared to separately computed values.
@Suite struct CoreMLLayerTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let add: @Sendable (inout CoreMLSample) -> Void
        /// The expected logits for an image x[channel][row][column].
        let expected: @Sendable ([[[Float]]]) -> [Float]

        init(
            _ name: String, _ add: @escaping @Sendable (inout CoreMLSample) -> Void,
            _ expected: @escaping @Sendable ([[[Float]]]) -> [Float]
        ) {
            (testDescription, self.add, self.expected) = (name, add, expected)
        }

        /// Creates a case with one layer.
        init(
            _ name: String, _ kind: Int, _ settings: @escaping @Sendable () -> [WireField],
            _ expected: @escaping @Sendable ([[[Float]]]) -> [Float]
        ) {
            self.init(name, { $0.add("layer", kind, settings()) }, expected)
        }
    }

    private static func flat(_ x: [[[Float]]]) -> [Float] { x.flatMap { $0.flatMap { $0 } } }
    private static func each(_ function: @escaping @Sendable (Float) -> Float) -> @Sendable ([[[Float]]]) -> [Float] {
        { flat($0).map(function) }
    }

    /// Applies a function to `count` x `count` windows of a channel, from row and column `first` on, clipped to the image.
    private static func windows(
        _ x: [[Float]], _ kernel: Int, _ stride: Int, first: Int, count: Int, _ function: ([Float]) -> Float
    ) -> [Float] {
        (0..<(count * count)).map { index in
            let (top, left) = (index / count * stride + first, index % count * stride + first)
            return function(
                (top..<(top + kernel)).flatMap { row in
                    (left..<(left + kernel)).compactMap { column in
                        x.indices.contains(row) && x[row].indices.contains(column) ? x[row][column] : nil
                    }
                })
        }
    }

    static let activations: [Case] = [
        Case("linear", 130, { [.message(5, [.float(1, 0.5), .float(2, -1)])] }, each { 0.5 * $0 - 1 }),
        Case("ReLU", 130, { [.message(10, [])] }, each { max($0, 0) }),
        Case("leakyReLU", 130, { [.message(15, [.float(1, 0.25)])] }, each { $0 > 0 ? $0 : 0.25 * $0 }),
        Case(
            "PReLU with a shared slope", 130, { [.message(25, [.weights(1, [0.5])])] }, each { $0 > 0 ? $0 : 0.5 * $0 }),
        Case(
            "PReLU with a slope per channel", 130, { [.message(25, [.weights(1, [0.5, 0.25])])] },
            { x in flat(x).enumerated().map { $1 > 0 ? $1 : $1 * ($0 < 9 ? 0.5 : 0.25) } }),
        Case("tanh", 130, { [.message(30, [])] }, each { tanh($0) }),
        Case("scaledTanh", 130, { [.message(31, [.float(1, 2), .float(2, 0.5)])] }, each { 2 * tanh($0 * 0.5) }),
        Case(
            "sigmoidHard", 130, { [.message(41, [.float(1, 0.25), .float(2, 0.5)])] },
            each { min(max(0.25 * $0 + 0.5, 0), 1) }),
        Case("ELU", 130, { [.message(50, [.float(1, 0.5)])] }, each { $0 > 0 ? $0 : 0.5 * (exp($0) - 1) }),
        Case("softplus", 130, { [.message(70, [])] }, each { log(1 + exp($0)) }),
        Case(
            "threshold", 220, { [.integer(1, 7), .float(2, -0.5), .float(4, 0.25), .float(5, 2)] },
            each { max(2 * $0 + 0.25, -0.5) }),
        Case("clip", 660, { [.float(1, -0.5), .float(2, 0.75)] }, each { min(max($0, -0.5), 0.75) }),
        Case("clampedReLU", 1460, { [.float(1, 0.5), .float(2, 1)] }, each { min($0 > 0 ? $0 : 0.5 * $0, 1) }),
        Case("add a scalar", 230, { [.float(1, 3)] }, each { $0 + 3 }),
        Case("multiply by a scalar", 231, { [.float(1, -2)] }, each { -2 * $0 }),
        Case(
            "swish as a product",
            {
                $0.add("gate", 130, [.message(40, [])])
                $0.add("product", 231, from: ["image", "gate"])
            }, each { $0 / (1 + exp(-$0)) }),
        Case(
            "an upper limit as converters express it",
            {
                $0.add("relu", 130, [.message(10, [])])
                $0.add("minus", 231, [.float(1, -1)])
                $0.add("threshold", 220, [.integer(1, 7), .float(2, -0.75)])
                $0.add("plus", 130, [.message(5, [.float(1, -1)])])
            }, each { min(max($0, 0), 0.75) }),
    ]

    static let windows: [Case] = [
        Case(
            "same convolution, odd padding at the end", 100,
            {
                [
                    .integer(1, 1), .integer(2, 2), .integers(20, [2, 2]), .message(51, []),
                    .weights(90, [1, 1, 1, 1, 0, 0, 0, 0]),
                ]
            },
            { x in windows(x[0], 2, 1, first: 0, count: 3) { $0.reduce(0, +) } }),
        Case(
            "same convolution, odd padding at the start", 100,
            {
                [
                    .integer(1, 1), .integer(2, 2), .integers(20, [2, 2]), .message(51, [.integer(1, 1)]),
                    .weights(90, [0, 0, 0, 0, 1, 1, 1, 1]),
                ]
            }, { x in windows(x[1], 2, 1, first: -1, count: 3) { $0.reduce(0, +) } }),
        Case(
            "grouped convolution with a stride and a bias", 100,
            {
                [
                    .integer(1, 2), .integer(2, 1), .integer(10, 2), .integers(20, [2, 2]), .integers(30, [1, 1]),
                    .integers(40, [1, 1]), .message(50, [.message(1, [])]), .integer(70, 1),
                    .weights(90, [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5]), .weights(91, [0, 1]),
                ]
            },
            { x in
                windows(x[0], 2, 1, first: 0, count: 2) { $0.reduce(0, +) }
                    + windows(x[1], 2, 1, first: 0, count: 2) { $0.reduce(0, +) / 2 + 1 }
            }),
        Case(
            "max pool that rounds up", 120,
            { [.integers(10, [2, 2]), .integers(20, [2, 2]), .message(32, [.integers(10, [0, 0])])] },
            { x in x.flatMap { windows($0, 2, 2, first: 0, count: 2) { $0.max() ?? 0 } } }),
        Case(
            "average pool that counts padding", 120,
            {
                [
                    .integer(1, 1), .integers(10, [3, 3]), .integers(20, [2, 2]),
                    .message(
                        30,
                        [
                            .message(
                                1,
                                [
                                    .message(10, [.integer(1, 1), .integer(2, 1)]),
                                    .message(10, [.integer(1, 1), .integer(2, 1)]),
                                ])
                        ]),
                ]
            }, { x in x.flatMap { windows($0, 3, 2, first: -1, count: 2) { $0.reduce(0, +) / 9 } } }),
        Case(
            "average pool that excludes padding", 120,
            { [.integer(1, 1), .integers(10, [2, 2]), .integers(20, [1, 1]), .message(31, []), .integer(50, 1)] },
            { x in x.flatMap { windows($0, 2, 1, first: 0, count: 3) { $0.reduce(0, +) / Float($0.count) } } }),
        Case(
            "global average pool", 120, { [.integer(1, 1), .integer(60, 1)] },
            { x in x.map { flat([$0]).reduce(0, +) / 9 } }),
        Case(
            "reduce to the maximum", 280, { [.integer(1, 7), .integer(3, 1)] },
            { x in x.map { flat([$0]).max() ?? 0 } }),
        Case(
            "reduce to the sum", 280, { [.integer(1, 0), .integer(3, 1)] }, { x in x.map { flat([$0]).reduce(0, +) } }),
        Case(
            "reflection padding", 200,
            { [.message(2, []), .message(10, [.message(10, [.integer(1, 1)]), .message(10, [.integer(2, 1)])])] },
            { x in x.flatMap { channel in ([channel[1]] + channel).flatMap { $0 + [$0[1]] } } }),
        Case(
            "replication padding", 200,
            { [.message(3, []), .message(10, [.message(10, [.integer(2, 1)]), .message(10, [.integer(1, 2)])])] },
            { x in x.flatMap { channel in (channel + [channel[2]]).flatMap { [$0[0], $0[0]] + $0 } } }),
        Case(
            "local response normalization", 180, { [.float(1, 2), .float(2, 0.5), .integer(3, 3), .float(4, 1)] },
            { x in
                let squares = zip(flat([x[0]]), flat([x[1]])).map { $0 * $0 + $1 * $1 }
                return flat(x).enumerated().map { $1 / (1 + 2 / 3 * squares[$0 % 9]).squareRoot() }
            }),
        Case(
            "upsample", 210, { [.integers(1, [2, 1])] },
            { x in x.flatMap { channel in channel.flatMap { $0 + $0 } } }),
        Case(
            "batchnorm", 160,
            {
                [
                    .integer(1, 2), .float(10, 0.5), .weights(15, [1, 2]), .weights(16, [0, 1]),
                    .weights(17, [0.5, 0]),
                    .weights(18, [0.5, 3.5]),
                ]
            },
            { x in flat([x[0]]).map { $0 - 0.5 } + flat([x[1]]).map { $0 / 2 * 2 + 1 } }),
    ]

    static let tensors: [Case] = [
        Case(
            "flatten, channels last", 301, { [.integer(1, 1)] },
            { x in (0..<9).flatMap { [flat([x[0]])[$0], flat([x[1]])[$0]] } }),
        Case("reshape, channels first", 300, { [.integers(1, [18, 1, 1])] }, { flat($0) }),
        Case(
            "reshape, channels last", 300, { [.integers(1, [18, 1, 1]), .integer(2, 1)] },
            { x in (0..<9).flatMap { [flat([x[0]])[$0], flat([x[1]])[$0]] } }),
        Case(
            "permute, then flatten", 310, { [.integers(1, [0, 1, 3, 2])] },
            { x in x.flatMap { c in (0..<9).map { c[$0 % 3][$0 / 3] } } }),
        Case(
            "scale and bias of channels", 245,
            { [.integers(1, [2]), .weights(2, [2, 3]), .integer(3, 1), .integers(4, [2]), .weights(5, [1, -1])] },
            { x in flat([x[0]]).map { 2 * $0 + 1 } + flat([x[1]]).map { 3 * $0 - 1 } }),
        Case(
            "bias per pixel", 250, { [.integers(1, [1, 3, 3]), .weights(2, (0..<9).map { Float($0) / 4 })] },
            { x in flat(x).enumerated().map { $1 + Float($0 % 9) / 4 } }),
        Case(
            "concat, split and slice",
            {
                $0.add("split", 330, [.integer(1, 2)], to: ["first", "second"])
                $0.add("swapped", 320, from: ["second", "first"])
                $0.add("slice", 350, [.integer(1, 1), .integer(2, 2), .integer(3, 1)])
                $0.add("all", 320, from: ["swapped", "slice"])
            }, { x in flat([x[1], x[0], x[0]]) }),
        Case(
            "sum, maximum and average of two",
            {
                $0.add("half", 231, [.float(1, 0.5)], from: ["image"])
                $0.add("sum", 230, from: ["image", "half"])
                $0.add("maximum", 260, from: ["sum", "image"])
                $0.add("average", 240, from: ["maximum", "image"])
            }, each { (max(1.5 * $0, $0) + $0) / 2 }),
        Case(
            "a constant",
            {
                $0.add("constant", 290, [.integers(1, [2, 1, 1]), .weights(2, [4, 5])], from: [])
                $0.add("sum", 230, from: ["image", "constant"])
            }, { x in flat([x[0]]).map { $0 + 4 } + flat([x[1]]).map { $0 + 5 } }),
        Case(
            "inner product of a channels-last flatten",
            {
                $0.add("flat", 301, [.integer(1, 1)])
                $0.add(
                    "dense", 140,
                    [
                        .integer(1, 18), .integer(2, 2), .integer(10, 1),
                        .weights(20, (0..<36).map { $0 == 1 || $0 == 18 ? 1 : 0 }), .weights(21, [0, 1]),
                    ])
            }, { x in [x[1][0][0], x[0][0][0] + 1] }),
    ]

    /// The newer layers for tensors of any rank.
    static let anyRank: [Case] = [
        Case(
            "transpose and flatten to two axes",
            {
                $0.add("transposed", 985, [.integers(1, [0, 2, 3, 1])])
                $0.add("flat", 1130, [.integer(1, 1)])
            }, { x in (0..<9).flatMap { [flat([x[0]])[$0], flat([x[1]])[$0]] } }),
        Case(
            "product with a constant matrix",
            {
                let weights: [Float] = (0..<36).map { $0 == 1 || $0 == 27 ? 2 : 0 }
                $0.add("flat", 1140, [.integers(1, [1, -1])])
                $0.add(
                    "product", 1045,
                    [.integer(5, 18), .integer(6, 2), .integer(7, 1), .weights(8, weights), .weights(9, [0, 1])])
            }, { x in [2 * x[0][0][1], 2 * x[1][0][0] + 1] }),
        Case(
            "split and concat along an axis",
            {
                $0.add("split", 975, [.integer(1, 1), .integers(3, [1, 1])], to: ["first", "second"])
                $0.add("swapped", 980, [.integer(1, -3)], from: ["second", "first"])
                $0.add("flat", 1150, [.integers(1, [0, -1])])
            }, { x in flat([x[1], x[0]]) }),
        Case(
            "constant padding",
            {
                $0.add("padding", 1155, [.float(1, 2), .integers(2, [0, 0, 0, 0, 1, 0, 0, 1])])
                $0.add("flat", 1130, [.integer(1, 1)])
            }, { x in x.flatMap { channel in [2, 2, 2, 2] + channel.flatMap { $0 + [2] } } }),
        Case(
            "arithmetic with constants",
            {
                $0.add("constant", 1070, [.integers(1, [2, 1, 1]), .weights(2, [4, 5])], from: [])
                $0.add("half", 1070, [.integers(1, [1]), .weights(2, [0.5])], from: [])
                $0.add("one", 1070, [.integers(1, [1]), .weights(2, [1])], from: [])
                $0.add("sum", 880, from: ["image", "constant"])
                $0.add("difference", 905, from: ["constant", "sum"])
                $0.add("quotient", 890, from: ["difference", "half"])
                $0.add("maximum", 875, from: ["quotient", "half"])
                $0.add("minimum", 870, from: ["maximum", "one"])
                $0.add("flat", 1130, [.integer(1, 1)])
            }, { x in flat(x).map { min(max(-2 * $0, 0.5), 1) } }),
        Case(
            "mean, squeezed and expanded",
            {
                $0.add("mean", 1280, [.integers(1, [-1, -2]), .integer(2, 1)])
                $0.add("squeezed", 1120, [.integers(1, [2, 3])])
                $0.add("expanded", 1125, [.integers(1, [0, -1])])
                $0.add("flat", 1140, [.integers(1, [1, 2])])
            }, { x in x.map { flat([$0]).reduce(0, +) / 9 } }),
        Case(
            "sum", 1270, { [.integers(1, [2, 3])] }, { x in x.map { flat([$0]).reduce(0, +) } }),
        Case(
            "maximum", 1260, { [.integers(1, [2, 3])] }, { x in x.map { flat([$0]).max() ?? 0 } }),
        Case(
            "softmax along an axis",
            {
                $0.add("mean", 1280, [.integers(1, [-1, -2])])
                $0.add("softmax", 950, [.integer(1, -1)])
            }, { x in x.map { flat([$0]).reduce(0, +) / 9 } }),
    ]

    /// Returns a sample with an image of two channels (a 1x1 convolution of a grey image), its samples, and the image's values.
    private static func sample(isExact: Bool) -> (CoreMLSample, [UInt8], [[[Float]]]) {
        var sample = CoreMLSample()
        sample.input = "photo"
        sample.isExact = isExact
        sample.preprocessing = [
            .message(2, [.text(1, "photo"), .message(10, [.float(10, 1 / 64), .float(30, -2)])])
        ]
        sample.add(
            "image", 100,
            [
                .integer(1, 2), .integer(2, 1), .integers(20, [1, 1]), .message(50, []), .integer(70, 1),
                .weights(90, [1, -0.5]), .weights(91, [0, 0.25]),
            ], from: ["photo"])
        let samples: [UInt8] = [7, 200, 120, 130, 64, 255, 31, 190, 99]
        let x = samples.map { Float($0) / 64 - 2 }
        let rows = (0..<3).map { Array(x[($0 * 3)..<($0 * 3 + 3)]) }
        return (sample, samples, [rows, rows.map { $0.map { -0.5 * $0 + 0.25 } }])
    }

    @Test(
        "Layers compute the output that the format specifies", arguments: activations + windows + tensors,
        [false, true])
    func layers(of tested: Case, isExact: Bool) throws {
        let (start, samples, x) = Self.sample(isExact: isExact)
        var sample = start
        tested.add(&sample)
        sample.add("end", 301)
        let found = try sample.read().model.result(samples)
        #expect(maximumDifference(found, softmax(tested.expected(x))) < 1e-5)
    }

    @Test("Layers of any rank compute the output that the format specifies", arguments: anyRank)
    func layersOfAnyRank(of tested: Case) throws {
        let (start, samples, x) = Self.sample(isExact: true)
        var sample = start
        tested.add(&sample)
        let found = try sample.read().model.result(samples)
        #expect(maximumDifference(found, softmax(tested.expected(x))) < 1e-5)
    }
}
