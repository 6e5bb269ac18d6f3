internal import CImprintKernels
internal import ImprintCore

/// Matrix products in float32; the only caller of `BLAS`.
enum GEMM {
    /// A row-major matrix whose rows are `stride` elements apart, optionally transposed.
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

    /// The one-time setup of the BLAS library.
    private static let setUp: Void = BLAS.setUp()

    /// Sets up the BLAS library; call this before several threads multiply matrices.
    /// - Throws: `NetworkError.outOfMemory` if it cannot allocate its buffer.
    static func prepare() throws(NetworkError) {
        setUp
        try BLAS.allocateBuffer()
    }

    /// The kernels that the BLAS library uses, such as "SkylakeX" of OpenBLAS.
    static var kernels: String {
        setUp
        return BLAS.kernels
    }

    /// The largest number of multiplications for which the AVX-512 kernels of OpenBLAS do not pack the matrices first.
    ///
    /// If one of the three sizes is small, packing costs more than it gains. It is faster to compute such a product in blocks.
    static let maximumUnpackedMultiplications = 1_000_000

    /// Returns the number of rows of the largest block that OpenBLAS multiplies without packing.
    ///
    /// - Parameter minimum: The smallest efficient number of rows.
    /// - Returns: nil if the block would have fewer than `minimum` rows.
    static func blockLength(multiplicationsPerRow: Int, minimum: Int) -> Int? {
        let length = maximumUnpackedMultiplications / max(multiplicationsPerRow, 1)
        return length >= minimum ? length : nil
    }

    /// A packed matrix [inner, columns]: contiguous panels of 64 columns.
    ///
    /// A panel fits into the cache, and OpenBLAS multiplies it without packing. Packing a matrix pays off if it is multiplied by many
    /// rows, or often.
    struct Panels {
        private static let width = 64
        let values: UnsafePointer<Float>
        let inner: Int
        let columns: Int

        /// Returns the number of panels; the last one may have 8 more columns, which are too few for another panel.
        static func count(columns: Int) -> Int { max(1, (columns + width - 9) / width) }

        /// Returns the largest number of columns of a panel.
        static func maximumWidth(columns: Int) -> Int { min(columns, width + 8) }

        static func range(_ panel: Int, columns: Int) -> Range<Int> {
            (panel * width)..<(panel + 1 == count(columns: columns) ? columns : (panel + 1) * width)
        }

        subscript(panel: Int) -> Panel {
            let range = Self.range(panel, columns: columns)
            return Panel(values: values + range.lowerBound * inner, inner: inner, columns: range)
        }
    }

    /// A range of the columns of a matrix [inner, columns], contiguous in memory.
    struct Panel {
        let values: UnsafePointer<Float>
        let inner: Int
        let columns: Range<Int>

        fileprivate init(values: UnsafePointer<Float>, inner: Int, columns: Range<Int>) {
            self.values = values
            self.inner = inner
            self.columns = columns
        }

        /// Copies the columns to `destination`, each multiplied by its factor.
        init(
            copying columns: Range<Int>, of matrix: Matrix, times factors: UnsafePointer<Float>? = nil, inner: Int,
            to destination: UnsafeMutablePointer<Float>
        ) {
            let first = columns.lowerBound
            if matrix.transposed {
                precondition(factors == nil, "the columns of a transposed matrix cannot be scaled")
                imprint_transpose(
                    matrix.values + first * matrix.stride, matrix.stride, destination, columns.count, inner)
            } else {
                imprint_scale_columns(
                    matrix.values + first, matrix.stride, factors.map { $0 + first }, destination, inner,
                    columns.count)
            }
            self.init(values: UnsafePointer(destination), inner: inner, columns: columns)
        }
    }

    /// Whether CImprintKernels multiplies panels instead of OpenBLAS; it applies the epilogue before it stores the sums.
    private static let usesPanelKernel = imprint_kernels_use_avx512() != 0

    /// Computes the columns of C = A·B that belong to one panel of B [inner, columns] and applies `clamp` to them.
    ///
    /// A [rows, inner] is not transposed. The bias of `clamp` has one value for each column of B.
    static func multiply(
        rows: Int, _ a: Matrix, _ b: Panel, into c: UnsafeMutablePointer<Float>, stride: Int,
        clamp: Epilogue.Clamp = .none
    ) {
        let (width, columns) = (b.columns.count, c + b.columns.lowerBound)
        let bias = clamp.bias.map { $0 + b.columns.lowerBound }
        guard usesPanelKernel && width >= vectorWidth else {
            multiplyInBlocks(rows: rows, a, b, into: c, stride: stride)
            guard !clamp.isNone else { return }
            for row in 0..<rows {
                imprint_epilogue(columns + row * stride, bias, nil, clamp.floor, clamp.ceiling, 1, width)
            }
            return
        }
        var finish = imprint_bias_clamp(bias: bias, floor: clamp.floor, ceiling: clamp.ceiling)
        imprint_multiply_panel(a.values, a.stride, b.values, b.inner, width, columns, stride, rows, &finish)
    }

