import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintSynthesis
import Synchronization
import Testing

@Suite("Streams of observations") struct StreamTests {
    private func frames(_ count: Int) -> AsyncStream<ImageSource> {
        AsyncStream { frames in
            for number in 0..<count { frames.yield(.image(picture(number))) }
            frames.finish()
        }
    }

    @Test("Frames that come one by one are all seen, in order, as the classifier sees them")
    func everyFrame() async throws {
        let classifier = try smallModel()
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        camera.yield(.image(picture(0)))
        var number = 0
        for try await seen in classifier.observations(for: frames, every: .zero) {
            #expect(seen.frame == number && seen.droppedCount == 0 && seen.unreadable.isEmpty)
            #expect(try seen.observations == classifier.classify(picture(number)))
            number += 1
            if number < 20 { camera.yield(.image(picture(number))) } else { camera.finish() }
        }
        #expect(number == 20)
    }

    @Test("Of frames that come too fast the newest wins, and what is dropped is counted")
    func newest() async throws {
        let classifier = try smallModel()
        var count = 0
        var last = 0
        // All are there before the first is looked at, or while it is.
        for try await seen in classifier.observations(for: frames(1000), every: .milliseconds(50)) {
            count += seen.droppedCount + 1
            last = seen.frame
            #expect(try seen.observations == classifier.classify(picture(seen.frame)))
        }
        #expect(last == 999 && count == 1000)
    }

    @Test("Keeps the rate: no two frames are looked at closer together than the time given")
    func rate() async throws {
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        let task = Task {
            var number = 0
            while !Task.isCancelled {
                camera.yield(.image(picture(number)))
                number += 1
                try? await Task.sleep(for: .milliseconds(5))
            }
            camera.finish()
        }
        var times: [ContinuousClock.Instant] = []
        var dropped = 0
        for try await seen in try smallModel().observations(for: frames, every: .milliseconds(100)) {
            times.append(.now)
            dropped += seen.droppedCount
            if times.count == 5 { break }
        }
        task.cancel()
        #expect(times[4] - times[0] >= .milliseconds(360))
        #expect(dropped > 0)
    }

    @Test(
        "A rate or a smoothing out of range is an error of the first frame",
        arguments: [(-1, 0), (0, 1), (0, -0.1), (0, .nan)] as [(Double, Float)])
    func invalid(seconds: Double, smoothing: Float) async throws {
        let stream = try smallModel().observations(for: frames(1), every: .seconds(seconds), smoothing: smoothing)
        let error = await #expect(throws: ImprintError.self) { for try await _ in stream {} }
        guard case .invalidSetting(seconds < 0 ? "interval" : "smoothing", _, _) = error else {
            Issue.record("\(error.map { "\($0)" } ?? "")")
            return
        }
    }

