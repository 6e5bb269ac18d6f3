import ImprintCore
import TestSupport
import Testing

@testable import ImprintNetwork

/// Post-training quantization, and predictions in int8.
@Suite struct Int8PredictionTests {
    /// Returns random images for calibration.
    private static func images(_ network: Network, _ names: Range<Int>) -> [Quantizer.Image] {
        names.map { index in
            Quantizer.Image(shape: network.input) { values in
                _ = values.update(fromContentsOf: randomValues(network.input.count, "image \(index)"))
            }
        }
    }

    private static func quantized(_ network: Network, _ parameters: Parameters) throws -> Parameters {
        try Quantizer(network, parameters: parameters).quantize(for: images(network, 0..<6))
    }

    /// Returns the outputs of a network for images that were not used for calibration.
    private static func outputs(
        _ network: Network, _ parameters: Parameters, _ precision: Precision, threads: Int = 1, batch: Int = 3
    ) throws -> [Float] {
        var options = ExecutionPlan.Options(batchSize: batch, threads: threads)
        options.precision = precision
        let plan = try ExecutionPlan(network, parameters: parameters, options: options)
        var outputs: [Float] = []
        for first in stride(from: 0, to: 3, by: batch) {
            let images = (first..<(first + batch)).flatMap { randomValues(network.input.count, "image \(10 + $0)") }
            _ = plan.input.update(fromContentsOf: images)
            plan.forward(count: batch)
            outputs += Array(plan.output)
        }
        return outputs
    }

    /// Expects outputs in int8 that are close to float32 relative to their spread, and equal for any number of threads and images.
    private static func check(_ network: Network, tolerance: Float) throws {
        let parameters = try Parameters(network, seed: 2)
        let quantized = try quantized(network, parameters)
        let exact = try outputs(network, parameters, .float32)
        let result = try outputs(network, quantized, .int8)
        let spread = (exact.max() ?? 0) - (exact.min() ?? 0)
        let error = zip(exact, result).map { abs($0 - $1) }.max() ?? 0
        #expect(error > 0 && error < tolerance * spread, "\(error) of \(spread)")
        expectBitwiseEqual(try outputs(network, quantized, .automatic), result, "int8 is automatic")
        for threads in [2, 3, 5, 8] {
            expectBitwiseEqual(try outputs(network, quantized, .int8, threads: threads), result, "\(threads) threads")
        }
        expectBitwiseEqual(try outputs(network, quantized, .int8, batch: 1), result, "one image at a time")
    }

    @Test(
        "Predictions are close to float32, and bitwise equal for any number of threads",
        arguments: [
            "mobilenet-v1", "resnet-18", "efficientnet-lite0", "squeezenet-1.1", "mobilenet-v3-small", "logonet",
        ])
    func predictions(name: String) throws {
        try Self.check(Network.named(name, labels: 10, inputSize: 96).logits(), tolerance: 0.25)
    }

