/// Reshapes an image into a vector.
///
/// y[n, (i · width + j) · channels + c] = x[n, i, j, c]
///
/// Input: [batch, height, width, channels]. Output: [batch, 1, 1, height · width · channels].
public struct Flatten: Layer {
    public static let kind = "flatten"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        TensorShape(channels: try onlyInput("Flatten", inputs).count)
    }

    public var backwardReads: BackwardReads { [] }
    public var inPlace: InPlace { .view }

    public func forward(_ context: LayerContext, batch: Int) {
        context.copy(context.input.values, to: context.output.values, count: batch * context.output.shape.count)
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        context.copy(context.outputGradient, to: dx, count: batch * context.output.shape.count)
    }
}
