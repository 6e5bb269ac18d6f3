internal import COpenBLAS

/// Matrix products in float32; the only caller of cblas.
enum GEMM {
    /// A matrix in memory: row-major, consecutive rows `stride` numbers apart, read transposed on request.
    struct Matrix {
        let values: UnsafePointer<Float>
        let stride: Int
        let transposed: Bool

        init(_ values: UnsafePointer<Float>, stride: Int, transposed: Bool = false) {
            self.values = values
            self.stride = stride
            self.transposed = transposed
        }

        var transpose: Matrix { Matrix(values, stride: stride, transposed: !transposed) }
    }

    /// OpenBLAS must not start threads of its own: the plan's workers call it side by side.
    private static let singleThreaded: Void = openblas_set_num_threads(1)

    /// C = A·B + (accumulating ? C : 0), with A [rows, inner], B [inner, columns] and C [rows, columns].
    static func multiply(
        rows: Int, columns: Int, inner: Int, _ a: Matrix, _ b: Matrix, into c: UnsafeMutablePointer<Float>,
        stride: Int, accumulating: Bool = false
    ) {
        singleThreaded
        cblas_sgemm(
            CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans,
            blasint(rows), blasint(columns), blasint(inner), 1, a.values, blasint(a.stride), b.values,
            blasint(b.stride), accumulating ? 1 : 0, c, blasint(stride))
    }
}
