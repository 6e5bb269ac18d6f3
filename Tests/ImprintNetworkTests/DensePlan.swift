import Testing

@testable import ImprintNetwork

/// A plan of one dense layer whose gradients a test sets.
struct DensePlan {
    let parameters: Parameters
    let plan: ExecutionPlan

    /// Creates a layer with three inputs and two outputs, whose tensors are shorter than their padded ranges in the buffer.
    init() throws {
        let network = try Network(
            name: "dense", input: TensorShape(channels: 3),
            nodes: [Network.Node(name: "dense", layer: Dense(outputChannels: 2), inputs: [Network.inputName])])
        parameters = try Parameters(network, seed: 1)
        parameters["dense.weight"] = [1, -2, 3, -4, 5, -6]
        parameters["dense.bias"] = [7, -8]
        plan = try ExecutionPlan(
            network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 1, mode: .training))
    }

    func setGradients(weight: [Float], bias: [Float]) throws {
        for (name, values) in [("dense.weight", weight), ("dense.bias", bias)] {
            let range = try #require(parameters.layout[name]).range
            for (index, value) in zip(range, values) { plan.parameterGradients[index] = value }
        }
    }
}
