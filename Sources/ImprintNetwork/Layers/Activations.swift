internal import CImprintKernels

/// Rectified linear unit (ReLU).
///
/// y = max(x, 0) for each element.
///
/// Input and output: [batch, height, width, channels].
public struct ReLU: Layer {
    public static let kind = "relu"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try onlyInput("ReLU", inputs)
    }
    public var backwardReads: BackwardReads { .output }
    public var inPlace: InPlace { .overwriting }

    public func forward(_ context: LayerContext, batch: Int) { context.clampForward(batch, ceiling: .infinity) }
    public func backward(_ context: LayerContext, batch: Int) { context.clampBackward(batch, ceiling: .infinity) }
}

/// Rectified linear unit with a ceiling of 6 (ReLU6).
///
/// y = min(max(x, 0), 6) for each element.
///
/// Input and output: [batch, height, width, channels].
///
/// Source: Howard et al., "MobileNets", 2017.
public struct ReLU6: Layer {
    public static let kind = "relu6"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try onlyInput("ReLU6", inputs)
    }
    public var backwardReads: BackwardReads { .output }
    public var inPlace: InPlace { .overwriting }

    public func forward(_ context: LayerContext, batch: Int) { context.clampForward(batch, ceiling: 6) }
    public func backward(_ context: LayerContext, batch: Int) { context.clampBackward(batch, ceiling: 6) }
}

/// Leaky rectified linear unit (leaky ReLU).
///
/// y = x if x > 0, otherwise `slope` · x, for each element.
///
/// Input and output: [batch, height, width, channels].
///
/// Source: Maas et al., "Rectifier nonlinearities improve neural network acoustic models", 2013.
public struct LeakyReLU: Layer {
    public static let kind = "leakyReLU"
    /// The slope for negative inputs, > 0.
    public let slope: Float

    /// Creates the layer.
    public init(slope: Float = 0.01) { self.slope = slope }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        // The backward pass reads the sign of x from y, so the slope must be positive.
        try check("LeakyReLU", "slope", slope, slope > 0 && slope.isFinite, "a positive number")
        return try onlyInput("LeakyReLU", inputs)
    }
    public var backwardReads: BackwardReads { .output }
    public var inPlace: InPlace { .overwriting }

    public func forward(_ context: LayerContext, batch: Int) {
        context.mapForward(batch) { imprint_leaky_relu_forward($0, $1, $2, slope) }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        context.mapBackward(batch, reading: context.output) { imprint_leaky_relu_backward($0, $1, $2, $3, slope) }
    }
}

/// Logistic sigmoid.
///
/// y = 1 / (1 + e⁻ˣ) for each element.
///
/// Input and output: [batch, height, width, channels].
public struct Sigmoid: Layer {
    public static let kind = "sigmoid"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try onlyInput("Sigmoid", inputs)
    }
    public var backwardReads: BackwardReads { .output }
    public var inPlace: InPlace { .overwriting }

    public func forward(_ context: LayerContext, batch: Int) {
        context.mapForward(batch, imprint_sigmoid_forward)
    }

    public func backward(_ context: LayerContext, batch: Int) {
        context.mapBackward(batch, reading: context.output, imprint_sigmoid_backward)
    }
}

/// Hard swish.
///
/// y = x · min(max(x + 3, 0), 6) / 6 for each element.
///
/// Input and output: [batch, height, width, channels].
///
/// Source: Howard et al., "Searching for MobileNetV3", 2019.
public struct HardSwish: Layer {
    public static let kind = "hardSwish"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try onlyInput("HardSwish", inputs)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        context.mapForward(batch, imprint_hard_swish_forward)
    }

    public func backward(_ context: LayerContext, batch: Int) {
        context.mapBackward(batch, reading: context.input, imprint_hard_swish_backward)
    }
}

extension LayerContext {
    fileprivate func clampForward(_ batch: Int, ceiling: Float) {
        mapForward(batch) { imprint_relu_forward($0, $1, $2, ceiling) }
    }

    fileprivate func clampBackward(_ batch: Int, ceiling: Float) {
        mapBackward(batch, reading: output) { imprint_relu_backward($0, $1, $2, $3, ceiling) }
    }

    /// Computes y = f(x) for each element.
    func mapForward(
        _ batch: Int, _ function: (UnsafePointer<Float>, UnsafeMutablePointer<Float>, Int) -> Void
    ) {
        parallelFor(batch * output.shape.count) { range in
            function(input.values + range.lowerBound, output.values + range.lowerBound, range.count)
        }
    }

    /// Computes dx = g(activation, dy) for each element; `activation` is the input or output that the layer's backward pass reads.
    func mapBackward(
        _ batch: Int, reading activation: Activation,
        _ function: (UnsafePointer<Float>, UnsafePointer<Float>, UnsafeMutablePointer<Float>, Int) -> Void
    ) {
        guard let dx = input.gradient else { return }
        parallelFor(batch * output.shape.count) { range in
            function(
                activation.values + range.lowerBound, outputGradient + range.lowerBound, dx + range.lowerBound,
                range.count)
        }
    }
}
