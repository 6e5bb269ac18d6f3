internal import CImprintKernels
internal import ImprintCore

/// A convolution whose parameters stay as they are, with what follows it: a normalization by running statistics, a sum
/// with a shortcut, an activation.
///
/// The normalization folds into weights and bias, W′ = W · scale / √(variance + ε) and
/// b′ = (b − mean) · scale / √(variance + ε) + shift, and what the algorithm makes of W′ is made once for any number of
/// passes, or in the pass itself where it may be the only one. The rest is done to each block of the result while it is
/// in cache.
struct PrepackedConvolution: Layer, LayerKernel {
    static let kind = "preparedConvolution"
    private let convolution: Convolution
    private let normalization: BatchNormalization?
    private let hasShortcut: Bool
    /// Where the activation ends, infinity for ReLU; nil if there is none.
    private let ceiling: Float?
    /// An activation that is no clamp, if there is one.
    private let curve: Epilogue.Curve?

    init(
        _ convolution: Convolution, normalization: BatchNormalization? = nil, hasShortcut: Bool = false,
        ceiling: Float? = nil, curve: Epilogue.Curve? = nil
    ) {
        self.convolution = convolution
        self.normalization = normalization
        self.hasShortcut = hasShortcut
        self.ceiling = ceiling
        self.curve = curve
    }

