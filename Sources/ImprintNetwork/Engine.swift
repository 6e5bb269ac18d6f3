internal import CImprintKernels

/// The machine code that does the arithmetic; it is chosen for the processor when the process starts.
package struct Engine: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The processor that OpenBLAS's matrix products are made for, such as "SkylakeX".
    package let matrixKernels: String
    /// The vector instructions of all other loops: "AVX-512", "AVX2", "SSE2" or "NEON"; "none" on other processors.
    package let vectorInstructions: String

    /// What this process runs.
    package static let current = Engine(
        matrixKernels: GEMM.kernels, vectorInstructions: String(cString: imprint_kernels_vector_instructions()))

    /// "OpenBLAS SkylakeX kernels, loops for AVX-512".
    package var description: String { "OpenBLAS \(matrixKernels) kernels, loops for \(vectorInstructions)" }
}
