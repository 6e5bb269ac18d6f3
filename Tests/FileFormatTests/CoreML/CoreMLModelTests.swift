import ImprintNetwork
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Importing the parts of a Core ML file other than layers: image, labels, quantized weights, linear models; and invalid files.
@Suite struct CoreMLModelTests {
    /// Returns a copy of `sample` with a convolution over the whole image.
    private func withConvolution(
        _ sample: CoreMLSample, outputs: Int, _ weights: WireField, name: String = "conv"
    ) -> CoreMLSample {
        var sample = sample
        let channels = sample.colors == 10 ? 1 : 3
        sample.add(
            name, 100,
            [
                .integer(1, outputs), .integer(2, channels), .integers(20, [sample.height, sample.width]),
                .message(50, []),
                weights,
            ])
        return sample
    }

    private func strings(_ labels: [String]) -> WireField { .message(100, labels.map { .text(1, $0) }) }

    private func scaler(_ scale: Float, blue: Float = 0, green: Float = 0, red: Float = 0, gray: Float = 0) -> WireField
    {
        .message(
            2,
            [
                .text(1, "image"),
                .message(
                    10, [.float(10, scale), .float(20, blue), .float(21, green), .float(22, red), .float(30, gray)]),
            ])
    }

    @Test("A scaler becomes the input normalization, and BGR is merged into the weights")
    func blueFirst() throws {
        var sample = CoreMLSample(width: 2, height: 1, colors: 30)
        sample.preprocessing = [scaler(1 / 64, blue: -1, green: -2, red: -3)]
        sample.labels = [strings(["a", "b"])]
        let imported = try withConvolution(sample, outputs: 2, .weights(90, [1, 0, 2, 0, 3, 0, 0, 4, 0, 5, 0, 6]))
            .read()
        #expect(imported.model.preprocessing.mean == [192, 128, 64])
        #expect(imported.model.preprocessing.scale == [0.015625, 0.015625, 0.015625])
        #expect(imported.model.labels == ["a", "b"])
        // Both pixels have the same colour.
        let (red, green, blue) = (Float(200) / 64 - 3, Float(130) / 64 - 2, Float(60) / 64 - 1)
        let expected = softmax([blue + 2 * green + 3 * red, 4 * blue + 5 * green + 6 * red])
        #expect(maximumDifference(try imported.model.result([200, 130, 60, 200, 130, 60]), expected) < 1e-6)
        // [pixel, channel (red, green, blue), output]
        #expect(imported.model.parameters["conv.weight"] == [3, 0, 2, 0, 1, 0, 0, 6, 0, 5, 0, 4])
        #expect(imported.model.network.nodes.count == 2)
    }

    @Test("A scale of 0 is replaced by 1, with a note")
    func zeroScale() throws {
        var sample = CoreMLSample(width: 1, height: 1)
        sample.preprocessing = [scaler(0, gray: -5)]
        let imported = try withConvolution(sample, outputs: 2, .weights(90, [1, 2])).read()
        #expect(imported.model.preprocessing.mean == [5])
        #expect(imported.model.preprocessing.scale == [1])
        #expect(imported.notes.contains { $0.contains("scales the image by 0") })
    }

    @Test("A mean image is subtracted element by element")
    func meanImage() throws {
        var sample = CoreMLSample(width: 2, height: 1)
        sample.preprocessing = [.message(2, [.text(1, "image"), .message(11, [.floats(1, [10, 20])])])]
        sample.add("flat", 301)
        let imported = try sample.read()
        #expect(maximumDifference(try imported.model.result([11, 23]), softmax([1, 3])) < 1e-6)
    }

    @Test("Float16 weights, and quantized weights with scales or a lookup table")
    func weights() throws {
        func weights(_ field: [WireField]) throws -> [Float]? {
            let sample = withConvolution(CoreMLSample(width: 1, height: 1), outputs: 4, .message(90, field))
            return try sample.read().model.parameters["conv.weight"]
        }
        #expect(try weights([.bytes(2, [0, 0x3C, 0, 0xC0, 0, 0x38, 1, 0])]) == [1, -2, 0.5, 0x1p-24])
        let bytes: [UInt8] = [0, 1, 128, 255]
        let shared: WireField = .message(40, [.integer(1, 8), .message(101, [.floats(1, [0.5]), .floats(2, [-1])])])
        #expect(try weights([.bytes(30, bytes), shared]) == [-1, -0.5, 63, 126.5])
        let perOutput: WireField = .message(
            40, [.integer(1, 8), .message(101, [.floats(1, [1, 2, 3, 4]), .floats(2, [0, 0, 0, 1])])])
        #expect(try weights([.bytes(30, bytes), perOutput]) == [0, 2, 384, 1021])
        // 3 bits each, highest first: 001 110 01|1 111.
        let table: WireField = .message(40, [.integer(1, 3), .message(102, [.floats(1, [0, 1, 2, 3, 4, 5, 6, 7])])])
        #expect(try weights([.bytes(30, [0b0011_1001, 0b1111_0000]), table]) == [1, 6, 3, 7])
    }

    @Test(
        "Weights that do not match the layer are rejected",
        arguments: [
            [.floats(1, [1, 2, 3])], [.bytes(2, [0, 0])], [.bytes(30, [1, 2, 3, 4])], [],
            [.bytes(30, [1, 2, 3, 4]), .message(40, [.integer(1, 9)])],
            [.bytes(30, [1, 2, 3, 4]), .message(40, [.integer(1, 8)])],
            [.bytes(30, [1, 2, 3]), .message(40, [.integer(1, 8), .message(101, [.floats(1, [1])])])],
            [.bytes(30, [1, 2]), .message(40, [.integer(1, 4), .message(102, [.floats(1, [1])])])],
            [.bytes(31, [1, 2, 3, 4])],
        ] as [[WireField]])
    func damagedWeights(fields: [WireField]) {
        let sample = withConvolution(CoreMLSample(width: 1, height: 1), outputs: 4, .message(90, fields))
        #expect(throws: ImportError.self) { try sample.read() }
    }

