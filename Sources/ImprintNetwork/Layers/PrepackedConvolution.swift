internal import CImprintKernels
internal import ImprintCore

/// A convolution with constant parameters, fused with batch normalization, the addition of a shortcut and an activation.
///
/// The normalization, by running statistics, is folded into weights and bias: W′ = W · scale / √(variance + ε) and
/// b′ = (b − mean) · scale / √(variance + ε) + shift. W′ is packed for the algorithm once for all passes, or during the pass if it may be
/// the only one. Shortcut and activation are applied to each block of the output while it is in cache.
struct PrepackedConvolution: LayerKernel {
    let convolution: Convolution
    let normalization: BatchNormalization?
    let hasShortcut: Bool
    let activation: ClampActivation
    /// An activation that is not a clamp; nil for none.
    let curve: Epilogue.Curve?

    init(
        _ convolution: Convolution, normalization: BatchNormalization? = nil, hasShortcut: Bool = false,
        activation: ClampActivation = .none, curve: Epilogue.Curve? = nil
    ) {
        self.convolution = convolution
        self.normalization = normalization
        self.hasShortcut = hasShortcut
        self.activation = activation
        self.curve = curve
    }

    /// Creates the 1x1 convolution that computes the same as a dense layer.
    init(_ dense: Dense) {
        self.init(Convolution(outputChannels: dense.outputChannels, kernelSize: 1, hasBias: dense.hasBias))
    }

    var backwardReads: BackwardReads { [] }
    var inPlace: InPlace { .never }
    func multiplications(for inputs: [TensorShape]) -> Int { convolution.multiplications(for: [inputs[0]]) }

    func algorithm(for inputs: [TensorShape], predicting batch: Int?) -> Algorithm {
        convolution.algorithm(for: [inputs[0]], predicting: batch)
    }