    func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let shape = try convolution.outputShape(for: [inputs[0]])
        return hasShortcut ? try AddLayer().outputShape(for: [shape] + inputs.dropFirst()) : shape
    }

    /// The convolution's, then the normalization's.
    func parameters(for inputs: [TensorShape]) -> [ParameterDescription] {
        convolution.parameters(for: [inputs[0]]) + (normalization?.parameters(for: [inputs[0]]) ?? [])
    }

    func multiplications(for inputs: [TensorShape]) -> Int { convolution.multiplications(for: [inputs[0]]) }

    package func algorithm(for inputs: [TensorShape], predicting batch: Int?) -> Algorithm {
        convolution.algorithm(for: [inputs[0]], predicting: batch)
    }

    func memory(_ request: MemoryRequest) -> LayerMemory {
        let input = request.inputs[0]
        let passes = convolution.memory(
            MemoryRequest(
                inputs: [input], output: request.output, batch: request.batch, training: request.training,
                delaysPacking: request.delaysPacking, workers: request.workers, algorithm: request.algorithm))
        let (size, factors) = (MemoryLayout<Float>.stride, normalization == nil ? 0 : channelCount)
        guard isArranged(request.algorithm) else {
            let folded = normalization == nil ? 0 : weightCount(over: input)
            return LayerMemory(scratch: passes.scratch, transformedWeights: (channelCount + factors + folded) * size)
        }
        let isWinograd = request.algorithm == .winograd
        let scaled =
            isWinograd || !request.delaysPacking
            ? 0
            : ConvolutionProduct.scaledScratchCount(
                convolution, over: input, algorithm: request.algorithm, workers: request.workers.count,
                rows: request.batch * request.output.pixels)
        let packedWeights =
            isWinograd ? Winograd(convolution, over: input).transformedCount : weightCount(over: input)
        return LayerMemory(
            scratch: max(passes.scratch, scaled * size), transformedWeights: (channelCount + factors) * size,
            packedWeights: packedWeights * size)
    }

    /// Numbers for each output channel, up to the next multiple of a cache line.
    private var channelCount: Int { roundedUp(convolution.outputChannels, to: 16) }

    private func weightCount(over input: TensorShape) -> Int {
        convolution.kernelSize.height * convolution.kernelSize.width * (input.channels / convolution.groups)
            * convolution.outputChannels
    }

    /// What is kept of the parameters.
    private struct Kept {
        /// b′.
        let bias: UnsafeMutablePointer<Float>
        /// The factor of each channel of W′, where there is a normalization.
        let factors: UnsafeMutablePointer<Float>?
        /// W′, where it stays in the layer's order.
        let folded: UnsafeMutablePointer<Float>
        /// What the algorithm makes of W′, if it does not.
        let packedWeights: UnsafeMutablePointer<Float>
    }

    private func kept(_ context: LayerContext) -> Kept {
        let bias = context.transformedWeights.assumingMemoryBound(to: Float.self)
        let factors = normalization == nil ? nil : bias + channelCount
        return Kept(
            bias: bias, factors: factors, folded: (factors ?? bias) + channelCount,
            packedWeights: context.packedWeights.assumingMemoryBound(to: Float.self))
    }

    /// Makes b′ and the factors, and W′ where it stays in the layer's order.
    package func transformWeights(_ context: LayerContext) {
        let kept = kept(context)
        context.worker.onFirstThread { fold(context, into: kept) }
        guard let factors = kept.factors, !isArranged(context.algorithm) else { return }
        forEachRange(weightCount(over: context.input.shape) / convolution.outputChannels, context.worker) { rows in
            let start = rows.lowerBound * convolution.outputChannels
            imprint_scale_columns(
                context.parameters[0] + start, convolution.outputChannels, factors, kept.folded + start, rows.count,
                convolution.outputChannels)
        }
    }

    /// Makes what the algorithm reads of W′.
    package func packWeights(_ context: LayerContext) {
        guard isArranged(context.algorithm) else { return }
        let kept = kept(context)
        let factors = kept.factors.map { UnsafePointer($0) }
        if context.algorithm == .winograd {
            Winograd(convolution, over: context.input.shape).transform(
                context.parameters[0], times: factors, into: kept.packedWeights, worker: context.worker)
        } else {
            ConvolutionProduct.copy(
                convolution, context.parameters[0], times: factors, over: context.input.shape, into: kept.packedWeights,
                worker: context.worker)
        }
    }

    /// Whether the weights are kept in another order than the layer's.
    private func isArranged(_ algorithm: Algorithm) -> Bool {
        switch algorithm {
        case .winograd: true
        case .direct: false
        case .im2col, .matrixProduct: ConvolutionProduct.fitsPanels(convolution)
        }
    }

    private func fold(_ context: LayerContext, into kept: Kept) {
        let (channels, parameters) = (convolution.outputChannels, context.parameters)
        for channel in 0..<channels { kept.bias[channel] = convolution.hasBias ? parameters[1][channel] : 0 }
        guard let normalization, let factors = kept.factors else { return }
        let next = convolution.hasBias ? 2 : 1
        let (scale, shift) = (parameters[next], parameters[next + 1])
        let (mean, variance) = (parameters[next + 2], parameters[next + 3])
        for channel in 0..<channels {
            factors[channel] = scale[channel] / (variance[channel] + normalization.epsilon).squareRoot()
            kept.bias[channel] = (kept.bias[channel] - mean[channel]) * factors[channel] + shift[channel]
        }
    }

    func forward(_ context: LayerContext, batch: Int) {
        let kept = kept(context)
        let weights: ConvolutionWeights =
            if !isArranged(context.algorithm) {
                .plain(UnsafePointer(normalization == nil ? context.parameters[0] : kept.folded))
            } else if context.packingState.isDone {
                .packedWeights(UnsafePointer(kept.packedWeights))
            } else {
                .scaled(UnsafePointer(context.parameters[0]), by: kept.factors.map { UnsafePointer($0) })
            }
        convolution.forward(
            context, batch: batch, weights,
            Epilogue(
                bias: convolution.hasBias || normalization != nil ? UnsafePointer(kept.bias) : nil,
                shortcut: hasShortcut ? UnsafePointer(context.inputs[1].values) : nil,
                floor: ceiling == nil ? -.infinity : 0, ceiling: ceiling ?? .infinity, curve: curve))
    }

    func backward(_ context: LayerContext, batch: Int) {
        preconditionFailure("a convolution whose parameters stay as they are has no gradients")
    }
}
