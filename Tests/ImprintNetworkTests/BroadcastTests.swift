import ImprintCore
import Testing

@testable import ImprintNetwork

/// Sums and products of inputs that stand for whole axes of each other, against plain loops over doubles.
@Suite struct BroadcastTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let layer: any Layer
        let input: TensorShape
        /// For each operand the axes along which it has length 1, as the mean over them; none is the input itself.
        let operands: [MeanAxes]
        var testDescription: String { "\(layer) over \(input): axes \(operands.map(\.rawValue))" }

        func network() throws -> Network {
            var nodes: [Network.Node] = []
            let names = operands.enumerated().map { place, axes in
                if axes.isEmpty { return Network.inputName }
                nodes.append(Network.Node(name: "x\(place)", layer: MeanLayer(axes: axes), inputs: [Network.inputName]))
                return "x\(place)"
            }
            nodes.append(Network.Node(name: "result", layer: layer, inputs: names))
            return try Network(name: testDescription, input: input, nodes: nodes)
        }

        /// For a place of an image the places that its operand is the mean of.
        func places(_ axes: MeanAxes, of place: Int) -> [Int] {
            let (row, column, channel) = split(place)
            let rows = axes.contains(.height) ? 0..<input.height : row..<row + 1
            let columns = axes.contains(.width) ? 0..<input.width : column..<column + 1
            let channels = axes.contains(.channels) ? 0..<input.channels : channel..<channel + 1
            return rows.flatMap { row in
                columns.flatMap { column in channels.map { (row * input.width + column) * input.channels + $0 } }
            }
        }

        private func split(_ place: Int) -> (row: Int, column: Int, channel: Int) {
            let (pixel, channel) = place.quotientAndRemainder(dividingBy: input.channels)
            return (pixel / input.width, pixel % input.width, channel)
        }
    }

    /// Single pixels, a single row or column, rows that are not whole vectors, and more pixels and channels than are summed at once.
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

    @Test("Results and gradients are those of the formulas", arguments: cases)
    func formulas(_ example: Case) throws {
        let (input, output, outputGradient, inputGradient) = try run(example)
        let isProduct = example.layer is MultiplyLayer
        // Along an axis that no operand has, the result has length 1 too.
        let shape = try example.network().output
        try #require(shape == example.input)
        let count = example.input.count
        var exact = [Double](repeating: 0, count: input.count)
        var slopes = exact
        let places = example.operands.map { axes in (0..<count).map { example.places(axes, of: $0) } }
        for image in 0..<3 {
            func mean(_ places: [Int]) -> Double {
                places.reduce(0) { $0 + Double(input[image * count + $1]) } / Double(places.count)
            }
            for place in 0..<count {
                let values = places.map { mean($0[place]) }
                let result = image * count + place
                exact[result] = isProduct ? values.reduce(1, *) : values.reduce(0, +)
                for operand in values.indices {
                    var slope = Double(outputGradient[result])
                    for other in values.indices where isProduct && other != operand { slope *= values[other] }
                    for from in places[operand][place] {
                        slopes[image * count + from] += slope / Double(places[operand][place].count)
                    }
                }
            }
        }
        expectClose(output, exact.map { Float($0) }, example.testDescription, tolerance: 1e-5)
        expectClose(inputGradient, slopes.map { Float($0) }, example.testDescription, tolerance: 1e-5)
    }

    @Test("The bits do not depend on the number of threads", arguments: cases, [2, 3])
    func threads(_ example: Case, workers: Int) throws {
        let (one, several) = (try run(example), try run(example, workers: workers))
        expectSameBits(several.output, one.output, example.testDescription)
        expectSameBits(several.inputGradient, one.inputGradient, example.testDescription)
    }

    @Test("Inputs of the same shape are added as they always were")
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
        expectSameBits(plan.output, zip(x, s).map { $0 + $1 + $0 }, "sum")
        #expect(plan.summary[1].scratchByteCount == 0)
    }
}
