import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintSynthesis
import Synchronization
import Testing

@Suite("Streams of classifications") struct StreamTests {
    private func frames(_ count: Int) -> AsyncStream<ImageSource> {
        AsyncStream { frames in
            for number in 0..<count { frames.yield(.image(testImage(number))) }
            frames.finish()
        }
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
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        let task = Task {
            var number = 0
            while !Task.isCancelled {
                camera.yield(.image(testImage(number)))
                number += 1
                try? await Task.sleep(for: .milliseconds(5))
            }
            camera.finish()
        }
        var times: [ContinuousClock.Instant] = []
        var dropped = 0
        for try await element in try smallModel().classifications(for: frames, every: .milliseconds(100)) {
            times.append(.now)
            dropped += element.droppedCount
            if times.count == 5 { break }
        }
        task.cancel()
        #expect(times[4] - times[0] >= .milliseconds(360))
        #expect(dropped > 0)
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
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        let stream = try smallModel().classifications(for: frames, every: .zero)
        stream.isPaused = true
        let classified = Mutex<[Int]>([])
        let task = Task {
            for try await element in stream { classified.withLock { $0.append(element.frame) } }
        }
        for number in 0..<10 {
            camera.yield(.image(testImage(number)))
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(classified.withLock { $0 }.isEmpty && stream.isPaused)
        stream.isPaused = false
        camera.yield(.image(testImage(10)))
        camera.finish()
        try await task.value
        #expect(classified.withLock { $0 } == [10])
    }

    @Test("A frame that arrived before or during a pause is not classified after it")
    func waitingFrame() async throws {
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        let classifier = try smallModel()
        let stream = classifier.classifications(for: frames, every: .milliseconds(300), smoothing: 0.9)
        camera.yield(.image(testImage(0)))
        var classified: [Int] = []
        for try await element in stream {
            classified.append(element.frame)
            // Smoothing restarts after the pause.
            #expect(try element.classifications == classifier.classify(testImage(element.frame)))
            guard classified.count == 1 else { continue }
            // This frame and the pause are within the interval.
            camera.yield(.image(testImage(1)))
            try await Task.sleep(for: .milliseconds(30))
            stream.isPaused = true
            camera.yield(.image(testImage(2)))
            try await Task.sleep(for: .milliseconds(30))
            stream.isPaused = false
            Task {
                try await Task.sleep(for: .milliseconds(500))
                camera.yield(.image(testImage(3)))
                camera.finish()
            }
        }
        #expect(classified == [0, 3])
    }

    @Test("Unreadable frames are skipped and reported; a stream without a readable frame is an error")
    func unreadable() async throws {
        let broken = ImageSource.data(Data("no image".utf8))
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        camera.yield(.image(testImage(0)))
        var elements: [ClassificationStream.Element] = []
        for try await element in try smallModel().classifications(for: frames, every: .milliseconds(20)) {
            elements.append(element)
            if elements.count == 1 {
                camera.yield(broken)
                Task {
                    try await Task.sleep(for: .milliseconds(200))
                    camera.yield(.image(testImage(2)))
                    camera.finish()
                }
            }
        }
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
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        camera.yield(.image(testImage(0)))
        var elements: [ClassificationStream.Element] = []
        for try await element in try smallModel().classifications(for: frames, every: .zero) {
            elements.append(element)
            guard elements.count == 1 else { continue }
            Task {
                for _ in 0..<100 {
                    camera.yield(.data(Data("no image".utf8)))
                    try await Task.sleep(for: .milliseconds(5))
                }
                camera.yield(.image(testImage(1)))
                camera.finish()
            }
        }
        try #require(elements.map(\.frame) == [0, 101])
        #expect(elements[1].unreadableCount + elements[1].droppedCount == 100)
        #expect(elements[1].unreadable.count == min(elements[1].unreadableCount, 16))
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
        let isStopped = Mutex(false)
        camera.onTermination = { _ in isStopped.withLock { $0 = true } }
        camera.yield(.image(testImage(0)))
        let stream = try smallModel().classifications(for: frames, every: .zero)
        let task = Task {
            for try await _ in stream where byLeaving { return }
        }
        if !byLeaving {
            try await Task.sleep(for: .milliseconds(50))
            task.cancel()
        }
        _ = await task.result
        let deadline = ContinuousClock.now + .seconds(10)
        while !isStopped.withLock({ $0 }), .now < deadline { try await Task.sleep(for: .milliseconds(5)) }
        #expect(isStopped.withLock { $0 })
    }
}
