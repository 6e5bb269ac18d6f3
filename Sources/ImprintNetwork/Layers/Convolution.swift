internal import CImprintKernels
internal import ImprintCore

/// 2D convolution.
///
/// y[n, i, j, o] = b[o] + Σ x[n, i·stride + p·dilation − top, j·stride + q·dilation − left, c] · W[p, q, c, o],
/// summed over the kernel positions p, q and the input channels c. Output channels of group g read only input channels of group g;
/// if groups, input channels and output channels are equal, the convolution is depthwise.
///
/// Input: [batch, height, width, input channels]. Output: [batch, output height, output width, output channels] with
/// output height = ⌊(height + padding − e) / stride⌋ + 1 and e = (kernel height − 1) · dilation + 1; the width likewise.
///
/// Parameters:
/// - `weight` W: [kernel height, kernel width, input channels / groups, output channels], He normal initialization.
/// - `bias` b: [output channels], initialized to 0; without weight decay.
///
/// The shapes select the algorithm: `Winograd`, `DepthwiseConvolution` or `ConvolutionProduct`.
public struct Convolution: Layer, LayerKernel {
    public static let kind = "convolution"
    /// The number of output channels.
    public let outputChannels: Int
    /// The kernel's height and width.
    public let kernelSize: Size2D
    /// The distance between neighbouring windows.
    public let stride: Size2D
    /// The zero padding around the image.
    public let padding: Padding
    /// The distance between neighbouring kernel elements.
    public let dilation: Size2D
    /// The number of independent groups of input and output channels.
    public let groups: Int
    /// Whether the layer has a bias; a following batch normalization makes it redundant.
    public let hasBias: Bool

    /// Creates the layer.
    public init(
        outputChannels: Int, kernelSize: Size2D, stride: Size2D = 1, padding: Padding = .valid, dilation: Size2D = 1,
        groups: Int = 1, hasBias: Bool = true
    ) {
        self.outputChannels = outputChannels
        self.kernelSize = kernelSize
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.groups = groups
        self.hasBias = hasBias
    }

