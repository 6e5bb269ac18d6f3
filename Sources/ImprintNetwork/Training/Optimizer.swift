/// Updates parameters along their gradients: `SGD` or `AdamW`.
public protocol Optimizer: AnyObject {
    /// The tensors that belong to the parameters, each laid out as the trainable parameters: velocities, or moments.
    var state: [(name: String, values: UnsafeMutableBufferPointer<Float>)] { get }

    /// The number of steps so far.
    var stepCount: Int { get set }

    /// Takes a step with the gradients of a training plan after `backward`.
    /// - Parameter learningRate: The learning rate of this step, ≥ 0.
    func step(_ plan: ExecutionPlan, learningRate: Float)
}

/// The choice of an optimizer and its hyperparameters, without the learning rate.
public enum OptimizerConfiguration: Hashable, Codable, Sendable {
    /// Stochastic gradient descent with momentum.
    case sgd(SGD.Options)
    /// Adam with decoupled weight decay.
    case adamW(AdamW.Options)

    /// Makes the optimizer for the parameters of a layout.
    /// - Parameter learningRateFactors: Factors of the learning rate by node, ≥ 0; 1 for nodes without one. Only `sgd` supports them.
    /// - Throws: `NetworkError.outOfMemory`.
    func makeOptimizer(
        for layout: ParameterLayout, learningRateFactors: [String: Float]
    ) throws(NetworkError) -> any Optimizer {
        switch self {
        case .sgd(let options): return try SGD(options, for: layout, rateFactors: learningRateFactors)
        case .adamW(let options):
            precondition(learningRateFactors.isEmpty, "AdamW has one learning rate for all layers")
            return try AdamW(options, for: layout)
        }
    }
}
