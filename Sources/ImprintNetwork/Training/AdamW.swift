internal import CImprintKernels
internal import ImprintCore

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Adam with decoupled weight decay (AdamW).
///
/// For each trainable parameter w in step t, as in PyTorch:
/// - g = clip · gradient
/// - m ← β₁ · m + (1 − β₁) · g
/// - v ← β₂ · v + (1 − β₂) · g²
/// - w ← w − learningRate · (weightDecay · w + m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + ε))
///
/// clip scales the whole gradient to a norm of at most `gradientClipping`. Weight decay applies to weights, not to biases and
/// normalization parameters. The learning rate is the step's rate times the factor of w's node. State: m and v, each with the
/// layout of the trainable parameters, initialized to 0.
///
/// `OptimizerConfiguration.adamW` chooses it for a `TrainingLoop`. Create it yourself for a loop of your own, or as a part of another
/// `Optimizer`.
///
/// Source: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.
public final class AdamW: Optimizer {
    /// The hyperparameters.
    public struct Options: Hashable, Codable, Sendable {
        /// The decay rate of the mean gradient, 0 ≤ β₁ < 1.
        public var beta1: Float
        /// The decay rate of the mean squared gradient, 0 ≤ β₂ < 1.
        public var beta2: Float
        /// The term added to the denominator for numerical stability, ε > 0 and finite.
        public var epsilon: Float
        /// The weight decay, ≥ 0 and finite.
        public var weightDecay: Float
        /// The maximum Euclidean norm of the whole gradient, > 0 and finite, to which longer gradients are scaled; nil for no limit.
        public var gradientClipping: Float?

        /// Creates options.
        public init(
            beta1: Float = 0.9, beta2: Float = 0.999, epsilon: Float = 1e-8, weightDecay: Float = 0.01,
            gradientClipping: Float? = nil
        ) {
            self.beta1 = beta1
            self.beta2 = beta2
            self.epsilon = epsilon
            self.weightDecay = weightDecay
            self.gradientClipping = gradientClipping
            checkRanges()
        }

        /// Ends the program if a value is out of range.
        fileprivate func checkRanges() {
            precondition(
                (0..<1).contains(beta1) && (0..<1).contains(beta2), "β₁ and β₂ must be at least 0 and less than 1")
            precondition(epsilon > 0 && epsilon.isFinite, "ε must be more than 0 and finite, not \(epsilon)")
            precondition(
                weightDecay >= 0 && weightDecay.isFinite,
                "the weight decay must be at least 0 and finite, not \(weightDecay)")
            checkGradientClipping(gradientClipping)
        }
    }

    private let options: Options
    public var stepCount = 0
    private let moments: AlignedMemory
    private let count: Int
    /// The factors of the learning rate, in the order of the parameters.
    private let rateFactors: [(range: Range<Int>, factor: Float)]
    /// The step in progress, and its hyperparameters.
    private var update: (step: OptimizerStep, hyperparameters: imprint_adamw_step)?

    /// Creates an optimizer with moments of 0.
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
        moments = try AlignedMemory(byteCount: 2 * count * MemoryLayout<Float>.stride)
    }

    /// The running means of the gradients (first moments) and of their squares (second moments).
    public var state: [(name: String, values: UnsafeMutableBufferPointer<Float>)] {
        [
            ("firstMoments", UnsafeMutableBufferPointer(start: moments.floats(), count: count)),
            ("secondMoments", UnsafeMutableBufferPointer(start: moments.floats() + count, count: count)),
        ]
    }

    public func step(_ plan: ExecutionPlan, learningRate: Float) {
        let step = OptimizerStep(
            plan, parameterCount: count, rateFactors: rateFactors, learningRate: learningRate,
            gradientClipping: options.gradientClipping)
        stepCount += 1
        let time = Float(stepCount)
        let hyperparameters = imprint_adamw_step(
            rate: step.learningRate, beta1: options.beta1, beta2: options.beta2,
            mean_correction: 1 - powf(options.beta1, time), square_correction: 1 - powf(options.beta2, time),
            epsilon: options.epsilon, weight_decay: options.weightDecay, gradient_scale: step.gradientScale)
        update = (step, hyperparameters)
        plan.threadPool.run(self)
        update = nil
        plan.recordParameterChange()
    }
}

extension AdamW: ThreadPoolTask {
    func run(_ worker: Worker) {
        guard let (step, hyperparameters) = update else { return }
        step.forEachPart(worker) { part, factor, decays in
            var hyperparameters = hyperparameters
            hyperparameters.rate *= factor
            if !decays { hyperparameters.weight_decay = 0 }
            let start = part.lowerBound
            imprint_adamw(
                step.parameters + start, step.gradients + start, moments.floats() + start,
                moments.floats() + count + start, part.count, &hyperparameters)
        }
    }
}
