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

    @Test("Training, and other layers, do not change") func unchanged() throws {
        var builder = NetworkBuilder(name: "others", input: TensorShape(height: 12, width: 12, channels: 32))
        builder.add(Convolution(outputChannels: 32, kernelSize: 3, padding: .same))
        builder.add(Convolution(outputChannels: 32, kernelSize: 3, padding: .same, groups: 32))
        builder.add(Convolution(outputChannels: 32, kernelSize: 3, groups: 4))
        builder.add(GlobalAveragePool())
        builder.add(Dense(outputChannels: 20))
        let network = try builder.network()
        expectBitwiseEqual(
            try Self.outputs(network, .bfloat16), try Self.outputs(network, .float32), "other layers")
        let resNet = try Network.named("resnet-18", labels: 4, inputSize: 32)
        func trained(_ precision: Precision) throws -> [Float] {
            var options = ExecutionPlan.Options(batchSize: 2, mode: .training)
            options.precision = precision
            let plan = try ExecutionPlan(resNet, parameters: Parameters(resNet, seed: 1), options: options)
            _ = plan.input.update(fromContentsOf: randomValues(2 * resNet.input.count, "input"))
            plan.forward(count: 2)
            return Array(plan.output)
        }
        expectBitwiseEqual(try trained(.bfloat16), try trained(.float32), "training")
    }
}
