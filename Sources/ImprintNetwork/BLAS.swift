#if canImport(Accelerate)
    internal import Accelerate

    /// The BLAS library: Accelerate on Apple platforms.
    ///
    /// The functions are those that the headers declare without `ACCELERATE_NEW_LAPACK`, with 32-bit sizes. Apple has deprecated them in favour
    /// of the same functions under another symbol, which C code selects with that macro.
    enum BLAS {
        /// The type of sizes and strides.
        typealias Size = Int32

        /// The name for reports, because Accelerate does not report the kernels that it selects.
        static let kernels = "Accelerate"

        /// Whether the kernels are those of OpenBLAS for AVX-512.
        static let usesAVX512 = false

        /// Whether unpacked products allocate memory if the number of columns modulo the vector width is 1 to 8; this concerns only OpenBLAS.
        static let allocatesForSmallRemainder = false

        /// Does nothing: Accelerate needs no setup, and its number of threads is a setting of each thread (`onThisThread`).
        static func setUp() {}

        /// Does nothing: Accelerate has no buffer of a fixed size.
        static func allocateBuffer() throws(NetworkError) {}

        /// Calls `body`, in which products run on the calling thread only, because all workers of a plan call BLAS concurrently.
        ///
        /// The setting of the thread is restored, because it may belong to the app.
        @inline(__always)
        static func onThisThread(_ body: () -> Void) {
            let before = BLASGetThreading()
            guard before != BLAS_THREADING_SINGLE_THREADED else { return body() }
            BLASSetThreading(BLAS_THREADING_SINGLE_THREADED)
            body()
            BLASSetThreading(before)
        }
    }
#else
    internal import CImprintKernels
    internal import COpenBLAS
    internal import Synchronization

    #if canImport(Glibc)
        internal import Glibc
    #else
        internal import Musl
    #endif

    /// The BLAS library: OpenBLAS.
    enum BLAS {
        /// The type of sizes and strides.
        typealias Size = blasint

        /// The CPU whose kernels OpenBLAS uses, such as "SkylakeX".
        static var kernels: String { String(cString: openblas_get_corename()) }

        private static let avx512Kernels = ["SkylakeX", "Cooperlake", "SapphireRapids", "Zen5"]

        /// Whether OpenBLAS uses its kernels for AVX-512.
        static var usesAVX512: Bool { avx512Kernels.contains(kernels) }

        /// Whether the AVX-512 kernels of OpenBLAS for unpacked products allocate memory in each call, if the number of columns modulo the
        /// vector width is 1 to 8.
        static let allocatesForSmallRemainder = true

        /// Sets up OpenBLAS with one thread per call, because all workers of a plan call it concurrently.
        static func setUp() {
            chooseKernels()
            openblas_set_num_threads(1)
        }

        /// Calls `body`, in which OpenBLAS runs all products on the calling thread.
        @inline(__always)
        static func onThisThread(_ body: () -> Void) { body() }

        /// Makes OpenBLAS allocate its buffer.
        /// - Throws: `NetworkError.outOfMemory` if it cannot.
        static func allocateBuffer() throws(NetworkError) {
            guard !hasBuffer.load(ordering: .acquiring) else { return }
            // OpenBLAS tries forever to allocate its buffer of 128 MiB at the first large product.
            let byteCount = 129 << 20
            let block = mmap(nil, byteCount, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0)
            guard let block, block != MAP_FAILED else { throw .outOfMemory(bytes: byteCount) }
            munmap(block, byteCount)
            // Allocate it now, with a product that is too large for the kernels without a buffer.
            let side = 256
            let ones = [Float](repeating: 1, count: side * side)
            var product = [Float](repeating: 0, count: side * side)
            let count = Size(side)
            cblas_sgemm(
                CblasRowMajor, CblasNoTrans, CblasNoTrans, count, count, count, 1, ones, count, ones, count, 0,
                &product, count)
            hasBuffer.store(true, ordering: .releasing)
        }

        /// Whether OpenBLAS has allocated the buffer of the first thread.
        private static let hasBuffer = Atomic(false)

        /// Makes OpenBLAS use its AVX-512 kernels if CImprintKernels uses AVX-512.
        ///
        /// OpenBLAS selects kernels with half the vector width if it does not know the CPU, or if OPENBLAS_CORETYPE names an older one. It
        /// reads this variable each time it selects kernels, so this function sets the variable and makes OpenBLAS select again. It overrides
        /// the variable of the user because the sizes of blocks fit these kernels; IMPRINT_KERNELS selects older kernels of both libraries.
        private static func chooseKernels() {
            guard imprint_kernels_use_avx512() != 0, !usesAVX512,
                let quit = dlsym(nil, "gotoblas_dynamic_quit"),
                let initialize = dlsym(nil, "gotoblas_dynamic_init")
            else { return }
            typealias Function = @convention(c) () -> Void
            let coreType = getenv("OPENBLAS_CORETYPE").map { String(cString: $0) }
            setenv("OPENBLAS_CORETYPE", "SkylakeX", 1)
            unsafeBitCast(quit, to: Function.self)()
            unsafeBitCast(initialize, to: Function.self)()
            if let coreType { setenv("OPENBLAS_CORETYPE", coreType, 1) } else { unsetenv("OPENBLAS_CORETYPE") }
        }
    }
#endif

extension BLAS {
    /// Computes the row-major product C = A·B + factor·C, with A [rows, inner], B [inner, columns] and C [rows, columns].
    static func multiply(
        rows: Int, columns: Int, inner: Int, _ a: GEMM.Matrix, _ b: GEMM.Matrix, into c: UnsafeMutablePointer<Float>,
        stride: Int, times factor: Float
    ) {
        onThisThread {
            cblas_sgemm(
                CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans,
                Size(rows), Size(columns), Size(inner), 1, a.values, Size(a.stride), b.values, Size(b.stride), factor,
                c, Size(stride))
        }
    }

    /// Computes the same product for one column; neither matrix is transposed.
    static func multiplyColumn(
        rows: Int, inner: Int, _ a: GEMM.Matrix, _ b: GEMM.Matrix, into c: UnsafeMutablePointer<Float>, stride: Int,
        times factor: Float
    ) {
        onThisThread {
            cblas_sgemv(
                CblasRowMajor, CblasNoTrans, Size(rows), Size(inner), 1, a.values, Size(a.stride), b.values,
                Size(b.stride), factor, c, Size(stride))
        }
    }
}
