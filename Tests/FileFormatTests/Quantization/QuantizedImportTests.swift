import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintNetwork

/// The import of ONNX files in the QDQ format, as ONNX Runtime's `quantize_static` writes them.
@Suite struct QuantizedImportTests {
    /// The element types of activations.
    enum ActivationType: Int, CaseIterable, Sendable {
        case uint8 = 2
        case int8 = 3

        /// Returns the byte of an integer of 0…255, or of that integer minus 128.
        func byte(_ value: Int) -> UInt8 { UInt8(truncatingIfNeeded: self == .int8 ? value - 128 : value) }
    }

    private static func weight(_ index: Int) -> Int { (index * 37) % 255 - 127 }
    private static let scales: [Float] = [0.011, 0.02, 0.007, 0.013]
    private static let biases = [100, -200, 300, -50]

    /// Returns a graph: a 3x3 convolution without the ReLU that the zero point 0 of its output replaces, and a dense layer.
    private static func sample(
        _ type: ActivationType, _ change: (inout ONNXSample) -> Void = { _ in }
    ) -> ONNXSample {
        var sample = ONNXSample()
        sample.opset = 13
        func bytes(_ name: String, _ type: ActivationType, _ shape: [Int], _ values: [UInt8]) -> ONNXSample.Tensor {
            .bytes(name, type: type.rawValue, shape, values)
        }
        sample.initializers = [
            .floats("x.scale", [], [0.01]), bytes("x.zero", type, [], [type.byte(110)]),
            .floats("y.scale", [], [0.05]), bytes("y.zero", type, [], [type.byte(0)]),
            bytes("w", .int8, [4, 3, 3, 3], (0..<108).map { UInt8(bitPattern: Int8(weight($0))) }),
            .floats("w.scale", [4], scales), bytes("w.zero", .int8, [4], [0, 0, 0, 0]),
            .bytes(
                "b", type: 6, [4], biases.flatMap { withUnsafeBytes(of: Int32($0).littleEndian, Array.init) }),
            .floats("b.scale", [4], scales.map { $0 * 0.01 }),
            bytes("v", .int8, [2, 16], (0..<32).map { UInt8(bitPattern: Int8(weight($0 + 5))) }),
            .floats("v.scale", [], [0.01]),
        ]
        sample.node("QuantizeLinear", ["image", "x.scale", "x.zero"], to: "x.q")
        sample.node("DequantizeLinear", ["x.q", "x.scale", "x.zero"], to: "x")
        sample.node("DequantizeLinear", ["w", "w.scale", "w.zero"], [.integer("axis", 0)], to: "w.float")
        sample.node("DequantizeLinear", ["b", "b.scale"], [.integer("axis", 0)], to: "b.float")
        sample.node("DequantizeLinear", ["v", "v.scale"], to: "v.float")
        sample.node("Conv", ["x", "w.float", "b.float"], to: "conv")
        sample.node("QuantizeLinear", ["conv", "y.scale", "y.zero"], to: "y.q")
        sample.node("DequantizeLinear", ["y.q", "y.scale", "y.zero"], to: "y")
        sample.node("Flatten", ["y"], to: "flat")
        sample.node("Gemm", ["flat", "v.float"], [.integer("transB", 1)], to: "logits")
        change(&sample)
        return sample
    }

    private func read(_ sample: ONNXSample) throws -> ImportedModel { try importModel(sample.bytes, ending: "onnx") }

