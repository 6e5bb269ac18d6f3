internal import CImprintKernels

/// The numeric format of matrix products in predictions.
public enum Precision: String, CaseIterable, Codable, Sendable {
    /// Float32, unless a model states another precision; no model does so far.
    case automatic
    /// 32-bit floating point.
    case float32
    /// 16-bit floating point with the range of float32 and 8 bits of precision (bfloat16).
    ///
    /// Weights and inputs of convolutions that are matrix products are rounded to bfloat16; sums, and all other layers, are float32. On
    /// processors with AVX512-BF16 (`isFast`), networks with many 1x1 convolutions take about 60 % of the time. On others, they take longer.
    case bfloat16

    /// Whether this processor has instructions for the precision.
    public var isFast: Bool { self != .bfloat16 || imprint_kernels_use_bfloat16() != 0 }
}
