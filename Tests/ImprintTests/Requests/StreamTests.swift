import Foundation
import ImprintImages
import ImprintModel
import ImprintSynthesis
import Testing

@testable import Imprint

@Suite("Streams of classifications", .timeLimit(.minutes(10))) struct StreamTests {
    private func frames(_ count: Int) -> AsyncStream<ImageSource> {
        AsyncStream { frames in
            for number in 0..<count { frames.yield(.image(testImage(number))) }
            frames.finish()
        }
    }

    /// Returns a stream that waits 0.1 s between frames.
    private func stream(
        _ camera: TestCamera, _ clock: StreamClock, _ classifier: ImageClassifier? = nil, smoothing: Float = 0
    ) throws -> ClassificationStream {
        ClassificationStream(
            ClassificationRequest(try classifier ?? smallModel()), frames: camera, interval: .milliseconds(100),
            smoothing: smoothing, clock: clock.frameClock)
    }

    @Test("Frames that arrive one by one are all classified, in order")
    func everyFrame() async throws {
        let classifier = try smallModel()
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        camera.yield(.image(testImage(0)))
        var number = 0
        for try await element in classifier.classifications(for: frames, every: .zero) {
            #expect(element.frame == number && element.droppedCount == 0 && element.unreadable.isEmpty)
            #expect(try element.classifications == classifier.classify(testImage(number)))
            number += 1
            if number < 20 { camera.yield(.image(testImage(number))) } else { camera.finish() }
        }
        #expect(number == 20)
    }

    @Test("If frames arrive too fast, the newest is classified and dropped frames are counted")
    func newest() async throws {
        let classifier = try smallModel()
        var count = 0
        var last = 0
        // All frames arrive before the first one has been classified.
        for try await element in classifier.classifications(for: frames(1000), every: .milliseconds(50)) {
            count += element.droppedCount + 1
            last = element.frame
            #expect(try element.classifications == classifier.classify(testImage(element.frame)))
        }
        #expect(last == 999 && count == 1000)
    }

    @Test("The interval between classified frames is at least the given duration")
    func rate() async throws {
        let (camera, clock) = (TestCamera(), StreamClock())
        let stream = try stream(camera, clock)
        // Three frames arrive in each interval.
        clock.onWait { number in
            for index in (3 * number - 2)...(3 * number) { try await camera.deliver(.image(testImage(index))) }
        }
        camera.send(.image(testImage(0)))
        var times: [ContinuousClock.Instant] = []
        for try await element in stream {
            #expect(element.frame == 3 * times.count && element.droppedCount == (times.isEmpty ? 0 : 2))
            times.append(clock.now)
            if times.count == 5 { break }
        }
        for (number, time) in times.enumerated() { #expect(time - times[0] == .milliseconds(100 * number)) }
        #expect(times.count == 5)
    }

    @Test(
        "An interval or a smoothing out of range is an error of the first frame",
        arguments: [(-1, 0), (0, 1), (0, -0.1), (0, .nan)] as [(Double, Float)])
    func invalid(seconds: Double, smoothing: Float) async throws {
        let stream = try smallModel().classifications(for: frames(1), every: .seconds(seconds), smoothing: smoothing)
        let error = await #expect(throws: ImprintError.self) { for try await _ in stream {} }
        guard case .invalidSetting(seconds < 0 ? "interval" : "smoothing", _, _) = error else {
            Issue.record("\(error.map { "\($0)" } ?? "")")
            return
        }
    }

    @Test("Smoothing is an exponential moving average of the confidences", arguments: [0, 0.5, 0.9] as [Float])
    func smoothing(factor: Float) async throws {
        let classifier = try smallModel()
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        camera.yield(.image(testImage(0)))
        var expected: [String: Float] = [:]
        var number = 0
        for try await element in classifier.classifications(for: frames, every: .zero, smoothing: factor) {
            for classification in try classifier.classify(testImage(number)) {
                let before = expected[classification.label] ?? classification.confidence
                expected[classification.label] = factor * before + (1 - factor) * classification.confidence
            }
            let confidences = element.classifications.map(\.confidence)
            #expect(confidences == confidences.sorted(by: >))
            for classification in element.classifications {
                #expect(abs(classification.confidence - (expected[classification.label] ?? -1)) < 1e-6)
            }
            number += 1
            if number < 8 { camera.yield(.image(testImage(number))) } else { camera.finish() }
        }
        #expect(number == 8)
    }

    @Test(
        "A new model resets the history, even if it has the same labels",
        arguments: [["x", "y", "z"], ["a", "b", "c"]])
    func otherModel(labels: [String]) async throws {
        let models = [try smallModel(), try smallModel(labels: labels, seed: 2)]
        let live = LiveClassifier(models[0])
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        camera.yield(.image(testImage(0)))
        var number = 0
        let request = ClassificationRequest(live)
        for try await element in request.classifications(for: frames, every: .zero, smoothing: 0.9) {
            if number == 0 { #expect(try element.classifications == models[0].classify(testImage(0))) }
            if number == 1 { #expect(try element.classifications == models[1].classify(testImage(1))) }
            number += 1
            live.replace(with: models[1])
            if number < 2 { camera.yield(.image(testImage(number))) } else { camera.finish() }
        }
        #expect(number == 2)
    }

    @Test("A paused stream drops frames, and continues with the next frame after the pause")
    func pause() async throws {
        let (camera, clock) = (TestCamera(), StreamClock())
        let stream = try stream(camera, clock)
        clock.onWait { number in
            guard number <= 11 else { return }
            stream.isPaused = number <= 10
            #expect(stream.isPaused == (number <= 10))
            try await camera.deliver(.image(testImage(number)))
            if number == 11 { camera.finish() }
        }
        camera.send(.image(testImage(0)))
        var elements: [ClassificationStream.Element] = []
        for try await element in stream { elements.append(element) }
        #expect(elements.map(\.frame) == [0, 11] && elements.map(\.droppedCount) == [0, 10])
    }

    @Test(
        "A frame that arrived before or during a pause is not classified after it, and smoothing restarts",
        arguments: [true, false])
    func waitingFrame(arrivesBefore: Bool) async throws {
        let (camera, clock, classifier) = (TestCamera(), StreamClock(), try smallModel())
        let stream = try stream(camera, clock, classifier, smoothing: 0.9)
        clock.onWait { number in
            if number == 1 {
                // The frame and the pause are within the interval.
                if arrivesBefore { try await camera.deliver(.image(testImage(1))) }
                stream.isPaused = true
                if !arrivesBefore { try await camera.deliver(.image(testImage(1))) }
                stream.isPaused = false
            } else if number == 2 {
                try await camera.deliver(.image(testImage(2)))
                camera.finish()
            }
        }
        camera.send(.image(testImage(0)))
        var classified: [Int] = []
        for try await element in stream {
            classified.append(element.frame)
            #expect(try element.classifications == classifier.classify(testImage(element.frame)))
        }
        #expect(classified == [0, 2])
    }

    @Test("Unreadable frames are skipped and reported; a stream without a readable frame is an error")
    func unreadable() async throws {
        let broken = ImageSource.data(Data("no image".utf8))
        let (camera, clock) = (TestCamera(), StreamClock())
        clock.onWait { number in
            if number == 1 { try await camera.deliver(broken) }
            guard number == 2 else { return }
            try await camera.deliver(.image(testImage(2)))
            camera.finish()
        }
        camera.send(.image(testImage(0)))
        var elements: [ClassificationStream.Element] = []
        for try await element in try stream(camera, clock) { elements.append(element) }
        #expect(elements.map(\.frame) == [0, 2] && elements.map(\.droppedCount) == [0, 0])
        #expect(elements.map(\.unreadable.count) == [0, 1] && elements.map(\.unreadableCount) == [0, 1])
        let none = AsyncStream<ImageSource> { frames in
            frames.yield(broken)
            frames.finish()
        }
        await #expect(throws: ImageError.self) {
            for try await _ in try smallModel().classifications(for: none) { Issue.record("no frame is readable") }
        }
    }

    @Test("All unreadable frames are counted, and the latest ones are reported")
    func manyUnreadable() async throws {
        let (camera, clock) = (TestCamera(), StreamClock())
        clock.onWait { number in
            if number <= 100 { try await camera.deliver(.data(Data("no image".utf8))) }
            guard number == 101 else { return }
            try await camera.deliver(.image(testImage(1)))
            camera.finish()
        }
        camera.send(.image(testImage(0)))
        var elements: [ClassificationStream.Element] = []
        for try await element in try stream(camera, clock) { elements.append(element) }
        #expect(elements.map(\.frame) == [0, 101] && elements.map(\.droppedCount) == [0, 0])
        #expect(elements.map(\.unreadableCount) == [0, 100] && elements.map(\.unreadable.count) == [0, 16])
    }

    private struct CameraError: Error {}

    @Test("An error of the camera ends the stream")
    func failing() async throws {
        let (frames, camera) = AsyncThrowingStream.makeStream(of: ImageSource.self)
        camera.yield(.image(testImage(0)))
        var count = 0
        await #expect(throws: CameraError.self) {
            for try await _ in try smallModel().classifications(for: frames, every: .zero) {
                count += 1
                camera.finish(throwing: CameraError())
            }
        }
        #expect(count == 1)
    }

    @Test("Leaving the loop or cancelling the task stops the camera", arguments: [true, false])
    func ends(byLeaving: Bool) async throws {
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        camera.onTermination = { _ in end.yield() }
        camera.yield(.image(testImage(0)))
        let stream = try smallModel().classifications(for: frames, every: .zero)
        let (results, result) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            defer { result.finish() }
            for try await _ in stream {
                if byLeaving { return }
                result.yield()
            }
        }
        if !byLeaving {
            for await _ in results { break }
            task.cancel()
        }
        _ = await task.result
        // The time limit of the suite ends this wait if the camera does not stop.
        var isStopped = false
        for await _ in ends {
            isStopped = true
            break
        }
        #expect(isStopped)
    }
}
