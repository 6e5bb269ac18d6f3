internal import CImprintKernels
internal import COpenBLAS
internal import ImprintCore

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

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
    private static let prepared: Void = {
        chooseKernels()
        openblas_set_num_threads(1)
    }()

    /// Has OpenBLAS choose its kernels, at the latest before several threads call it.
    static func prepare() { prepared }

    /// The processor whose kernels OpenBLAS uses, such as "SkylakeX".
    static var kernels: String {
        prepared
        return String(cString: openblas_get_corename())
    }

    /// Has OpenBLAS use its AVX-512 kernels where this library's own do.
    ///
    /// OpenBLAS takes a processor that it does not know, or one that OPENBLAS_CORETYPE names, for an older one and
    /// then uses half of its width. It reads that variable whenever it chooses kernels, so it is asked to choose again.
    private static func chooseKernels() {
        let wide = ["SkylakeX", "Cooperlake", "SapphireRapids", "Zen5"]
        guard imprint_kernels_use_avx512() != 0, !wide.contains(String(cString: openblas_get_corename())),
            let forget = dlsym(nil, "gotoblas_dynamic_quit"), let choose = dlsym(nil, "gotoblas_dynamic_init")
        else { return }
        typealias Function = @convention(c) () -> Void
        let named = getenv("OPENBLAS_CORETYPE").map { String(cString: $0) }
        setenv("OPENBLAS_CORETYPE", "SkylakeX", 1)
        unsafeBitCast(forget, to: Function.self)()
        unsafeBitCast(choose, to: Function.self)()
        if let named { setenv("OPENBLAS_CORETYPE", named, 1) } else { unsetenv("OPENBLAS_CORETYPE") }
    }

    /// The number of multiplications up to which OpenBLAS's AVX-512 kernels take matrices as they lie in memory.
    ///
    /// Above, it copies them into an order of its own first, which costs more than it gains where one of the three
    /// sizes is small: such products are best done in pieces.
    static let unpackedProducts = 1_000_000

    /// Into how long pieces an axis is best cut where a piece of length 1 takes so many multiplications.
    ///
    /// nil if pieces would be too short for the kernels.
    static func pieceLength(productsPerStep: Int, atLeast least: Int) -> Int? {
        let length = unpackedProducts / max(productsPerStep, 1)
        return length >= least ? length : nil
    }

    /// A matrix [inner, columns] that lies in memory as panels of 64 columns, one after the other.
    ///
    /// Products with a panel fit into the cache, and OpenBLAS takes them as they lie: for matrices that are multiplied with
    /// many rows, or many times, that is worth a copy.
    struct Panels {
        private static let width = 64
        let values: UnsafePointer<Float>
        let inner: Int
        let columns: Int

        /// The last panel takes up to 8 columns more, which would be too few for a panel of their own.
        static func count(columns: Int) -> Int { max(1, (columns + width - 9) / width) }

        /// How many columns a panel has at most.
        static func widest(columns: Int) -> Int { min(columns, width + 8) }

        static func range(_ panel: Int, columns: Int) -> Range<Int> {
            (panel * width)..<(panel + 1 == count(columns: columns) ? columns : (panel + 1) * width)
        }

        subscript(panel: Int) -> Panel {
            let range = Self.range(panel, columns: columns)
            return Panel(values: values + range.lowerBound * inner, inner: inner, columns: range)
        }
    }

    /// Some columns of a matrix [inner, columns], without those beside them in memory.
    struct Panel {
        let values: UnsafePointer<Float>
        let inner: Int
        let columns: Range<Int>

        fileprivate init(values: UnsafePointer<Float>, inner: Int, columns: Range<Int>) {
            self.values = values
            self.inner = inner
            self.columns = columns
        }

        /// Copies the columns, each times its factor, to `place`.
        init(
            copying columns: Range<Int>, of matrix: Matrix, times factors: UnsafePointer<Float>? = nil, inner: Int,
            to place: UnsafeMutablePointer<Float>
        ) {
            let first = columns.lowerBound
            if matrix.transposed {
                precondition(factors == nil, "the columns of a transposed matrix are copied as they are")
                imprint_transpose(matrix.values + first * matrix.stride, matrix.stride, place, columns.count, inner)
            } else {
                imprint_scale_columns(
                    matrix.values + first, matrix.stride, factors.map { $0 + first }, place, inner, columns.count)
            }
            self.init(values: UnsafePointer(place), inner: inner, columns: columns)
        }
    }

    /// Whether products with panels are this library's own, which finish their sums before they store them.
    private static let hasOwnPanels = imprint_kernels_use_avx512() != 0

    /// The columns of C = A·B that belong to one panel of B [inner, columns], with A [rows, inner] not transposed; then `clamp` is done to
    /// them, whose bias has a number for each of B's columns.
    static func multiply(
        rows: Int, _ a: Matrix, _ b: Panel, into c: UnsafeMutablePointer<Float>, stride: Int,
        clamp: Epilogue.Clamp = .none
    ) {
        let (width, columns) = (b.columns.count, c + b.columns.lowerBound)
        let bias = clamp.bias.map { $0 + b.columns.lowerBound }
        guard hasOwnPanels && width >= vectorWidth else {
            multiplyInPieces(rows: rows, a, b, into: c, stride: stride)
            guard !clamp.isNone else { return }
            for row in 0..<rows {
                imprint_epilogue(columns + row * stride, bias, nil, clamp.floor, clamp.ceiling, 1, width)
            }
            return
        }
        var finish = imprint_finish(bias: bias, floor: clamp.floor, ceiling: clamp.ceiling)
        imprint_multiply_panel(a.values, a.stride, b.values, b.inner, width, columns, stride, rows, &finish)
    }

    /// The same by OpenBLAS, which takes small products as they lie.
    private static func multiplyInPieces(
        rows: Int, _ a: Matrix, _ b: Panel, into c: UnsafeMutablePointer<Float>, stride: Int
    ) {
        let width = b.columns.count
        // With a rest, a second slice would have to be computed column by column.
        let leavesRest = leavesRest(columns: width)
        let depth = leavesRest ? 1 : (b.inner + 127) / 128
        let products = rows * width * ((b.inner + depth - 1) / depth)
        let height = leavesRest && b.inner > 128 ? 1 : (products + unpackedProducts - 1) / unpackedProducts
        for part in 0..<height {
            let rows = chunkRange(part, of: height, total: rows)
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

    /// C = A·B + (accumulating ? C : 0), with A [rows, inner], B [inner, columns] and C [rows, columns].
    static func multiply(
        rows: Int, columns: Int, inner: Int, _ a: Matrix, _ b: Matrix, into c: UnsafeMutablePointer<Float>,
        stride: Int, accumulating: Bool = false
    ) {
        prepared
        let isUnpacked = !a.transposed && !b.transposed && rows * columns * inner <= unpackedProducts
        guard isUnpacked && leavesRest(columns: columns) else {
            return sgemm(rows, columns, inner, a, b, c, stride, accumulating)
        }
        let whole = columns / vectorWidth * vectorWidth
        if whole > 0 { sgemm(rows, whole, inner, a, b, c, stride, accumulating) }
        if whole > 0 && !accumulating {
            let last = columns - vectorWidth
            sgemm(rows, vectorWidth, inner, a, Matrix(b.values + last, stride: b.stride), c + last, stride, false)
        } else {
            for column in whole..<columns {
                cblas_sgemv(
                    CblasRowMajor, CblasNoTrans, blasint(rows), blasint(inner), 1, a.values, blasint(a.stride),
                    b.values + column, blasint(b.stride), accumulating ? 1 : 0, c + column, blasint(stride))
            }
        }
    }

    private static let vectorWidth = 16

    /// Whether OpenBLAS's AVX-512 kernels for unpacked products would ask the system for memory, each time.
    ///
    /// They do where neither matrix is transposed and the columns leave a rest of 1 to 8 in a vector. Such products are
    /// done in parts: whole vectors, of which the last two overlap, or whole vectors and single columns.
    private static func leavesRest(columns: Int) -> Bool { (1...8).contains(columns % vectorWidth) }

    private static func sgemm(
        _ rows: Int, _ columns: Int, _ inner: Int, _ a: Matrix, _ b: Matrix, _ c: UnsafeMutablePointer<Float>,
        _ stride: Int, _ accumulating: Bool
    ) {
        cblas_sgemm(
            CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans,
            blasint(rows), blasint(columns), blasint(inner), 1, a.values, blasint(a.stride), b.values,
            blasint(b.stride), accumulating ? 1 : 0, c, blasint(stride))
    }
}
