/// A benchmark baseline for layers: products of square matrices with `cblas_sgemm`.
///
/// Each thread multiplies its own matrices. Networks do not use this class.
package final class SGEMMBaseline: ThreadPoolTask {
    /// The number of multiply-accumulate operations of a run in all threads.
    package let multiplications: Int
    private let size: Int
    private let threadPool: ThreadPool
    private let memory: AlignedMemory

    /// Creates [size, size] matrices and starts the threads.
    /// - Throws: `NetworkError.outOfMemory`.
    package init(size: Int, threads: Int) throws(NetworkError) {
        try GEMM.prepare()
        self.size = size
        threadPool = ThreadPool(count: threads)
        multiplications = threadPool.count * size * size * size
        let count = 3 * threadPool.count * size * size
        memory = try AlignedMemory(byteCount: count * MemoryLayout<Float>.stride)
        let values = memory.floats()
        for i in 0..<count { values[i] = Float(i % 7) - 3 }
    }

    /// Multiplies the matrices of every thread once.
    package func run() { threadPool.run(self) }

    func run(_ worker: Worker) {
        let a = memory.floats() + 3 * worker.index * size * size
        let b = a + size * size
        GEMM.multiply(
            rows: size, columns: size, inner: size, GEMM.Matrix(a, stride: size), GEMM.Matrix(b, stride: size),
            into: b + size * size, stride: size)
    }
}
