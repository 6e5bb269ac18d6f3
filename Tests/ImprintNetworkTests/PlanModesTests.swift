import Testing

@testable import ImprintNetwork

/// Compares plans for prediction with plans for training, and tests which parameters they change.
@Suite struct PlanModesTests {
    /// Returns the outputs of a plan whose arena is filled with NaN, and whether it folds batch norms into convolutions.
    private func outputs(
        _ network: Network, _ parameters: Parameters, batch: Int, _ mode: ExecutionPlan.Mode, frozen: Set<String> = []
    ) throws -> (values: [Float], folds: Bool) {
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(
                batchSize: batch, mode: mode, frozen: frozen, inputGradient: mode == .training))
        plan.poison(keeping: [])
        _ = plan.input.update(from: randomValues(plan.input.count, "input"))
        plan.forward(count: batch)
        return (Array(plan.output), plan.steps.contains { $0.kernel is PrepackedConvolution })
    }

    /// Expects that prediction and training have the same outputs.
    ///
    /// Prediction runs layers in place if possible; training keeps the activations for the backward pass. Values that are
    /// overwritten too early cause a difference.
    private func expectSameOutputs(_ network: Network, batch: Int) throws {
        let parameters = try randomParameters(network, seed: 6)
        for entry in parameters.layout.entries where entry.parameter.name == "runningVariance" {
            parameters[entry.name] = parameters[entry.name]?.map { abs($0) + 0.5 }
        }
        // Dropout and batch norms are frozen, because they differ in training.
        let frozen = Set(
            network.nodes.filter { $0.layer is BatchNormalization || $0.layer is Dropout }.map(\.name))
        let before = try parameters.copy()
        let prediction = try outputs(network, parameters, batch: batch, .prediction)
        let training = try outputs(network, parameters, batch: batch, .training, frozen: frozen)
        #expect(!training.folds)
        if prediction.folds {
            // Folding changes the rounding.
            expectClose(prediction.values, training.values, network.name, tolerance: 1e-4)
        } else {
            expectBitwiseEqual(prediction.values, training.values, network.name)
        }
        #expect(prediction.values.allSatisfy { $0.isFinite })
        for entry in before.layout.entries { #expect(parameters[entry.name] == before[entry.name]) }
    }

    @Test(
        "Prediction gives the output of the training forward pass, bitwise identical without folding",
        arguments: GradientCheckTests.others + GradientCheckTests.imported + GradientCheckTests.chains
            + GradientCheckTests.graphs + GradientCheckTests.broadcasts)
    func smallNetworks(_ example: GradientCheckTests.Case) throws {
        try expectSameOutputs(
            Network(name: example.testDescription, input: example.input, nodes: example.nodes), batch: example.batch)
    }

    @Test("Prediction with ready-made networks gives the output of training", arguments: PlanTests.everyNetwork)
    func readyMadeNetworks(_ example: PlanTests.Example) throws {
        try expectSameOutputs(
            Network.named(example.name, labels: 3, inputSize: example.inputSize, width: example.width), batch: 2)
    }

    @Test("Running statistics change only in training")
    func statistics() throws {
        let network = try Network.named("logonet", labels: 2, inputSize: 33, width: 0.25)
        let parameters = try Parameters(network, seed: 2)
        let before = try parameters.copy()
        func changed() -> Set<String> {
            Set(parameters.layout.entries.map(\.name).filter { parameters[$0] != before[$0] })
        }
        _ = try outputs(network, parameters, batch: 2, .prediction)
        #expect(changed().isEmpty)
        _ = try outputs(network, parameters, batch: 2, .training)
        #expect(changed() == Set(parameters.layout.entries.filter { $0.parameter.role == .statistic }.map(\.name)))
    }

    @Test("Gradients of frozen layers are not written, and the gradients of other layers are written completely")
    func frozenGradients() throws {
        let network = try Network.named("mobilenet-v1", labels: 3, inputSize: 32, width: 0.25).logits()
        let frozen: Set = ["conv0", "norm0", "conv5_depthwise", "norm5_depthwise", "conv9_pointwise"]
        let parameters = try Parameters(network, seed: 3)
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(batchSize: 2, mode: .training, frozen: frozen))
        _ = plan.input.update(from: randomValues(plan.input.count, "input"))
        plan.forward(count: 2)
        _ = plan.outputGradient.update(from: randomValues(plan.outputGradient.count, "output gradient"))
        plan.parameterGradients.update(repeating: .nan)
        plan.backward(count: 2)
        for entry in parameters.layout.entries where entry.parameter.role != .statistic {
            let gradient = plan.parameterGradients[entry.range]
            if frozen.contains(entry.node) {
                #expect(gradient.allSatisfy { $0.isNaN }, "\(entry.name) is frozen")
            } else {
                #expect(gradient.allSatisfy { $0.isFinite }, "\(entry.name) is trained")
            }
        }
        let trained = plan.trainableRanges.flatMap { Array($0.range) }
        #expect(Set(trained).count == trained.count, "a parameter is trained twice")
    }

    @Test("Layers before the first trainable layer have no backward pass")
    func frozenStart() throws {
        let network = try Network.named("logonet", labels: 2, inputSize: 33, width: 0.25).logits()
        let frozen = Set(network.nodes.map(\.name)).subtracting(["head"])
        let plan = try ExecutionPlan(
            network, parameters: try Parameters(network, seed: 1),
            options: ExecutionPlan.Options(batchSize: 1, mode: .training, frozen: frozen))
        #expect(plan.steps.filter(\.runsBackward).map(\.name) == ["head"])
        #expect(plan.inputGradient == nil)
    }

    @Test("The summary has the algorithm, shape and parameter count of every layer", arguments: [true, false])
    func summary(training: Bool) throws {
        let network = try Network.named("mobilenet-v1", labels: 3, inputSize: 64, width: 0.25)
        let plan = try ExecutionPlan(
            network, parameters: try Parameters(network, seed: 1),
            options: ExecutionPlan.Options(batchSize: 1, mode: training ? .training : .prediction))
        let names: [String] = plan.summary.flatMap { layer in layer.name.split(separator: "+").map { String($0) } }
        #expect(names == network.nodes.map(\.name))
        let shapes = Dictionary(uniqueKeysWithValues: zip(network.nodes.map(\.name), network.shapes))
        #expect(
            plan.summary.map(\.output)
                == plan.summary.map { $0.name.split(separator: "+").last.flatMap { shapes[String($0)] } })
        #expect(plan.summary.reduce(0) { $0 + $1.parameterCount } == plan.parameters.layout.trainableCount)
        func algorithm(_ node: String, _ rest: String...) -> Algorithm? {
            let name = training ? node : ([node] + rest).joined(separator: "+")
            return plan.summary.first { $0.name == name }?.algorithm
        }
        #expect(algorithm("conv0", "norm0", "activation0") == .im2col)
        #expect(algorithm("conv1_depthwise", "norm1_depthwise", "activation1_depthwise") == .direct)
        #expect(algorithm("conv1_pointwise", "norm1_pointwise", "activation1_pointwise") == .matrixProduct)
    }
}
