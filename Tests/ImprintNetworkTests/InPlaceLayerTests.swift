import Testing

@testable import ImprintNetwork

/// y = a − b with one value of a for each value of b, or for each channel of b; the output may overwrite a.
private struct Difference: Layer {
    static let kind = "test.difference"

    func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape { inputs[1] }

    var backwardReads: BackwardReads { [] }
    var inPlace: InPlace { .overwriting }

    func forward(_ context: LayerContext, batch: Int) {
        let (a, b, y) = (context.inputs[0], context.inputs[1], context.output)
        context.forEachImage(batch) { image in
            for index in 0..<y.shape.count {
                y.values[image * y.shape.count + index] =
                    a.values[image * a.shape.count + index % a.shape.count] - b.values[image * y.shape.count + index]
            }
        }
    }

    func backward(_ context: LayerContext, batch: Int) {
        let (a, b, count) = (context.inputs[0], context.inputs[1], context.output.shape.count)
        context.forEachImage(batch) { image in
            let dy = context.outputGradient + image * count
            if let db = b.gradient {
                for index in 0..<count { db[image * count + index] = -dy[index] }
            }
            guard let da = a.gradient.map({ $0 + image * a.shape.count }) else { return }
            for first in 0..<a.shape.count {
                var sum: Float = 0
                for index in stride(from: first, to: count, by: a.shape.count) { sum += dy[index] }
                da[first] = sum
            }
        }
    }
}

@Suite("Layers that run in place") struct InPlaceLayerTests {
    @Test(
        "A custom layer with two inputs has correct outputs and gradients, also if it broadcasts the first one",
        arguments: [false, true])
    func twoInputs(broadcasts: Bool) throws {
        func node(_ name: String, _ layer: any Layer, _ inputs: String...) -> Network.Node {
            Network.Node(name: name, layer: layer, inputs: inputs)
        }
        let convolution = Convolution(outputChannels: 3, kernelSize: 1)
        let network = try Network(
            name: "difference", input: TensorShape(height: 4, width: 5, channels: 2),
            nodes: [
                node("a", convolution, "input"), node("mean", GlobalAveragePool(), "a"),
                node("b", convolution, "input"), node("other", convolution, broadcasts ? "b" : "a"),
                node("difference", Difference(), broadcasts ? "mean" : "other", broadcasts ? "other" : "b"),
                node("last", convolution, "difference"),
            ].filter { broadcasts || $0.name != "mean" })
        try GradientCheck(network: network, batch: 3).run()

        let parameters = try Parameters(network, seed: 1)
        let plan = try ExecutionPlan(network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 3))
        func context(_ name: String) throws -> LayerContext {
            try #require(plan.steps.first { $0.name == name }).context
        }
        let difference = try context("difference")
        let sharesMemory = difference.inputs[0].values == difference.output.values
        #expect(sharesMemory == !broadcasts)
    }
}
