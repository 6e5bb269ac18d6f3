internal import CImprintKernels
internal import ImprintCore

/// Stochastic gradient descent (SGD) with momentum.
///
/// For each trainable parameter w, as in PyTorch:
/// - g = clip · gradient + weightDecay · w
/// - v ← momentum · v + g
/// - w ← w − rate · v, or with Nesterov momentum w ← w − rate · (g + momentum · v)
///
/// clip scales the whole gradient to a norm of at most `gradientClipping`. Weight decay applies to weights, not to biases and
/// normalization parameters. The rate is the step's learning rate times the factor of w's node. State: v, with the layout of the
/// trainable parameters, initialized to 0.
///
/// `OptimizerConfiguration.sgd` chooses it for a `TrainingLoop`. Create it yourself for a loop of your own, or as a part of another `Optimizer`.
///
/// Source: Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013.
public final class SGD: Optimizer {
    /// The hyperparameters.
    public struct Options: Hashable, Codable, Sendable {
        /// The factor of the previous velocity, 0 ≤ `momentum` < 1.
        public var momentum: Float
        /// Whether to use Nesterov momentum.
        public var nesterov: Bool
        /// The weight decay, ≥ 0 and finite.
        public var weightDecay: Float
        /// The maximum Euclidean norm of the whole gradient, > 0 and finite, to which longer gradients are scaled; nil for no limit.
        public var gradientClipping: Float?

        /// Creates options.
        public init(
            momentum: Float = 0.9, nesterov: Bool = false, weightDecay: Float = 0, gradientClipping: Float? = nil
        ) {
            self.momentum = momentum
            self.nesterov = nesterov
            self.weightDecay = weightDecay
            self.gradientClipping = gradientClipping
            checkRanges()
        }

        /// Ends the program if a value is out of range.
        fileprivate func checkRanges() {
            precondition((0..<1).contains(momentum), "the momentum must be at least 0 and less than 1, not \(momentum)")
            precondition(
                weightDecay >= 0 && weightDecay.isFinite,
                "the weight decay must be at least 0 and finite, not \(weightDecay)")
            checkGradientClipping(gradientClipping)
        }
    }

    private let options: Options
    public var stepCount = 0
    private let velocities: AlignedMemory
    private let count: Int
    /// The factors of the learning rate, in the order of the parameters.
    private let rateFactors: [(range: Range<Int>, factor: Float)]
    /// The step in progress.
    private var update: OptimizerStep?

    /// Creates an optimizer with velocities of 0.
    /// - Parameters:
    ///   - options: The hyperparameters.
    ///   - layout: The layout of the parameters.
    ///   - learningRateFactors: Factors of the learning rate by node name, ≥ 0; the default is 1.
    /// - Throws: `NetworkError.outOfMemory`.
    public init(
        _ options: Options, for layout: ParameterLayout, learningRateFactors: [String: Float] = [:]
    ) throws(NetworkError) {
        options.checkRanges()
        self.options = options
        rateFactors = layout.learningRateFactors(learningRateFactors)
        count = layout.trainableCount
        velocities = try AlignedMemory(byteCount: count * MemoryLayout<Float>.stride)
    }

    /// The velocities.
    public var state: [(name: String, values: UnsafeMutableBufferPointer<Float>)] {
        [("velocities", UnsafeMutableBufferPointer(start: velocities.floats(), count: count))]
    }

    public func step(_ plan: ExecutionPlan, learningRate: Float) {
        update = OptimizerStep(
            plan, parameterCount: count, rateFactors: rateFactors, learningRate: learningRate,
            gradientClipping: options.gradientClipping)
        stepCount += 1
        plan.threadPool.run(self)
        update = nil
        plan.recordParameterChange()
    }
}

extension SGD: ThreadPoolTask {
    func run(_ worker: Worker) {
        guard let update else { return }
        update.forEachPart(worker) { part, factor, decays in
            let start = part.lowerBound
            imprint_sgd(
                update.parameters + start, update.gradients + start, velocities.floats() + start, part.count,
                update.learningRate * factor, options.momentum, decays ? options.weightDecay : 0,
                update.gradientScale, options.nesterov ? 1 : 0)
        }
    }
}