    @Test("All unsupported layers are listed at once, custom layers by their class")
    func unsupported() throws {
        var sample = CoreMLSample()
        sample.add("first", 165)
        sample.add("custom", 500, [.text(10, "MyLayer")])
        sample.add("second", 211)
        sample.add("back", 100, [.integer(60, 1)], from: ["image"])
        let error = #expect(throws: ImportError.self) { try sample.read() }
        #expect(
            error?.problem
                == .unsupported([
                    .init(operation: "mvn", node: "first"), .init(operation: "custom MyLayer", node: "custom"),
                    .init(operation: "resizeBilinear", node: "second"),
                    .init(operation: "convolution", node: "back", reason: "as a deconvolution"),
                ]))
    }

    @Test(
        "Models of other types are rejected by type",
        arguments: [(404, "kNearestNeighborsClassifier"), (2000, "textClassifier"), (303, "neuralNetworkRegressor")])
    func otherKinds(number: Int, name: String) throws {
        let bytes = WireField.encode([
            .integer(1, 4), .message(2, [CoreMLSample().image]), .message(number, []),
        ])
        #expect(#expect(throws: ImportError.self) { try importCoreML(bytes) }?.description.contains(name) == true)
    }

    private func pipeline(_ encoding: Int, rows: [[Double]], labels: [String]) throws -> ImportedModel {
        var sample = CoreMLSample(width: 2, height: 1)
        sample.kind = 500
        sample.preprocessing = [scaler(1 / 64)]
        sample.add("features", 301)
        let array: WireField = .message(3, [.message(5, [.integers(1, [2])])])
        let extractor: [WireField] = [
            .integer(1, 4), .message(2, [sample.image, .message(10, [.text(1, "features"), array])]),
            .message(500, sample.network),
        ]
        let head: [WireField] = [
            .integer(1, 4), .message(2, [.message(1, [.text(1, "features"), array])]),
            .message(
                400,
                rows.map { .message(1, [.doubles(1, $0)]) }
                    + [.doubles(2, rows.indices.map { Double($0) / 2 }), .integer(4, encoding), strings(labels)]),
        ]
        return try importCoreML(
            WireField.encode([
                .integer(1, 4), .message(2, [sample.image]),
                .message(200, [.message(1, [.message(1, extractor), .message(1, head)])]),
            ]))
    }

    @Test("A linear model after a network, with a reference class or one-vs-rest")
    func linearModels() throws {
        let (x, y) = (Float(32) / 64, Float(96) / 64)
        let withReference = try pipeline(0, rows: [[1, 2], [3, -1]], labels: ["a", "b", "c"])
        #expect(withReference.model.labels == ["a", "b", "c"])
        #expect(
            maximumDifference(try withReference.model.result([32, 96]), softmax([0, x + 2 * y, 3 * x - y + 0.5])) < 1e-6
        )
        let oneVsRest = try pipeline(1, rows: [[1, 2], [3, -1], [0, 1]], labels: ["a", "b", "c"])
        let logits = [x + 2 * y, 3 * x - y + 0.5, y + 1]
        let expected = logits.map { softmax([0, $0])[1] }
        #expect(maximumDifference(try oneVsRest.model.result([32, 96]), expected) < 1e-6)
        #expect(oneVsRest.notes.contains { $0.contains("do not add up to 1") })
        #expect(throws: ImportError.self) { try pipeline(0, rows: [[1, 2]], labels: ["a", "b", "c"]) }
        #expect(throws: ImportError.self) { try pipeline(0, rows: [[1, 2], [1]], labels: ["a", "b", "c"]) }
    }

    @Test("The input size can be changed if the network accepts it")
    func inputSize() throws {
        var sample = CoreMLSample(width: 4, height: 4)
        sample.add(
            "conv", 100,
            [.integer(1, 2), .integer(2, 1), .message(51, []), .weights(90, Array(repeating: 1, count: 18))])
        sample.add("pool", 120, [.integer(1, 1), .integer(60, 1)])
        let imported = try sample.read { $0.inputSize = Size2D(height: 6, width: 5) }
        #expect(imported.model.network.input == TensorShape(height: 6, width: 5, channels: 1))
        #expect(imported.model.preprocessing.width == 5)
    }

    @Test("A sigmoid at the end is kept, and the output is found by the name of the probabilities")
    func ends() throws {
        var sample = CoreMLSample(width: 1, height: 2)
        sample.add("dense", 140, [.integer(1, 2), .integer(2, 2), .weights(20, [1, 2, 3, 4])])
        sample.add("scores", 130, [.message(40, [])])
        sample.add("unused", 231, [.float(1, 9)])
        sample.labels = [strings(["a", "b"]), .text(200, "scores")]
        let imported = try sample.read()
        #expect(imported.model.network.nodes.last?.layer is Sigmoid)
        #expect(imported.model.network.nodes.last?.name == "scores")
    }

    @Test("An upper limit that converters express with two factors becomes one layer")
    func relu6() throws {
        var sample = CoreMLSample(width: 1, height: 2)
        sample.add("relu", 130, [.message(10, [])])
        sample.add("minus", 231, [.float(1, -1)])
        sample.add("threshold", 220, [.integer(1, 7), .float(2, -6)])
        sample.add("plus", 231, [.float(1, -1)])
        sample.add("flat", 301)
        let kinds = try sample.read().model.network.nodes.map { type(of: $0.layer).kind }
        #expect(kinds == ["relu6", "flatten", "softmax"])
    }
}
