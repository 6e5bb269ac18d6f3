internal import ImprintCore

extension ExecutionPlan.Options {
    /// The work that keeps a thread busy long enough between two barriers: multiplications, or numbers written.
    ///
    /// At every operation all threads meet at a barrier, which takes about a microsecond, and much longer if another process holds a
    /// processor. On two cores of an AMD EPYC with AVX-512, a second thread gained nothing for LeNet 28 with 0.25 million multiplications
    /// per operation (0.09 ms with one thread, 0.08 to 1.9 ms with two), and saved a quarter for LogoNet 96 with 12 million (0.54 and
    /// 0.40 ms): `imprint bench predict --model M --threads N`.
    static let workPerThread = 1 << 21

    /// The same options with at most as many threads as are worthwhile for a network.
    ///
    /// The results do not depend on the number of threads.
    public func limitingThreads(for network: Network) -> ExecutionPlan.Options {
        guard workers.count > 1 else { return self }
        let operations = Lowering.operations(of: network, layout: ParameterLayout(network), options: self)
        let work = saturatingSum(
            operations.map { operation in
                max(operation.kernel.multiplications(for: operation.inputs), operation.output.count)
            })
        let (perBatch, overflow) = work.multipliedReportingOverflow(by: batchSize)
        let worthwhile = (overflow ? Int.max : perBatch) / max(operations.count, 1) / Self.workPerThread
        var options = self
        options.workers = Workers(min(workers.count, max(worthwhile, 1)))
        return options
    }
}
