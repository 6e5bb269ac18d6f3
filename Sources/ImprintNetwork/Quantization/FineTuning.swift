internal import ImprintCore

extension Quantizer {
    /// The hyperparameters of fine-tuning after quantization.
    public struct FineTuning: Hashable, Sendable {
        /// The number of training steps, at least 1; a number above 10 is rounded up to a multiple of 10.
        public var steps: Int
        /// The number of samples per step, at least 1.
        public var batchSize: Int
        /// The peak learning rate, in quantization steps of the weights.
        public var learningRate: Float
        /// The random seed.
        public var seed: UInt64

        /// Creates hyperparameters.
        public init(steps: Int = 300, batchSize: Int = 16, learningRate: Float = 0.01, seed: UInt64 = 1) {
            precondition(steps >= 1 && batchSize >= 1, "steps and batchSize must be at least 1")
            self.steps = steps
            self.batchSize = batchSize
            self.learningRate = learningRate
            self.seed = seed
        }
    }

    /// A training sample: writes the network's input, NHWC, for a variant of an image.
    ///
    /// The seed determines the variant (data augmentation). Several threads call it at the same time.
    public typealias Sample = @Sendable (_ seed: UInt64, _ values: UnsafeMutableBufferPointer<Float>) throws -> Void

    /// Returns quantized parameters with a smaller error, or the given ones if fine-tuning does not reduce the error.
    ///
    /// This is quantization-aware training by distillation, without labels. Each step runs the network with rounded weights and activations,
    /// and the float32 network for the same images. The loss is the mean squared error of the outputs. The gradients of rounded values
    /// update the values before rounding (straight-through estimator). Scales and running statistics do not change. The
    /// parameters of the round with the smallest error are kept.
    ///
    /// Source: Jacob et al., "Quantization and training of neural networks for efficient integer-arithmetic-only inference", 2018; Hinton
    /// et al., "Distilling the knowledge in a neural network", 2015.
    /// - Parameters:
    ///   - quantized: The result of `quantize(for:)`.
    ///   - samples: The training samples, at least one.
    ///   - images: The images that measure the error, at least one, which should not be among the samples.
    ///   - options: The hyperparameters.
    ///   - onProgress: Called with the number of steps so far and in total.
    /// - Throws: `NetworkError`, or an error of a sample or an image.
    public func fineTuned(
        _ quantized: Parameters, on samples: [Sample], measuring images: [Image],
        options: FineTuning = FineTuning(), onProgress: (_ done: Int, _ total: Int) -> Void = { _, _ in }
    ) throws -> Parameters {
        precondition(!samples.isEmpty, "fine-tuning needs at least one sample")
        precondition(!images.isEmpty, "measuring the error needs at least one image")
        guard quantized.quantization?.weights.isEmpty == false else { return quantized }
        let reference = try outputs(on: images, original, .float32)
        let objective = try QuantizedObjective(
            self, quantized, samples: samples, images: images, reference: reference, options: options)
        let rounds = min(options.steps, Self.rounds)
        let steps = (options.steps + rounds - 1) / rounds
        objective.stepsPerRound = steps
        let loop = try TrainingLoop(
            objective,
            options: TrainingLoop.Options(
                rounds: .epochs(
                    TrainingLoop.Rounds.Epochs(
                        count: rounds, steps: steps, learningRate: options.learningRate,
                        scheduleShape: .cosine(final: 0))),
                // Gradients in quantization steps are small.
                optimizer: .adamW(AdamW.Options(epsilon: 1e-12, weightDecay: 0))))
        var done = 0
        do {
            _ = try loop.run(onEvent: { event in
                guard case .step = event else { return }
                done += 1
                onProgress(done, rounds * steps)
            })
        } catch is TrainingDivergedError {}
        guard let best = loop.best else { return quantized }
        let result = try objective.rounded(best)
        let before = try error(of: quantized, on: images, reference: reference)
        let after = try error(of: result, on: images, reference: reference)
        return after.relativeError < before.relativeError ? result : quantized
    }

    /// The number of rounds; the error is measured after each.
    private static let rounds = 10
}

