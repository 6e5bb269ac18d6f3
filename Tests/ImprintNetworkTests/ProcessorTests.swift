import CImprintKernels
import Foundation
import Testing

@testable import ImprintNetwork

@Suite struct ProcessorTests {
    private static let environment = ProcessInfo.processInfo.environment

    @Test(
        "IMPRINT_KERNELS and OPENBLAS_CORETYPE select the kernels of an older processor",
        .enabled(if: environment["IMPRINT_KERNELS"] != nil, "IMPRINT_KERNELS is not set."))
    func selectedKernels() throws {
        let expected = ["baseline": "SSE2", "v3": "AVX2"][try #require(Self.environment["IMPRINT_KERNELS"])]
        #expect(String(cString: imprint_kernels_vector_instructions()) == expected)
        #expect(imprint_kernels_use_avx512() == 0)
        #expect(GEMM.kernels == (try #require(Self.environment["OPENBLAS_CORETYPE"])))
    }
}
