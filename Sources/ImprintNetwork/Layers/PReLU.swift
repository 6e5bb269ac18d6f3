internal import CImprintKernels

/// Rectified linear unit with a trainable slope (PReLU).
///
/// y = x if x > 0, otherwise slope · x, for each element.
///
/// Input and output: [batch, height, width, channels].
///
/// Parameter: `slope`, [channels], or [1] if `isShared`; initialized to 0.25, without weight decay.
///
/// Backward: dx = dy if x > 0, otherwise slope · dy; dslope = Σ x · dy over the elements with x ≤ 0.
///
/// Source: He et al., "Delving deep into rectifiers", 2015.
public struct PReLU: Layer, LayerKernel {
    public static let kind = "prelu"
    /// Whether all channels share one slope.
    public let isShared: Bool

    /// Creates the layer.
    public init(isShared: Bool = false) { self.isShared = isShared }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try onlyInput("PReLU", inputs)
    }

    public func parameters(for inputs: [TensorShape]) -> [ParameterDescription] {
        [
            ParameterDescription(
                name: "slope", shape: [isShared ? 1 : inputs[0].channels], role: .bias, initializer: .constant(0.25))
        ]
    }

    package var gradientMayReplaceInput: Bool { true }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        let sums = ChannelReduction.scratchByteCount(channels: request.output.channels)
        return LayerMemory(scratch: request.training ? sums : 0)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        let (x, y, slope) = (context.input.values, context.output.values, context.parameters[0])
        let channels = context.output.shape.channels
        if isShared {
            context.parallelFor(batch * context.output.shape.count) { range in
                imprint_leaky_relu_forward(x + range.lowerBound, y + range.lowerBound, range.count, slope[0])
            }
        } else {
            forEachRows(batch * context.output.shape.pixels, channels, context.worker) { rows in
                let start = rows.lowerBound * channels
                imprint_prelu_forward(x + start, slope, y + start, rows.count, channels)
            }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        let (x, dy, slope) = (context.input.values, context.outputGradient, context.parameters[0])
        let channels = context.output.shape.channels
        // First, because dx may overwrite x.
        if let dSlope = context.parameterGradients[0] {
            let reduction = ChannelReduction(channels: channels, rowsPerImage: context.output.shape.pixels)
            let sums = reduction.runByChannels(context) { rows, part, sums in
                let start = rows.lowerBound * channels + part.lowerBound
                imprint_prelu_slope_sums(x + start, dy + start, channels, sums, rows.count, part.count)
            }
            context.worker.onFirstThread {
                if isShared {
                    dSlope[0] = Float((0..<channels).reduce(0) { $0 + sums[$1] })
                } else {
                    for channel in 0..<channels { dSlope[channel] = Float(sums[channel]) }
                }
            }
        }
        guard let dx = context.input.gradient else { return }
        if isShared {
            context.parallelFor(batch * context.output.shape.count) { range in
                let start = range.lowerBound
                imprint_leaky_relu_backward(x + start, dy + start, dx + start, range.count, slope[0])
            }
        } else {
            forEachRows(batch * context.output.shape.pixels, channels, context.worker) { rows in
                let start = rows.lowerBound * channels
                imprint_prelu_backward(x + start, dy + start, slope, dx + start, rows.count, channels)
            }
        }
    }
}
