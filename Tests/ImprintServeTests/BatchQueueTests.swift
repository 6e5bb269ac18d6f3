import Foundation
import ImprintImages
import Synchronization
import Testing

@testable import Imprint
@testable import ImprintServe

/// A predictor whose batches wait until the test lets them finish.
///
/// The confidence of an image is its grey value.
private final class HeldPredictor: BatchPredictor {
    let batches = Mutex<[[UInt8]]>([])
    private let permits: DispatchSemaphore

    /// - Parameter permits: The number of batches that do not wait.
    init(permits: Int) {
        // A semaphore must not end below its initial value.
        self.permits = DispatchSemaphore(value: 0)
        release(permits)
    }

    func release(_ count: Int) { for _ in 0..<count { permits.signal() } }

    func predict(_ inputs: [BatchInput]) -> [Result<Prediction, any Error>] {
        let greys = inputs.map { input -> UInt8 in
            guard case .image(.image(let image)) = input else { return 0 }
            return image.samples[0]
        }
        batches.withLock { $0.append(greys) }
        permits.wait()
        return greys.map { grey in
            if grey == 255 { return .failure(ImprintError.nonFiniteOutput(network: "held")) }
            return .success(Prediction(confidences: [Float(grey)], boxes: [nil], novelty: nil))
        }
    }
}

@Suite("Dynamic batching") struct BatchQueueTests {
    private func image(_ grey: UInt8) -> BatchInput {
        .image(.image(RasterImage(width: 1, height: 1, filledWith: grey)))
    }

    private func options(_ change: (inout ServeOptions) -> Void) -> ServeOptions {
        var options = ServeOptions(modelName: "m", version: "1")
        change(&options)
        return options
    }

    @Test(
        "Images that arrive during a batch form the next one, up to the maximum size, and each request gets its results"
    )
    func batches() throws {
        let predictor = HeldPredictor(permits: 0)
        let metrics = Metrics()
        let queue = BatchQueue(predictor, options: options { $0.maximumBatchSize = 4 }, metrics: metrics)
        let results = Mutex<[Int: [Float]]>([:])
        let group = DispatchGroup()
        func request(_ number: Int, _ greys: [UInt8]) {
            let inputs = greys.map(image)
            Thread.detachNewThread(in: group) {
                let found = try? queue.predict(inputs) { false }
                results.withLock { $0[number] = found?.compactMap { try? $0.get().confidences[0] } }
            }
        }
        request(0, [10])
        expectSoon { predictor.batches.withLock { $0.count } == 1 }
        for (number, greys) in [[20], [30, 31, 32], [40, 41]].enumerated() as EnumeratedSequence<[[UInt8]]> {
            request(number + 1, greys)
            expectSoon { metrics.queueLength.load(ordering: .relaxed) == [1, 4, 6][number] }
        }
        predictor.release(3)
        group.wait()
        #expect(predictor.batches.withLock { $0 } == [[10], [20, 30, 31, 32], [40, 41]])
        #expect(results.withLock { $0 } == [0: [10], 1: [20], 2: [30, 31, 32], 3: [40, 41]])
        queue.close()
    }

    @Test("With a delay, a batch waits for more images, and starts at once when it is full") func delay() throws {
        let predictor = HeldPredictor(permits: 100)
        let options = options { ($0.maximumBatchSize, $0.maximumDelay) = (2, .seconds(60)) }
        let metrics = Metrics()
        let queue = BatchQueue(predictor, options: options, metrics: metrics)
        let group = DispatchGroup()
        let image = image(1)
        for count in 1...2 {
            Thread.detachNewThread(in: group) { _ = try? queue.predict([image]) { false } }
            if count == 1 {
                expectSoon { metrics.queueLength.load(ordering: .relaxed) == 1 }
                #expect(predictor.batches.withLock { $0.isEmpty })
            }
        }
        group.wait()
        #expect(predictor.batches.withLock { $0 } == [[1, 1]])
        queue.close()
    }

    @Test("An image with an error does not affect the others in its batch") func errors() throws {
        let queue = BatchQueue(HeldPredictor(permits: 9), options: options { _ in }, metrics: Metrics())
        let results = try queue.predict([image(1), image(255), image(2)]) { false }
        #expect(results.map { try? $0.get().confidences } == [[1], nil, [2]])
        queue.close()
    }

