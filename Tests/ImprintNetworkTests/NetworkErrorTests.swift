import Foundation
import Testing

@testable import ImprintNetwork

/// Tests the error for every way in which a network description can be invalid.
@Suite struct NetworkErrorTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let error: NetworkError
        /// Words that the error message must contain.
        let words: [String]
        let attempt: @Sendable () throws -> Void

        var testDescription: String { error.description }

        init(_ error: NetworkError, naming words: String..., attempt: @escaping @Sendable () throws -> Void) {
            self.error = error
            self.words = words
            self.attempt = attempt
        }
    }

    private static let image = TensorShape(height: 4, width: 5, channels: 6)

    private static func node(_ name: String, _ layer: any Layer, _ inputs: String...) -> Network.Node {
        Network.Node(name: name, layer: layer, inputs: inputs)
    }

    @discardableResult
    private static func network(_ nodes: Network.Node...) throws(NetworkError) -> Network {
        try Network(name: "net", input: image, nodes: nodes)
    }

    private static func invalid(
        _ layer: String, _ property: String, _ found: String, _ expected: String
    ) -> NetworkError {
        .inNode("x", .invalidProperty(layer: layer, property: property, found: found, expected: expected))
    }

    private static func layer(_ layer: any Layer, _ error: NetworkError, naming word: String) -> Case {
        Case(error, naming: "\"x\"", word) { try network(node("x", layer, "input")) }
    }

    static let descriptions: [Case] = [
        Case(.duplicateName(node: "a"), naming: "\"a\"") {
            try network(node("a", ReLU(), "input"), node("a", ReLU(), "a"))
        },
        Case(.duplicateName(node: "input"), naming: "\"input\" is reserved") {
            try network(node("input", ReLU(), "input"))
        },
        Case(.empty(network: "net"), naming: "\"net\"") { try network() },
        Case(.unknownInput(node: "a", input: "b"), naming: "\"a\"", "\"b\"") {
            try network(node("a", ReLU(), "b"), node("b", ReLU(), "a"))
        },
        Case(.unusedNode(node: "a"), naming: "\"a\"") {
            try network(node("a", ReLU(), "input"), node("b", ReLU(), "input"))
        },
        Case(
            .inNode("a", .inputCount(layer: "ReLU", expected: "one input", found: 2)), naming: "\"a\"", "ReLU",
            "2 inputs"
        ) { try network(node("a", ReLU(), "input", "input")) },
        Case(.inNode("a", .inputCount(layer: "Dense", expected: "one input", found: 0)), naming: "Dense", "0 inputs") {
            try network(node("a", Dense(outputChannels: 1)))
        },
        Case(.inNode("a", .inputCount(layer: "Add", expected: "two or more inputs", found: 1)), naming: "two or more") {
            try network(node("a", AddLayer(), "input"))
        },
        Case(.notAClassifier(network: "net", output: image), naming: "\"net\"", "4x5x6") {
            _ = try network(node("a", ReLU(), "input")).labelCount()
        },
        Case(.unknownNetwork(found: "vgg", known: Network.readyMadeNames), naming: "\"vgg\"", "resnet-50") {
            _ = try Network.named("vgg", labels: 2)
        },
        Case(
            .unknownLayerKind(found: "maxout", known: LayerRegistry.all.map { $0.kind }), naming: "\"maxout\"",
            "convolution"
        ) {
            let text = #"{"name": "a", "kind": "maxout", "inputs": ["input"], "properties": {}}"#
            _ = try JSONDecoder().decode(Network.Node.self, from: Data(text.utf8))
        },
        Case(
            .invalidProperty(layer: "network", property: "input", found: "0x5x6", expected: "positive sizes"),
            naming: "0x5x6"
        ) {
            let empty = TensorShape(height: 0, width: 5, channels: 6)
            _ = try Network(name: "net", input: empty, nodes: [node("a", ReLU(), "input")])
        },
        Case(
            .invalidProperty(layer: "logonet", property: "labels", found: "0", expected: "at least 1"), naming: "labels"
        ) { _ = try Network.named("logonet", labels: 0) },
        Case(
            .invalidProperty(
                layer: "lenet", property: "width", found: "0", expected: "more than 0 and at most 16"),
            naming: "width"
        ) { _ = try Network.named("lenet", labels: 1, width: 0) },
    ]

    static let shapes: [Case] = [
        Case(
            .inNode(
                "sum",
                .inputShape(
                    layer: "Add", found: [image, TensorShape(height: 8, width: 10, channels: 6)],
                    reason:
                        "heights, widths and channels must each be equal, or 1 to broadcast along that axis"
                )),
            naming: "4x5x6, 8x10x6"
        ) { try network(node("a", UpsampleNearest(factor: 2), "input"), node("sum", AddLayer(), "input", "a")) },
        Case(
            .inNode(
                "largest",
                .inputShape(
                    layer: "Maximum", found: [image, TensorShape(channels: 6)], reason: "the shapes must be the same")),
            naming: "4x5x6, 1x1x6"
        ) { try network(node("a", GlobalAveragePool(), "input"), node("largest", MaximumLayer(), "input", "a")) },
        Case(
            .inNode("x", .inputCount(layer: "Multiply", expected: "two or more inputs", found: 1)), naming: "Multiply"
        ) { try network(node("x", MultiplyLayer(), "input")) },
        Case(
            .inNode("x", .inputCount(layer: "Maximum", expected: "at most 256 inputs", found: 257)), naming: "257"
        ) {
            try network(
                Network.Node(name: "x", layer: MaximumLayer(), inputs: [String](repeating: "input", count: 257)))
        },
        Case(
            .inNode(
                "join",
                .inputShape(
                    layer: "Concat", found: [image, TensorShape(channels: 6)],
                    reason: "heights and widths must be the same")),
            naming: "4x5x6, 1x1x6"
        ) { try network(node("a", GlobalMaxPool(), "input"), node("join", Concat(), "input", "a")) },
        layer(
            Dense(outputChannels: 2),
            .inNode(
                "x",
                .inputShape(
                    layer: "Dense", found: [image],
                    reason: "the input must be a vector; add Flatten or a global pool before it")
            ),
            naming: "Flatten"),
        layer(
            Convolution(outputChannels: 2, kernelSize: 5),
            .inNode(
                "x",
                .inputShape(layer: "Convolution", found: [image], reason: "the kernel (5x5) is larger than the image")
            ),
            naming: "5x5"),
    ]

    static let properties: [Case] = [
        layer(
            Convolution(outputChannels: 0, kernelSize: 1),
            invalid("Convolution", "outputChannels", "0", "at least 1"), naming: "outputChannels is 0"),
        layer(
            Convolution(outputChannels: 4, kernelSize: 1, groups: 4),
            invalid("Convolution", "groups", "4", "a divisor of the 6 input and 4 output channels"),
            naming: "groups is 4"),
        layer(
            Convolution(outputChannels: 4, kernelSize: 1, groups: 0),
            invalid("Convolution", "groups", "0", "a divisor of the 6 input and 4 output channels"),
            naming: "groups is 0"),
        layer(
            Convolution(outputChannels: 4, kernelSize: 0),
            invalid("Convolution", "kernelSize", "0x0", "at least 1x1 and at most 32768x32768"), naming: "kernelSize"),
        layer(
            MaxPool(kernelSize: 2, stride: 0),
            invalid("MaxPool", "stride", "0x0", "at least 1x1 and at most 32768x32768"), naming: "stride"),
        layer(
            Convolution(outputChannels: 4, kernelSize: 2, padding: .all(-1)),
            invalid("Convolution", "padding", "[-1, -1, -1, -1]", "at least 0 and at most 32768 per side"),
            naming: "padding"),
        layer(
            MaxPool(kernelSize: 17, padding: .all(16)),
            invalid("MaxPool", "kernelSize", "17x17", "at most 256 elements"), naming: "kernelSize"),
        layer(
            Dense(outputChannels: 0), invalid("Dense", "outputChannels", "0", "at least 1"), naming: "outputChannels"),
        layer(
            Dropout(rate: 1), invalid("Dropout", "rate", "1", "at least 0 and less than 1"), naming: "rate is 1"),
        layer(
            LeakyReLU(slope: 0), invalid("LeakyReLU", "slope", "0", "a positive number"), naming: "slope is 0"),
        layer(
            BatchNormalization(momentum: 2), invalid("BatchNormalization", "momentum", "2", "between 0 and 1"),
            naming: "momentum is 2"),
        layer(
            BatchNormalization(epsilon: 0), invalid("BatchNormalization", "epsilon", "0", "a positive number"),
            naming: "epsilon is 0"),
    ]

    private static let response = "LocalResponseNormalization"
    private static let transposed = "TransposedConvolution"

    static let imported: [Case] = [
        layer(
            Affine(extent: .values, hasScale: false, hasShift: false),
            invalid("Affine", "hasShift", "false", "true if there is no scale"), naming: "hasShift"),
        layer(
            ClipLayer(minimum: 1, maximum: 1),
            invalid("Clip", "minimum", "1", "a number less than maximum, which is 1"), naming: "minimum"),
        layer(
            ClipLayer(minimum: .nan, maximum: 1),
            invalid("Clip", "minimum", "nan", "a number less than maximum, which is 1"), naming: "minimum"),
        layer(
            ClipLayer(minimum: -.infinity, maximum: .infinity),
            invalid("Clip", "maximum", "inf", "a finite number if there is no minimum"), naming: "maximum"),
        layer(
            HardSigmoid(slope: .infinity), invalid("HardSigmoid", "slope", "inf", "a finite number"), naming: "slope"),
        layer(
            HardSigmoid(offset: .infinity), invalid("HardSigmoid", "offset", "inf", "a finite number"),
            naming: "offset"),
        layer(ELU(alpha: -1), invalid("ELU", "alpha", "-1", "at least 0"), naming: "alpha"),
        layer(
            LayerNormalization(epsilon: 0), invalid("LayerNormalization", "epsilon", "0", "a positive number"),
            naming: "epsilon is 0"),
        layer(
            TransposedConvolution(outputChannels: 0, kernelSize: 2),
            invalid(transposed, "outputChannels", "0", "at least 1"), naming: "outputChannels"),
        layer(
            TransposedConvolution(outputChannels: 4, kernelSize: 2, groups: 4),
            invalid(transposed, "groups", "4", "a divisor of the 6 input and 4 output channels"), naming: "groups"),
        layer(
            TransposedConvolution(outputChannels: 4, kernelSize: 2, stride: 0),
            invalid(transposed, "stride", "0x0", "at least 1x1 and at most 32768x32768"), naming: "stride"),
        layer(
            TransposedConvolution(
                outputChannels: 4, kernelSize: 2, stride: Size2D(height: 2, width: 1), outputPadding: 1),
            invalid(transposed, "outputPadding", "1x1", "at least 0x0 and less than the stride, 2x1"),
            naming: "outputPadding is 1x1"),
        layer(
            TransposedConvolution(outputChannels: 4, kernelSize: 2, stride: 2, padding: .same, outputPadding: 1),
            invalid(transposed, "outputPadding", "1x1", "0x0 with same padding"), naming: "outputPadding"),
        layer(
            TransposedConvolution(outputChannels: 4, kernelSize: 2, padding: .all(3)),
            .inNode(
                "x",
                .inputShape(layer: transposed, found: [image], reason: "the padding crops the whole output")),
            naming: "crops"),
        layer(LocalResponseNormalization(size: 0), invalid(response, "size", "0", "at least 1"), naming: "size"),
        layer(
            LocalResponseNormalization(size: 1, alpha: -1), invalid(response, "alpha", "-1", "at least 0"),
            naming: "alpha"),
        layer(
            LocalResponseNormalization(size: 1, beta: -1), invalid(response, "beta", "-1", "at least 0"),
            naming: "beta"),
        layer(
            LocalResponseNormalization(size: 1, bias: 0), invalid(response, "bias", "0", "a positive number"),
            naming: "bias"),
        layer(
            PadLayer(top: 0, left: -1, bottom: 0, right: 0, mode: .edge),
            invalid("Pad", "sides", "[0, -1, 0, 0]", "at least 0 and at most 32768 each"), naming: "-1"),
        layer(
            PadLayer(top: 4, left: 0, bottom: 0, right: 0, mode: .reflect),
            invalid("Pad", "sides", "[4, 0, 0, 0]", "smaller than the reflected image, 4x5x6"), naming: "reflected"),
        layer(
            PadLayer(top: 0, left: 0, bottom: 0, right: 0, mode: .constant(.nan)),
            invalid("Pad", "constant", "nan", "a finite number"), naming: "constant"),
        layer(
            UpsampleNearest(factor: Size2D(height: 1, width: 0)),
            invalid("UpsampleNearest", "factor", "1x0", "at least 1x1 and at most 32768x32768"), naming: "1x0"),
        layer(
            SelectChannels(channels: []), invalid("SelectChannels", "channels", "[]", "at least one channel"),
            naming: "channels"),
        layer(
            SelectChannels(channels: [0, 5, 6]),
            invalid("SelectChannels", "channels", "2 from index 5", "channels of the input, 0 … 5"), naming: "0 … 5"),
        layer(
            SelectChannels(channels: [.max, .min, -1]),
            invalid("SelectChannels", "channels", "1 from index \(Int.max)", "channels of the input, 0 … 5"),
            naming: "0 … 5"),
        layer(
            MeanLayer(axes: []), invalid("Mean", "axes", "0", "at least one of height, width and channels"),
            naming: "axes"),
        layer(
            MaxPool(kernelSize: 7, stride: 2, roundsUp: true),
            .inNode(
                "x", .inputShape(layer: "MaxPool", found: [image], reason: "the kernel (7x7) is larger than the image")),
            naming: "7x7"),
    ]

    @Test(
        "The error names the invalid node or property, with the found and the expected value",
        arguments: descriptions + shapes + properties + imported)
    func rejected(_ example: Case) {
        #expect(throws: example.error) { try example.attempt() }
        for word in example.words { #expect(example.error.description.contains(word)) }
        #expect(example.error.description.hasSuffix(".") && !example.error.description.hasSuffix(".."))
    }

    @Test("A pool whose padding is at least as wide as its kernel is rejected", arguments: [2, 3])
    func wholeWindowsOfPadding(padding: Int) {
        for layer in [
            MaxPool(kernelSize: 2, padding: .all(padding)), AveragePool(kernelSize: 2, padding: .all(padding)),
        ]
            as [any Layer]
        {
            #expect(throws: NetworkError.self) { try Self.network(Self.node("x", layer, "input")) }
        }
    }

    @Test("An unknown padding in a file is rejected")
    func unknownPadding() {
        #expect(
            throws: NetworkError.invalidProperty(
                layer: "window", property: "padding", found: "full", expected: "\"valid\", \"same\" or four sides")
        ) { try JSONDecoder().decode([Padding].self, from: Data(#"["full"]"#.utf8)) }
    }

    @Test(
        "An invalid stored property is rejected",
        arguments: [
            ("pad", #"{"top":0,"left":0,"bottom":0,"right":0,"mode":"wrap"}"#), ("mean", #"{"axes":["depth"]}"#),
            ("selectChannels", #"{"channels":[{"from":0,"count":0}]}"#),
            ("selectChannels", #"{"channels":[{"from":9223372036854775807,"count":1}]}"#),
            ("selectChannels", #"{"channels":[{"from":1,"count":9223372036854775807}]}"#),
            ("affine", #"{"extent":"rows","hasScale":true,"hasShift":true}"#), ("clip", #"{"minimum":1e400}"#),
        ])
    func storedProperty(kind: String, properties: String) {
        let text = #"{"name":"a","kind":"\#(kind)","inputs":["input"],"properties":\#(properties)}"#
        #expect(throws: (any Error).self) { try JSONDecoder().decode(Network.Node.self, from: Data(text.utf8)) }
    }

    @Test("A decoded network is validated like a new one")
    func storedNetwork() throws {
        var text = String(decoding: try JSONEncoder().encode(Network.named("lenet", labels: 2)), as: UTF8.self)
        text.replace(#""inputs":["dense1"]"#, with: #""inputs":["dense9"]"#)
        #expect(throws: NetworkError.unknownInput(node: "relu1", input: "dense9")) {
            try JSONDecoder().decode(Network.self, from: Data(text.utf8))
        }
    }
}