/// Trains a quantized network to have the outputs of its float32 network.
///
/// The optimizer sees each weight in units of its quantization step, because the steps differ by orders of magnitude between
/// channels: a weight v stands for round(v) · step. Biases and scales have similar units, the effects of a weight's step. The plan's parameters
/// are v between training steps, and round(v) · step during the passes of a training step: `trainingStep` rounds them, and `addGradients`,
/// which the loop calls between the backward pass and the optimizer, restores v.
private final class QuantizedObjective: TrainingObjective {
    let plan: ExecutionPlan
    private let teacher: ExecutionPlan
    private let quantizer: Quantizer
    private let quantization: Quantization
    private let samples: [Quantizer.Sample]
    private let images: [Quantizer.Image]
    private let reference: [[Float]]
    private let options: Quantizer.FineTuning
    private let variance: Float
    private let tensors: [Tensor]
    /// The trainable parameters in units, during a training step.
    private var masters: [Float]
    /// The order of the samples of the current pass over all of them.
    private var order: (epoch: Int, indices: [Int]) = (-1, [])
    /// The number of steps after which the loop measures the error.
    var stepsPerRound = 1

    /// A trainable tensor.
    private struct Tensor {
        let entry: ParameterLayout.Entry
        /// The unit of each value; 0 for a value that must not change.
        let units: [Float]
        /// The scales, if the values are rounded.
        let weights: Quantization.Weights?
    }

    init(
        _ quantizer: Quantizer, _ quantized: Parameters, samples: [Quantizer.Sample], images: [Quantizer.Image],
        reference: [[Float]], options: Quantizer.FineTuning
    ) throws {
        let network = quantizer.network
        let quantization = quantized.quantization ?? Quantization()
        let operations = quantizer.operations()
        let integerOperations = operations.filter {
            quantization.weights[network.nodes[$0.nodeIndices[0]].name] != nil
        }
        let outputs = QuantizedOperations.roundedOutputs(of: operations, in: network, quantization)
        let rounding = try network.withFrozenStatistics().roundingActivations(of: outputs)
        let trained = Set(integerOperations.flatMap { $0.nodeIndices.map { network.nodes[$0].name } })
        let parameters = try quantized.copy()
        plan = try ExecutionPlan(
            rounding, parameters: parameters,
            options: ExecutionPlan.Options(
                batchSize: options.batchSize, mode: .training, workers: quantizer.workers,
                frozen: Set(network.nodes.map(\.name)).subtracting(trained)))
        var teacherOptions = ExecutionPlan.Options(batchSize: options.batchSize, workers: quantizer.workers)
        teacherOptions.precision = .float32
        teacher = try ExecutionPlan(network, parameters: quantizer.original, options: teacherOptions)
        tensors = integerOperations.flatMap { Self.tensors(of: $0, quantized, quantization) }
        masters = [Float](repeating: 0, count: parameters.layout.trainableCount)
        let values = reference.joined()
        let mean = values.reduce(0) { $0 + Double($1) } / Double(max(values.count, 1))
        let squares = values.reduce(0) { $0 + (Double($1) - mean) * (Double($1) - mean) }
        variance = max(Float(squares / Double(max(values.count, 1))), .leastNormalMagnitude)
        self.quantizer = quantizer
        self.quantization = quantization
        self.samples = samples
        self.images = images
        self.reference = reference
        self.options = options
        setStart()
    }

    // MARK: Units

    private static func tensors(
        of operation: PlanOperation, _ parameters: Parameters, _ quantization: Quantization
    ) -> [Tensor] {
        let entries = operation.entries
        guard let weight = entries.first, let weights = quantization.weights[weight.node] else { return [] }
        let normalization = (operation.kernel as? PrepackedConvolution)?.normalization
        let statistics = entries.filter { $0.parameter.name == "runningVariance" }.first
        let variances = statistics.flatMap { parameters[$0.name] }
        return entries.filter { $0.parameter.role != .statistic }.map { entry in
            if entry == weight {
                return Tensor(entry: entry, units: weights.steps(entry.parameter.count), weights: weights)
            }
            let isOfConvolution = entry.node == weight.node
            let factors = entries.first { $0.parameter.name == "scale" }.flatMap { parameters[$0.name] }
            let units = weights.scales.indices.map { channel -> Float in
                let scale = abs(factors?[channel] ?? 1)
                if entry.parameter.name == "scale" { return scale / 127 }
                guard !isOfConvolution, let variance = variances?[channel], let normalization else {
                    return 127 * weights.scales[channel]
                }
                return 127 * weights.scales[channel] * scale / (variance + normalization.epsilon).squareRoot()
            }
            return Tensor(entry: entry, units: units, weights: nil)
        }
    }

