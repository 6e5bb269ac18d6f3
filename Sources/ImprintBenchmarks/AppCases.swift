internal import Dispatch
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel

extension BenchmarkCase {
    /// Creates a case in which several tasks send requests for one photo to a shared classifier with one thread.
    static func requests(tasks: Int) -> BenchmarkCase {
        let name = "requests/\(tasks)-task\(tasks == 1 ? "" : "s")"
        return BenchmarkCase(suite: .apps, name: name) { options in
            let image = RasterImage.synthetic(width: 640, height: 480)
            let model = try ModelFile.untrained("mobilenet-v1")
            let quantized = try options.quantized(model, for: [model.preprocessing.prepare(image)])
            let request = ClassificationRequest(try ImageClassifier(quantized, precision: options.precision))
            let photo = ImageSource.data(Data(try ImageFile.encodeJPEG(image)))
            // A run takes about half a second.
            let requestsPerTask = max(32 / tasks, 2)
            let measurement = try Measurement(seconds: options.seconds) {
                try waitForCompletion {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<tasks {
                            group.addTask {
                                for _ in 0..<requestsPerTask { _ = try await request.perform(on: photo) }
                            }
                        }
                        try await group.waitForAll()
                    }
                }
            }
            return BenchmarkResult(
                .apps, name, options, measurement.rates(of: Double(tasks * requestsPerTask)), .imagesPerSecond,
                of: measurement, batch: tasks * requestsPerTask)
        }
    }

    /// Classification of the newest frames of a camera with 30 frames per second, which is faster than `resnet-50`.
    ///
    /// The relevant result is the peak memory.
    static let stream = BenchmarkCase(suite: .apps, name: "stream-30-fps") { options in
        let model = try ModelFile.untrained("resnet-50")
        let photo = model.preprocessing.prepare(RasterImage.synthetic(width: 1280, height: 720))
        let classifier = try ImageClassifier(
            options.quantized(model, for: [photo]), threads: options.threads, precision: options.precision)
        // The frames differ, and are JPEGs like the camera frames of a browser.
        let frames = try (0..<16).map { index in
            var image = RasterImage.synthetic(width: 1280, height: 720)
            image.samples[index] &+= 1
            return Data(try ImageFile.encodeJPEG(image))
        }
        let (seconds, clock) = (options.seconds, ContinuousClock())
        var (times, dropped): ([Double], Int) = ([], 0)
        try waitForCompletion {
            let (camera, continuation) = AsyncStream.makeStream(of: ImageSource.self)
            let task = Task {
                let start = clock.now
                var count = 0
                while clock.now - start < .seconds(seconds), !Task.isCancelled {
                    continuation.yield(.data(frames[count % frames.count]))
                    count += 1
                    try? await Task.sleep(until: start + .seconds(1) * count / 30, clock: .continuous)
                }
                continuation.finish()
            }
            defer { task.cancel() }
            var before = clock.now
            for try await result in classifier.classifications(for: camera, every: .zero) {
                dropped += result.droppedCount
                times.append((clock.now - before) / .seconds(1))
                before = clock.now
            }
        }
        let measurement = Measurement(times: times)
        var result = BenchmarkResult(
            .apps, "stream-30-fps", options, measurement.rates(of: 1), .imagesPerSecond, of: measurement, batch: 1)
        result.percentDropped = rounded(100 * Double(dropped) / Double(dropped + times.count))
        return result
    }
}

/// Runs an asynchronous operation and blocks the calling thread until it completes.
private func waitForCompletion(_ body: @escaping () async throws -> Void) throws {
    nonisolated(unsafe) let body = body
    let done = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var failure: (any Error)?
    Task.detached {
        do { try await body() } catch { failure = error }
        done.signal()
    }
    done.wait()
    if let failure { throw failure }
}
