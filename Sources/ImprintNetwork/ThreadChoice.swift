internal import ImprintCore

extension ExecutionPlan.Options {
    /// The minimum average work per operation and thread: multiply-accumulate operations (`multiplications`), or values written.
    ///
    /// All threads meet at a barrier after every operation. A barrier takes about 1 µs, and much longer if another process uses a core.
    /// On two cores of an AMD EPYC with AVX-512, a second thread gained nothing for LeNet 28 with 0.25 million multiplications per
    /// operation (0.09 ms with one thread, 0.08 to 1.9 ms with two). It saved a quarter of the time for LogoNet 96 with 12 million
    /// (0.54 and 0.40 ms): `imprint bench predict --model M --threads N`.
    static let workPerThread = 1 << 21

    /// Returns the options with no more threads than a network can use efficiently.
    ///
    /// The results do not depend on the number of threads.
    package func limitingThreads(for network: Network) -> ExecutionPlan.Options {
        guard workers.count > 1 else { return self }
        let operations = OperatorFusion.operations(
            of: network, layout: ParameterLayout(network), quantization: nil, options: self)
        let work = saturatingSum(
            operations.map { operation in
                max(operation.kernel.multiplications(for: operation.inputs), operation.output.count)
            })
        let (perBatch, overflow) = work.multipliedReportingOverflow(by: batchSize)
        let efficientCount = (overflow ? Int.max : perBatch) / max(operations.count, 1) / Self.workPerThread
        var options = self
        options.workers = workers.limited(to: max(efficientCount, 1))
        return options
    }
}
