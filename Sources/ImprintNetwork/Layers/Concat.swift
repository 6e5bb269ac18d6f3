/// Concatenation of inputs along the channel axis.
///
/// y[…, offsetᵢ + c] = xᵢ[…, c], where offsetᵢ is the number of channels of the inputs before xᵢ.
///
/// Inputs: [batch, height, width, channelsᵢ], with equal heights and widths. Output: [batch, height, width, Σ channelsᵢ].
public struct Concat: Layer {
    public static let kind = "concat"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let inputs = try severalInputs("Concat", inputs)
        guard inputs.allSatisfy({ $0.height == inputs[0].height && $0.width == inputs[0].width }) else {
            throw .inputShape(layer: "Concat", found: inputs, reason: "heights and widths must be the same")
        }
        return TensorShape(
            height: inputs[0].height, width: inputs[0].width, channels: inputs.reduce(0) { $0 + $1.channels })
    }

    public var backwardReads: BackwardReads { [] }

    public func forward(_ context: LayerContext, batch: Int) {
        let channels = context.output.shape.channels
        context.worker.forEachChunk(batch) { image in
            forEachPart(of: context, image: image) { input, pixel, firstChannel, width in
                (context.output.values + pixel * channels + firstChannel).update(
                    from: input.values + pixel * width, count: width)
            }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        let channels = context.output.shape.channels
        context.worker.forEachChunk(batch) { image in
            forEachPart(of: context, image: image) { input, pixel, firstChannel, width in
                guard let dx = input.gradient else { return }
                (dx + pixel * width).update(
                    from: context.outputGradient + pixel * channels + firstChannel, count: width)
            }
        }
    }

    /// Calls `body(input, pixel, first channel in the output, channels of the input)` for every pixel of every input.
    private func forEachPart(
        of context: LayerContext, image: Int, _ body: (Activation, Int, Int, Int) -> Void
    ) {
        let pixels = context.output.shape.pixels
        var firstChannel = 0
        for input in context.inputs {
            let width = input.shape.channels
            for pixel in (image * pixels)..<((image + 1) * pixels) {
                body(input, pixel, firstChannel, width)
            }
            firstChannel += width
        }
    }
}
