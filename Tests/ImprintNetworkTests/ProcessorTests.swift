import CImprintKernels
import Foundation
import Testing

@testable import ImprintNetwork

/// Whether `./run test` got the kernels that it asked for when it tests what older processors run.
@Suite struct ProcessorTests {
    private static let asked = ProcessInfo.processInfo.environment

    @Test(.enabled(if: asked["IMPRINT_KERNELS"] != nil, "No kernels are asked for."))
    func usesTheKernelsAskedFor() throws {
        #expect(imprint_kernels_use_avx512() == 0)
        #expect(GEMM.kernels == (try #require(Self.asked["OPENBLAS_CORETYPE"])))
    }
}
