import ImprintCore
import Testing

@testable import ImprintNetwork

/// Compares Winograd convolutions that have many blocks of tiles with im2col.
///
/// The reference is a 3x4 kernel whose last column is 0, because Winograd is only used for 3x3 kernels.
@Suite struct WinogradTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let inputChannels: Int
        let outputChannels: Int
        let height: Int
        let width: Int
        let images: Int

        fileprivate func network(kernelWidth: Int) throws -> Network {
            var net = NetworkBuilder(
                name: testDescription, input: TensorShape(height: height, width: width, channels: inputChannels))
            net.add(
                Convolution(
                    outputChannels: outputChannels, kernelSize: Size2D(height: 3, width: kernelWidth),
                    padding: .explicit(top: 1, left: 0, bottom: 1, right: kernelWidth - 2)),
                named: "convolution")
            return try net.network()
        }
    }

    static let cases = [
        Case(
            testDescription: "more blocks than parts of the sum", inputChannels: 17,
            outputChannels: 40, height: 13, width: 14, images: 20),
        Case(
            testDescription: "blocks of one row of tiles, wider than 56 tiles", inputChannels: 16, outputChannels: 16,
            height: 9, width: 230, images: 2),
        Case(
            testDescription: "threads divide the tiles of two blocks", inputChannels: 176, outputChannels: 170,
            height: 5,
            width: 6, images: 16),
        Case(
            testDescription: "threads divide the tiles of two groups, many outputs", inputChannels: 16,
            outputChannels: 1824, height: 5, width: 6, images: 40),
        Case(
            testDescription: "threads divide the tiles of two groups, many inputs", inputChannels: 1824,
            outputChannels: 16, height: 5, width: 6, images: 40),
        Case(
            testDescription: "threads divide the tiles of one group in two pieces", inputChannels: 16,
            outputChannels: 1824, height: 40, width: 6, images: 7),
    ]

    private struct Result {
        var output: [Float]
        var inputGradient: [Float]
        var weightGradient: [Float]
    }

    /// Returns the results of a plan with space for one more image and an arena filled with NaN.
    private func run(
        _ example: Case, kernelWidth: Int, weight: [Float], as algorithm: Algorithm, workers: Int
    ) throws -> Result {
        let network = try example.network(kernelWidth: kernelWidth)
        let parameters = try Parameters(ParameterLayout(network))
        parameters["convolution.weight"] = weight
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(
                batchSize: example.images + 1, mode: .training, workers: Workers(workers), inputGradient: true))
        #expect(plan.summary[0].algorithm == algorithm)
        let (inputs, outputs) = (example.images * network.input.count, example.images * network.output.count)
        plan.poison(keeping: [])
        _ = plan.input.update(from: repeatedValues(inputs, "input"))
        plan.forward(count: example.images)
        let output = Array(plan.output[..<outputs])
        plan.poison(keeping: plan.readByBackward)
        plan.parameterGradients.update(repeating: .nan)
        _ = plan.outputGradient.update(from: repeatedValues(outputs, "output gradient"))
        plan.backward(count: example.images)
        let range = try #require(parameters.layout["convolution.weight"]).range
        return Result(
            output: output, inputGradient: Array(try #require(plan.inputGradient)[..<inputs]),
            weightGradient: Array(plan.parameterGradients[range]))
    }

    @Test("Winograd agrees with im2col and is bitwise identical for any number of threads", arguments: cases)
    func manyBlocks(_ example: Case) throws {
        let rowLength = 3 * example.inputChannels * example.outputChannels
        let weight = repeatedValues(3 * rowLength, "weight")
        let column = [Float](repeating: 0, count: rowLength / 3)
        let rows = stride(from: 0, to: weight.count, by: rowLength).map { weight[$0..<($0 + rowLength)] }
        let wide = rows.flatMap { Array($0) + column }
        let actual = try run(example, kernelWidth: 3, weight: weight, as: .winograd, workers: 1)
        let expected = try run(example, kernelWidth: 4, weight: wide, as: .im2col, workers: 1)
        let wideLength = rowLength + column.count
        let gradient = (0..<3).flatMap { expected.weightGradient[($0 * wideLength)...].prefix(rowLength) }
        expectClose(actual.output, expected.output, "output", tolerance: 1e-4)
        expectClose(actual.inputGradient, expected.inputGradient, "input gradient", tolerance: 1e-4)
        expectClose(actual.weightGradient, gradient, "weight gradient", tolerance: 1e-4)
        for workers in [2, 5] {
            let other = try run(example, kernelWidth: 3, weight: weight, as: .winograd, workers: workers)
            expectBitwiseEqual(other.output, actual.output, "output with \(workers) threads")
            expectBitwiseEqual(other.inputGradient, actual.inputGradient, "input gradient with \(workers) threads")
            expectBitwiseEqual(other.weightGradient, actual.weightGradient, "weight gradient with \(workers) threads")
        }
    }
}
