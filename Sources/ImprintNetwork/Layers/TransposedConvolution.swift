internal import ImprintCore

/// 2D transposed convolution.
///
/// y[n, i·stride + p·dilation − top, j·stride + q·dilation − left, o] += x[n, i, j, c] · W[p, q, o, c] for all i, j, p, q and c, starting
/// from b[o].
///
/// Input: [batch, height, width, input channels]. Output: [batch, output height, output width, output channels] with
/// output height = (height − 1) · stride + e − top − bottom + outputPadding and e = (kernel height − 1) · dilation + 1, or
/// height · stride with `same` padding; the width likewise.
///
/// Parameters:
/// - `weight` W: [kernel height, kernel width, output channels / groups, input channels], normal initialization with variance
///   2 / (the mean number of products per output element).
/// - `bias` b: [output channels], initialized to 0; without weight decay.
///
/// The layer is the adjoint of a `Convolution` with the same W from y's shape to x's. Forward is that convolution's input gradient.
/// Backward, dx is the convolution of dy with W, dW is the convolution's weight gradient for input dy and output gradient x, and db = Σ dy.
///
/// Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016, section 4; ONNX, ConvTranspose.
public struct TransposedConvolution: Layer, LayerKernel {
    public static let kind = "transposedConvolution"
    /// The number of output channels.
    public let outputChannels: Int
    /// The kernel's height and width.
    public let kernelSize: Size2D
    /// The distance in the output between neighbouring pixels of the input.
    public let stride: Size2D
    /// The border that is cropped from the output.
    public let padding: Padding
    /// The rows and columns added at the bottom and right of the output, 0…stride − 1; 0x0 with `same` padding.
    public let outputPadding: Size2D
    /// The distance between neighbouring kernel elements.
    public let dilation: Size2D
    /// The number of independent groups of input and output channels.
    public let groups: Int
    /// Whether the layer has a bias.
    public let hasBias: Bool

    /// Creates the layer.
    public init(
        outputChannels: Int, kernelSize: Size2D, stride: Size2D = 1, padding: Padding = .valid,
        outputPadding: Size2D = 0,
        dilation: Size2D = 1, groups: Int = 1, hasBias: Bool = true
    ) {
        self.outputChannels = outputChannels
        self.kernelSize = kernelSize
        self.stride = stride
        self.padding = padding
        self.outputPadding = outputPadding
        self.dilation = dilation
        self.groups = groups
        self.hasBias = hasBias
    }

