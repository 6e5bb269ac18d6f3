import CImprintKernels
import ImprintCore
import TestSupport
import Testing

@testable import ImprintNetwork

/// Products of bfloat16 numbers, and predictions that use them.
@Suite struct BFloat16Tests {
    /// The bfloat16 number nearest to a value, ties to even.
    private static func rounded(_ value: Float) -> Float {
        let bits = value.bitPattern
        return Float(bitPattern: (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff_0000)
    }

    @Test("Values are rounded to the nearest bfloat16 number", arguments: [1, 15, 16, 17, 33, 64])
    func rounding(count: Int) {
        var values = randomValues(count, "values")
        // A tie to even downwards and upwards, the largest float, and an infinity.
        let special: [Float] = [
            Float(bitPattern: 0x3f80_8000), Float(bitPattern: 0x3f81_8000), .greatestFiniteMagnitude, -.infinity,
        ]
        for (index, value) in special.enumerated() where index < count { values[index] = value }
        var result = [UInt16](repeating: 1, count: count + 3)
        imprint_to_bfloat16(values, count, 1, count, &result, count + 3)
        #expect(result.prefix(count).map { Float(bitPattern: UInt32($0) << 16) } == values.map(Self.rounded))
        #expect(result.suffix(3) == [0, 0, 0])
        var nan: [UInt16] = [0]
        imprint_to_bfloat16([Float.nan], 1, 1, 1, &nan, 1)
        #expect(Float(bitPattern: UInt32(nan[0]) << 16).isNaN)
    }

    struct Product: Sendable, CustomTestStringConvertible {
        let rows: Int
        let inner: Int
        let columns: Int
        var testDescription: String { "[\(rows), \(inner)]·[\(inner), \(columns)]" }
    }

    static let products = [
        Product(rows: 1, inner: 1, columns: 16), Product(rows: 3, inner: 27, columns: 24),
        Product(rows: 7, inner: 64, columns: 40), Product(rows: 13, inner: 147, columns: 64),
        Product(rows: 50, inner: 33, columns: 72), Product(rows: 6, inner: 128, columns: 17),
    ]

    @Test("A product agrees with the sum of products of rounded values", arguments: products)
    func product(_ product: Product) {
        let (rows, inner, columns) = (product.rows, product.inner, product.columns)
        let x = randomValues(rows * inner, "x")
        let w = randomValues(inner * columns, "w")
        let (bias, factors) = (randomValues(columns, "bias"), randomValues(columns, "factors"))
        let paired = inner + inner % 2
        var xs = [UInt16](repeating: 0, count: rows * paired)
        imprint_to_bfloat16(x, inner, rows, inner, &xs, paired)
        var panel = [UInt16](repeating: 0, count: paired * columns)
        imprint_pack_bfloat16(w, columns, factors, inner, columns, &panel)
        var y = [Float](repeating: .nan, count: rows * columns)
        bias.withUnsafeBufferPointer { bias in
            var finish = imprint_bias_clamp(bias: bias.baseAddress, floor: -0.75, ceiling: 2)
            imprint_multiply_panel_bfloat16(xs, paired, panel, inner, columns, &y, columns, rows, &finish)
        }
        for row in 0..<rows {
            for column in 0..<columns {
                var sum = Double(bias[column])
                for i in 0..<inner {
                    let weight = Self.rounded(w[i * columns + column] * factors[column])
                    sum += Double(Self.rounded(x[row * inner + i])) * Double(weight)
                }
                let expected = Float(min(max(sum, -0.75), 2))
                #expect(abs(y[row * columns + column] - expected) < 1e-5 * Float(inner).squareRoot() + 1e-5)
            }
        }
    }

    /// Returns the outputs of a network for random images after some passes.
    private static func outputs(
        _ network: Network, _ precision: Precision, threads: Int = 1, batch: Int = 3, passes: Int = 1
    ) throws -> [Float] {
        var options = ExecutionPlan.Options(batchSize: batch, threads: threads)
        options.precision = precision
        let plan = try ExecutionPlan(network, parameters: Parameters(network, seed: 2), options: options)
        for _ in 0..<passes {
            _ = plan.input.update(fromContentsOf: randomValues(batch * network.input.count, "input"))
            plan.forward(count: batch)
        }
        return Array(plan.output)
    }

    /// Expects outputs in bfloat16 that are close to those in float32, relative to their spread, and equal for any number of threads.
    private static func check(_ network: Network, tolerance: Float) throws {
        let exact = try outputs(network, .float32)
        let expected = try outputs(network, .bfloat16)
        let spread = (exact.max() ?? 0) - (exact.min() ?? 0)
        let error = zip(exact, expected).map { abs($0 - $1) }.max() ?? 0
        #expect(error > 0 && error < tolerance * spread, "\(error) of \(spread)")
        for threads in [2, 5] {
            expectBitwiseEqual(try outputs(network, .bfloat16, threads: threads), expected, "\(threads) threads")
        }
        // Other weights are packed only before the second pass of a plan for one image.
        expectBitwiseEqual(
            try outputs(network, .bfloat16, batch: 1, passes: 3), try outputs(network, .bfloat16, batch: 1),
            "third pass")
    }

    @Test(
        "Predictions are close to float32, and bitwise equal for any number of threads",
        arguments: ["mobilenet-v1", "resnet-18", "efficientnet-lite0", "squeezenet-1.1"])
    func predictions(name: String) throws {
        try Self.check(Network.named(name, labels: 10, inputSize: 96).logits(), tolerance: 0.1)
    }

    // Up to 8 columns beyond a multiple of 64 belong to the last panel; with 9 to 15, float32 is used.
    @Test("Convolutions may have any number of outputs", arguments: [16, 24, 65, 72, 73, 79, 80, 137, 143])
    func outputCounts(channels: Int) throws {
        for (kernel, size) in [(1, 40), (5, 9)] {
            var builder = NetworkBuilder(
                name: "convolutions", input: TensorShape(height: size, width: size, channels: 7))
            builder.add(Convolution(outputChannels: 33, kernelSize: 1, hasBias: true))
            builder.add(Convolution(outputChannels: channels, kernelSize: Size2D(integerLiteral: kernel)))
            try Self.check(builder.network(), tolerance: 0.02)
        }
    }

    @Test("A matrix and its transpose are packed into the same pairs", arguments: products)
    func transposedPacking(_ product: Product) {
        let (inner, columns) = (product.inner, product.columns)
        let w = randomValues(inner * columns, "w")
        let transpose = (0..<columns).flatMap { column in (0..<inner).map { w[$0 * columns + column] } }
        var expected = [UInt16](repeating: 1, count: (inner + inner % 2) * columns)
        var panel = expected
        imprint_pack_bfloat16(w, columns, nil, inner, columns, &expected)
        imprint_pack_transposed_bfloat16(transpose, inner, inner, columns, &panel)
        #expect(panel == expected)
    }

    @Test("Other layers do not change") func unchanged() throws {
        var builder = NetworkBuilder(name: "others", input: TensorShape(height: 12, width: 12, channels: 32))
        builder.add(Convolution(outputChannels: 32, kernelSize: 3, padding: .same))
        builder.add(Convolution(outputChannels: 32, kernelSize: 3, padding: .same, groups: 32))
        builder.add(Convolution(outputChannels: 32, kernelSize: 3, groups: 4))
        builder.add(GlobalAveragePool())
        builder.add(Dense(outputChannels: 20))
        let network = try builder.network()
        expectBitwiseEqual(
            try Self.outputs(network, .bfloat16), try Self.outputs(network, .float32), "other layers")
        expectBitwiseEqual(
            try Self.trainingStep(network, .bfloat16, batch: 8), try Self.trainingStep(network, .float32, batch: 8),
            "training of other layers")
    }

    /// Returns the outputs and all gradients of a training step on random images.
    private static func trainingStep(
        _ network: Network, _ precision: Precision, threads: Int = 1, batch: Int, frozen: Set<String> = [],
        inputGradient: Bool = true
    ) throws -> [Float] {
        var options = ExecutionPlan.Options(
            batchSize: batch, mode: .training, threads: threads, frozen: frozen, inputGradient: inputGradient)
        options.precision = precision
        let parameters = try Parameters(network, seed: 2)
        let plan = try ExecutionPlan(network, parameters: parameters, options: options)
        _ = plan.input.update(fromContentsOf: randomValues(batch * network.input.count, "input"))
        plan.parameterGradients.update(repeating: 0)
        var results: [Float] = []
        // The second step reads weights of frozen layers that the first step packed.
        for _ in 0..<2 {
            plan.forward(count: batch)
            results += plan.output
            _ = plan.outputGradient.update(fromContentsOf: randomValues(plan.output.count, "gradient"))
            plan.backward(count: batch)
            results += plan.parameterGradients
            if let gradient = plan.inputGradient { results += gradient }
        }
        return results
    }

    /// Expects a training step in bfloat16 that is close to float32, and equal for any number of threads.
    /// - Parameter tolerance: The largest Euclidean norm of the difference, relative to the norm in float32.
    private static func checkTraining(
        _ network: Network, batch: Int, frozen: Set<String> = [], inputGradient: Bool = true, tolerance: Float
    ) throws {
        func step(_ precision: Precision, threads: Int = 1) throws -> [Float] {
            try trainingStep(
                network, precision, threads: threads, batch: batch, frozen: frozen, inputGradient: inputGradient)
        }
        let exact = try step(.float32)
        let rounded = try step(.bfloat16)
        func norm(_ values: some Sequence<Float>) -> Float { values.reduce(0) { $0 + $1 * $1 }.squareRoot() }
        let error = norm(zip(exact, rounded).map { $0 - $1 }) / norm(exact)
        #expect(error > 0 && error < tolerance, "\(error)")
        for threads in [2, 5] {
            expectBitwiseEqual(try step(.bfloat16, threads: threads), rounded, "\(threads) threads")
        }
    }

    @Test(
        "A training step is close to float32, and bitwise equal for any number of threads",
        arguments: ["mobilenet-v1", "resnet-50", "efficientnet-lite0", "squeezenet-1.1"])
    func trainingStep(name: String) throws {
        // Random layers amplify rounding errors, and statistics of small batches amplify them more; wrong products have an error above 1.
        let network = try Network.named(name, labels: 10, inputSize: 64).logits().withFrozenStatistics()
        try Self.checkTraining(network, batch: 4, tolerance: 0.5)
        let first = Set(network.nodes.prefix(network.nodes.count / 2).map(\.name))
        try Self.checkTraining(network, batch: 4, frozen: first, inputGradient: false, tolerance: 0.5)
    }

    @Test("A training step with statistics of the batch is bitwise equal for any number of threads")
    func batchStatistics() throws {
        let network = try Network.named("mobilenet-v1", labels: 10, inputSize: 64).logits()
        let expected = try Self.trainingStep(network, .bfloat16, batch: 4)
        #expect(try Self.trainingStep(network, .float32, batch: 4) != expected)
        for threads in [2, 3, 8] {
            expectBitwiseEqual(
                try Self.trainingStep(network, .bfloat16, threads: threads, batch: 4), expected, "\(threads) threads")
        }
    }

    // The transpose of a weight has as many columns as a window has values: 7 times the size of the kernel.
    @Test("Trained convolutions may have any number of outputs", arguments: [16, 24, 65, 73, 79, 80, 137])
    func trainedOutputCounts(channels: Int) throws {
        for (kernel, size, stride) in [(1, 24, 1), (5, 25, 1), (3, 33, 2)] {
            var builder = NetworkBuilder(
                name: "convolutions", input: TensorShape(height: size, width: size, channels: 7))
            builder.add(
                Convolution(
                    outputChannels: channels, kernelSize: Size2D(integerLiteral: kernel),
                    stride: Size2D(integerLiteral: stride)))
            builder.add(Convolution(outputChannels: 33, kernelSize: 1))
            let network = try builder.network()
            try Self.checkTraining(network, batch: 3, tolerance: 0.01)
            try Self.checkTraining(network, batch: 3, frozen: [network.nodes[1].name], tolerance: 0.01)
        }
    }

    @Test("A training step with few rows computes in float32") func fewRows() throws {
        var builder = NetworkBuilder(name: "rows", input: TensorShape(height: 8, width: 8, channels: 16))
        builder.add(Convolution(outputChannels: 32, kernelSize: 1))
        let network = try builder.network()
        expectBitwiseEqual(
            try Self.trainingStep(network, .bfloat16, batch: 1), try Self.trainingStep(network, .float32, batch: 1),
            "64 rows")
        try Self.checkTraining(network, batch: 2, tolerance: 0.01)
    }
}
