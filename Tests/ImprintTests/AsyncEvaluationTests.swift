import Dispatch
import Foundation
import Imprint
import ImprintImages
import ImprintTraining
import Synchronization
import Testing

@Suite("Asynchronous evaluation", .timeLimit(.minutes(10))) struct AsyncEvaluationTests {
    /// Returns photos in memory.
    private func photos() throws -> InMemorySource {
        var source = InMemorySource(labels: ["a", "b"])
        for index in 0..<6 { try source.append(testImage(index), labels: [index % 2 == 0 ? "a" : "b"]) }
        return source
    }

    @Test("An asynchronous evaluation has the result of a blocking one") func equality() async throws {
        let (classifier, photos) = (try smallModel(labels: ["a", "b"]), try photos())
        func blocking() throws -> Evaluation { try classifier.evaluate(on: photos) }
        let evaluation = try await classifier.evaluate(on: photos)
        let expected = try blocking()
        #expect(evaluation.results.count == 6 && evaluation.accuracy == expected.accuracy)
        #expect(evaluation.results.map(\.confidences) == expected.results.map(\.confidences))
    }

    @Test("An asynchronous multi-label evaluation has the result of a blocking one") func multiLabel() async throws {
        let (classifier, photos) = (try smallModel(labels: ["a", "b"], isShared: false), try photos())
        func blocking() throws -> MultiLabelEvaluation { try classifier.evaluateMultiLabel(on: photos) }
        let done = Mutex<[Int]>([])
        let evaluation = try await classifier.evaluateMultiLabel(on: photos) { count in
            done.withLock { $0.append(count) }
        }
        let (reported, expected) = (done.withLock { $0 }, try blocking())
        #expect(reported.last == 6 && evaluation.results == expected.results)
    }

    @Test("An asynchronous evaluation throws the errors of a blocking one") func errors() async throws {
        let (classifier, photos) = (try smallModel(labels: ["a", "c"]), try photos())
        await #expect(throws: ImprintError.self) { try await classifier.evaluate(on: photos) }
    }

    /// Photos that are loaded on demand.
    private struct SlowPhotos: TrainingSource {
        let name = "slow photos"
        let labels = ["a", "b"]
        let items: [TrainingPhoto]
        let digest = "1"

        func identifier(of item: TrainingPhoto) -> String { item.identifier }
    }

    @Test("Cancelling the task ends the evaluation before the next photo", arguments: [false, true])
    func cancellation(isMultiLabel: Bool) async throws {
        let (started, continuation) = AsyncStream.makeStream(of: Void.self)
        let isCancelled = DispatchSemaphore(value: 0)
        let loads = Mutex(0)
        let load: @Sendable () throws -> Data = {
            loads.withLock { $0 += 1 }
            continuation.yield()
            isCancelled.wait()
            // Further loads, which are an error, do not wait.
            isCancelled.signal()
            return Data()
        }
        let photos = SlowPhotos(
            items: (0..<20).map { TrainingPhoto(identifier: "\($0)", labels: [$0 % 2], data: load) })
        let classifier = try smallModel(labels: ["a", "b"], isShared: !isMultiLabel)
        let task = Task {
            if isMultiLabel {
                _ = try await classifier.evaluateMultiLabel(on: photos)
            } else {
                _ = try await classifier.evaluate(on: photos)
            }
        }
        for await _ in started { break }
        task.cancel()
        isCancelled.signal()
        await #expect(throws: CancellationError.self) { try await task.value }
        let count = loads.withLock { $0 }
        #expect(count == 1)
    }
}
