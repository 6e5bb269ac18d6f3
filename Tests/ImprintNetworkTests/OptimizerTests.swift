import Testing

@testable import ImprintNetwork

/// What all optimizers have in common.
@Suite struct OptimizerTests {
    @Test(
        "The learning-rate factor of a node scales its steps and weight decay, and not the optimizer's state",
        arguments: [
            OptimizerConfiguration.sgd(.init(momentum: 0.5, weightDecay: 0.1)), .adamW(.init(weightDecay: 0.1)),
        ])
    func learningRateFactors(_ configuration: OptimizerConfiguration) throws {
        var net = NetworkBuilder(name: "three", input: TensorShape(channels: 3))
        net.add(Dense(outputChannels: 5), named: "first")
        net.add(Dense(outputChannels: 40), named: "second")
        net.add(Dense(outputChannels: 2), named: "third")
        let network = try net.network()
        func step(_ factors: [String: Float]) throws -> (updates: [String: [Float]], state: [Float]) {
            let parameters = try Parameters(network, seed: 1)
            let before = try parameters.copy()
            let plan = try ExecutionPlan(
                network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 1, mode: .training))
            plan.parameterGradients.update(repeating: 1)
            let optimizer = try configuration.makeOptimizer(for: parameters.layout, learningRateFactors: factors)
            optimizer.step(plan, learningRate: 0.5)
            let updates = try parameters.layout.entries.map { entry in
                let (new, old) = (try #require(parameters[entry.name]), try #require(before[entry.name]))
                return (entry.name, zip(old, new).map { $0 - $1 })
            }
            return (Dictionary(uniqueKeysWithValues: updates), optimizer.state.flatMap { Array($0.values) })
        }
        let plain = try step([:])
        let scaled = try step(["first": 0.25, "third": 0])
        for (name, updates) in plain.updates {
            let factor: Float = name.hasPrefix("first") ? 0.25 : name.hasPrefix("third") ? 0 : 1
            let found = try #require(scaled.updates[name])
            #expect(updates.allSatisfy { $0 > 0.1 }, "\(name)")
            for (one, other) in zip(updates, found) { #expect(abs(other - factor * one) < 1e-6, "\(name)") }
        }
        #expect(scaled.state == plain.state)
    }
}
