internal import CImprintKernels

/// Layer normalization over the channels of each pixel.
///
/// y = scale · (x − mean) / √(variance + ε) + shift, with the mean and (biased) variance of the channels of one pixel, in training
/// and in prediction.
///
/// Input and output: [batch, height, width, channels].
///
/// Parameters, without weight decay:
/// - `scale`: [channels], initialized to 1.
/// - `shift`: [channels], initialized to 0.
///
/// Backward with x̂ = (x − mean) / √(variance + ε) and g = scale · dy: dshift = Σ dy and dscale = Σ dy · x̂ over batch, height and
/// width; dx = (g − mean(g) − x̂ · mean(g · x̂)) / √(variance + ε), with means over the channels.
///
/// Source: Ba et al., "Layer normalization", 2016; ONNX, LayerNormalization.
public struct LayerNormalization: Layer, LayerKernel {
    public static let kind = "layerNormalization"
    /// The term added to the variance, ε > 0.
    public let epsilon: Float

    /// Creates the layer.
    public init(epsilon: Float = 1e-5) { self.epsilon = epsilon }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try check("LayerNormalization", "epsilon", epsilon, epsilon > 0 && epsilon.isFinite, "a positive number")
        return try onlyInput("LayerNormalization", inputs)
    }

    public func parameters(for inputs: [TensorShape]) -> [ParameterDescription] {
        [("scale", 1), ("shift", 0)].map { name, value in
            ParameterDescription(
                name: name, shape: [inputs[0].channels], role: .bias, initializer: .constant(Float(value)))
        }
    }

    package var gradientMayReplaceInput: Bool { true }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        let sums = ChannelReduction.scratchByteCount(channels: 2 * request.output.channels)
        return LayerMemory(scratch: request.training ? sums : 0)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        let channels = context.output.shape.channels
        let (x, y, parameters) = (context.input.values, context.output.values, context.parameters)
        forEachRows(batch * context.output.shape.pixels, channels, context.worker) { rows in
            let start = rows.lowerBound * channels
            imprint_layer_norm_forward(
                x + start, parameters[0], parameters[1], y + start, rows.count, channels, epsilon)
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        let channels = context.output.shape.channels
        let rows = batch * context.output.shape.pixels
        let (x, dy, scale) = (context.input.values, context.outputGradient, context.parameters[0])
        let (dScale, dShift) = (context.parameterGradients[0], context.parameterGradients[1])
        if dScale != nil || dShift != nil {
            let reduction = ChannelReduction(channels: 2 * channels, rowsPerImage: context.output.shape.pixels)
            let sums = reduction.run(context) { rows, sums in
                let start = rows.lowerBound * channels
                imprint_layer_norm_sums(x + start, dy + start, sums, rows.count, channels, epsilon)
            }
            context.worker.onFirstThread {
                for channel in 0..<channels {
                    dScale?[channel] = Float(sums[channel])
                    dShift?[channel] = Float(sums[channels + channel])
                }
            }
        }
        guard let dx = context.input.gradient else { return }
        forEachRows(rows, channels, context.worker) { rows in
            let start = rows.lowerBound * channels
            imprint_layer_norm_backward(
                x + start, dy + start, scale, dx + start, rows.count, channels, epsilon)
        }
    }
}
