internal import ImprintCore

/// Transposed convolution, y[n, i·stride + p·dilation − top, j·stride + q·dilation − left, o] += x[n, i, j, c] · W[p, q, o, c], plus
/// b[o].
///
/// x [N, H, W, inputs], W [kernel height, kernel width, outputs / groups, inputs], b [outputs],
/// y [N, (H − 1) · stride + e − top − bottom + outputPadding, …, outputs] with e = (kernel − 1) · dilation + 1; with `same` padding
/// y [N, H · stride, W · stride, outputs]. W starts normal with variance 2 / (the numbers that each result sums), b at 0.
///
/// It is the adjoint of a `Convolution` from y's shape to x's with the same W: forward is that layer's gradient of the input, and
/// backward dx = dy convolved with W, dW the convolution's gradient of its weights for the input dy and the gradient x, db = Σ dy
/// (Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016, section 4; ONNX, ConvTranspose).
public struct TransposedConvolution: Layer, LayerKernel {
    public static let kind = "transposedConvolution"
    /// The number of channels of the result.
    public let outputChannels: Int
    /// The kernel's height and width.
    public let kernelSize: Size2D
    /// The distance in the result between neighbouring pixels of the input.
    public let stride: Size2D
    /// The border that is cut off the result.
    public let padding: Padding
    /// Rows and columns to add at the bottom and at the right of the result, 0 up to stride − 1; 0x0 with `same` padding.
    public let outputPadding: Size2D
    /// The distance between neighbouring taps of the kernel.
    public let dilation: Size2D
    /// Into how many independent parts inputs and outputs are divided.
    public let groups: Int
    /// Whether b is there.
    public let hasBias: Bool

    /// Makes the layer.
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

    /// The convolution from y's shape to x's.
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
            throw .inputShape(layer: name, found: inputs, reason: "the padding cuts off the whole result")
        }
        return output
    }

    /// The shape of y, where the properties are in their ranges.
    private func output(over input: TensorShape) -> TensorShape {
        // What all pixels of the input reach, before anything is cut off.
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
        let adjoint = adjoint(over: request.inputs[0]).memory(
            MemoryRequest(
                inputs: [request.output], output: request.inputs[0], batch: request.batch, training: true,
                delaysPacking: false, workers: request.workers, algorithm: request.algorithm))
        return LayerMemory(
            scratch: max(adjoint.scratch, ChannelReduction.scratchByteCount(channels: outputChannels)))
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
            context.sumOverRows(dy, rows: batch * y.shape.pixels, channels: outputChannels, into: dBias)
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
                output: Activation(values: dx, gradient: nil, shape: x.shape), weightGradient: nil)
            adjoint.forward(convolution, batch: batch)
        }
    }
}

extension LayerContext {
    /// The same context for the adjoint convolution, which has no bias.
    fileprivate func adjoint(
        input: Activation, output: Activation, weightGradient: UnsafeMutablePointer<Float>?
    ) -> LayerContext {
        LayerContext(
            inputs: [input], output: output, inputMoments: nil, outputMoments: nil, parameters: [parameters[0]],
            parameterGradients: [weightGradient], saved: saved, scratch: scratch,
            transformedWeights: transformedWeights,
            packedWeights: packedWeights, algorithm: algorithm, worker: worker, training: training,
            nodeIndex: nodeIndex, frozen: frozen,
            randomness: randomness, packingState: packingState)
    }
}
