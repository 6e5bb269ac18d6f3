import ImprintCore
import Testing

@testable import ImprintNetwork

@Suite struct SGDTests {
    private let dense: DensePlan
    private var parameters: Parameters { dense.parameters }
    private var plan: ExecutionPlan { dense.plan }

    init() throws { dense = try DensePlan() }

    @Test("Weights decay, biases do not")
    func decay() throws {
        try dense.setGradients(weight: [0, 0, 0, 0, 0, 0], bias: [0, 0])
        let optimizer = try SGD(.init(momentum: 0, weightDecay: 0.25), for: parameters.layout)
        optimizer.step(plan, learningRate: 0.5)
        #expect(parameters["dense.weight"] == [1, -2, 3, -4, 5, -6].map { $0 * 0.875 })
        #expect(parameters["dense.bias"] == [7, -8])
    }

    @Test("Momentum accumulates, with and without Nesterov", arguments: [false, true])
    func momentum(nesterov: Bool) throws {
        try dense.setGradients(weight: [1, 0, 0, 0, 0, 0], bias: [0, 2])
        let optimizer = try SGD(.init(momentum: 0.5, nesterov: nesterov), for: parameters.layout)
        optimizer.step(plan, learningRate: 0.5)
        optimizer.step(plan, learningRate: 0.5)
        // The velocities are 1 and 1.5; with Nesterov the updates are g + v / 2.
        let update: Float = nesterov ? 1.5 + 1.75 : 1 + 1.5
        #expect(parameters["dense.weight"]?[0] == 1 - 0.5 * update)
        #expect(parameters["dense.bias"] == [7, -8 - 0.5 * 2 * update])
        let weight = try #require(parameters.layout["dense.weight"])
        #expect(optimizer.state[0].values[weight.offset] == 1.5)
    }

    @Test("A gradient whose norm exceeds the limit is scaled down to it", arguments: [4, 5, 10])
    func clipping(limit: Float) throws {
        // The norm over weights and biases together is 5.
        try dense.setGradients(weight: [3, 0, 0, 0, 0, 0], bias: [0, -4])
        let optimizer = try SGD(
            .init(momentum: 0, gradientClipping: limit), for: parameters.layout)
        #expect(plan.gradientNorm == 5)
        optimizer.step(plan, learningRate: 1)
        let scale = min(limit / 5, 1)
        #expect(parameters["dense.weight"]?[0] == 1 - 3 * scale)
        #expect(parameters["dense.bias"] == [7, -8 + 4 * scale])
    }

    @Test("Weight decay is not clipped")
    func clippedDecay() throws {
        try dense.setGradients(weight: [3, 0, 0, 0, 0, 0], bias: [0, -4])
        let optimizer = try SGD(
            .init(momentum: 0, weightDecay: 0.5, gradientClipping: 2.5), for: parameters.layout)
        optimizer.step(plan, learningRate: 1)
        #expect(parameters["dense.weight"] == [1 - 1.5 - 0.5, -1, 1.5, -2, 2.5, -3])
    }

    @Test("The learning rate scales the step")
    func factor() throws {
        try dense.setGradients(weight: [1, 1, 1, 1, 1, 1], bias: [1, 1])
        let optimizer = try SGD(.init(momentum: 0), for: parameters.layout)
        let changed: [Float] = [7 - 0.125, -8 - 0.125]
        optimizer.step(plan, learningRate: 0.5 * 0.25)
        #expect(parameters["dense.bias"] == changed)
        optimizer.step(plan, learningRate: 0.5 * 0)
        #expect(parameters["dense.bias"] == changed)
    }
}
