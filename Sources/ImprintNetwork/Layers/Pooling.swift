internal import CImprintKernels
internal import ImprintCore

/// 2D max pooling.
///
/// y[n, i, j, c] = max x[n, i·stride + p − top, j·stride + q − left, c] over the kernel positions p and q inside the image.
///
/// Input: [batch, height, width, channels]. Output: [batch, output height, output width, channels] with
/// output height = ⌊(height + padding − kernel height) / stride⌋ + 1, or rounded up if `roundsUp`; the width likewise.
///
/// Backward: the gradient goes to the first position of the maximum, which training stores in one byte; a kernel therefore has at
/// most 256 elements.
public struct MaxPool: Layer {
    public static let kind = "maxPool"
    /// The window's height and width.
    public let kernelSize: Size2D
    /// The distance between neighbouring windows.
    public let stride: Size2D
    /// The padding around the image, smaller than the kernel.
    public let padding: Padding
    /// Whether the output size is rounded up (PyTorch's `ceil_mode`): a last partial window counts if it begins inside the image or its
    /// near padding.
    public let roundsUp: Bool

    /// Creates the layer; `stride` defaults to `kernelSize`.
    public init(kernelSize: Size2D, stride: Size2D? = nil, padding: Padding = .valid, roundsUp: Bool = false) {
        self.kernelSize = kernelSize
        self.stride = stride ?? kernelSize
        self.padding = padding
        self.roundsUp = roundsUp
    }

    private enum CodingKeys: String, CodingKey {
        case kernelSize, stride, padding, roundsUp
    }

    /// Decodes the layer; `roundsUp` is false if missing, as in older model files.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            kernelSize: try values.decode(Size2D.self, forKey: .kernelSize),
            stride: try values.decode(Size2D.self, forKey: .stride),
            padding: try values.decode(Padding.self, forKey: .padding),
            roundsUp: try values.decodeIfPresent(Bool.self, forKey: .roundsUp) ?? false)
    }

    var window: Window {
        Window(kernel: kernelSize, stride: stride, dilation: 1, padding: padding, roundsUp: roundsUp)
    }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let shape = try pooledShape("MaxPool", window, inputs)
        try check(
            "MaxPool", "kernelSize", kernelSize, kernelSize.height * kernelSize.width <= 256, "at most 256 elements")
        return shape
    }

    public var backwardReads: BackwardReads { [] }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        LayerMemory(saved: request.training ? request.batch * request.output.count : 0)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        let window = window.kernelWindow(over: context.input.shape)
        let choice = context.training ? context.saved.assumingMemoryBound(to: UInt8.self) : nil
        context.forEachImage(batch) { image in
            withUnsafePointer(to: window) {
                imprint_max_pool_forward(
                    $0, context.input.at(image), context.output.at(image),
                    choice.map { $0 + image * context.output.shape.count })
            }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        let window = window.kernelWindow(over: context.input.shape)
        let choice = context.saved.assumingMemoryBound(to: UInt8.self)
        context.forEachImage(batch) { image in
            withUnsafePointer(to: window) {
                imprint_max_pool_backward(
                    $0, context.outputGradient + image * context.output.shape.count,
                    choice + image * context.output.shape.count, dx + image * context.input.shape.count)
            }
        }
    }
}

/// 2D average pooling.
///
/// y[n, i, j, c] = Σ x[n, i·stride + p − top, j·stride + q − left, c] / count, summed over the kernel positions p and q inside the image;
/// `countsPadding` determines count.
///
/// Input: [batch, height, width, channels]. Output: [batch, output height, output width, channels] with
/// output height = ⌊(height + padding − kernel height) / stride⌋ + 1, or rounded up if `roundsUp`; the width likewise.
public struct AveragePool: Layer {
    public static let kind = "averagePool"
    /// The window's height and width.
    public let kernelSize: Size2D
    /// The distance between neighbouring windows.
    public let stride: Size2D
    /// The padding around the image, smaller than the kernel.
    public let padding: Padding
    /// Whether the mean includes the padding as zeros (PyTorch's default) or excludes it (TensorFlow's).
    ///
    /// The part of a partial window beyond the padding is always excluded.
    public let countsPadding: Bool
    /// Whether the output size is rounded up (PyTorch's `ceil_mode`): a last partial window counts if it begins inside the image or its
    /// near padding.
    public let roundsUp: Bool

    /// Creates the layer; `stride` defaults to `kernelSize`.
    public init(
        kernelSize: Size2D, stride: Size2D? = nil, padding: Padding = .valid, countsPadding: Bool = false,
        roundsUp: Bool = false
    ) {
        self.kernelSize = kernelSize
        self.stride = stride ?? kernelSize
        self.padding = padding
        self.countsPadding = countsPadding
        self.roundsUp = roundsUp
    }

    private enum CodingKeys: String, CodingKey {
        case kernelSize, stride, padding, countsPadding, roundsUp
    }

    /// Decodes the layer; `roundsUp` is false if missing, as in older model files.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            kernelSize: try values.decode(Size2D.self, forKey: .kernelSize),
            stride: try values.decode(Size2D.self, forKey: .stride),
            padding: try values.decode(Padding.self, forKey: .padding),
            countsPadding: try values.decode(Bool.self, forKey: .countsPadding),
            roundsUp: try values.decodeIfPresent(Bool.self, forKey: .roundsUp) ?? false)
    }

    private var window: Window {
        Window(kernel: kernelSize, stride: stride, dilation: 1, padding: padding, roundsUp: roundsUp)
    }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try pooledShape("AveragePool", window, inputs)
    }

    public var backwardReads: BackwardReads { [] }

    public func forward(_ context: LayerContext, batch: Int) {
        let window = window.kernelWindow(over: context.input.shape)
        context.forEachImage(batch) { image in
            withUnsafePointer(to: window) {
                imprint_average_pool_forward(
                    $0, context.input.at(image), context.output.at(image), countsPadding ? 1 : 0)
            }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        let window = window.kernelWindow(over: context.input.shape)
        context.forEachImage(batch) { image in
            withUnsafePointer(to: window) {
                imprint_average_pool_backward(
                    $0, context.outputGradient + image * context.output.shape.count,
                    dx + image * context.input.shape.count, countsPadding ? 1 : 0)
            }
        }
    }
}

/// Checks that every window contains at least one pixel of the image, and returns the output shape.
private func pooledShape(_ layer: String, _ window: Window, _ inputs: [TensorShape]) throws(NetworkError) -> TensorShape
{
    let input = try onlyInput(layer, inputs)
    let axes = try window.axes(layer, over: input)
    let isValid =
        max(axes.vertical.before, axes.vertical.after) < window.kernel.height
        && max(axes.horizontal.before, axes.horizontal.after) < window.kernel.width
    try check(layer, "padding", window.padding, isValid, "smaller than the kernel")
    return try window.outputShape(layer, over: input, channels: input.channels)
}

extension Activation {
    /// The values of one image.
    func at(_ image: Int) -> UnsafeMutablePointer<Float> { values + image * shape.count }
}

extension LayerContext {
    /// Runs `body` for every image, shared among workers if there is enough work.
    func forEachImage(_ batch: Int, _ body: (_ image: Int) -> Void) {
        let images = max(1, (1 << 15) / max(input.shape.count, output.shape.count))
        let chunks = (batch + images - 1) / images
        worker.forEachChunk(chunks) { chunk in
            for image in chunkRange(chunk, of: chunks, total: batch) { body(image) }
        }
    }
}
