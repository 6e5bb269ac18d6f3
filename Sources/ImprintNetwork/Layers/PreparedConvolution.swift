internal import CImprintKernels
internal import ImprintCore

/// A convolution whose parameters stay as they are, with what follows it: a normalisation by running statistics, a sum
/// with a shortcut, an activation.
///
/// The normalisation folds into weights and bias, W′ = W · scale / √(variance + ε) and
/// b′ = (b − mean) · scale / √(variance + ε) + shift, once for any number of passes, and what the algorithm makes of W′
/// is made once too. The rest is done to each block of the result while it is in cache.
struct PreparedConvolution: Layer {
    static let kind = "preparedConvolution"
    private let convolution: Convolution
    private let normalization: BatchNormalization?
    private let hasShortcut: Bool
    /// Where the activation ends, infinity for ReLU; `nil` where there is none.
    private let ceiling: Float?
    /// An activation that is no clamp, where there is one.
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

    func outputShape(for inputs: [Shape]) throws(NetworkError) -> Shape {
        let shape = try convolution.outputShape(for: [inputs[0]])
        return hasShortcut ? try Add().outputShape(for: [shape] + inputs.dropFirst()) : shape
    }

    /// The convolution's, then the normalisation's.
    func parameters(for inputs: [Shape]) -> [ParameterDescription] {
        convolution.parameters(for: [inputs[0]]) + (normalization?.parameters(for: [inputs[0]]) ?? [])
    }

    func multiplications(for inputs: [Shape]) -> Int { convolution.multiplications(for: [inputs[0]]) }

    func algorithm(for inputs: [Shape], predicting batch: Int?) -> Algorithm {
        convolution.algorithm(for: [inputs[0]], predicting: batch)
    }

    func memory(_ request: MemoryRequest) -> LayerMemory {
        let input = request.inputs[0]
        let transformed = isTransformed(request.algorithm)
        let weights =
            switch request.algorithm {
            case .winograd: Winograd(convolution, over: input).transformedCount
            case .direct, .im2col, .matrixProduct:
                transformed || normalization != nil ? weightCount(over: input) : 0
            }
        // A factor for each channel, and the weights before they are transformed.
        let folding =
            normalization == nil ? 0 : biasCount + (transformed ? weightCount(over: input) : 0)
        let passes = convolution.memory(
            MemoryRequest(
                inputs: [input], output: request.output, batch: request.batch, training: request.training,
                workers: request.workers, algorithm: request.algorithm))
        return LayerMemory(
            scratch: max(passes.scratch, folding * MemoryLayout<Float>.stride),
            prepared: (biasCount + weights) * MemoryLayout<Float>.stride)
    }

    private var biasCount: Int { roundedUp(convolution.outputChannels, to: 16) }

    private func weightCount(over input: Shape) -> Int {
        convolution.kernelSize.height * convolution.kernelSize.width * (input.channels / convolution.groups)
            * convolution.outputChannels
    }

    func prepare(_ context: LayerContext) {
        let count = weightCount(over: context.input.shape)
        let bias = context.prepared.assumingMemoryBound(to: Float.self)
        let weights = bias + biasCount
        let factor = context.scratch.assumingMemoryBound(to: Float.self)
        context.worker.alone { fold(context, into: bias, factor) }

        var folded = UnsafePointer(context.parameters[0])
        if normalization != nil {
            let result = isTransformed(context.algorithm) ? factor + biasCount : weights
            forEachRange(count / convolution.outputChannels, context.worker) { rows in
                let start = rows.lowerBound * convolution.outputChannels
                imprint_scale_channels(
                    context.parameters[0] + start, factor, result + start, rows.count, convolution.outputChannels)
            }
            folded = UnsafePointer(result)
        }
        if context.algorithm == .winograd {
            Winograd(convolution, over: context.input.shape).transform(folded, into: weights, worker: context.worker)
        } else if isTransformed(context.algorithm) {
            ConvolutionProduct.copy(
                convolution, folded, over: context.input.shape, into: weights, worker: context.worker)
        }
    }

    /// Whether the weights are kept in another order than the layer's.
    private func isTransformed(_ algorithm: Algorithm) -> Bool {
        switch algorithm {
        case .winograd: true
        case .direct: false
        case .im2col, .matrixProduct: ConvolutionProduct.fitsPanels(convolution)
        }
    }

    /// b′, and the factor of each channel of W′.
    private func fold(
        _ context: LayerContext, into bias: UnsafeMutablePointer<Float>, _ factor: UnsafeMutablePointer<Float>
    ) {
        let (channels, parameters) = (convolution.outputChannels, context.parameters)
        for channel in 0..<channels { bias[channel] = convolution.hasBias ? parameters[1][channel] : 0 }
        guard let normalization else { return }
        let next = convolution.hasBias ? 2 : 1
        let (scale, shift) = (parameters[next], parameters[next + 1])
        let (mean, variance) = (parameters[next + 2], parameters[next + 3])
        for channel in 0..<channels {
            factor[channel] = scale[channel] / (variance[channel] + normalization.epsilon).squareRoot()
            bias[channel] = (bias[channel] - mean[channel]) * factor[channel] + shift[channel]
        }
    }

    func forward(_ context: LayerContext, batch: Int) {
        let bias = UnsafePointer(context.prepared.assumingMemoryBound(to: Float.self))
        let weights: ConvolutionWeights =
            if isTransformed(context.algorithm) {
                .transformed(bias + biasCount)
            } else {
                .plain(normalization == nil ? UnsafePointer(context.parameters[0]) : bias + biasCount)
            }
        convolution.forward(
            context, batch: batch, weights,
            Epilogue(
                bias: convolution.hasBias || normalization != nil ? bias : nil,
                shortcut: hasShortcut ? UnsafePointer(context.inputs[1].values) : nil,
                floor: ceiling == nil ? -.infinity : 0, ceiling: ceiling ?? .infinity, curve: curve))
    }

    func backward(_ context: LayerContext, batch: Int) {
        preconditionFailure("a convolution whose parameters stay as they are has no gradients")
    }
}