    struct Layers: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let layers: @Sendable () -> [any Layer]
    }

    static let layers = [
        Layers(testDescription: "padding on one side, dilation") {
            [
                Convolution(
                    outputChannels: 20, kernelSize: 3, padding: .explicit(top: 0, left: 2, bottom: 3, right: 0),
                    dilation: 2), ReLU(),
            ]
        },
        Layers(testDescription: "5 channels and a rectangular kernel") {
            [
                Convolution(outputChannels: 5, kernelSize: 1), ReLU6(),
                Convolution(outputChannels: 33, kernelSize: Size2D(height: 2, width: 3), stride: 2),
            ]
        },
        Layers(testDescription: "depthwise with same padding, pooling") {
            [
                Convolution(outputChannels: 24, kernelSize: 3, padding: .same), BatchNormalization(), ReLU(),
                Convolution(outputChannels: 24, kernelSize: 5, stride: 2, padding: .same, groups: 24, hasBias: false),
                BatchNormalization(), HardSwish(), MaxPool(kernelSize: 2),
                Convolution(outputChannels: 24, kernelSize: 3, padding: .all(1), groups: 24), Swish(),
            ]
        },
        Layers(testDescription: "smooth activations") {
            [
                Convolution(outputChannels: 30, kernelSize: 3), Swish(),
                Convolution(outputChannels: 70, kernelSize: 1), HardSwish(),
                Convolution(outputChannels: 7, kernelSize: 3, padding: .all(1)),
            ]
        },
        Layers(testDescription: "groups, which stay in float32, and dense layers") {
            [
                Convolution(outputChannels: 16, kernelSize: 1), ReLU(),
                Convolution(outputChannels: 16, kernelSize: 3, groups: 4), MaxPool(kernelSize: 2), Flatten(),
                Dense(outputChannels: 40), ReLU(), Dropout(), Dense(outputChannels: 10),
            ]
        },
    ]

    @Test("Any combination of layers can be quantized", arguments: layers)
    func combinations(_ layers: Layers) throws {
        var builder = NetworkBuilder(name: "layers", input: TensorShape(height: 14, width: 15, channels: 3))
        for layer in layers.layers() { builder.add(layer) }
        try Self.check(builder.network(), tolerance: 0.1)
    }

    @Test("Layers whose sums could overflow, or whose input rows need much memory, stay in float32") func limits()
        throws
    {
        func operations(_ layers: [any Layer], channels: Int = 4, size: Int = 8) throws -> [String] {
            var builder = NetworkBuilder(
                name: "limits", input: TensorShape(height: size, width: size, channels: channels))
            for layer in layers { builder.add(layer) }
            let network = try builder.network()
            let parameters = try Parameters(network, seed: 1)
            let quantized = try Quantizer(network, parameters: parameters).quantize(for: Self.images(network, 0..<1))
            return quantized.quantization?.weights.keys.sorted() ?? []
        }
        // 66,312 products of 255 and 127 fit into 32 bits.
        #expect(try operations([Flatten(), Dense(outputChannels: 2)], channels: 1024) == ["dense1"])
        #expect(try operations([Flatten(), Dense(outputChannels: 2)], channels: 1040) == [])
        let wide = Convolution(outputChannels: 2, kernelSize: 3, padding: .all(8192), dilation: 8192)
        #expect(try operations([wide]) == [])
    }

    @Test("The overview of a plan shows which operations compute in int8") func overview() throws {
        let network = try Network.named("lenet", labels: 3)
        let quantized = try Self.quantized(network, Parameters(network, seed: 6))
        func precisions(_ precision: Precision) -> [Precision] {
            var options = ExecutionPlan.Options(batchSize: 1)
            options.precision = precision
            return ExecutionPlan.Overview(network, options: options, quantization: quantized.quantization).layers
                .filter { ["convolution", "dense"].contains($0.kind) }.map(\.precision)
        }
        #expect(Set(precisions(.int8)) == [.int8])
        #expect(Set(precisions(.float32)) == [.float32])
    }

    @Test("A plan in int8 needs a quantization") func notQuantized() throws {
        let network = try Network.named("lenet", labels: 3)
        var options = ExecutionPlan.Options(batchSize: 1)
        options.precision = .int8
        #expect(throws: NetworkError.self) {
            try ExecutionPlan(network, parameters: Parameters(network, seed: 1), options: options)
        }
    }

    @Test("The input of the head is float32, whether the head reads integers or not") func headInput() throws {
        let network = try Network.named("lenet", labels: 3)
        let parameters = try Parameters(network, seed: 6)
        let quantized = try Self.quantized(network, parameters)
        func features(_ parameters: Parameters, _ precision: Precision) throws -> [Float] {
            var options = ExecutionPlan.Options(batchSize: 1)
            (options.precision, options.keepsHeadInput) = (precision, true)
            let plan = try ExecutionPlan(network, parameters: parameters, options: options)
            _ = plan.input.update(fromContentsOf: randomValues(network.input.count, "image 0"))
            plan.forward(count: 1)
            return Array(try #require(plan.headInput))
        }
        let (float, integer) = try (features(parameters, .float32), features(quantized, .int8))
        let largest = float.map(abs).max() ?? 0
        #expect(zip(float, integer).allSatisfy { abs($0 - $1) < 0.05 * largest } && float != integer)
    }

    @Test("Positions are spread over rows and columns of any width", arguments: [16, 32, 56, 96, 112, 224])
    func positions(width: Int) {
        let positions = sampledPixels(TensorShape(height: width, width: width, channels: 1), count: 32)
        #expect(Set(positions).count == 32 && positions.allSatisfy { (0..<(width * width)).contains($0) })
        for axis in [positions.map { $0 % width }, positions.map { $0 / width }] {
            for quarter in 0..<4 { #expect((6...10).contains(axis.count { $0 * 4 / width == quarter })) }
        }
        #expect(sampledPixels(TensorShape(height: 1, width: 5, channels: 2), count: 32) == [0, 1, 2, 3, 4])
    }

    @Test("Activations that overflow do not stop the quantization") func overflow() throws {
        var builder = NetworkBuilder(name: "overflow", input: TensorShape(height: 8, width: 8, channels: 4))
        builder.add(Convolution(outputChannels: 8, kernelSize: 3))
        builder.add(Convolution(outputChannels: 8, kernelSize: 3))
        let network = try builder.network()
        let parameters = try Parameters(network, seed: 1)
        for entry in parameters.layout.entries { parameters[entry.name] = parameters[entry.name]?.map { $0 * 1e30 } }
        let quantizer = Quantizer(network, parameters: parameters)
        let quantized = try quantizer.quantize(for: Self.images(network, 0..<2))
        let result = try quantizer.limitingError(of: quantized, on: Self.images(network, 2..<4), to: 0.1)
        #expect(!result.floatLayers.isEmpty && result.error.relativeError <= 0.1)
        let integerLayers = result.parameters.quantization?.weights.keys.sorted() ?? []
        #expect(Set(integerLayers).isDisjoint(with: result.floatLayers))
        let layerCount = try #require(quantized.quantization).weights.count
        #expect(integerLayers.count + result.floatLayers.count == layerCount)
    }

    @Test("The range of a channel with infinite values, or of values with too large differences, is empty")
    func infiniteRanges() {
        // [pixel, channel]; the differences of the third channel are subnormal.
        let values: [Float] = [
            1, -3e38, 0, -1,
            .infinity, 3e38, 1e-40, 1,
            2, 1, 2e-40, 2,
        ]
        var statistics = ActivationStatistics(channels: 4)
        statistics.recordRange(values, pixels: 3)
        statistics.recordHistogram(values, TensorShape(height: 3, width: 1, channels: 4))
        #expect(statistics.bestRange(0) == 0...0 && statistics.bestRange(1) == 0...0)
        #expect(statistics.bestRange(2).upperBound <= 2e-40)
        #expect(statistics.bestRange(3).lowerBound < 0 && statistics.bestRange(3).upperBound > 1)
        #expect(statistics.meanSquare(0) == 0 && statistics.meanSquare(3) == 2)
    }

    @Test("A convolution whose padded image has more than 2³¹ − 1 rows is not computed in int8") func paddedRows() {
        let padding = 1 << 15
        let convolution = Convolution(
            outputChannels: 1, kernelSize: Size2D(height: 3, width: 1),
            padding: .explicit(top: padding, left: 0, bottom: padding, right: 0))
        func isPossible(rows: Int) -> Bool {
            QuantizedConvolution.isPossible(
                PrepackedConvolution(convolution), over: TensorShape(height: rows, width: 1, channels: 1))
        }
        #expect(isPossible(rows: Int(Int32.max) - 2 * padding))
        #expect(!isPossible(rows: Int(Int32.max) - 2 * padding + 1))
    }

    @Test("Images without any activation can be quantized") func zeros() throws {
        let network = try Network.named("resnet-18", labels: 4, inputSize: 32)
        let parameters = try Parameters(network, seed: 1)
        let image = Quantizer.Image(shape: network.input) { $0.update(repeating: 0) }
        let quantized = try Quantizer(network, parameters: parameters).quantize(for: [image])
        let outputs = try Self.outputs(network, quantized, .int8)
        #expect(outputs.allSatisfy { $0.isFinite })
    }

    @Test("Layers with large errors stay in float32") func mixedPrecision() throws {
        let network = try Network.named("mobilenet-v1", labels: 10, inputSize: 64).logits()
        let parameters = try Parameters(network, seed: 3)
        let quantizer = Quantizer(network, parameters: parameters)
        let quantized = try quantizer.quantize(for: Self.images(network, 0..<6))
        let images = Self.images(network, 20..<24)
        let all = try quantizer.error(of: quantized, on: images)
        #expect(all.relativeError > 0)
        let same = try quantizer.limitingError(of: quantized, on: images, to: all.relativeError)
        #expect(same.floatLayers == [] && same.error == all)
        var progress: [Int] = []
        let half = try quantizer.limitingError(of: quantized, on: images, to: all.relativeError / 2) { done, total in
            progress.append(done)
            #expect(total == quantized.quantization?.weights.count)
        }
        #expect(progress.count > 1 && progress == Array(progress.indices))
        #expect(half.error.relativeError <= all.relativeError / 2)
        #expect(!half.floatLayers.isEmpty && half.floatLayers.count < 28)
        #expect(try quantizer.error(of: half.parameters, on: images) == half.error)
        // Layers in float32 have their original weights again.
        let none = try quantizer.limitingError(of: quantized, on: images, to: 0)
        expectBitwiseEqual(
            try Self.outputs(network, none.parameters, .automatic), try Self.outputs(network, parameters, .float32),
            "none")
    }

    @Test("The quantization does not depend on the number of threads") func threads() throws {
        let network = try Network.named("efficientnet-lite0", labels: 5, inputSize: 64).logits()
        let parameters = try Parameters(network, seed: 4)
        let results = try [1, 2].map {
            try Quantizer(network, parameters: parameters, threads: $0).quantize(for: Self.images(network, 0..<4))
        }
        #expect(results[0].quantization == results[1].quantization)
        for entry in parameters.layout.entries { #expect(results[0][entry.name] == results[1][entry.name]) }
    }

    @Test("The quantization needs statistics only of activations that int8 layers can read") func statistics() throws {
        var builder = NetworkBuilder(name: "names", input: TensorShape(height: 8, width: 8, channels: 4))
        builder.add(Convolution(outputChannels: 8, kernelSize: 3))
        builder.add(ReLU(), named: "relu")
        builder.add(MaxPool(kernelSize: 2))
        builder.add(Flatten())
        builder.add(Dense(outputChannels: 3))
        builder.add(Softmax())
        let network = try builder.network()
        let parameters = try Parameters(network, seed: 1)
        let operations = Quantizer(network, parameters: parameters).operations()
        let names = Equalization(network, operations, parameters).activationNames
        #expect(names == [Network.inputName, "relu"])
    }

    @Test("Weights of a depthwise convolution with a large kernel are rounded to nearest") func largeKernel() throws {
        var builder = NetworkBuilder(name: "large kernel", input: TensorShape(height: 20, width: 20, channels: 2))
        builder.add(Convolution(outputChannels: 2, kernelSize: 17, groups: 2), named: "depthwise")
        let network = try builder.network()
        let parameters = try Parameters(network, seed: 1)
        let quantized = try Self.quantized(network, parameters)
        let weights = try #require(quantized.quantization?.weights["depthwise"])
        var nearest = try #require(parameters["depthwise.weight"])
        nearest.withUnsafeMutableBufferPointer { weights.round($0) }
        expectBitwiseEqual(try #require(quantized["depthwise.weight"]), nearest, "weights")
    }

    @Test("Rounded weights keep the output closer than weights rounded to nearest") func rounding() throws {
        var builder = NetworkBuilder(name: "correlated", input: TensorShape(height: 16, width: 16, channels: 32))
        builder.add(Convolution(outputChannels: 32, kernelSize: 3, padding: .all(1), groups: 32, hasBias: false))
        builder.add(Convolution(outputChannels: 48, kernelSize: 1, hasBias: true))
        let network = try builder.network()
        let parameters = try Parameters(network, seed: 5)
        // Smooth, positive images: neighbouring pixels are nearly equal.
        let images = (0..<6).map { index in
            Quantizer.Image(shape: network.input) { values in
                let noise = randomValues(values.count, "noise \(index)")
                for i in values.indices { values[i] = 3 + Float(index) + Float(i % 7) + 0.05 * noise[i] }
            }
        }
        let quantizer = Quantizer(network, parameters: parameters)
        let quantized = try quantizer.quantize(for: images)
        let nearest = try parameters.copy()
        for entry in nearest.layout.entries {
            guard let weights = quantized.quantization?.weights[entry.node], entry.parameter.role == .weight else {
                continue
            }
            nearest.withValues(of: entry) { weights.round($0) }
        }
        // Without a quantization, the plan computes in float32 with the rounded weights.
        let rounded = try quantized.copy()
        let errors = try [rounded, nearest].map { try quantizer.error(of: $0, on: images).relativeError }
        #expect(errors[0] < errors[1] / 2, "\(errors)")
    }
}
