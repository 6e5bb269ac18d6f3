import CImprintKernels
import Testing

@testable import ImprintNetwork

@Suite struct GEMMTests {
    @Test("OpenBLAS uses AVX-512 kernels if the processor supports AVX-512") func kernels() {
        let withoutAVX512 = ["Haswell", "Zen", "Excavator", "Sandybridge", "Nehalem", "Prescott"]
        #expect(imprint_kernels_use_avx512() == 0 || !withoutAVX512.contains(GEMM.kernels), "\(GEMM.kernels)")
    }

    @Test("Transposed and plain matrices are multiplied", arguments: [false, true], [false, true])
    func transposed(left: Bool, right: Bool) {
        let (rows, columns, inner) = (2, 3, 2)
        let a: [Float] = left ? [1, 3, 2, 4] : [1, 2, 3, 4]
        let b: [Float] = right ? [5, 8, 6, 9, 7, 10] : [5, 6, 7, 8, 9, 10]
        var c = [Float](repeating: 1, count: rows * columns)
        GEMM.multiply(
            rows: rows, columns: columns, inner: inner, GEMM.Matrix(a, stride: 2, transposed: left),
            GEMM.Matrix(b, stride: right ? 2 : 3, transposed: right), into: &c, stride: columns, accumulating: true)
        #expect(c == [22, 25, 28, 48, 55, 62])
    }

    /// The last 1 to 8 columns after whole vectors of 16 are computed separately.
    @Test(
        "Any number of columns is multiplied", arguments: [1, 7, 8, 9, 16, 17, 24, 25, 40, 72, 73], [false, true])
    func anyColumnCount(columns: Int, accumulating: Bool) {
        let (rows, inner, stride) = (5, 131, columns + 3)
        let a = (0..<(rows * inner)).map { Float($0 % 7) - 3 }
        let b = (0..<(inner * stride)).map { Float($0 % 11) - 5 }
        var c = (0..<(rows * stride)).map { Float($0 % 13) }
        let expected = c.indices.map { index -> Float in
            let (row, column) = index.quotientAndRemainder(dividingBy: stride)
            guard column < columns else { return c[index] }
            let sum = (0..<inner).reduce(Float(0)) { $0 + a[row * inner + $1] * b[$1 * stride + column] }
            return accumulating ? c[index] + sum : sum
        }
        GEMM.multiply(
            rows: rows, columns: columns, inner: inner, GEMM.Matrix(a, stride: inner), GEMM.Matrix(b, stride: stride),
            into: &c, stride: stride, accumulating: accumulating)
        #expect(c == expected)
    }

    @Test(
        "A product with packed panels agrees with the formula",
        arguments: [1, 8, 9, 63, 64, 65, 72, 73, 127, 136, 137, 200], [3, 128, 300])
    func panels(columns: Int, inner: Int) {
        let rows = 6
        let a = (0..<(rows * inner)).map { Float($0 % 5) - 2 }
        let b = (0..<(inner * columns)).map { Float($0 % 9) - 4 }
        for factors in [nil, (0..<columns).map { Float($0 % 7) - 3 }] {
            var panels = [Float](repeating: .nan, count: b.count)
            var c = [Float](repeating: .nan, count: rows * columns)
            panels.withUnsafeMutableBufferPointer { panels in
                guard let values = panels.baseAddress else { return }
                for panel in 0..<GEMM.Panels.count(columns: columns) {
                    let range = GEMM.Panels.range(panel, columns: columns)
                    #expect(range.count <= GEMM.Panels.maximumWidth(columns: columns))
                    _ = GEMM.Panel(
                        copying: range, of: GEMM.Matrix(b, stride: columns), times: factors, inner: inner,
                        to: values + range.lowerBound * inner)
                }
                let b = GEMM.Panels(values: UnsafePointer(values), inner: inner, columns: columns)
                for panel in 0..<GEMM.Panels.count(columns: columns) {
                    GEMM.multiply(rows: rows, GEMM.Matrix(a, stride: inner), b[panel], into: &c, stride: columns)
                }
            }
            let expected = c.indices.map { index in
                let (row, column) = index.quotientAndRemainder(dividingBy: columns)
                return (0..<inner).reduce(Float(0)) { $0 + a[row * inner + $1] * b[$1 * columns + column] }
                    * (factors?[column] ?? 1)
            }
            #expect(c == expected)
            let bias = (0..<columns).map { Float($0 % 3) }
            bias.withUnsafeBufferPointer { bias in
                panels.withUnsafeBufferPointer { values in
                    guard let values = values.baseAddress else { return }
                    let clamp = Epilogue.Clamp(bias: bias.baseAddress, floor: -20, ceiling: 30)
                    let b = GEMM.Panels(values: values, inner: inner, columns: columns)
                    for panel in 0..<GEMM.Panels.count(columns: columns) {
                        GEMM.multiply(
                            rows: rows, GEMM.Matrix(a, stride: inner), b[panel], into: &c, stride: columns, clamp: clamp
                        )
                    }
                }
            }
            #expect(c == expected.indices.map { min(max(expected[$0] + bias[$0 % columns], -20), 30) })
        }
    }

    @Test(
        "The panel kernel multiplies any number of rows and columns", arguments: 1...15,
        [16, 17, 47, 64, 65, 80])
    func panelKernel(rows: Int, columns: Int) {
        let (inner, gap) = (9, 3)
        let x = (0..<(rows * (inner + gap))).map { Float($0 % 5) - 2 }
        let panel = (0..<(inner * columns)).map { Float($0 % 9) - 4 }
        var y = [Float](repeating: 7, count: rows * (columns + gap))
        let expected = y.indices.map { index -> Float in
            let (row, column) = index.quotientAndRemainder(dividingBy: columns + gap)
            if column >= columns { return 7 }
            return (0..<inner).reduce(0) { $0 + x[row * (inner + gap) + $1] * panel[$1 * columns + column] }
        }
        var finish = imprint_bias_clamp(bias: nil, floor: -.infinity, ceiling: .infinity)
        imprint_multiply_panel(x, inner + gap, panel, inner, columns, &y, columns + gap, rows, &finish)
        #expect(y == expected)
    }
}
