import CImprintKernels
import Testing

/// Tests of kernels over every count around the vector length, which the tests of layers do not cover.
@Suite struct ElementwiseKernelTests {
    @Test("Masked elements become 0 even if they are not finite, and the others are scaled", arguments: 0...70)
    func maskedScale(_ count: Int) {
        var x = randomValues(count + 1, "x")
        for index in stride(from: 0, to: count, by: 6) { x[index] = index % 4 == 0 ? .nan : .infinity }
        let keep = (0..<count).map { index -> UInt8 in index % 6 == 0 || index % 5 == 1 ? 0 : 1 }
        var exact = x
        for index in 0..<count { exact[index] = keep[index] == 1 ? 1.25 * x[index] : 0 }
        x.withUnsafeMutableBufferPointer { imprint_masked_scale($0.baseAddress, keep, 1.25, $0.baseAddress, count) }
        #expect(x == exact)
    }

    @Test("ReLU propagates gradients only where the output is strictly between 0 and the ceiling", arguments: 0...70)
    func reluBackward(_ count: Int) {
        let values: [Float] = [0, 0.5, 6, 5.5, .nan]
        let y = (0..<count).map { values[$0 % 5] }
        var dx = randomValues(count + 1, "dy")
        var exact = dx
        for index in 0..<count where !(y[index] > 0 && y[index] < 6) { exact[index] = 0 }
        dx.withUnsafeMutableBufferPointer { imprint_relu_backward(y, $0.baseAddress, $0.baseAddress, count, 6) }
        #expect(dx == exact)
    }

    @Test("A matrix is transposed, also with a row stride", arguments: [1, 15, 16, 17, 32, 47], [1, 16, 31, 33, 64])
    func transpose(rows: Int, columns: Int) {
        for stride in [columns, columns + 5] {
            let x = randomValues(rows * stride, "x")
            var y = [Float](repeating: .pi, count: rows * columns + 1)
            imprint_transpose(x, stride, &y, rows, columns)
            var exact = [Float](repeating: .pi, count: y.count)
            for row in 0..<rows {
                for column in 0..<columns { exact[column * rows + row] = x[row * stride + column] }
            }
            #expect(y == exact, "row stride \(stride)")
        }
    }
}