    /// The largest difference between a weight in units and its integer at the start: half of the original difference, which is at most 0.5.
    ///
    /// `WeightRounding` rounds many weights away from their nearest integers. If these started at 0.5, the first steps would reverse it.
    private static let largestRemainder: Float = 0.25

    /// Sets the trained parameters: weights that round to the integers of the quantized ones, and are as near as possible to the original ones.
    private func setStart() {
        for tensor in tensors {
            let original = quantizer.original[tensor.entry.name] ?? []
            plan.parameters.withValues(of: tensor.entry) { values in
                for (index, unit) in tensor.units.enumerated() where unit > 0 {
                    values[index] /= unit
                    guard tensor.weights != nil else { continue }
                    let integer = values[index].rounded(.toNearestOrEven)
                    let remainder = original[index] / unit - integer
                    values[index] =
                        integer + Self.largestRemainder * min(max(2 * remainder, -1), 1)
                }
            }
        }
    }

    /// Replaces values in units by those that the network computes with.
    private func apply(_ tensor: Tensor, to values: UnsafeMutableBufferPointer<Float>) {
        tensor.units.withUnsafeBufferPointer { units in
            for index in units.indices where units[index] > 0 {
                let value = values[index]
                values[index] =
                    units[index]
                    * (tensor.weights == nil ? value : min(max(value.rounded(.toNearestOrEven), -127), 127))
            }
        }
    }

    /// Returns quantized parameters for parameters in units.
    func rounded(_ parameters: Parameters) throws -> Parameters {
        let result = try parameters.copy()
        for tensor in tensors {
            result.withValues(of: tensor.entry) { values in
                apply(tensor, to: values)
                tensor.weights?.round(values)
            }
        }
        result.quantization = quantization
        return result
    }

    // MARK: Steps

    func trainingStep(round: Int, step: Int) throws -> StepLoss? {
        let count = options.batchSize
        try readSamples((round * stepsPerRound + step) * count, count)
        _ = plan.input.update(from: teacher.input)
        teacher.forward(count: count)
        for tensor in tensors {
            plan.parameters.withValues(of: tensor.entry) { values in
                for (index, value) in zip(tensor.entry.range, values) { masters[index] = value }
                apply(tensor, to: values)
            }
        }
        plan.forward(count: count)
        return StepLoss(loss: writeGradient(count * plan.network.output.count), count: count)
    }

    private func readSamples(_ first: Int, _ count: Int) throws {
        let size = teacher.network.input.count
        // Each epoch has another random order.
        let indices = (first..<(first + count)).map { number in
            let epoch = number / samples.count
            if order.epoch != epoch {
                var random = RandomStream(seed: options.seed, "fine-tuning order", epoch)
                order = (epoch, random.permutation(of: samples.count))
            }
            return order.indices[number % samples.count]
        }
        let input = teacher.input
        _ = try quantizer.workers.parallelMap(count) { index in
            var random = RandomStream(seed: options.seed, "fine-tuning sample", first + index)
            let values = input[(index * size)..<((index + 1) * size)]
            try samples[indices[index]](random.next(), UnsafeMutableBufferPointer(rebasing: values))
        }
    }

    /// Writes the gradient of the loss, the squared error relative to the variance of the outputs, and returns the loss.
    private func writeGradient(_ count: Int) -> Float {
        let (target, output, gradient) = (teacher.output, plan.output, plan.outputGradient)
        let factor = 2 / (variance * Float(count))
        var sum = 0.0
        for index in 0..<count {
            let difference = output[index] - target[index]
            sum += Double(difference) * Double(difference)
            gradient[index] = factor * difference
        }
        return Float(sum / Double(count)) / variance
    }

    /// Turns gradients into those of the values in units, and restores these values.
    func addGradients() {
        for tensor in tensors {
            plan.parameters.withValues(of: tensor.entry) { values in
                let range = tensor.entry.range
                for (index, unit) in tensor.units.enumerated() {
                    plan.parameterGradients[range.lowerBound + index] *= unit
                    values[index] = masters[range.lowerBound + index]
                }
            }
        }
    }

    func validate(_ parameters: Parameters) throws -> ValidationLoss? {
        let error = try quantizer.error(of: rounded(parameters), on: images, reference: reference)
        return ValidationLoss(loss: Float(error.relativeError), accuracy: Float(error.agreement))
    }
}
