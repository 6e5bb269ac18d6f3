import CImprintKernels
import Testing

@testable import ImprintNetwork

@Suite struct GEMMTests {
    @Test func usesTheWholeWidthOfTheProcessor() {
        let narrow = ["Haswell", "Zen", "Excavator", "Sandybridge", "Nehalem", "Prescott"]
        #expect(imprint_kernels_use_avx512() == 0 || !narrow.contains(GEMM.kernels), "\(GEMM.kernels)")
    }

    @Test(arguments: [false, true], [false, true])
    func multipliesTransposedMatricesToo(left: Bool, right: Bool) {
        let (rows, columns, inner) = (2, 3, 2)
        let a: [Float] = left ? [1, 3, 2, 4] : [1, 2, 3, 4]
        let b: [Float] = right ? [5, 8, 6, 9, 7, 10] : [5, 6, 7, 8, 9, 10]
        var c = [Float](repeating: 1, count: rows * columns)
        GEMM.multiply(
            rows: rows, columns: columns, inner: inner, GEMM.Matrix(a, stride: 2, transposed: left),
            GEMM.Matrix(b, stride: right ? 2 : 3, transposed: right), into: &c, stride: columns, accumulating: true)
        #expect(c == [22, 25, 28, 48, 55, 62])
    }
}
