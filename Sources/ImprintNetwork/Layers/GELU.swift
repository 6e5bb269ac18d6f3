internal import CImprintKernels

/// Gaussian error linear unit, y = x · Φ(x) = x / 2 · (1 + erf(x / √2)), number by number.
///
/// With `approximatesTanh` y = x / 2 · (1 + tanh(√(2 / π) · (x + 0.044715 · x³))) (Hendrycks and Gimpel, "Gaussian error linear
/// units", 2016; ONNX, Gelu). Backward: dx = dy · (Φ(x) + x · e^(−x² / 2) / √(2π)), or the slope of the approximation.
public struct GELU: Layer, LayerKernel {
    public static let kind = "gelu"
    /// Whether the hyperbolic tangent approximates the error function.
    public let approximatesTanh: Bool

    /// Makes the layer.
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

/// Error function, y = erf(x) = 2 / √π · ∫₀ˣ e^(−t²) dt, number by number (ONNX, Erf).
///
/// Backward: dx = dy · 2 / √π · e^(−x²).
public struct Erf: Layer, LayerKernel {
    public static let kind = "erf"
    /// Makes the layer.
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
