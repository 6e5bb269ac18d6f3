/// Makes a vector of an image: [H, W, C] becomes [1, 1, H · W · C], in the order of memory (channels fastest).
public struct Flatten: Layer {
    public static let kind = "flatten"
    /// Makes the layer.
    public init() {}

    public func outputShape(for inputs: [Shape]) throws(NetworkError) -> Shape {
        Shape(channels: try onlyInput("Flatten", inputs).count)
    }

    public var backwardReads: BackwardReads { [] }
    public var inPlace: InPlace { .view }

    public func forward(_ context: LayerContext, batch: Int) {
        guard context.output.values != context.input.values else { return }
        context.output.values.update(from: context.input.values, count: batch * context.output.shape.count)
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient, dx != context.outputGradient else { return }
        dx.update(from: context.outputGradient, count: batch * context.output.shape.count)
    }
}