    func memory(_ request: MemoryRequest) -> LayerMemory {
        let input = request.inputs[0]
        let passes = convolution.memory(
            MemoryRequest(
                inputs: [input], output: request.output, batch: request.batch, training: request.training,
                delaysPacking: request.delaysPacking, workers: request.workers, algorithm: request.algorithm))
        let (size, factors) = (MemoryLayout<Float>.stride, normalization == nil ? 0 : channelCount)
        guard packsWeights(request.algorithm) else {
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
        if usesBFloat16(request.algorithm, request.usesBFloat16) {
            let product = BFloat16Product(convolution, over: input)
            return LayerMemory(
                scratch: passes.scratch + product.scratchByteCount(workers: request.workers.count),
                transformedWeights: (channelCount + factors) * size, packedWeights: product.packedByteCount)
        }
        let packedWeights =
            isWinograd ? Winograd(convolution, over: input).transformedCount : weightCount(over: input)
        return LayerMemory(
            scratch: max(passes.scratch, scaled * size), transformedWeights: (channelCount + factors) * size,
            packedWeights: packedWeights * size)
    }

    func precision(_ request: MemoryRequest) -> Precision {
        usesBFloat16(request.algorithm, request.usesBFloat16) ? .bfloat16 : .float32
    }

    /// Whether the products use bfloat16, if the plan does.
    private func usesBFloat16(_ algorithm: Algorithm, _ planDoes: Bool) -> Bool {
        planDoes && algorithm.isMatrixProduct && BFloat16Product.isPossible(convolution)
    }

    /// The number of output channels, rounded up to a whole cache line.
    private var channelCount: Int { roundedUp(convolution.outputChannels, to: 16) }

    private func weightCount(over input: TensorShape) -> Int {
        convolution.kernelSize.height * convolution.kernelSize.width * (input.channels / convolution.groups)
            * convolution.outputChannels
    }

    /// The values computed from the parameters.
    private struct Precomputed {
        /// b′.
        let bias: UnsafeMutablePointer<Float>
        /// The factor W′ / W of each output channel; nil without a normalization.
        let factors: UnsafeMutablePointer<Float>?
        /// W′ in the layout of the parameter, if it is not packed.
        let folded: UnsafeMutablePointer<Float>
        /// W′ in the layout of the algorithm, if it is packed.
        let packedWeights: UnsafeMutablePointer<Float>
    }

    private func precomputed(_ context: LayerContext) -> Precomputed {
        let bias = context.transformedWeights.assumingMemoryBound(to: Float.self)
        let factors = normalization == nil ? nil : bias + channelCount
        return Precomputed(
            bias: bias, factors: factors, folded: (factors ?? bias) + channelCount,
            packedWeights: context.packedWeights.assumingMemoryBound(to: Float.self))
    }

    /// Computes b′ and the factors, and W′ if it is not packed, or packed in bfloat16.
    func transformWeights(_ context: LayerContext) {
        let precomputed = precomputed(context)
        context.worker.onFirstThread { fold(context, into: precomputed) }
        if usesBFloat16(context.algorithm, context.usesBFloat16) {
            // Not before the second pass: the first one would have other results.
            return BFloat16Product(convolution, over: context.input.shape).pack(
                context.parameters[0], times: precomputed.factors.map { UnsafePointer($0) },
                into: context.packedWeights,
                worker: context.worker)
        }
        guard let factors = precomputed.factors, !packsWeights(context.algorithm) else { return }
        context.parallelFor(weightCount(over: context.input.shape) / convolution.outputChannels) { rows in
            let start = rows.lowerBound * convolution.outputChannels
            imprint_scale_columns(
                context.parameters[0] + start, convolution.outputChannels, factors, precomputed.folded + start,
                rows.count, convolution.outputChannels)
        }
    }

    /// Packs W′ for the algorithm.
    func packWeights(_ context: LayerContext) {
        guard packsWeights(context.algorithm), !usesBFloat16(context.algorithm, context.usesBFloat16) else { return }
        let precomputed = precomputed(context)
        let factors = precomputed.factors.map { UnsafePointer($0) }
        if context.algorithm == .winograd {
            Winograd(convolution, over: context.input.shape).transform(
                context.parameters[0], times: factors, into: precomputed.packedWeights, worker: context.worker)
        } else {
            ConvolutionProduct.copy(
                convolution, context.parameters[0], times: factors, over: context.input.shape,
                into: precomputed.packedWeights, worker: context.worker)
        }
    }

    /// Whether the algorithm reads packed weights.
    private func packsWeights(_ algorithm: Algorithm) -> Bool {
        switch algorithm {
        case .winograd: true
        case .direct: false
        case .im2col, .matrixProduct: ConvolutionProduct.fitsPanels(convolution)
        }
    }

    private func fold(_ context: LayerContext, into precomputed: Precomputed) {
        let (channels, parameters) = (convolution.outputChannels, context.parameters)
        for channel in 0..<channels { precomputed.bias[channel] = convolution.hasBias ? parameters[1][channel] : 0 }
        guard let normalization, let factors = precomputed.factors else { return }
        let next = convolution.hasBias ? 2 : 1
        let (scale, shift) = (parameters[next], parameters[next + 1])
        let (mean, variance) = (parameters[next + 2], parameters[next + 3])
        for channel in 0..<channels {
            factors[channel] = scale[channel] / (variance[channel] + normalization.epsilon).squareRoot()
            precomputed.bias[channel] = (precomputed.bias[channel] - mean[channel]) * factors[channel] + shift[channel]
        }
    }

    func forward(_ context: LayerContext, batch: Int) {
        let precomputed = precomputed(context)
        let weights: ConvolutionWeights =
            if !packsWeights(context.algorithm) {
                .plain(UnsafePointer(normalization == nil ? context.parameters[0] : precomputed.folded))
            } else if usesBFloat16(context.algorithm, context.usesBFloat16) {
                .packedBFloat16(context.packedWeights.assumingMemoryBound(to: UInt16.self))
            } else if context.packingState.isDone {
                .packedWeights(UnsafePointer(precomputed.packedWeights))
            } else {
                .scaled(UnsafePointer(context.parameters[0]), by: precomputed.factors.map { UnsafePointer($0) })
            }
        convolution.forward(
            context, batch: batch, weights,
            Epilogue(
                bias: convolution.hasBias || normalization != nil ? UnsafePointer(precomputed.bias) : nil,
                shortcut: hasShortcut ? UnsafePointer(context.inputs[1].values) : nil,
                floor: activation.floor, ceiling: activation.ceiling, curve: curve))
    }

    func backward(_ context: LayerContext, batch: Int) {
        preconditionFailure("a prepacked convolution has no backward pass")
    }
}
