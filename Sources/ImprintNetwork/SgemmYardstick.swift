/// Products of square matrices by nothing but `cblas_sgemm`: what layers are measured against.
///
/// Every thread has matrices of its own, so that the threads share no more than the machine. Other targets of the package
/// measure with it; it is no part of a network.
package final class SgemmYardstick: ThreadPoolTask {
    /// How many multiplications a run takes in all threads, each with an addition.
    package let multiplications: Int
    private let size: Int
    private let threadPool: ThreadPool
    private let memory: AlignedMemory

    /// Makes the matrices, [size, size], and starts the threads.
    /// - Throws: `NetworkError.outOfMemory`.
    package init(size: Int, threads: Int) throws(NetworkError) {
        GEMM.prepare()
        self.size = size
        threadPool = ThreadPool(count: threads)
        multiplications = threadPool.count * size * size * size
        let count = 3 * threadPool.count * size * size
        memory = try AlignedMemory(byteCount: count * MemoryLayout<Float>.stride)
        let values = memory.floats()
        for i in 0..<count { values[i] = Float(i % 7) - 3 }
    }

    /// Has every thread multiply its matrices once.
    package func run() { threadPool.run(self) }

    func run(_ worker: Worker) {
        let a = memory.floats() + 3 * worker.index * size * size
        let b = a + size * size
        GEMM.multiply(
            rows: size, columns: size, inner: size, GEMM.Matrix(a, stride: size), GEMM.Matrix(b, stride: size),
            into: b + size * size, stride: size)
    }
}
