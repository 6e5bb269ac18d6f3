internal import CImprintKernels
internal import ImprintCore

/// Stochastic gradient descent with momentum: one fused pass over the parameter buffer.
///
/// g = clip · gradient + weightDecay · w (the decay on weights only, not on biases and norms)
/// v ← momentum · v + g
/// w ← w − rate · v, or with Nesterov's momentum w ← w − rate · (g + momentum · v)
///
/// The rate is the step's learning rate times the factor of the node that w belongs to.
///
/// These are PyTorch's formulas (Sutskever et al., "On the importance of initialization and momentum", 2013).
public final class SGD: Optimizer {
    /// The hyperparameters.
    public struct Options: Hashable, Codable, Sendable {
        /// The share of the velocity that stays, 0 ≤ `momentum` < 1.
        public var momentum: Float
        /// Whether to use Nesterov's momentum.
        public var nesterov: Bool
        /// The weight decay, ≥ 0.
        public var weightDecay: Float
        /// The largest Euclidean norm of the whole gradient, or nil for no limit.
        ///
        /// A longer gradient is scaled down to it.
        public var gradientClipping: Float?

        /// Makes options.
        public init(
            momentum: Float = 0.9, nesterov: Bool = false, weightDecay: Float = 0, gradientClipping: Float? = nil
        ) {
            precondition((0..<1).contains(momentum), "the momentum is at least 0 and less than 1, not \(momentum)")
            precondition(weightDecay >= 0, "the weight decay is at least 0, not \(weightDecay)")
            precondition(gradientClipping.map { $0 > 0 } ?? true, "the gradient's largest norm must be positive")
            self.momentum = momentum
            self.nesterov = nesterov
            self.weightDecay = weightDecay
            self.gradientClipping = gradientClipping
        }
    }

    /// The hyperparameters.
    public let options: Options
    /// The number of steps so far.
    public var stepCount = 0
    private let velocities: AlignedMemory
    private let count: Int
    /// The factors of the learning rate, from the first parameter to the last.
    private let rateFactors: [(range: Range<Int>, factor: Float)]
    /// The step that is being taken.
    private var update: Update?

    private struct Update {
        let trained: [(range: Range<Int>, decays: Bool)]
        let parameters: UnsafeMutablePointer<Float>
        let gradients: UnsafePointer<Float>
        let rate: Float
        let gradientScale: Float
    }

    /// Makes an optimizer whose velocities are 0.
    /// - Parameters:
    ///   - options: The hyperparameters.
    ///   - layout: The layout of the parameters.
    ///   - rateFactors: Factors of the learning rate by the name of the node, ≥ 0; 1 for those not named.
    /// - Throws: `NetworkError.outOfMemory`.
    public init(
        _ options: Options, for layout: ParameterLayout, rateFactors: [String: Float] = [:]
    ) throws(NetworkError) {
        precondition(rateFactors.values.allSatisfy { $0 >= 0 }, "a factor of the learning rate is at least 0")
        self.options = options
        self.rateFactors = Self.ranges(of: rateFactors, in: layout)
        count = layout.trainableCount
        velocities = try AlignedMemory(byteCount: count * MemoryLayout<Float>.stride)
    }

    /// The places of the trainable parameters, in as few ranges as there are changes of the factor.
    private static func ranges(
        of factors: [String: Float], in layout: ParameterLayout
    ) -> [(range: Range<Int>, factor: Float)] {
        var ranges: [(range: Range<Int>, factor: Float)] = []
        for entry in layout.entries where entry.parameter.role != .statistic {
            let factor = factors[entry.node] ?? 1
            if let last = ranges.last, last.factor == factor {
                ranges[ranges.count - 1].range = last.range.lowerBound..<entry.range.upperBound
            } else {
                ranges.append((entry.range, factor))
            }
        }
        return ranges
    }

    /// The velocities.
    public var state: [(name: String, values: UnsafeMutableBufferPointer<Float>)] {
        [("velocities", UnsafeMutableBufferPointer(start: velocities.floats(), count: count))]
    }

    public func step(_ plan: ExecutionPlan, learningRate: Float) {
        precondition(learningRate >= 0, "the learning rate is at least 0, not \(learningRate)")
        precondition(plan.parameters.layout.trainableCount == count, "the plan belongs to another network")
        let scale = options.gradientClipping.map { plan.clippingScale(to: $0) } ?? 1
        stepCount += 1
        update = Update(
            trained: plan.trained, parameters: plan.parameters.floats, gradients: plan.gradients.floats(),
            rate: learningRate, gradientScale: scale)
        plan.threadPool.run(self)
        update = nil
        plan.noteOwnChange()
    }
}

extension ExecutionPlan {
    /// The Euclidean norm of the whole gradient of the trained parameters.
    package var gradientNorm: Float {
        let gradients = parameterGradients.baseAddress!
        let sum = trained.reduce(0.0) {
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

extension SGD: ThreadPoolTask {
    func run(_ worker: Worker) {
        guard let update else { return }
        for (trained, decays) in update.trained {
            for (range, factor) in rateFactors where range.overlaps(trained) {
                let range = range.clamped(to: trained)
                forEachRange(range.count, worker) { part in
                    let start = range.lowerBound + part.lowerBound
                    imprint_sgd(
                        update.parameters + start, update.gradients + start, velocities.floats() + start, part.count,
                        update.rate * factor, options.momentum, decays ? options.weightDecay : 0,
                        update.gradientScale, options.nesterov ? 1 : 0)
                }
            }
        }
    }
}