    /// Returns the logits that integer arithmetic gives for an image [height, width, channels] of 4x4 pixels.
    private func logits(_ image: [Float]) -> [Float] {
        let x = image.map { min(max(($0 / 0.01).rounded(.toNearestOrEven) + 110, 0), 255) - 110 }
        var y = [Float](repeating: 0, count: 16)
        for output in 0..<4 {
            for row in 0..<2 {
                for column in 0..<2 {
                    var sum = Float(Self.biases[output])
                    for channel in 0..<3 {
                        for (i, j) in (0..<9).map({ $0.quotientAndRemainder(dividingBy: 3) }) {
                            let weight = Self.weight(((output * 3 + channel) * 3 + i) * 3 + j)
                            sum += Float(weight) * x[((row + i) * 4 + column + j) * 3 + channel]
                        }
                    }
                    let value = sum * Self.scales[output] * 0.01
                    y[output * 4 + row * 2 + column] =
                        min(max((value / 0.05).rounded(.toNearestOrEven), 0), 255) * 0.05
                }
            }
        }
        return (0..<2).map { output in
            (0..<16).reduce(0) { $0 + y[$1] * Float(Self.weight(output * 16 + $1 + 5)) * 0.01 }
        }
    }

    @Test(
        "Pairs become the quantization of activations, and layers compute in int8", arguments: ActivationType.allCases)
    func quantization(_ type: ActivationType) throws {
        let imported = try read(Self.sample(type))
        let network = imported.model.network
        #expect(
            network.nodes.map { Swift.type(of: $0.layer).kind } == [
                "convolution", "clip", "flatten", "dense", "softmax",
            ])
        let quantization = try #require(imported.model.parameters.quantization)
        #expect(quantization.weights.keys.sorted() == ["conv", "logits"])
        #expect(quantization.activations["input"] == .init(scales: [0.01, 0.01, 0.01], zeroPoints: [110, 110, 110]))
        #expect(quantization.activations["y.q"]?.uniform?.scale == 0.05)
        #expect(quantization.activations["y.q"]?.uniform?.zeroPoint == 0)
        #expect(!imported.notes.contains { $0.contains("float32") })
        let withoutSoftmax = ModelFile(
            network: try Network(name: "n", input: network.input, nodes: network.nodes.dropLast()),
            parameters: imported.model.parameters, labels: imported.model.labels,
            preprocessing: imported.model.preprocessing)
        for index in 0..<8 {
            let image = QuantizedCase.image(index, of: network.input)
            let expected = logits(image)
            let largest = try #require(expected.map(\.magnitude).max())
            // A sum may lie between two integers.
            #expect(try maximumDifference(withoutSoftmax.prediction(image), expected) <= 0.004 * largest + 0.07)
            #expect(
                try maximumDifference(withoutSoftmax.prediction(image, precision: .float32), expected) < 0.1 * largest
                    + 0.3)
        }
    }

    @Test("A model with uniform scales survives an export, and has standard pairs", arguments: ActivationType.allCases)
    func roundTrip(_ type: ActivationType) throws {
        let model = try read(Self.sample(type)).model
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "m.onnx")
            try model.writeONNX(to: url)
            let graph = try ONNXModel(MappedFile(contentsOf: url)).graph
            for node in graph.nodes where node.operation == "DequantizeLinear" {
                guard let quantizer = graph.nodes.first(where: { $0.outputs == [node.inputs[0]] }) else { continue }
                #expect(quantizer.inputs.dropFirst() == node.inputs.dropFirst())
            }
            let bias = try #require(graph.initializers.first { $0.name == "conv.bias" })
            #expect(bias.type == 6)
            let imported = try ModelImporter().read(url).model
            #expect(imported.parameters.quantization == model.parameters.quantization)
            let image = QuantizedCase.image(3, of: model.network.input)
            #expect(try imported.prediction(image) == model.prediction(image))
        }
    }

    @Test("A layer whose input is not quantized computes in float32")
    func unknownInput() throws {
        let imported = try read(
            Self.sample(.uint8) {
                $0.node("Conv", ["image", "w.float", "b.float"], to: "other")
                $0.node("Flatten")
            })
        #expect(imported.model.parameters.quantization == nil)
        #expect(imported.notes.contains { $0.contains("0 of 1 layers with 8-bit weights") }, "\(imported.notes)")
        let weight = try #require(imported.model.parameters["other.weight"])
        // [height, width, input, output]
        #expect(weight[1] == Float(Self.weight(27)) * Self.scales[1])
    }

    @Test("A pair that is not kept does not change the values", arguments: ["sum", "uint16", "channels"])
    func droppedPair(kind: String) throws {
        var sample = ONNXSample()
        sample.opset = 13
        sample.initializers = [
            .floats("s", [], [0.1]), .bytes("z", type: 4, [], [0, 1]), .floats("rows", [4], [1, 2, 3, 4]),
            .bytes("zeros", type: 2, [4], [0, 0, 0, 0]), .bytes("z8", type: 2, [], [9]),
        ]
        sample.node("Sigmoid", ["image"], to: "a")
        if kind == "sum" {
            sample.node("Add", ["a", "image"], to: "a2")
        } else {
            sample.node("Identity", ["a"], to: "a2")
        }
        let inputs = kind == "uint16" ? ["s", "z"] : kind == "sum" ? ["s", "z8"] : ["rows", "zeros"]
        let axis: [ONNXSample.Attribute] = kind == "channels" ? [.integer("axis", 2)] : []
        sample.node("QuantizeLinear", ["a2"] + inputs, axis, to: "q")
        sample.node("DequantizeLinear", ["q"] + inputs, axis, to: "d")
        sample.node("Flatten")
        let model = try read(sample).model
        #expect(model.parameters.quantization == nil)
        let kinds = model.network.nodes.map { Swift.type(of: $0.layer).kind }
        // A sigmoid at the end of a model follows the layers that reorder values.
        #expect(kinds.starts(with: kind == "sum" ? ["sigmoid", "add", "flatten"] : ["flatten", "selectChannels"]))
        #expect(!kinds.contains("clip") && !kinds.contains("affine"))
    }

    @Test(
        "A pair whose zero point is the smallest 16-bit integer replaces a ReLU, and no other pair does",
        arguments: [
            (4, [0x00, 0x00], true), (4, [0x00, 0x80], false), (5, [0x00, 0x80], true), (5, [0x00, 0x00], false),
        ] as [(Int, [UInt8], Bool)])
    func limitsOf16Bits(type: Int, zeroPoint: [UInt8], hasLimits: Bool) throws {
        var sample = ONNXSample()
        sample.opset = 21
        sample.initializers = [
            .floats("w", [3, 3, 1, 1], [1, 0, 0, 0, 1, 0, 0, 0, 1]), .floats("s", [], [1 / 65535]),
            .bytes("z", type: type, [], zeroPoint),
        ]
        sample.node("Conv", ["image", "w"], to: "conv")
        sample.node("QuantizeLinear", ["conv", "s", "z"], to: "q")
        sample.node("DequantizeLinear", ["q", "s", "z"], to: "d")
        sample.node("GlobalAveragePool")
        sample.node("Flatten")
        sample.node("Sigmoid")
        let model = try read(sample).model
        #expect(model.parameters.quantization == nil)
        #expect(model.network.nodes.contains { $0.layer is ClipLayer } == hasLimits)
        // Half of each channel is -1, the other half 3. With the limits 0 and 1, these become 0 and 1.
        let found = try model.prediction((0..<48).map { $0 % 2 == 0 ? -1 : 3 })
        let mean: Float = hasLimits ? 0.5 : 1
        #expect(maximumDifference(found, [Float](repeating: 1 / (1 + exp(-mean)), count: 3)) < 1e-5)
    }

    @Test("Other scales in DequantizeLinear become a factor and an offset")
    func otherScales() throws {
        var sample = ONNXSample()
        sample.opset = 13
        sample.initializers = [
            .floats("s", [], [0.5]), .bytes("z", type: 2, [], [10]), .floats("t", [], [2]),
            .bytes("u", type: 2, [], [7]),
        ]
        sample.node("QuantizeLinear", ["image", "s", "z"], to: "q")
        sample.node("DequantizeLinear", ["q", "t", "u"], to: "d")
        sample.node("GlobalAveragePool")
        sample.node("Flatten")
        sample.node("Sigmoid")
        let model = try read(sample).model
        let found = try model.prediction([Float](repeating: 0.25, count: 48))
        // (0.25 / 0.5 + 10 − 7) · 2
        #expect(maximumDifference(found, [Float](repeating: 1 / (1 + exp(-7)), count: 3)) < 1e-6)
    }

    // MARK: Malformed files

    struct Malformed: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let message: String
        let change: @Sendable (inout ONNXSample) -> Void
    }

    private static func pair(
        _ name: String, _ message: String, _ tensors: [ONNXSample.Tensor], inputs: [String], axis: Int? = nil,
        operation: String = "QuantizeLinear"
    ) -> Malformed {
        Malformed(testDescription: name, message: message) { sample in
            sample.initializers += tensors
            sample.node(operation, ["x"] + inputs, axis.map { [.integer("axis", $0)] } ?? [], to: "bad")
        }
    }

    private static let zero = ONNXSample.Tensor.bytes("z", type: 2, [], [0])
    static let malformed: [Malformed] = [
        pair("no scale", "has no input 2", [], inputs: []),
        pair("zero scale", "invalid scale", [.floats("s", [], [0]), zero], inputs: ["s", "z"]),
        pair("negative scale", "invalid scale", [.floats("s", [], [-1]), zero], inputs: ["s", "z"]),
        pair("infinite scale", "invalid scale", [.floats("s", [], [.infinity]), zero], inputs: ["s", "z"]),
        pair("not a number", "invalid scale", [.floats("s", [], [.nan])], inputs: ["s"]),
        pair("number of scales", "scales of the shape [2]", [.floats("s", [2], [1, 1])], inputs: ["s"], axis: 1),
        pair("no scales", "scales of the shape [0]", [.floats("s", [0], [])], inputs: ["s"], axis: 1),
        pair("axis", "along the axis 9", [.floats("s", [3], [1, 1, 1])], inputs: ["s"], axis: 9),
        pair("large axis", "along the axis", [.floats("s", [3], [1, 1, 1])], inputs: ["s"], axis: .min),
        pair("matrix", "scales of the shape [1, 3]", [.floats("s", [1, 3], [1, 1, 1])], inputs: ["s"], axis: 1),
        pair(
            "number of zero points", "2 zero points for 1 scale",
            [.floats("s", [], [1]), .bytes("z", type: 2, [2], [0, 0])], inputs: ["s", "z"]),
        pair("scale of an activation", "depends on the image", [], inputs: ["y"]),
        pair(
            "zero point out of range", "outside the range",
            [
                .floats("s", [], [1]),
                .init(fields: [.integers(1, [1]), .integer(2, 2), .integers(5, [300]), .text(8, "z")]),
            ],
            inputs: ["s", "z"]),
        Malformed(testDescription: "integers without DequantizeLinear", message: "expected DequantizeLinear to read it")
        {
            $0.node("Relu", ["x.q"], to: "bad")
        },
        Malformed(testDescription: "too few weights", message: "108 bytes for the shape [8, 3, 3, 3]") {
            $0.initializers.append(.bytes("few", type: 3, [8, 3, 3, 3], [UInt8](repeating: 0, count: 108)))
            $0.node("DequantizeLinear", ["few", "x.scale"], to: "few.float")
            $0.node("Conv", ["x", "few.float"], to: "bad")
        },
        Malformed(testDescription: "scales of blocks", message: "scales of blocks") {
            $0.node("DequantizeLinear", ["w", "w.scale"], [.integer("axis", 0), .integer("block_size", 2)], to: "bad")
        },
    ]

    @Test("Invalid scales and zero points are errors that name the node", arguments: malformed)
    func rejects(_ item: Malformed) {
        let error = #expect(throws: ImportError.self) { try read(Self.sample(.uint8, item.change)) }
        #expect(error?.description.contains(item.message) == true, "\(error?.description ?? "")")
        #expect(error?.description.contains("bad") == true || item.message.contains("shape [8"))
    }
}
