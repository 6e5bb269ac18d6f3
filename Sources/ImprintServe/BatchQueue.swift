internal import Foundation
internal import Imprint
internal import ImprintCore
internal import Synchronization

/// A queue that collects the images of all requests and processes them in batches, on a dedicated thread.
///
/// A batch starts as soon as it is full, or as soon as its first image has waited for the maximum delay. Images that arrive during a batch
/// form the next one, so batches grow with the load even without a delay.
final class BatchQueue: @unchecked Sendable {
    // `condition` protects the variables.
    private let condition = NSCondition()
    private var waiting: [Item] = [] {
        didSet { metrics.queueLength.store(waiting.count, ordering: .relaxed) }
    }
    private var isClosed = false
    private let options: ServeOptions
    private let metrics: Metrics
    private let predictor: any BatchPredictor
    private let hasEnded = DispatchSemaphore(value: 0)

    /// The images of a request.
    private final class Job: @unchecked Sendable {
        // The thread of the batches writes the results before it signals the semaphore, and the thread of the request reads them afterwards.
        var results: [Result<Prediction, any Error>?]
        /// The number of images without a result.
        let missingCount: Atomic<Int>
        let isDone = DispatchSemaphore(value: 0)
        let isAbandoned: @Sendable () -> Bool

        init(count: Int, isAbandoned: @escaping @Sendable () -> Bool) {
            results = Array(repeating: nil, count: count)
            missingCount = Atomic(count)
            self.isAbandoned = isAbandoned
        }
    }

    private struct Item {
        let job: Job
        let index: Int
        let input: BatchInput
        let arrival: ContinuousClock.Instant
    }

    /// Creates a queue and starts its thread, which ends after `close`.
    init(_ predictor: any BatchPredictor, options: ServeOptions, metrics: Metrics) {
        (self.predictor, self.options, self.metrics) = (predictor, options, metrics)
        let thread = Thread { [self] in
            while let batch = nextBatch() { process(batch) }
            hasEnded.signal()
        }
        // The stack size of the main thread, because layers and decoders run on it.
        thread.stackSize = 8 << 20
        thread.name = "imprint batches"
        thread.start()
    }

    /// Waits for the predictions of images; those of a client that has closed its connection fail with `ClientSocket.Failure`.
    /// - Parameters:
    ///   - inputs: The images of a request.
    ///   - isAbandoned: Whether the client has closed the connection. The queue then drops the images.
    /// - Returns: The prediction of each image, or its error.
    /// - Throws: `HTTPError` if there are too many images, or if the server is stopping.
    func predict(
        _ inputs: [BatchInput], isAbandoned: @escaping @Sendable () -> Bool
    ) throws(HTTPError) -> [Result<Prediction, any Error>] {
        guard inputs.count <= options.queueCapacity else {
            throw .tooManyImages(inputs.count, limit: options.queueCapacity)
        }
        let job = Job(count: inputs.count, isAbandoned: isAbandoned)
        let arrival = ContinuousClock.now
        try add(inputs.enumerated().map { Item(job: job, index: $0, input: $1, arrival: arrival) })
        job.isDone.wait()
        return job.results.map { result in
            result ?? .failure(ClientSocket.Failure.closed)
        }
    }

    private func add(_ items: [Item]) throws(HTTPError) {
        condition.lock()
        defer { condition.unlock() }
        guard !isClosed else { throw .busy("the server is stopping") }
        if waiting.count + items.count > options.queueCapacity { waiting = withoutAbandoned(waiting) }
        guard waiting.count + items.count <= options.queueCapacity else {
            throw .busy(
                "\(counted(waiting.count, "image")) \(waiting.count == 1 ? "is" : "are") waiting already. Try again later"
            )
        }
        waiting += items
        condition.signal()
    }

    /// Returns the items without those of clients that have closed their connections.
    private func withoutAbandoned(_ items: [Item]) -> [Item] {
        items.filter { item in
            guard item.job.isAbandoned() else { return true }
            finish(item)
            return false
        }
    }

    /// Waits for the next batch; returns nil after the queue has been closed and all images are done.
    private func nextBatch() -> [Item]? {
        condition.lock()
        defer { condition.unlock() }
        while waiting.isEmpty {
            if isClosed { return nil }
            condition.wait()
        }
        let deadline = waiting[0].arrival + options.maximumDelay
        while waiting.count < options.maximumBatchSize, !isClosed, .now < deadline {
            _ = condition.wait(until: Date(timeIntervalSinceNow: (deadline - .now) / .seconds(1)))
        }
        let batch = Array(waiting.prefix(options.maximumBatchSize))
        waiting.removeFirst(batch.count)
        return batch
    }

    private func process(_ batch: [Item]) {
        let batch = withoutAbandoned(batch)
        guard !batch.isEmpty else { return }
        metrics.recordBatch(batch.count)
        for (item, result) in zip(batch, predictor.predict(batch.map(\.input))) {
            item.job.results[item.index] = result
            finish(item)
        }
    }

    /// Wakes up the thread of a request after the last of its images.
    private func finish(_ item: Item) {
        if item.job.missingCount.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
            item.job.isDone.signal()
        }
    }

    /// Rejects further images, and waits until all images in the queue are done.
    func close() {
        condition.lock()
        isClosed = true
        condition.broadcast()
        condition.unlock()
        hasEnded.wait()
        // Signals again, because other callers of this method wait for the same semaphore.
        hasEnded.signal()
    }
}