    @Test("A full queue rejects requests, and drops the images of clients that have closed their connections")
    func capacity() throws {
        let predictor = HeldPredictor(permits: 0)
        let metrics = Metrics()
        let queue = BatchQueue(
            predictor, options: options { ($0.maximumBatchSize, $0.queueCapacity) = (1, 2) }, metrics: metrics)
        #expect { try queue.predict([image(1), image(2), image(3)]) { false } } throws: {
            ($0 as? HTTPError)?.status == .contentTooLarge
        }
        let isAbandoned = Atomic(false)
        let group = DispatchGroup()
        let (first, waiting) = (image(1), [image(2), image(3)])
        Thread.detachNewThread(in: group) { _ = try? queue.predict([first]) { false } }
        expectSoon { predictor.batches.withLock { $0.count } == 1 }
        let hasFailed = Atomic(false)
        withExtendedLifetime(isAbandoned) {
            Thread.detachNewThread(in: group) {
                let results = try? queue.predict(waiting) { isAbandoned.load(ordering: .relaxed) }
                hasFailed.store(results?.allSatisfy { (try? $0.get()) == nil } == true, ordering: .relaxed)
            }
            expectSoon { metrics.queueLength.load(ordering: .relaxed) == 2 }
            #expect { try queue.predict([image(4)]) { false } } throws: {
                ($0 as? HTTPError)?.fields["Retry-After"] == "1" && ($0 as? HTTPError)?.status == .serviceUnavailable
            }
            isAbandoned.store(true, ordering: .relaxed)
            predictor.release(2)
            #expect((try? queue.predict([image(5)]) { false })?.count == 1)
            group.wait()
        }
        let hasFailedAtEnd = hasFailed.load(ordering: .relaxed)
        #expect(hasFailedAtEnd)
        #expect(predictor.batches.withLock { $0 } == [[1], [5]])
        queue.close()
    }

    @Test("If a request is rejected, the length of the queue in the metrics does not count images that were dropped")
    func queueLength() throws {
        let predictor = HeldPredictor(permits: 0)
        let metrics = Metrics()
        let queue = BatchQueue(
            predictor, options: options { ($0.maximumBatchSize, $0.queueCapacity) = (1, 2) }, metrics: metrics)
        let isAbandoned = Atomic(false)
        let group = DispatchGroup()
        let images = (1...3).map { [image($0)] }
        withExtendedLifetime(isAbandoned) {
            Thread.detachNewThread(in: group) { _ = try? queue.predict(images[0]) { false } }
            expectSoon { predictor.batches.withLock { $0.count } == 1 }
            Thread.detachNewThread(in: group) {
                _ = try? queue.predict(images[1]) { isAbandoned.load(ordering: .relaxed) }
            }
            Thread.detachNewThread(in: group) { _ = try? queue.predict(images[2]) { false } }
            expectSoon { metrics.queueLength.load(ordering: .relaxed) == 2 }
            isAbandoned.store(true, ordering: .relaxed)
            #expect(throws: HTTPError.self) { try queue.predict([image(4), image(5)]) { false } }
            let length = metrics.queueLength.load(ordering: .relaxed)
            #expect(length == 1)
            predictor.release(2)
            group.wait()
        }
        queue.close()
    }

    @Test("Closing a queue finishes the images that wait, and rejects others") func close() throws {
        let predictor = HeldPredictor(permits: 0)
        let metrics = Metrics()
        let queue = BatchQueue(
            predictor, options: options { ($0.maximumBatchSize, $0.queueCapacity) = (1, 2) }, metrics: metrics)
        let group = DispatchGroup()
        let counts = Mutex(0)
        let image = image(1)
        for _ in 0..<2 {
            Thread.detachNewThread(in: group) {
                let results = try? queue.predict([image]) { false }
                counts.withLock { $0 += (try? results?[0].get()) == nil ? 0 : 1 }
            }
        }
        expectSoon { predictor.batches.withLock { $0.count } == 1 && metrics.queueLength.load(ordering: .relaxed) == 1 }
        Thread.detachNewThread(in: group) { queue.close() }
        expectSoon {
            // Two more images are always too many.
            do { _ = try queue.predict([image, image]) { false } } catch {
                return (error as? HTTPError)?.message == "the server is stopping"
            }
            return false
        }
        predictor.release(3)
        group.wait()
        #expect(counts.withLock { $0 } == 2)
    }
}

extension Thread {
    /// Runs `body` on a new thread, as a part of a group.
    static func detachNewThread(in group: DispatchGroup, _ body: @escaping @Sendable () -> Void) {
        group.enter()
        detachNewThread {
            body()
            group.leave()
        }
    }
}
