internal import CImprintKernels

/// Updates parameters from their gradients, such as `SGD` or `AdamW`.
///
/// A `TrainingLoop` creates its optimizer from an `OptimizerConfiguration`. To use an optimizer of your own, write a class that conforms to this
/// protocol, and choose it with `OptimizerConfiguration.custom(_:)`.
///
/// The next step must depend only on the parameters, the gradients, the learning rate, `state` and `stepCount`. A resumed run is then bitwise
/// identical to an uninterrupted one, and all processes of a run compute the same parameters.
public protocol Optimizer: AnyObject {
    /// The optimizer's state tensors by name, such as velocities or moments.
    ///
    /// Checkpoints contain them (`TrainingState.optimizer`). To restore a state, the loop writes to the memory of the tensors. It must therefore
    /// exist as long as the optimizer, and the names, which are unique, and the counts must not change. A tensor may have any count. Those of
    /// `SGD` and `AdamW` have the layout of the trainable parameters.
    var state: [(name: String, values: UnsafeMutableBufferPointer<Float>)] { get }

    /// The number of steps so far, initially 0: `step` adds 1, and the loop sets it to restore a state.
    var stepCount: Int { get set }

    /// Takes a step with the gradients of a training plan after `backward`.
    ///
    /// Change the parameters with `ExecutionPlan.updateParameters(_:)`, and only those in `ExecutionPlan.trainableRanges`.
    /// - Parameters:
    ///   - plan: The training plan, with the gradients of a batch.
    ///   - learningRate: The learning rate of this step, ≥ 0.
    func step(_ plan: ExecutionPlan, learningRate: Float)

    /// Resets the optimizer to its initial state, at the start of a phase.
    ///
    /// Default: sets `stepCount` and all values of `state` to 0.
    func reset()
}

extension Optimizer {
    public func reset() {
        for (_, values) in state { values.update(repeating: 0) }
        stepCount = 0
    }
}

/// An optimizer and its hyperparameters, except the learning rate.
public enum OptimizerConfiguration: Sendable {
    /// Stochastic gradient descent with momentum; see `SGD`.
    case sgd(SGD.Options)
    /// Adam with decoupled weight decay; see `AdamW`.
    case adamW(AdamW.Options)
    /// An optimizer of your own, which the closure creates.
    ///
    /// The closure receives the layout of the parameters and `TrainingLoop.Options.learningRateFactors`, which the optimizer should apply.
    case custom(
        @Sendable (_ layout: ParameterLayout, _ learningRateFactors: [String: Float]) throws -> any Optimizer)

    /// Creates the optimizer for the parameters of a layout.
    /// - Parameter learningRateFactors: Factors of the learning rate by node name, ≥ 0; the default is 1.
    /// - Throws: `NetworkError.outOfMemory`, and the errors of the closure of a custom optimizer.
    func makeOptimizer(
        for layout: ParameterLayout, learningRateFactors: [String: Float]
    ) throws -> any Optimizer {
        switch self {
        case .sgd(let options): try SGD(options, for: layout, learningRateFactors: learningRateFactors)
        case .adamW(let options): try AdamW(options, for: layout, learningRateFactors: learningRateFactors)
        case .custom(let makeOptimizer): try makeOptimizer(layout, learningRateFactors)
        }
    }
}

extension ExecutionPlan {
    /// Calls `body` with the trainable parameters, which it may change, and their gradients, both in the layout of the parameters.
    ///
    /// For optimizers: `body` may change only the values in `trainableRanges`, and only their gradients are defined.
    /// - Precondition: The plan is compiled for training.
    public func updateParameters(
        _ body: (_ values: UnsafeMutableBufferPointer<Float>, _ gradients: UnsafeBufferPointer<Float>) -> Void
    ) {
        precondition(options.mode == .training, "an update of parameters requires a plan compiled for training")
        body(
            UnsafeMutableBufferPointer(start: parameters.floats, count: parameters.layout.trainableCount),
            UnsafeBufferPointer(parameterGradients))
        recordParameterChange()
    }

    /// The Euclidean norm of the gradient of all trained parameters.
    public var gradientNorm: Float {
        let gradients = parameterGradients.baseAddress!
        let sum = trainableRanges.reduce(0.0) {
            $0 + imprint_sum_of_squares(gradients + $1.range.lowerBound, $1.range.count)
        }
        return Float(sum.squareRoot())
    }

    /// The factor that scales the whole gradient to a norm of at most `limit`.
    func clippingScale(to limit: Float) -> Float {
        let norm = gradientNorm
        return norm > limit ? limit / norm : 1
    }
}

/// Ends the program if a maximum norm of the gradient is not more than 0 and finite; nil is valid.
func checkGradientClipping(_ norm: Float?) {
    precondition(
        norm.map { $0 > 0 && $0.isFinite } ?? true,
        "the maximum norm of the gradient must be more than 0 and finite, not \(norm ?? 0)")
}

/// The parameters, gradients and rates of a step, which `SGD` and `AdamW` divide among threads in the same way.
struct OptimizerStep {
    private let trainableRanges: [(range: Range<Int>, decays: Bool)]
    private let rateFactors: [(range: Range<Int>, factor: Float)]
    let parameters: UnsafeMutablePointer<Float>
    let gradients: UnsafePointer<Float>
    /// The learning rate, without the factors of nodes.
    let learningRate: Float
    /// The factor of the gradient that limits its norm.
    let gradientScale: Float

    /// Prepares a step with the gradients of a plan.
    /// - Parameters:
    ///   - plan: The training plan.
    ///   - parameterCount: The number of trainable parameters of the optimizer.
    ///   - rateFactors: The result of `ParameterLayout.learningRateFactors(_:)`.
    ///   - learningRate: The learning rate, ≥ 0.
    ///   - gradientClipping: The maximum norm of the gradient; nil for no limit.
    init(
        _ plan: ExecutionPlan, parameterCount: Int, rateFactors: [(range: Range<Int>, factor: Float)],
        learningRate: Float, gradientClipping: Float?
    ) {
        precondition(learningRate >= 0, "the learning rate must be at least 0, not \(learningRate)")
        precondition(
            plan.parameters.layout.trainableCount == parameterCount, "the plan belongs to another network")
        trainableRanges = plan.trainableRanges
        self.rateFactors = rateFactors
        parameters = plan.parameters.floats
        gradients = UnsafePointer(plan.gradients.floats())
        self.learningRate = learningRate
        gradientScale = gradientClipping.map { plan.clippingScale(to: $0) } ?? 1
    }

    /// Calls `body` with the parts of the trainable parameters that a worker updates.
    /// - Parameter body: Receives a range of parameters, the factor of the learning rate, and whether weight decay applies.
    func forEachPart(_ worker: Worker, _ body: (_ part: Range<Int>, _ factor: Float, _ decays: Bool) -> Void) {
        for (trained, decays) in trainableRanges {
            for (range, factor) in rateFactors where range.overlaps(trained) {
                let range = range.clamped(to: trained)
                worker.parallelFor(range.count) { part in
                    let start = range.lowerBound + part.lowerBound
                    body(start..<(start + part.count), factor, decays)
                }
            }
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
