internal import CImprintKernels
internal import ImprintCore

/// Stochastic gradient descent with momentum: one fused pass over the parameter buffer.
///
/// g = clip · gradient + weightDecay · w (the decay on weights only, not on biases and norms)
/// v ← momentum · v + g
/// w ← w − rate · v, or with Nesterov's momentum w ← w − rate · (g + momentum · v)
///
/// These are PyTorch's formulas (Sutskever et al., "On the importance of initialization and momentum", 2013).
public final class SGD {
    /// The numbers that steer a step.
    public struct Options: Hashable, Codable, Sendable {
        /// The highest learning rate, ≥ 0.
        public var learningRate: Float
        /// The share of the velocity that stays, 0 ≤ `momentum` < 1.
        public var momentum: Float
        /// Whether the gradient is looked at as if the velocity had been applied.
        public var nesterov: Bool
        /// The pull of weights towards 0, ≥ 0.
        public var weightDecay: Float
        /// The largest Euclidean norm of the whole gradient; a longer one is scaled down to it.
        public var gradientClipping: Float?

        /// Makes options.
        public init(
            learningRate: Float, momentum: Float = 0.9, nesterov: Bool = false, weightDecay: Float = 0,
            gradientClipping: Float? = nil
        ) {
            precondition(learningRate >= 0, "the learning rate is at least 0, not \(learningRate)")
            precondition((0..<1).contains(momentum), "the momentum is at least 0 and less than 1, not \(momentum)")
            precondition(weightDecay >= 0, "the weight decay is at least 0, not \(weightDecay)")
            precondition(gradientClipping.map { $0 > 0 } ?? true, "the gradient's largest norm must be positive")
            self.learningRate = learningRate
            self.momentum = momentum
            self.nesterov = nesterov
            self.weightDecay = weightDecay
            self.gradientClipping = gradientClipping
        }
    }

    /// The numbers that steer a step.
    public let options: Options
    private let velocities: AlignedMemory
    private let count: Int
    /// The step that is being taken.
    private var update: Update?

    private struct Update {
        let trained: [(range: Range<Int>, decays: Bool)]
        let parameters: UnsafeMutablePointer<Float>
        let gradients: UnsafePointer<Float>
        let rate: Float
        let gradientScale: Float
    }

    /// Makes an optimiser whose velocities are 0.
    /// - Throws: `NetworkError.outOfMemory`.
    public init(_ options: Options, for layout: ParameterLayout) throws(NetworkError) {
        self.options = options
        count = layout.trainableCount
        velocities = try AlignedMemory(byteCount: count * MemoryLayout<Float>.stride)
    }

    /// The velocities, laid out as the trainable parameters.
    public var state: UnsafeMutableBufferPointer<Float> {
        UnsafeMutableBufferPointer(start: velocities.floats(), count: count)
    }

    /// Moves the parameters of `plan` along its gradients.
    /// - Parameters:
    ///   - plan: A training plan after `backward`.
    ///   - factor: The schedule's factor of the learning rate.
    /// - Returns: The Euclidean norm of the whole gradient before clipping; `nil` where nothing is clipped.
    @discardableResult
    public func step(_ plan: Plan, factor: Float = 1) -> Float? {
        precondition(plan.parameters.layout.trainableCount == count, "the plan belongs to another network")
        let clipping = options.gradientClipping.map { plan.clipping(to: $0) }
        update = Update(
            trained: plan.trained, parameters: plan.parameters.floats, gradients: plan.gradients.floats(),
            rate: options.learningRate * factor, gradientScale: clipping?.scale ?? 1)
        plan.team.run(self)
        update = nil
        plan.noteOwnChange()
        return clipping?.norm
    }
}

extension Plan {
    /// The Euclidean norm of the whole gradient of what is trained, and what makes it no longer than `limit`.
    func clipping(to limit: Float) -> (norm: Float, scale: Float) {
        let gradients = parameterGradients.baseAddress!
        let sum = trained.reduce(0.0) {
            $0 + imprint_sum_of_squares(gradients + $1.range.lowerBound, $1.range.count)
        }
        let norm = Float(sum.squareRoot())
        return (norm, norm > limit ? limit / norm : 1)
    }
}

extension SGD: TeamTask {
    func run(_ worker: Worker) {
        guard let update else { return }
        for (range, decays) in update.trained {
            forEachRange(range.count, worker) { part in
                let start = range.lowerBound + part.lowerBound
                imprint_sgd(
                    update.parameters + start, update.gradients + start, velocities.floats() + start, part.count,
                    update.rate, options.momentum, decays ? options.weightDecay : 0, update.gradientScale,
                    options.nesterov ? 1 : 0)
            }
        }
    }
}
