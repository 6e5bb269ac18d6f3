import Foundation
import Testing

@testable import ImprintNetwork

@Suite struct AdamWTests {
    private let dense: DensePlan
    private var parameters: Parameters { dense.parameters }
    private var plan: ExecutionPlan { dense.plan }

    init() throws { dense = try DensePlan() }

    private func setGradients(_ scale: Float) throws {
        try dense.setGradients(
            weight: [1, -2, 0, 3, -1, 0.5].map { scale * $0 }, bias: [0, 4].map { scale * $0 })
    }

    /// Returns one parameter after AdamW steps, computed in double precision.
    private func updated(_ start: Double, gradients: [Double], rate: Double, decay: Double) -> Double {
        var (w, m, v) = (start, 0.0, 0.0)
        for (step, g) in gradients.enumerated() {
            let t = Double(step + 1)
            m = 0.9 * m + 0.1 * g
            v = 0.99 * v + 0.01 * g * g
            w -= rate * (decay * w + m / (1 - pow(0.9, t)) / ((v / (1 - pow(0.99, t))).squareRoot() + 1e-8))
        }
        return w
    }

    @Test("Steps follow the formula; weights decay, biases do not") func steps() throws {
        let optimizer = try AdamW(
            .init(beta1: 0.9, beta2: 0.99, weightDecay: 0.5), for: parameters.layout)
        for scale in [1, -0.5, 2] as [Float] {
            try setGradients(scale)
            optimizer.step(plan, learningRate: 0.1)
        }
        func gradients(_ value: Double) -> [Double] { [1, -0.5, 2].map { $0 * value } }
        let weight = try #require(parameters["dense.weight"])
        let (starts, unitGradients): ([Double], [Double]) = ([1, -2, 3, -4, 5, -6], [1, -2, 0, 3, -1, 0.5])
        for (index, (start, gradient)) in zip(starts, unitGradients).enumerated() {
            let expected = updated(start, gradients: gradients(gradient), rate: 0.1, decay: 0.5)
            #expect(abs(Double(weight[index]) - expected) < 1e-5)
        }
        let bias = try #require(parameters["dense.bias"])
        #expect(bias[0] == 7)
        #expect(abs(Double(bias[1]) - updated(-8, gradients: gradients(4), rate: 0.1, decay: 0)) < 1e-5)
        #expect(optimizer.stepCount == 3)
    }

    @Test("An optimizer with a restored state and step count continues identically") func restores() throws {
        let options = AdamW.Options(gradientClipping: 1)
        let uninterrupted = try AdamW(options, for: parameters.layout)
        let start = try parameters.copy()
        for _ in 0..<4 {
            try setGradients(1)
            uninterrupted.step(plan, learningRate: 0.1 * 0.5)
        }
        let expected = try parameters.copy()
        parameters.withValues { target in start.withValues { _ = target.update(fromContentsOf: $0) } }
        var restored = try AdamW(options, for: parameters.layout)
        for step in 0..<4 {
            let next = try AdamW(options, for: parameters.layout)
            for (new, old) in zip(next.state, restored.state) { _ = new.values.update(fromContentsOf: old.values) }
            next.stepCount = step
            restored = next
            try setGradients(1)
            restored.step(plan, learningRate: 0.1 * 0.5)
        }
        #expect(parameters["dense.weight"] == expected["dense.weight"])
        #expect(parameters["dense.bias"] == expected["dense.bias"])
    }
}
