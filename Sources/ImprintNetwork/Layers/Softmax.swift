internal import CImprintKernels

/// Softmax over the channels of each pixel.
///
/// yᵢ = e^(xᵢ − max x) / Σⱼ e^(xⱼ − max x)
///
/// Input and output: [batch, height, width, channels].
///
/// As the last layer of a classifier, it is fused with the loss in training; see `SoftmaxCrossEntropy`.
public struct Softmax: Layer {
    public static let kind = "softmax"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try onlyInput("Softmax", inputs)
    }
    public var backwardReads: BackwardReads { .output }

    public func forward(_ context: LayerContext, batch: Int) {
        let channels = context.output.shape.channels
        context.worker.forEachChunk(batch * context.output.shape.pixels) { row in
            imprint_softmax_forward(
                context.input.values + row * channels, context.output.values + row * channels, channels)
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        let channels = context.output.shape.channels
        context.worker.forEachChunk(batch * context.output.shape.pixels) { row in
            let start = row * channels
            imprint_softmax_backward(
                context.output.values + start, context.outputGradient + start, dx + start, channels)
        }
    }
}
