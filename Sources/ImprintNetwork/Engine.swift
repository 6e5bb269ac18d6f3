internal import CImprintKernels

/// The machine code that does the arithmetic; it is chosen for the processor when the process starts.
public struct Engine: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The processor that OpenBLAS's matrix products are made for, such as "SkylakeX".
    public let matrixKernels: String
    /// The vector instructions of all other loops: "AVX-512", "AVX2", "SSE2" or "NEON"; "none" on other processors.
    public let vectorInstructions: String

    /// What this process runs.
    public static let current = Engine(
        matrixKernels: GEMM.kernels, vectorInstructions: String(cString: imprint_kernels_vector_instructions()))

    /// "OpenBLAS SkylakeX kernels, loops for AVX-512".
    public var description: String { "OpenBLAS \(matrixKernels) kernels, loops for \(vectorInstructions)" }
}
