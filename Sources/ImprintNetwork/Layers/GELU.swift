internal import CImprintKernels

/// Gaussian error linear unit (GELU).
///
/// y = x · Φ(x) = x / 2 · (1 + erf(x / √2)) for each element, or with `approximatesTanh`
/// y = x / 2 · (1 + tanh(√(2 / π) · (x + 0.044715 · x³))).
///
/// Input and output: [batch, height, width, channels].
///
/// Backward: dx = dy · (Φ(x) + x · e^(−x² / 2) / √(2π)), or dy times the derivative of the approximation.
///
/// Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016; ONNX, Gelu.
public struct GELU: Layer, LayerKernel {
    public static let kind = "gelu"
    /// Whether to approximate the error function by a hyperbolic tangent.
    public let approximatesTanh: Bool

    /// Creates the layer.
    public init(approximatesTanh: Bool = false) { self.approximatesTanh = approximatesTanh }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try onlyInput("GELU", inputs)
    }
    package var gradientMayReplaceInput: Bool { true }

    public func forward(_ context: LayerContext, batch: Int) {
        context.mapForward(batch, approximatesTanh ? imprint_gelu_tanh_forward : imprint_gelu_forward)
    }

    public func backward(_ context: LayerContext, batch: Int) {
        context.mapBackward(
            batch, reading: context.input, approximatesTanh ? imprint_gelu_tanh_backward : imprint_gelu_backward)
    }
}

/// Error function.
///
/// y = erf(x) = 2 / √π · ∫₀ˣ e^(−t²) dt for each element.
///
/// Input and output: [batch, height, width, channels].
///
/// Backward: dx = dy · 2 / √π · e^(−x²).
///
/// Source: ONNX, Erf.
public struct Erf: Layer, LayerKernel {
    public static let kind = "erf"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try onlyInput("Erf", inputs)
    }
    package var gradientMayReplaceInput: Bool { true }

    public func forward(_ context: LayerContext, batch: Int) {
        context.mapForward(batch, imprint_erf_forward)
    }

    public func backward(_ context: LayerContext, batch: Int) {
        context.mapBackward(batch, reading: context.input, imprint_erf_backward)
    }
}
