import Testing

@testable import ImprintNetwork

/// Tests the observer of intermediate activations, and the options of a plan.
@Suite struct ObserverTests {
    struct Example: Sendable {
        let mode: ExecutionPlan.Mode
        /// The nodes whose output the observer receives.
        let nodes: [String]
    }

    @Test(
        "An observer receives the output of the last node of each operation",
        arguments: [
            Example(mode: .prediction, nodes: ["relu", "mean", "head"]),
            Example(mode: .training, nodes: ["conv", "relu", "mean", "head"]),
        ], [1, 2])
    func outputs(_ example: Example, threads: Int) throws {
        var builder = NetworkBuilder(name: "observed", input: TensorShape(height: 4, width: 4, channels: 2))
        builder.add(Convolution(outputChannels: 3, kernelSize: 3, padding: .same), named: "conv")
        builder.add(BatchNormalization(), named: "norm")
        builder.add(ReLU(), named: "relu")
        builder.add(GlobalAveragePool(), named: "mean")
        builder.add(Dense(outputChannels: 5), named: "head")
        let network = try builder.network()
        let plan = try ExecutionPlan(
            network, parameters: Parameters(network, seed: 1),
            options: ExecutionPlan.Options(batchSize: 3, mode: example.mode, threads: threads))
        _ = plan.input.update(from: randomValues(3 * network.input.count, "observed images"))

        var nodes: [String] = []
        var outputs: [String: [Float]] = [:]
        var shapes: [String: TensorShape] = [:]
        plan.observer = { node, values, shape in
            nodes.append(node)
            outputs[node] = Array(values)
            shapes[node] = shape
        }
        plan.forward(count: 2)

        #expect(nodes == example.nodes)
        #expect(shapes["relu"] == TensorShape(height: 4, width: 4, channels: 3))
        #expect(outputs["head"] == Array(plan.output[..<10]))
        let rectified = try #require(outputs["relu"])
        #expect(rectified.count == 2 * 4 * 4 * 3 && rectified.allSatisfy { $0 >= 0 })
        let means = (0..<6).map { index -> Float in
            let (image, channel) = index.quotientAndRemainder(dividingBy: 3)
            let sum = (0..<16).reduce(Float(0)) { $0 + rectified[(image * 16 + $1) * 3 + channel] }
            return sum / 16
        }
        expectClose(try #require(outputs["mean"]), means, "means", tolerance: 1e-5)

        plan.observer = nil
        plan.forward(count: 2)
        #expect(nodes == example.nodes)
    }

    @Test("The number of threads and the precision of a plan can be read and changed") func options() {
        var options = ExecutionPlan.Options(batchSize: 1, threads: 2, precision: .bfloat16)
        #expect(options.threads == 2 && options.precision == .bfloat16)
        options.threads = 3
        #expect(options.workers.count == 3)
    }
}
