import ImprintCore
import Testing

@testable import ImprintNetwork

/// Compares dense layers, whose products are split into parts and pieces, with the formula at some indices.
@Suite struct DenseTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let inputs: Int
        let outputs: Int
        let batch: Int
        var testDescription: String { "\(inputs) → \(outputs), batch \(batch)" }

        /// Whether the forward and backward pass process the weights in pieces.
        var hasPieces: Bool {
            let parts = inputs * outputs < 1 << 18 ? 1 : 4
            let length = GEMM.blockLength(multiplicationsPerRow: batch * outputs, minimum: 16)
            return length.map { $0 < inputs / parts } ?? false
        }
    }

    static let small = [1, 2, 10, 250].flatMap { outputs in
        [1, 16, 17].map { Case(inputs: 37, outputs: outputs, batch: $0) }
    }

    static let inPieces = [
        // One part, in several pieces.
        Case(inputs: 700, outputs: 250, batch: 16), Case(inputs: 700, outputs: 250, batch: 17),
        // Four parts, each in several pieces.
        Case(inputs: 4099, outputs: 250, batch: 16), Case(inputs: 4099, outputs: 250, batch: 17),
        Case(inputs: 26_300, outputs: 10, batch: 16), Case(inputs: 17_000, outputs: 250, batch: 1),
        Case(inputs: 131_000, outputs: 2, batch: 17),
    ]

    /// Batches around 128 images, from which on the products are not transposed.
    static let manyImages = [
        Case(inputs: 37, outputs: 17, batch: 127), Case(inputs: 37, outputs: 17, batch: 128),
        Case(inputs: 700, outputs: 400, batch: 131),
    ]

    private struct Result {
        var output: [Float]
        var inputGradient: [Float]
        var weightGradient: [Float]
        var biasGradient: [Float]
    }

    @Test(
        "Results agree with the formula and are bitwise identical for any number of threads",
        arguments: small + inPieces + manyImages)
    func formula(_ example: Case) throws {
        let (inputs, outputs, batch) = (example.inputs, example.outputs, example.batch)
        var net = NetworkBuilder(name: "dense", input: TensorShape(channels: inputs))
        net.add(Dense(outputChannels: outputs), named: "dense")
        let network = try net.network()
        let parameters = try Parameters(ParameterLayout(network))
        let (x, dy) = (repeatedValues(batch * inputs, "input"), repeatedValues(batch * outputs, "slopes"))
        let (weight, bias) = (repeatedValues(inputs * outputs, "weight"), repeatedValues(outputs, "bias"))
        parameters["dense.weight"] = weight
        parameters["dense.bias"] = bias

        func run(_ workers: Int) throws -> Result {
            let plan = try ExecutionPlan(
                network, parameters: parameters,
                options: ExecutionPlan.Options(
                    batchSize: batch + 1, mode: .training, workers: Workers(workers), inputGradient: true))
            plan.poison(keeping: [])
            plan.parameterGradients.update(repeating: .nan)
            _ = plan.input.update(from: x)
            plan.forward(count: batch)
            let output = Array(plan.output[..<(batch * outputs)])
            plan.poison(keeping: plan.readByBackward)
            _ = plan.outputGradient.update(from: dy)
            plan.backward(count: batch)
            return Result(
                output: output, inputGradient: Array(try #require(plan.inputGradient)[..<(batch * inputs)]),
                weightGradient: Array(plan.parameterGradients[try #require(parameters.layout["dense.weight"]).range]),
                biasGradient: Array(plan.parameterGradients[try #require(parameters.layout["dense.bias"]).range]))
        }
        let result = try run(1)
        for workers in [2, 4] {
            let other = try run(workers)
            expectBitwiseEqual(other.output, result.output, "output with \(workers) threads")
            expectBitwiseEqual(other.inputGradient, result.inputGradient, "input gradient with \(workers) threads")
            expectBitwiseEqual(other.weightGradient, result.weightGradient, "weight gradient with \(workers) threads")
            expectBitwiseEqual(other.biasGradient, result.biasGradient, "bias gradient with \(workers) threads")
        }

        func check(_ actual: [Float], _ name: String, _ expected: (_ index: Int) -> Double) {
            // Some indices in all pieces, and the last index.
            let step = max(1, actual.count / 61)
            let indices = Array(stride(from: 0, to: actual.count, by: step)) + [actual.count - 1]
            expectClose(indices.map { actual[$0] }, indices.map { Float(expected($0)) }, name)
        }
        check(result.output, "output") { index in
            let (image, output) = index.quotientAndRemainder(dividingBy: outputs)
            return (0..<inputs).reduce(Double(bias[output])) {
                $0 + Double(x[image * inputs + $1]) * Double(weight[$1 * outputs + output])
            }
        }
        check(result.inputGradient, "input gradient") { index in
            let (image, input) = index.quotientAndRemainder(dividingBy: inputs)
            return (0..<outputs).reduce(0) {
                $0 + Double(dy[image * outputs + $1]) * Double(weight[input * outputs + $1])
            }
        }
        check(result.weightGradient, "weight gradient") { index in
            let (input, output) = index.quotientAndRemainder(dividingBy: outputs)
            return (0..<batch).reduce(0) { $0 + Double(x[$1 * inputs + input]) * Double(dy[$1 * outputs + output]) }
        }
        check(result.biasGradient, "bias gradient") { output in
            (0..<batch).reduce(0) { $0 + Double(dy[$1 * outputs + output]) }
        }
    }

    @Test("The large cases are processed in pieces", arguments: inPieces)
    func pieces(_ example: Case) { #expect(example.hasPieces) }
}
