import CImprintKernels
import Testing

/// Kernels that no layer's test drives over every awkward count.
@Suite struct ElementwiseKernelTests {
    @Test("What is dropped becomes 0, whatever it was, and the rest is scaled", arguments: 0...70)
    func maskedScale(_ count: Int) {
        var x = randomValues(count + 1, "x")
        for place in stride(from: 0, to: count, by: 6) { x[place] = place % 4 == 0 ? .nan : .infinity }
        let keep = (0..<count).map { place -> UInt8 in place % 6 == 0 || place % 5 == 1 ? 0 : 1 }
        var exact = x
        for place in 0..<count { exact[place] = keep[place] == 1 ? 1.25 * x[place] : 0 }
        x.withUnsafeMutableBufferPointer { imprint_masked_scale($0.baseAddress, keep, 1.25, $0.baseAddress, count) }
        #expect(x == exact)
    }

    @Test("A gradient passes strictly between 0 and the ceiling", arguments: 0...70)
    func reluBackward(_ count: Int) {
        let values: [Float] = [0, 0.5, 6, 5.5, .nan]
        let y = (0..<count).map { values[$0 % 5] }
        var dx = randomValues(count + 1, "dy")
        var exact = dx
        for place in 0..<count where !(y[place] > 0 && y[place] < 6) { exact[place] = 0 }
        dx.withUnsafeMutableBufferPointer { imprint_relu_backward(y, $0.baseAddress, $0.baseAddress, count, 6) }
        #expect(dx == exact)
    }

    @Test("A matrix is transposed, also among wider rows", arguments: [1, 15, 16, 17, 32, 47], [1, 16, 31, 33, 64])
    func transpose(rows: Int, columns: Int) {
        for stride in [columns, columns + 5] {
            let x = randomValues(rows * stride, "x")
            var y = [Float](repeating: .pi, count: rows * columns + 1)
            imprint_transpose(x, stride, &y, rows, columns)
            var exact = [Float](repeating: .pi, count: y.count)
            for row in 0..<rows {
                for column in 0..<columns { exact[column * rows + row] = x[row * stride + column] }
            }
            #expect(y == exact, "rows \(stride) apart")
        }
    }
}
