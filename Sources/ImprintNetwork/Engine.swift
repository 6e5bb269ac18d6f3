internal import CImprintKernels

/// The kernels that compute in this process; they are chosen for the CPU when the process starts.
package struct Engine: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The CPU whose OpenBLAS kernels multiply matrices, such as "SkylakeX"; "Accelerate" on Apple platforms.
    package let matrixKernels: String
    /// The vector instructions of all other kernels: "AVX-512", "AVX2", "SSE2" or "NEON"; "none" on other CPUs.
    package let vectorInstructions: String

    /// The kernels of this process.
    package static let current = Engine(
        matrixKernels: GEMM.kernels, vectorInstructions: String(cString: imprint_kernels_vector_instructions()))

    /// A description such as "OpenBLAS SkylakeX kernels, vector instructions: AVX-512".
    package var description: String {
        let products = matrixKernels == "Accelerate" ? matrixKernels : "OpenBLAS \(matrixKernels) kernels"
        return "\(products), vector instructions: \(vectorInstructions)"
    }
}
