import Foundation
import Testing

@testable import ImprintNetwork

@Suite struct ActivationsTests {
    static let activations: [any Layer] = [
        ReLU(), ReLU6(), LeakyReLU(), Sigmoid(), HardSwish(), ClipLayer(minimum: -2, maximum: 1), HardSigmoid(),
        PReLU(),
        PReLU(isShared: true), ELU(), Swish(), Tanh(), Softplus(), Affine(extent: .values),
        LocalResponseNormalization(size: 1), GELU(), GELU(approximatesTanh: true), Erf(),
    ]

    private func predict(_ layer: any Layer, _ values: [Float]) throws -> [Float] {
        let network = try Network(
            name: "activation", input: TensorShape(channels: values.count),
            nodes: [Network.Node(name: "activation", layer: layer, inputs: [Network.inputName])])
        let plan = try ExecutionPlan(
            network, parameters: try Parameters(network, seed: 1), options: ExecutionPlan.Options(batchSize: 1))
        _ = plan.input.update(from: values)
        plan.forward(count: 1)
        return Array(plan.output)
    }

    @Test("Activations propagate NaN at every index, in full and partial vectors", arguments: activations)
    func nan(_ layer: any Layer) throws {
        for count in [1, 7, 16, 67] {
            for index in [0, count / 2, count - 1] {
                var values = [Float](repeating: -1, count: count)
                values[index] = .nan
                let y = try predict(layer, values)
                #expect(y.indices.filter { y[$0].isNaN } == [index], "\(layer), \(index) of \(count)")
            }
        }
    }

    @Test("Infinity is clamped by bounded activations and propagated by unbounded activations")
    func infinity() throws {
        #expect(try predict(ReLU(), [-.infinity, .infinity]) == [0, .infinity])
        #expect(try predict(ReLU6(), [-.infinity, .infinity]) == [0, 6])
        #expect(try predict(LeakyReLU(slope: 0.5), [-.infinity, .infinity]) == [-.infinity, .infinity])
        #expect(try predict(Sigmoid(), [-.infinity, .infinity]) == [0, 1])
        #expect(try predict(ClipLayer(minimum: -1, maximum: .infinity), [-.infinity, .infinity]) == [-1, .infinity])
        #expect(try predict(ClipLayer(minimum: -.infinity, maximum: 2), [-.infinity, .infinity]) == [-.infinity, 2])
        #expect(try predict(HardSigmoid(), [-.infinity, .infinity]) == [0, 1])
        #expect(try predict(ELU(alpha: 0.5), [-.infinity, .infinity]) == [-0.5, .infinity])
        #expect(try predict(Tanh(), [-.infinity, .infinity]) == [-1, 1])
        #expect(try predict(Softplus(), [-.infinity, .infinity]) == [0, .infinity])
    }

    @Test("Activations agree with their formulas in double precision, near 0 and at large values")
    func curves() throws {
        let powers = (-60...20).map { exp2f(Float($0)) }
        let values: [Float] = (-4000...4000).map { Float($0) / 37 } + powers + powers.map { -$0 }
        // The second element is an absolute tolerance, for formulas that lose precision by adding 1.
        let formulas: [(any Layer, Double, (Double) -> Double)] = [
            (Swish(), 0, { $0 / (1 + exp(-$0)) }), (Tanh(), 0, { tanh($0) }),
            (Softplus(), 0, { max($0, 0) + log1p(exp(-abs($0))) }),
            (Erf(), 0, { erf($0) }), (GELU(), 1e-6, { $0 / 2 * erfc(-$0 / 2.squareRoot()) }),
            (
                GELU(approximatesTanh: true), 1e-6,
                { $0 / 2 * (1 + tanh((2 / Double.pi).squareRoot() * ($0 + 0.044715 * $0 * $0 * $0))) }
            ),
            (ELU(alpha: 0.5), 4e-8, { $0 > 0 ? $0 : expm1($0) / 2 }),
        ]
        for (layer, absoluteTolerance, formula) in formulas {
            let wrong = zip(values, try predict(layer, values)).first { x, y in
                let exact = formula(Double(x))
                // Results near the smallest normal number are computed from subnormal numbers or are rounded to 0.
                return !(abs(Double(y) - exact) <= max(5e-7 * abs(exact), absoluteTolerance, 1e-36))
            }
            #expect(wrong == nil, "\(layer)")
        }
    }

    @Test("The maximum of NaN and a number is NaN in any order", arguments: [1, 16, 67])
    func maximum(count: Int) throws {
        let network = try Network(
            name: "maximum", input: TensorShape(channels: 2 * count),
            nodes: [
                Network.Node(name: "a", layer: SelectChannels(channels: Array(0..<count)), inputs: ["input"]),
                Network.Node(name: "b", layer: SelectChannels(channels: Array(count..<2 * count)), inputs: ["input"]),
                Network.Node(name: "maximum", layer: MaximumLayer(), inputs: ["a", "b"]),
            ])
        for (a, b) in [(Float.nan, 1), (1, Float.nan)] as [(Float, Float)] {
            for mode in [ExecutionPlan.Mode.prediction, .training] {
                let plan = try ExecutionPlan(
                    network, parameters: try Parameters(network, seed: 1),
                    options: ExecutionPlan.Options(batchSize: 1, mode: mode, inputGradient: mode == .training))
                _ = plan.input.update(
                    from: [Float](repeating: a, count: count) + [Float](repeating: b, count: count))
                plan.forward(count: 1)
                #expect(plan.output.allSatisfy { $0.isNaN })
            }
        }
    }

    @Test("The global maximum of values with NaN is NaN, at any position", arguments: 0..<6)
    func globalMaximum(position: Int) throws {
        let network = try Network(
            name: "maximum", input: TensorShape(height: 2, width: 3, channels: 2),
            nodes: [Network.Node(name: "maximum", layer: GlobalMaxPool(), inputs: ["input"])])
        let plan = try ExecutionPlan(
            network, parameters: try Parameters(network, seed: 1), options: ExecutionPlan.Options(batchSize: 1))
        _ = plan.input.update(from: (0..<12).map { Float(5 - $0) })
        plan.input[2 * position] = .nan
        plan.forward(count: 1)
        #expect(plan.output[0].isNaN && plan.output[1] == 4)
    }

    /// Training stops if the loss is not finite, so layers must not hide NaN.
    @Test("NaN in the weights makes the output non-finite", arguments: Network.readyMadeNames)
    func divergedNetwork(_ name: String) throws {
        let network = try Network.named(name, labels: 2, inputSize: 32, width: 1 / 16).logits()
        for entry in ParameterLayout(network).entries where entry.parameter.role == .weight {
            let parameters = try Parameters(network, seed: 1)
            parameters[entry.name] = [Float](repeating: .nan, count: entry.parameter.count)
            let plan = try ExecutionPlan(network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 1))
            _ = plan.input.update(from: randomValues(plan.input.count, "image"))
            plan.forward(count: 1)
            #expect(plan.output.contains { !$0.isFinite }, "\(name) with NaN in \(entry.name)")
        }
    }
}
