/// Updates parameters from their gradients, such as `SGD` or `AdamW`.
package protocol Optimizer: AnyObject {
    /// The optimizer's state tensors by name, such as velocities or moments; each has the layout of the trainable parameters.
    var state: [(name: String, values: UnsafeMutableBufferPointer<Float>)] { get }

    /// The number of steps so far.
    var stepCount: Int { get set }

    /// Takes a step with the gradients of a training plan after `backward`.
    /// - Parameter learningRate: The learning rate of this step, ≥ 0.
    func step(_ plan: ExecutionPlan, learningRate: Float)
}

extension Optimizer {
    /// Resets the optimizer to its initial state: 0 steps, and state tensors that are all 0.
    func reset() {
        for (_, values) in state { values.update(repeating: 0) }
        stepCount = 0
    }
}

/// An optimizer and its hyperparameters, except the learning rate.
public enum OptimizerConfiguration: Hashable, Codable, Sendable {
    /// Stochastic gradient descent with momentum.
    case sgd(SGD.Options)
    /// Adam with decoupled weight decay.
    case adamW(AdamW.Options)

    /// Creates the optimizer for the parameters of a layout.
    /// - Parameter learningRateFactors: Factors of the learning rate by node name, ≥ 0; the default is 1.
    /// - Throws: `NetworkError.outOfMemory`.
    func makeOptimizer(
        for layout: ParameterLayout, learningRateFactors: [String: Float]
    ) throws(NetworkError) -> any Optimizer {
        switch self {
        case .sgd(let options): try SGD(options, for: layout, rateFactors: learningRateFactors)
        case .adamW(let options): try AdamW(options, for: layout, rateFactors: learningRateFactors)
        }
    }
}

extension ParameterLayout {
    /// Returns the ranges of the trainable parameters with the factors of their nodes, merging neighbours with equal factors.
    /// - Parameter factors: Factors of the learning rate by node name, ≥ 0; the default is 1.
    func learningRateFactors(_ factors: [String: Float]) -> [(range: Range<Int>, factor: Float)] {
        precondition(factors.values.allSatisfy { $0 >= 0 }, "factors of the learning rate must be at least 0")
        var ranges: [(range: Range<Int>, factor: Float)] = []
        for entry in entries where entry.parameter.role != .statistic {
            let factor = factors[entry.node] ?? 1
            if let last = ranges.last, last.factor == factor {
                ranges[ranges.count - 1].range = last.range.lowerBound..<entry.range.upperBound
            } else {
                ranges.append((entry.range, factor))
            }
        }
        return ranges
    }
}