    /// The convolution from the shape of y to the shape of x.
    private func adjoint(over input: TensorShape) -> Convolution {
        Convolution(
            outputChannels: input.channels, kernelSize: kernelSize, stride: stride, padding: padding,
            dilation: dilation, groups: groups, hasBias: false)
    }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let name = "TransposedConvolution"
        let input = try onlyInput(name, inputs)
        try check(name, "outputChannels", outputChannels, outputChannels >= 1, "at least 1")
        let divides = groups >= 1 && input.channels % groups == 0 && outputChannels % groups == 0
        try check(
            name, "groups", groups, divides,
            "a divisor of the \(input.channels) input and \(outputChannels) output channels")
        try adjoint(over: input).window.checkProperties(name)
        let limit = padding == .same ? Size2D(1) : stride
        let isInRange =
            (0..<limit.height).contains(outputPadding.height) && (0..<limit.width).contains(outputPadding.width)
        try check(
            name, "outputPadding", outputPadding, isInRange,
            padding == .same ? "0x0 with same padding" : "at least 0x0 and less than the stride, \(stride)")
        let output = output(over: input)
        guard output.height >= 1, output.width >= 1 else {
            throw .inputShape(layer: name, found: inputs, reason: "the padding crops the whole output")
        }
        return output
    }

    /// The shape of y; the properties must be in range.
    private func output(over input: TensorShape) -> TensorShape {
        // The size before cropping.
        let height = (input.height - 1) * stride.height + (kernelSize.height - 1) * dilation.height + 1
        let width = (input.width - 1) * stride.width + (kernelSize.width - 1) * dilation.width + 1
        return switch padding {
        case .same:
            TensorShape(
                height: input.height * stride.height, width: input.width * stride.width, channels: outputChannels)
        case .valid:
            TensorShape(
                height: height + outputPadding.height, width: width + outputPadding.width, channels: outputChannels)
        case .explicit(let top, let left, let bottom, let right):
            TensorShape(
                height: height + outputPadding.height - top - bottom,
                width: width + outputPadding.width - left - right, channels: outputChannels)
        }
    }

    public func parameters(for inputs: [TensorShape]) -> [ParameterDescription] {
        let (taps, steps) = (kernelSize.height * kernelSize.width, stride.height * stride.width)
        let weight = ParameterDescription(
            name: "weight", shape: [kernelSize.height, kernelSize.width, outputChannels / groups, inputs[0].channels],
            role: .weight, initializer: .heNormal(fanIn: max(1, taps * inputs[0].channels / groups / steps)))
        let bias = ParameterDescription(
            name: "bias", shape: [outputChannels], role: .bias, initializer: .constant(0))
        return hasBias ? [weight, bias] : [weight]
    }

    public func multiplications(for inputs: [TensorShape]) -> Int {
        inputs[0].count * kernelSize.height * kernelSize.width * (outputChannels / groups)
    }

    package func algorithm(for inputs: [TensorShape], predicting batch: Int?) -> Algorithm {
        adjoint(over: inputs[0]).algorithm(for: [output(over: inputs[0])], predicting: nil)
    }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        let adjoint = adjoint(over: request.inputs[0])
        let reversed = MemoryRequest(
            inputs: [request.output], output: request.inputs[0], batch: request.batch, training: true,
            delaysPacking: false, workers: request.workers, algorithm: request.algorithm)
        guard request.training else { return LayerMemory(scratch: adjoint.inputGradientScratch(reversed)) }
        return LayerMemory(
            scratch: max(
                adjoint.memory(reversed).scratch, ChannelReduction.scratchByteCount(channels: outputChannels)))
    }

    public func forward(_ context: LayerContext, batch: Int) {
        let (x, y) = (context.input, context.output)
        let adjoint = context.adjoint(
            input: Activation(values: y.values, gradient: y.values, shape: y.shape),
            output: Activation(values: x.values, gradient: x.values, shape: x.shape), weightGradient: nil)
        self.adjoint(over: x.shape).backward(adjoint, batch: batch)
        guard hasBias else { return }
        let bias = Epilogue(bias: UnsafePointer(context.parameters[1]))
        forEachRows(batch * y.shape.pixels, outputChannels, context.worker) { rows in
            bias.apply(to: y.values, rows, channels: outputChannels)
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        let (x, y, dy) = (context.input, context.output, context.outputGradient)
        if hasBias, let dBias = context.parameterGradients[1] {
            context.sumOverRows(dy, rowsPerImage: y.shape.pixels, channels: outputChannels, into: dBias)
        }
        let adjoint = adjoint(over: x.shape)
        if let dWeight = context.parameterGradients[0] {
            let gradients = context.adjoint(
                input: Activation(values: dy, gradient: nil, shape: y.shape),
                output: Activation(values: x.values, gradient: x.values, shape: x.shape), weightGradient: dWeight)
            adjoint.backward(gradients, batch: batch)
        }
        if let dx = x.gradient {
            let convolution = context.adjoint(
                input: Activation(values: dy, gradient: nil, shape: y.shape),
                output: Activation(values: dx, gradient: dx, shape: x.shape), weightGradient: nil)
            adjoint.forward(convolution, batch: batch)
        }
    }
}

extension LayerContext {
    /// The context for the adjoint convolution, which has no bias.
    fileprivate func adjoint(
        input: Activation, output: Activation, weightGradient: UnsafeMutablePointer<Float>?
    ) -> LayerContext {
        LayerContext(
            inputs: [input], output: output, inputMoments: nil, outputMoments: nil, parameters: [parameters[0]],
            parameterGradients: [weightGradient], saved: saved, scratch: scratch,
            transformedWeights: transformedWeights,
            packedWeights: packedWeights, algorithm: algorithm, worker: worker, training: training,
            nodeIndex: nodeIndex, frozen: frozen, usesBFloat16: false,
            randomness: randomness, packingState: packingState, currentBatch: currentBatch)
    }
}