    @Test("Smooths: a confidence follows what is seen, by the share given", arguments: [0, 0.5, 0.9] as [Float])
    func smoothing(share: Float) async throws {
        let classifier = try smallModel()
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        camera.yield(.image(picture(0)))
        var expected: [String: Float] = [:]
        var number = 0
        for try await seen in classifier.observations(for: frames, every: .zero, smoothing: share) {
            for observation in try classifier.classify(picture(number)) {
                let before = expected[observation.label] ?? observation.confidence
                expected[observation.label] = share * before + (1 - share) * observation.confidence
            }
            #expect(seen.observations.map(\.confidence) == seen.observations.map(\.confidence).sorted(by: >))
            for observation in seen.observations {
                #expect(abs(observation.confidence - (expected[observation.label] ?? -1)) < 1e-6)
            }
            number += 1
            if number < 8 { camera.yield(.image(picture(number))) } else { camera.finish() }
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
        camera.yield(.image(picture(0)))
        var number = 0
        for try await seen in ClassificationRequest(live).observations(for: frames, every: .zero, smoothing: 0.9) {
            if number == 0 { #expect(try seen.observations == models[0].classify(picture(0))) }
            if number == 1 { #expect(try seen.observations == models[1].classify(picture(1))) }
            number += 1
            live.replace(with: models[1])
            if number < 2 { camera.yield(.image(picture(number))) } else { camera.finish() }
        }
        #expect(number == 2)
    }

    @Test("A pause drops frames unseen, and the next is one from after it")
    func pause() async throws {
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        let stream = try smallModel().observations(for: frames, every: .zero)
        stream.isPaused = true
        let seen = Mutex<[Int]>([])
        let task = Task {
            for try await element in stream { seen.withLock { $0.append(element.frame) } }
        }
        for number in 0..<10 {
            camera.yield(.image(picture(number)))
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(seen.withLock { $0 }.isEmpty && stream.isPaused)
        stream.isPaused = false
        camera.yield(.image(picture(10)))
        camera.finish()
        try await task.value
        #expect(seen.withLock { $0 } == [10])
    }

    @Test("A frame that waited through a pause is not seen after it")
    func waitingFrame() async throws {
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        let classifier = try smallModel()
        let stream = classifier.observations(for: frames, every: .milliseconds(300), smoothing: 0.9)
        camera.yield(.image(picture(0)))
        var seen: [Int] = []
        for try await element in stream {
            seen.append(element.frame)
            // Nothing of what was seen before the pause is in what is seen after it.
            #expect(try element.observations == classifier.classify(picture(element.frame)))
            guard seen.count == 1 else { continue }
            // Comes before it is time, as does the whole of the pause.
            camera.yield(.image(picture(1)))
            try await Task.sleep(for: .milliseconds(30))
            stream.isPaused = true
            camera.yield(.image(picture(2)))
            try await Task.sleep(for: .milliseconds(30))
            stream.isPaused = false
            Task {
                try await Task.sleep(for: .milliseconds(500))
                camera.yield(.image(picture(3)))
                camera.finish()
            }
        }
        #expect(seen == [0, 3])
    }

    @Test("Frames that cannot be read are left out and named; only frames none of which can be are an error")
    func unreadable() async throws {
        let broken = ImageSource.data(Data("no picture".utf8))
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        camera.yield(.image(picture(0)))
        var elements: [ObservationStream.Element] = []
        for try await element in try smallModel().observations(for: frames, every: .milliseconds(20)) {
            elements.append(element)
            if elements.count == 1 {
                camera.yield(broken)
                Task {
                    try await Task.sleep(for: .milliseconds(200))
                    camera.yield(.image(picture(2)))
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
            for try await _ in try smallModel().observations(for: none) { Issue.record("nothing can be seen") }
        }
    }

    @Test("Of many frames that cannot be read the latest are named and all are counted")
    func manyUnreadable() async throws {
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        camera.yield(.image(picture(0)))
        var elements: [ObservationStream.Element] = []
        for try await element in try smallModel().observations(for: frames, every: .zero) {
            elements.append(element)
            guard elements.count == 1 else { continue }
            Task {
                for _ in 0..<100 {
                    camera.yield(.data(Data("no picture".utf8)))
                    try await Task.sleep(for: .milliseconds(5))
                }
                camera.yield(.image(picture(1)))
                camera.finish()
            }
        }
        try #require(elements.map(\.frame) == [0, 101])
        #expect(elements[1].unreadableCount + elements[1].droppedCount == 100)
        #expect(elements[1].unreadable.count == min(elements[1].unreadableCount, 16))
    }

    private struct CameraLost: Error {}

    @Test("What the camera throws ends the stream")
    func failing() async throws {
        let (frames, camera) = AsyncThrowingStream.makeStream(of: ImageSource.self)
        camera.yield(.image(picture(0)))
        var count = 0
        await #expect(throws: CameraLost.self) {
            for try await _ in try smallModel().observations(for: frames, every: .zero) {
                count += 1
                camera.finish(throwing: CameraLost())
            }
        }
        #expect(count == 1)
    }

    @Test("Who stops looking stops the camera, by leaving the loop and by cancelling", arguments: [true, false])
    func ends(byLeaving: Bool) async throws {
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        let isStopped = Mutex(false)
        camera.onTermination = { _ in isStopped.withLock { $0 = true } }
        camera.yield(.image(picture(0)))
        let stream = try smallModel().observations(for: frames, every: .zero)
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
