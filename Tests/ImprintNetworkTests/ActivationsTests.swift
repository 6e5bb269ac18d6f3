import Testing

@testable import ImprintNetwork

@Suite struct ActivationsTests {
    static let activations: [any Layer] = [ReLU(), ReLU6(), LeakyReLU(), Sigmoid(), HardSwish()]

    private func predict(_ layer: any Layer, _ values: [Float]) throws -> [Float] {
        let network = try Network(
            name: "activation", input: Shape(channels: values.count),
            nodes: [Network.Node(name: "activation", layer: layer, inputs: [Network.inputName])])
        let plan = try Plan(
            network, parameters: try Parameters(network, seed: 1), options: Plan.Options(batchSize: 1))
        _ = plan.input.update(from: values)
        plan.forward(count: 1)
        return Array(plan.output)
    }

    @Test("NaN is passed on at every place, alone and among the lanes of a vector", arguments: activations)
    func notANumber(_ layer: any Layer) throws {
        for count in [1, 7, 16, 67] {
            for place in [0, count / 2, count - 1] {
                var values = [Float](repeating: -1, count: count)
                values[place] = .nan
                let y = try predict(layer, values)
                #expect(y.indices.filter { y[$0].isNaN } == [place], "\(layer), \(place) of \(count)")
            }
        }
    }

    @Test("Infinity meets the ceiling, or stays")
    func infinity() throws {
        #expect(try predict(ReLU(), [-.infinity, .infinity]) == [0, .infinity])
        #expect(try predict(ReLU6(), [-.infinity, .infinity]) == [0, 6])
        #expect(try predict(LeakyReLU(slope: 0.5), [-.infinity, .infinity]) == [-.infinity, .infinity])
        #expect(try predict(Sigmoid(), [-.infinity, .infinity]) == [0, 1])
    }

    /// A run is stopped by a loss that is no number, so a layer that swallows NaN would let it go on.
    @Test("Parameters that are no numbers show in the output", arguments: Network.readyMadeNames)
    func divergedNetwork(_ name: String) throws {
        let network = try Network.named(name, labels: 2, inputSize: 32, width: 1 / 16).logits()
        for entry in ParameterLayout(network).entries where entry.parameter.role == .weight {
            let parameters = try Parameters(network, seed: 1)
            parameters[entry.name] = [Float](repeating: .nan, count: entry.parameter.count)
            let plan = try Plan(network, parameters: parameters, options: Plan.Options(batchSize: 1))
            _ = plan.input.update(from: randomValues(plan.input.count, "image"))
            plan.forward(count: 1)
            #expect(plan.output.contains { !$0.isFinite }, "\(name) with NaN in \(entry.name)")
        }
    }
}
