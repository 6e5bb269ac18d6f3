internal import CImprintKernels

/// The numeric format of matrix products.
public enum Precision: String, CaseIterable, Codable, Sendable {
    /// Int8 if the model is quantized, otherwise float32.
    case automatic
    /// 32-bit floating point.
    case float32
    /// 16-bit floating point with the range of float32 and 8 bits of precision (bfloat16).
    ///
    /// Weights and inputs of convolutions that are matrix products are rounded to bfloat16; sums, and all other layers, are float32. On
    /// processors with AVX512-BF16 or BFDOT (`isFast`), networks with many 1x1 convolutions take less time. On others, they take longer.
    ///
    /// For example, a prediction of MobileNetV1 took 6.6 ms instead of 11.1 ms in float32, on one thread of an AMD EPYC with AVX512-BF16
    /// (`./run bench --peers --precision bfloat16`; docs/results/precision.md).
    case bfloat16
    /// 8-bit integers with scales that calibration photos have determined (see `Quantizer`), for the layers that the quantization contains.
    ///
    /// `ExecutionPlan.init` throws an error if the parameters are not quantized. Sums are exact 32-bit integers, so results do not depend on
    /// the processor.
    ///
    /// For example, a prediction of MobileNetV1 took 3.5 ms instead of 11.1 ms in float32, on one thread of an AMD EPYC with AVX512-VNNI
    /// (`./run bench --peers --precision int8`; docs/results/precision.md).
    case int8

    /// Returns the precision of predictions with some parameters, never `automatic`.
    package func resolved(for parameters: Parameters) -> Precision {
        self == .automatic ? (parameters.quantization == nil ? .float32 : .int8) : self
    }

    /// Whether this processor has instructions for the precision: AVX512-BF16 or BFDOT (arm64) for bfloat16; AVX2, AVX512-VNNI or SDOT
    /// (arm64) for int8.
    public var isFast: Bool {
        switch self {
        case .automatic, .float32: true
        case .bfloat16: imprint_kernels_use_bfloat16() != 0
        case .int8: imprint_kernels_int8_are_fast() != 0
        }
    }
}
