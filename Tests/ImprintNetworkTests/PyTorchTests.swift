import Foundation
import TestSupport
import Testing

@testable import ImprintNetwork

/// Compares layers, losses and SGD with results of PyTorch from Fixtures/make_layers.py.
@Suite struct PyTorchTests {
    private static let fixture: PyTorchLayers = loadFixture("layers.json")

    @Test("The formula gives the same values in Swift and Python")
    func formula() {
        for case let spec in Self.fixture.formula {
            #expect(spec.values == spec.generate(spec.values?.count ?? 0))
        }
    }

    @Test("Layers agree with PyTorch, forward and backward", arguments: fixture.layers)
    func layers(_ reference: PyTorchLayers.LayerCase) throws {
        let layout = ParameterLayout(reference.network)
        let parameters = try Parameters(layout)
        #expect(Set(reference.parameters.keys) == Set(layout.entries.map(\.name)))
        for entry in layout.entries {
            parameters[entry.name] = reference.parameters[entry.name]?.generate(entry.parameter.count)
        }
        let plan = try ExecutionPlan(
            reference.network, parameters: parameters,
            options: ExecutionPlan.Options(
                batchSize: reference.batch, mode: .training, frozen: Set(reference.frozen), inputGradient: true))
        _ = plan.input.update(from: reference.input.generate(plan.input.count))
        plan.forward(count: reference.batch)
        expectClose(plan.output, reference.output, "\(reference.name): output")
        for (name, expected) in reference.statistics {
            expectClose(parameters[name] ?? [], expected, "\(reference.name): \(name)")
        }
        _ = plan.outputGradient.update(from: reference.outputGradient.generate(plan.outputGradient.count))
        plan.backward(count: reference.batch)
        expectClose(try #require(plan.inputGradient), reference.inputGradient, "\(reference.name): input gradient")
        for (name, expected) in reference.parameterGradients {
            let range = try #require(layout[name]).range
            expectClose(plan.parameterGradients[range], expected, "\(reference.name): gradient of \(name)")
        }
    }

    @Test("Losses and their gradients agree with PyTorch", arguments: fixture.losses)
    func losses(_ reference: PyTorchLayers.LossCase) {
        var logits = reference.logits.generate(reference.gradient.count)
        var gradient = logits
        let result = logits.withUnsafeMutableBufferPointer { logits in
            gradient.withUnsafeMutableBufferPointer { gradient in
                reference.options(logits: logits, targets: reference.labels, gradient: gradient)
            }
        }
        expectClose([result.loss], [reference.loss], "\(reference.name): loss")
        expectClose(gradient, reference.gradient, "\(reference.name): gradient")
        #expect(result.correct == reference.correct)
    }

    @Test("SGD agrees with PyTorch over five steps", arguments: fixture.sgd)
    func sgd(_ reference: PyTorchLayers.SGDCase) throws {
        let layout = ParameterLayout(reference.network)
        let parameters = try Parameters(layout)
        for entry in layout.entries {
            parameters[entry.name] = reference.parameters[entry.name]?.generate(entry.parameter.count)
        }
        let plan = try ExecutionPlan(
            reference.network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 1, mode: .training))
        let optimizer = try SGD(reference.options.sgd, for: layout)
        for (step, factor) in reference.factors.enumerated() {
            for (name, spec) in reference.gradients[step] {
                let range = try #require(layout[name]).range
                for (index, value) in zip(range, spec.generate(range.count)) { plan.parameterGradients[index] = value }
            }
            if reference.options.sgd.gradientClipping != nil {
                expectClose(
                    [plan.gradientNorm], [reference.gradientNorms[step]], "\(reference.name): gradient norm")
            }
            optimizer.step(plan, learningRate: reference.options.learningRate * factor)
        }
        for (name, expected) in reference.result {
            expectClose(parameters[name] ?? [], expected, "\(reference.name): \(name)")
        }
    }
}

/// Compares the first ten losses of LogoNet with results of PyTorch from Fixtures/make_logonet_steps.py.
@Suite struct PyTorchTrainingTests {
    private static let fixture: PyTorchTraining = loadFixture("logonet_steps.json")

    @Test("The first ten losses of LogoNet agree with PyTorch within 0.1 %", arguments: fixture.cases, [1, 2])
    func logonet(_ reference: PyTorchTraining.Case, workers: Int) throws {
        let fixture = Self.fixture
        let network = try Network.named(fixture.network, labels: 2, inputSize: reference.inputSize).logits()
        let parameters = try Parameters(network, seed: 1)
        for (name, tensor) in fixture.parameters {
            let entry = try #require(parameters.layout[name])
            #expect(entry.parameter.shape == tensor.shape)
            parameters[name] = ReferenceValues(seed: tensor.seed, scale: tensor.scale, offset: tensor.offset)
                .generate(entry.parameter.count)
        }
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(batchSize: reference.batch, mode: .training, workers: .init(workers)))
        let optimizer = try SGD(fixture.options.sgd, for: parameters.layout)
        for step in 0..<fixture.steps {
            let labels = (0..<reference.batch).map { (step + $0) % 2 }
            let values = fixture.images.values(step: step, labels: labels, countPerImage: network.input.count)
            _ = plan.input.update(from: values)
            plan.forward(count: reference.batch)
            let result = SoftmaxCrossEntropy()(logits: plan.output, targets: labels, gradient: plan.outputGradient)
            plan.backward(count: reference.batch)
            if step == 0 {
                for (name, expected) in reference.float64.gradientNorms {
                    let gradient = plan.parameterGradients[try #require(parameters.layout[name]).range]
                    let norm = gradient.reduce(0.0) { $0 + Double($1) * Double($1) }.squareRoot()
                    // The terms in the gradient of a shift nearly cancel, so the relative rounding error is larger.
                    let tolerance = name.hasSuffix(".shift") ? 3e-3 : 1e-3
                    #expect(
                        abs(norm / expected - 1) < tolerance,
                        "gradient of \(name): norm \(norm), expected \(expected)")
                }
            }
            optimizer.step(plan, learningRate: fixture.options.learningRate)
            let expected = reference.float64.losses[step]
            #expect(
                abs(Double(result.loss) / expected - 1) < 1e-3,
                "step \(step) at \(reference.inputSize) px: loss \(result.loss), expected \(expected)")
        }
    }
}
