internal import CImprintKernels

/// Exponential linear unit (ELU).
///
/// y = x if x > 0, otherwise `alpha` · (eˣ − 1), for each element.
///
/// Input and output: [batch, height, width, channels].
///
/// Source: Clevert et al., "Fast and accurate deep network learning by exponential linear units (ELUs)", 2016.
public struct ELU: Layer {
    public static let kind = "elu"
    /// The negative of the limit of y for x → −∞, ≥ 0.
    public let alpha: Float

    /// Creates the layer.
    public init(alpha: Float = 1) { self.alpha = alpha }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        // The backward pass reads the sign of x from y, so alpha must not be negative.
        try check("ELU", "alpha", alpha, alpha >= 0 && alpha.isFinite, "at least 0")
        return try onlyInput("ELU", inputs)
    }

    public var backwardReads: BackwardReads { .output }
    public var inPlace: InPlace { .overwriting }

    public func forward(_ context: LayerContext, batch: Int) {
        context.mapForward(batch) { imprint_elu_forward($0, $1, $2, alpha) }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        context.mapBackward(batch, reading: context.output) { imprint_elu_backward($0, $1, $2, $3, alpha) }
    }
}

/// Swish, also known as sigmoid linear unit (SiLU).
///
/// y = x / (1 + e⁻ˣ) for each element.
///
/// Input and output: [batch, height, width, channels].
///
/// Source: Ramachandran et al., "Searching for activation functions", 2017.
public struct Swish: Layer, LayerKernel {
    public static let kind = "swish"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try onlyInput("Swish", inputs)
    }
    package var gradientMayReplaceInput: Bool { true }

    public func forward(_ context: LayerContext, batch: Int) {
        context.mapForward(batch, imprint_swish_forward)
    }

    public func backward(_ context: LayerContext, batch: Int) {
        context.mapBackward(batch, reading: context.input, imprint_swish_backward)
    }
}

/// Hyperbolic tangent.
///
/// y = (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ) for each element.
///
/// Input and output: [batch, height, width, channels].
public struct Tanh: Layer {
    public static let kind = "tanh"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try onlyInput("Tanh", inputs)
    }
    public var backwardReads: BackwardReads { .output }
    public var inPlace: InPlace { .overwriting }

    public func forward(_ context: LayerContext, batch: Int) {
        context.mapForward(batch, imprint_tanh_forward)
    }

    public func backward(_ context: LayerContext, batch: Int) {
        context.mapBackward(batch, reading: context.output, imprint_tanh_backward)
    }
}

/// Softplus.
///
/// y = log(1 + eˣ) for each element.
///
/// Input and output: [batch, height, width, channels].
///
/// Source: Dugas et al., "Incorporating second-order functional knowledge for better option pricing", 2001.
public struct Softplus: Layer {
    public static let kind = "softplus"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try onlyInput("Softplus", inputs)
    }
    public var backwardReads: BackwardReads { .output }
    public var inPlace: InPlace { .overwriting }

    public func forward(_ context: LayerContext, batch: Int) {
        context.mapForward(batch, imprint_softplus_forward)
    }

    public func backward(_ context: LayerContext, batch: Int) {
        context.mapBackward(batch, reading: context.output, imprint_softplus_backward)
    }
}
