internal import Dispatch
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel

extension BenchmarkCase {
    /// Requests over one photo, from so many tasks that share a classifier of one thread.
    static func requests(tasks: Int) -> BenchmarkCase {
        let name = "requests/\(tasks)-task\(tasks == 1 ? "" : "s")"
        return BenchmarkCase(suite: .apps, name: name) { options in
            let request = ClassificationRequest(try ImageClassifier(.untrained("mobilenet-v1")))
            let photo = ImageSource.data(Data(try ImageFile.encodeJPEG(.madeUp(width: 640, height: 480))))
            // A whole number of requests for each task, of about half a second.
            let perTask = max(32 / tasks, 2)
            let measurement = try Measurement(seconds: options.seconds) {
                try waiting {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<tasks {
                            group.addTask {
                                for _ in 0..<perTask { _ = try await request.perform(on: photo) }
                            }
                        }
                        try await group.waitForAll()
                    }
                }
            }
            return BenchmarkResult(
                .apps, name, options, measurement.rates(of: Double(tasks * perTask)), .imagesPerSecond, of: measurement,
                batch: tasks * perTask)
        }
    }

    /// A camera of 30 frames a second, more than `resnet-50` keeps up with, whose newest frame is looked at again and again; what counts is
    /// the peak of memory after so many seconds.
    static let stream = BenchmarkCase(suite: .apps, name: "stream-30-fps") { options in
        let classifier = try ImageClassifier(.untrained("resnet-50"), threads: options.threads)
        // Each frame is a picture of its own, encoded as cameras of browsers do it.
        let frames = try (0..<16).map { number in
            var image = RasterImage.madeUp(width: 1280, height: 720)
            image.samples[number] &+= 1
            return Data(try ImageFile.encodeJPEG(image))
        }
        let (seconds, clock) = (options.seconds, ContinuousClock())
        var (times, dropped): ([Double], Int) = ([], 0)
        try waiting {
            let (camera, shutter) = AsyncStream.makeStream(of: ImageSource.self)
            let task = Task {
                let start = clock.now
                var number = 0
                while clock.now - start < .seconds(seconds), !Task.isCancelled {
                    shutter.yield(.data(frames[number % frames.count]))
                    number += 1
                    try? await Task.sleep(until: start + .seconds(1) * number / 30, clock: .continuous)
                }
                shutter.finish()
            }
            defer { task.cancel() }
            var before = clock.now
            for try await seen in classifier.observations(for: camera, every: .zero) {
                dropped += seen.droppedCount
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

/// Waits for what is asynchronous, on a thread that has nothing else to do.
private func waiting(_ body: @escaping () async throws -> Void) throws {
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