    var window: Window { Window(kernel: kernelSize, stride: stride, dilation: dilation, padding: padding) }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let input = try onlyInput("Convolution", inputs)
        try check("Convolution", "outputChannels", outputChannels, outputChannels >= 1, "at least 1")
        let divides = groups >= 1 && input.channels % groups == 0 && outputChannels % groups == 0
        try check(
            "Convolution", "groups", groups, divides,
            "a divisor of the \(input.channels) input and \(outputChannels) output channels")
        return try window.outputShape("Convolution", over: input, channels: outputChannels)
    }

    public func parameters(for inputs: [TensorShape]) -> [ParameterDescription] {
        let inputChannels = inputs[0].channels / groups
        let weight = ParameterDescription(
            name: "weight", shape: [kernelSize.height, kernelSize.width, inputChannels, outputChannels],
            role: .weight, initializer: .heNormal(fanIn: kernelSize.height * kernelSize.width * inputChannels))
        let bias = ParameterDescription(
            name: "bias", shape: [outputChannels], role: .bias, initializer: .constant(0))
        return hasBias ? [weight, bias] : [weight]
    }

    public func multiplications(for inputs: [TensorShape]) -> Int {
        let window = window.kernelWindow(over: inputs[0])
        let taps = kernelSize.height * kernelSize.width * (inputs[0].channels / groups)
        return Int(window.output_height) * Int(window.output_width) * outputChannels * taps
    }

    package func algorithm(for inputs: [TensorShape], predicting batch: Int?) -> Algorithm {
        if groups > 1 && groups == inputs[0].channels && groups == outputChannels { return .direct }
        if Winograd.isWorthwhile(self, over: inputs[0], predicting: batch) { return .winograd }
        let isPointwise =
            kernelSize == 1 && stride == 1 && groups == 1
            && (padding == .valid || padding == .same || padding == .all(0))
        return isPointwise ? .matrixProduct : .im2col
    }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        let (input, workers) = (request.inputs[0], request.workers.count)
        let count =
            switch request.algorithm {
            case .direct: request.training ? DepthwiseConvolution.scratchCount(self, workers: workers) : 0
            case .winograd:
                Winograd(self, over: input).scratchCount(
                    batch: request.batch, workers: workers, training: request.training)
            case .im2col, .matrixProduct:
                ConvolutionProduct.scratchCount(
                    self, over: input, algorithm: request.algorithm, batch: request.batch, workers: workers,
                    training: request.training, usesBFloat16: request.training && request.usesBFloat16)
            }
        return LayerMemory(
            scratch: max(
                count * MemoryLayout<Float>.stride,
                request.training ? ChannelReduction.scratchByteCount(channels: outputChannels) : 0))
    }

    /// The precision of a training step; without gradients, `PrepackedConvolution` replaces this layer.
    package func precision(_ request: MemoryRequest) -> Precision {
        let isRounded =
            request.usesBFloat16 && request.algorithm.isMatrixProduct
            && ConvolutionProduct.fitsBFloat16(self, rows: request.batch * request.output.pixels)
        return isRounded ? .bfloat16 : .float32
    }

    /// The scratch memory, in bytes, of a backward pass that only computes the gradient of the input.
    func inputGradientScratch(_ request: MemoryRequest) -> Int {
        let (input, workers) = (request.inputs[0], request.workers.count)
        let count =
            switch request.algorithm {
            case .direct: 0
            case .winograd:
                Winograd(self, over: input).inputGradientScratchCount(batch: request.batch, workers: workers)
            case .im2col, .matrixProduct:
                ConvolutionProduct.inputGradientScratchCount(
                    self, over: input, algorithm: request.algorithm, rows: request.batch * request.output.pixels,
                    workers: workers)
            }
        return count * MemoryLayout<Float>.stride
    }

    package func momentBlocks(_ request: MemoryRequest) -> Int? {
        let (input, batch) = (request.inputs[0], request.batch)
        return switch request.algorithm {
        case .direct: batch
        case .winograd: Winograd(self, over: input).momentBlocks(batch: batch)
        case .im2col, .matrixProduct:
            ConvolutionProduct.momentBlocks(self, over: input, batch: batch, pixels: request.output.pixels)
        }
    }

    /// The index of this process's first block of moments, and the number of blocks of all processes.
    private func momentBlocks(_ context: LayerContext) -> (first: Int, total: Int) {
        let part = context.part
        let blocks: RowBlocks
        switch context.algorithm {
        case .direct: return (part.images.lowerBound, part.total)
        case .winograd: blocks = Winograd(self, over: context.input.shape).momentBlocks(part)
        case .im2col, .matrixProduct: blocks = ConvolutionProduct(self, context).rowBlocks
        }
        return (blocks.first, blocks.total)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        forward(
            context, batch: batch, .plain(context.parameters[0]),
            Epilogue(bias: hasBias ? UnsafePointer(context.parameters[1]) : nil))
    }

    /// Computes y = epilogue(x ∗ weights), applying the epilogue to each block of output pixels while it is in cache.
    func forward(_ context: LayerContext, batch: Int, _ weights: ConvolutionWeights, _ epilogue: Epilogue) {
        let moments = context.outputMoments
        let (clamp, epilogue) = context.algorithm == .winograd ? (.none, epilogue) : epilogue.split
        let blocks = moments.map { _ in momentBlocks(context) } ?? (first: 0, total: 0)
        func finish(_ pixels: Range<Int>, _ block: Int) {
            epilogue.apply(to: context.output.values, pixels, channels: outputChannels)
            moments?.record(
                context.output.values + pixels.lowerBound * outputChannels, rows: pixels.count,
                block: blocks.first + block)
        }
        if let moments, context.worker.index == 0 { moments.begin(blocks: blocks.total) }
        switch context.algorithm {
        case .direct: DepthwiseConvolution(self, context).forward(weights, batch: batch, clamp, finish)
        case .winograd: Winograd(self, over: context.input.shape).forward(context, weights, batch: batch, finish)
        case .im2col, .matrixProduct: ConvolutionProduct(self, context).forward(weights, batch: batch, clamp, finish)
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        if hasBias, let dBias = context.parameterGradients[1] {
            context.sumOverRows(
                context.outputGradient, rowsPerImage: context.output.shape.pixels, channels: outputChannels, into: dBias
            )
        }
        let (dWeight, dx) = (context.parameterGradients[0], context.input.gradient)
        switch context.algorithm {
        case .direct:
            let depthwise = DepthwiseConvolution(self, context)
            if let dWeight { depthwise.backwardWeight(dWeight) }
            if let dx { depthwise.backwardInput(dx, batch: batch) }
        case .winograd:
            let winograd = Winograd(self, over: context.input.shape)
            if let dWeight { winograd.backwardWeight(context, dWeight) }
            if let dx { winograd.backwardInput(context, dx, batch: batch) }
        case .im2col, .matrixProduct:
            let product = ConvolutionProduct(self, context)
            if let dWeight { product.backwardWeight(dWeight, batch: batch) }
            if let dx { product.backwardInput(dx) }
        }
    }
}