    /// Computes the same columns with OpenBLAS, in blocks that it multiplies without packing.
    private static func multiplyInBlocks(
        rows: Int, _ a: Matrix, _ b: Panel, into c: UnsafeMutablePointer<Float>, stride: Int
    ) {
        let width = b.columns.count
        // With a remainder, a second slice would have to be computed column by column.
        let hasRemainder = hasSmallRemainder(columns: width)
        let depth = hasRemainder ? 1 : (b.inner + 127) / 128
        let multiplications = rows * width * ((b.inner + depth - 1) / depth)
        let limit = maximumUnpackedMultiplications
        let height = hasRemainder && b.inner > 128 ? 1 : (multiplications + limit - 1) / limit
        for block in 0..<height {
            let rows = chunkRange(block, of: height, total: rows)
            for slice in 0..<depth {
                let inner = chunkRange(slice, of: depth, total: b.inner)
                multiply(
                    rows: rows.count, columns: width, inner: inner.count,
                    Matrix(a.values + rows.lowerBound * a.stride + inner.lowerBound, stride: a.stride),
                    Matrix(b.values + inner.lowerBound * width, stride: width),
                    into: c + rows.lowerBound * stride + b.columns.lowerBound, stride: stride, accumulating: slice > 0)
            }
        }
    }

    /// Computes C = A·B + (accumulating ? C : 0), with A [rows, inner], B [inner, columns] and C [rows, columns].
    static func multiply(
        rows: Int, columns: Int, inner: Int, _ a: Matrix, _ b: Matrix, into c: UnsafeMutablePointer<Float>,
        stride: Int, accumulating: Bool = false
    ) {
        setUp
        let isUnpacked =
            !a.transposed && !b.transposed && rows * columns * inner <= maximumUnpackedMultiplications
        guard isUnpacked && hasSmallRemainder(columns: columns) else {
            return sgemm(rows, columns, inner, a, b, c, stride, accumulating)
        }
        let whole = columns / vectorWidth * vectorWidth
        if whole > 0 { sgemm(rows, whole, inner, a, b, c, stride, accumulating) }
        if whole > 0 && !accumulating {
            let last = columns - vectorWidth
            sgemm(rows, vectorWidth, inner, a, Matrix(b.values + last, stride: b.stride), c + last, stride, false)
        } else {
            for column in whole..<columns {
                BLAS.multiplyColumn(
                    rows: rows, inner: inner, a, Matrix(b.values + column, stride: b.stride), into: c + column,
                    stride: stride, times: accumulating ? 1 : 0)
            }
        }
    }

    private static let vectorWidth = 16

    /// Whether the bits of a row of a product do not depend on the other rows, for products of panels.
    ///
    /// OpenBLAS computes single columns, and all products on other CPUs, in groups of rows.
    static func rowsAreIndependent(columns: Int) -> Bool { usesPanelKernel && columns >= vectorWidth }

    /// Whether the bits of a row of a product without packing of at most `maximumUnpackedMultiplications` do not depend on the other rows.
    static func unpackedRowsAreIndependent(columns: Int) -> Bool { rowsOfBLASAreIndependent && columns >= vectorWidth }

    private static let rowsOfBLASAreIndependent: Bool = {
        setUp
        return usesPanelKernel && BLAS.usesAVX512
    }()

    /// Whether the AVX-512 kernels of OpenBLAS for unpacked products would allocate memory in each call.
    ///
    /// They do if neither matrix is transposed and the number of columns modulo the vector width is 1 to 8. Such products are
    /// computed in parts: full vectors, of which the last two overlap, or full vectors and single columns.
    private static func hasSmallRemainder(columns: Int) -> Bool {
        BLAS.allocatesForSmallRemainder && (1...8).contains(columns % vectorWidth)
    }

    private static func sgemm(
        _ rows: Int, _ columns: Int, _ inner: Int, _ a: Matrix, _ b: Matrix, _ c: UnsafeMutablePointer<Float>,
        _ stride: Int, _ accumulating: Bool
    ) {
        BLAS.multiply(
            rows: rows, columns: columns, inner: inner, a, b, into: c, stride: stride, times: accumulating ? 1 : 0)
    }
}
