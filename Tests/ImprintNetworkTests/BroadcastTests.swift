import ImprintCore
import Testing

@testable import ImprintNetwork

/// Compares broadcast sums and products with plain loops in double precision.
@Suite struct BroadcastTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let layer: any Layer
        let input: TensorShape
        /// For each operand the axes over which it is the mean of the input; without axes it is the input itself.
        let operands: [MeanAxes]
        var testDescription: String { "\(layer) over \(input): axes \(operands.map(\.rawValue))" }

        func network() throws -> Network {
            var nodes: [Network.Node] = []
            let names = operands.enumerated().map { index, axes in
                if axes.isEmpty { return Network.inputName }
                nodes.append(Network.Node(name: "x\(index)", layer: MeanLayer(axes: axes), inputs: [Network.inputName]))
                return "x\(index)"
            }
            nodes.append(Network.Node(name: "result", layer: layer, inputs: names))
            return try Network(name: testDescription, input: input, nodes: nodes)
        }

        /// Returns the indices of the input elements whose mean the operand has at the element `index`.
        func averagedIndices(_ axes: MeanAxes, of index: Int) -> [Int] {
            let (row, column, channel) = split(index)
            let rows = axes.contains(.height) ? 0..<input.height : row..<row + 1
            let columns = axes.contains(.width) ? 0..<input.width : column..<column + 1
            let channels = axes.contains(.channels) ? 0..<input.channels : channel..<channel + 1
            return rows.flatMap { row in
                columns.flatMap { column in channels.map { (row * input.width + column) * input.channels + $0 } }
            }
        }

        private func split(_ index: Int) -> (row: Int, column: Int, channel: Int) {
            let (pixel, channel) = index.quotientAndRemainder(dividingBy: input.channels)
            return (pixel / input.width, pixel % input.width, channel)
        }
    }

    /// Single pixels, rows and columns, rows that are not a multiple of the vector length, and more pixels and channels than one block.
    static let cases: [Case] = {
        let operands: [[MeanAxes]] = [
            [[], [.height, .width]], [[.height, .width], []], [[], .height], [[], .width], [.channels, []],
            [[], [.height, .width, .channels]], [[], [.height, .channels], .width],
        ]
        let shapes = [
            TensorShape(channels: 5), TensorShape(height: 1, width: 6, channels: 3),
            TensorShape(height: 6, width: 1, channels: 3),
            TensorShape(height: 3, width: 5, channels: 1), TensorShape(height: 5, width: 4, channels: 17),
        ]
        let large = TensorShape(height: 9, width: 13, channels: 300)
        var cases: [Case] = []
        for layer in [MultiplyLayer(), AddLayer()] as [any Layer] {
            for shape in shapes { cases += operands.map { Case(layer: layer, input: shape, operands: $0) } }
            cases.append(Case(layer: layer, input: large, operands: [[], [.height, .width]]))
        }
        return cases
    }()

    private func run(
        _ example: Case, workers: Int = 1
    ) throws -> (input: [Float], output: [Float], outputGradient: [Float], inputGradient: [Float]) {
        let network = try example.network()
        let plan = try ExecutionPlan(
            network, parameters: try Parameters(network, seed: 1),
            options: ExecutionPlan.Options(
                batchSize: 3, mode: .training, workers: Workers(workers), inputGradient: true))
        plan.poison(keeping: [])
        let input = randomValues(plan.input.count, "input").map { $0 + 0.5 }
        let outputGradient = randomValues(plan.output.count, "output gradient")
        _ = plan.input.update(from: input)
        plan.forward(count: 3)
        let output = Array(plan.output)
        _ = plan.outputGradient.update(from: outputGradient)
        plan.backward(count: 3)
        return (input, output, outputGradient, Array(try #require(plan.inputGradient)))
    }

    @Test("Outputs and gradients agree with the formulas", arguments: cases)
    func formulas(_ example: Case) throws {
        let (input, output, outputGradient, inputGradient) = try run(example)
        let isProduct = example.layer is MultiplyLayer
        // An axis has its full length in the output if at least one operand has it.
        let shape = try example.network().output
        try #require(shape == example.input)
        let count = example.input.count
        var exact = [Double](repeating: 0, count: input.count)
        var slopes = exact
        let sources = example.operands.map { axes in (0..<count).map { example.averagedIndices(axes, of: $0) } }
        for image in 0..<3 {
            func mean(_ indices: [Int]) -> Double {
                indices.reduce(0) { $0 + Double(input[image * count + $1]) } / Double(indices.count)
            }
            for index in 0..<count {
                let values = sources.map { mean($0[index]) }
                let result = image * count + index
                exact[result] = isProduct ? values.reduce(1, *) : values.reduce(0, +)
                for operand in values.indices {
                    var slope = Double(outputGradient[result])
                    for other in values.indices where isProduct && other != operand { slope *= values[other] }
                    for source in sources[operand][index] {
                        slopes[image * count + source] += slope / Double(sources[operand][index].count)
                    }
                }
            }
        }
        expectClose(output, exact.map { Float($0) }, example.testDescription, tolerance: 1e-5)
        expectClose(inputGradient, slopes.map { Float($0) }, example.testDescription, tolerance: 1e-5)
    }

    @Test("Results are bitwise identical for any number of threads", arguments: cases, [2, 3])
    func threads(_ example: Case, workers: Int) throws {
        let (one, several) = (try run(example), try run(example, workers: workers))
        expectBitwiseEqual(several.output, one.output, example.testDescription)
        expectBitwiseEqual(several.inputGradient, one.inputGradient, example.testDescription)
    }

    @Test("Inputs of the same shape are added element by element without scratch memory")
    func sameShapes() throws {
        let network = try Network(
            name: "sum", input: TensorShape(height: 3, width: 5, channels: 7),
            nodes: [
                Network.Node(name: "s", layer: Tanh(), inputs: ["input"]),
                Network.Node(name: "sum", layer: AddLayer(), inputs: ["input", "s", "input"]),
            ])
        let plan = try ExecutionPlan(
            network, parameters: try Parameters(network, seed: 1),
            options: ExecutionPlan.Options(batchSize: 2, mode: .training, inputGradient: true))
        let x = randomValues(plan.input.count, "input")
        _ = plan.input.update(from: x)
        plan.forward(count: 2)
        let s = UnsafeBufferPointer(start: plan.steps[0].context.output.values, count: x.count)
        expectBitwiseEqual(plan.output, zip(x, s).map { $0 + $1 + $0 }, "sum")
        #expect(plan.summary[1].scratchByteCount == 0)
    }
}