/// The weights of a forward pass, in one of several layouts.
enum ConvolutionWeights {
    /// The layer's parameter, [kernel height, kernel width, input channels / groups, output channels].
    case plain(UnsafePointer<Float>)
    /// The layer's parameter and a factor per output channel that scales it.
    case scaled(UnsafePointer<Float>, by: UnsafePointer<Float>?)
    /// Weights packed by `Winograd.transform` or `ConvolutionProduct.copy`.
    case packedWeights(UnsafePointer<Float>)
    /// Weights packed by `BFloat16Product.pack`.
    case packedBFloat16(UnsafePointer<UInt16>)
}

/// The operators fused into a convolution, applied to each block of the output while it is in cache.
///
/// y ← curve(min(max(y + bias + shortcut, floor), ceiling))
struct Epilogue {
    /// An activation that is not a clamp.
    enum Curve {
        case swish, hardSwish

        func apply(to values: UnsafeMutablePointer<Float>, count: Int) {
            switch self {
            case .swish: imprint_swish_forward(values, values, count)
            case .hardSwish: imprint_hard_swish_forward(values, values, count)
            }
        }
    }

    /// The part that kernels apply before they store a value: y ← min(max(y + bias, floor), ceiling).
    struct Clamp {
        var bias: UnsafePointer<Float>?
        var floor = -Float.infinity
        var ceiling = Float.infinity

        static var none: Clamp { Clamp() }
        var isNone: Bool { bias == nil && floor == -.infinity && ceiling == .infinity }
    }

    var bias: UnsafePointer<Float>?
    /// A tensor of the output's shape that is added to the output.
    var shortcut: UnsafePointer<Float>?
    var floor = -Float.infinity
    var ceiling = Float.infinity
    var curve: Curve?

    /// Splits the epilogue into the part that kernels apply before they store a value, and the rest.
    var split: (Clamp, Epilogue) {
        shortcut == nil
            ? (Clamp(bias: bias, floor: floor, ceiling: ceiling), Epilogue(curve: curve)) : (.none, self)
    }

    func apply(to y: UnsafeMutablePointer<Float>, _ pixels: Range<Int>, channels: Int) {
        let start = pixels.lowerBound * channels
        if bias != nil || shortcut != nil || floor > -.infinity || ceiling < .infinity {
            imprint_epilogue(y + start, bias, shortcut.map { $0 + start }, floor, ceiling, pixels.count, channels)
        }
        curve?.apply(to: y + start, count: pixels.count * channels)
    }
}
