import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import Testing

@testable import Imprint

/// Identities of objects over the frames of a video.
@Suite(.timeLimit(.minutes(10))) struct DetectionStreamTests {
    /// Returns an object with a box of 0.2 x 0.2.
    private func object(_ label: String, _ x: Float, _ y: Float = 0.5) -> DetectedObject {
        DetectedObject(label: label, confidence: 0.9, box: NormalizedRectangle(x: x, y: y, width: 0.2, height: 0.2))
    }

    @Test("Objects that move keep their identities, in any order") func moving() {
        var tracker = ObjectTracker()
        #expect(tracker.update(with: [object("a", 0), object("a", 0.5)]).map(\.id) == [1, 2])
        for step in 1...4 {
            let x = Float(step) * 0.05
            let tracked = tracker.update(with: [object("a", 0.5 - x), object("a", x)])
            #expect(tracked.map(\.id) == [2, 1])
            #expect(tracked.map(\.frameCount) == [step + 1, step + 1])
            #expect(tracked[0].object == object("a", 0.5 - x))
        }
    }

    @Test("The largest overlap decides, and an object of another label is a new one") func closest() {
        var tracker = ObjectTracker()
        #expect(tracker.update(with: [object("a", 0.3)]).map(\.id) == [1])
        #expect(tracker.update(with: [object("a", 0.36), object("a", 0.31), object("b", 0.3)]).map(\.id) == [2, 1, 3])
    }

    @Test("An object that is lost for a few frames keeps its identity, and then a new one follows", arguments: [0, 2])
    func lost(limit: Int) throws {
        var tracker = try ObjectTracker(minimumIoU: 0.5, maximumMissedFrames: limit)
        #expect(tracker.update(with: [object("a", 0.3)]).map(\.id) == [1])
        for _ in 0..<limit { #expect(tracker.update(with: []).isEmpty) }
        #expect(tracker.update(with: [object("a", 0.32)]).map { [$0.id, $0.frameCount] } == [[1, 2]])
        for _ in 0...limit { #expect(tracker.update(with: []).isEmpty) }
        #expect(tracker.update(with: [object("a", 0.32)]).map { [$0.id, $0.frameCount] } == [[2, 1]])
    }

    @Test("A box that moves too far, or has no area, starts a new track") func far() {
        var tracker = ObjectTracker()
        let empty = DetectedObject(
            label: "a", confidence: 1, box: NormalizedRectangle(x: 0.1, y: 0.1, width: 0, height: .nan))
        #expect(tracker.update(with: [object("a", 0), empty]).map(\.id) == [1, 2])
        #expect(tracker.update(with: [object("a", 0.15), empty]).map(\.id) == [3, 4])
    }

    @Test(
        "Settings of a tracker out of range are errors",
        arguments: [(0, 1, "0"), (1.5, 1, "1.5"), (.nan, 1, "nan"), (0.5, -1, "-1")] as [(Float, Int, String)])
    func settings(overlap: Float, missed: Int, found: String) {
        let error =
            missed < 0
            ? ImprintError.invalidSetting(name: "maximumMissedFrames", found: found, expected: "0 or more")
            : .invalidSetting(name: "minimumIoU", found: found, expected: "more than 0, and at most 1")
        #expect(throws: error) {
            _ = try ObjectTracker(minimumIoU: overlap, maximumMissedFrames: missed)
        }
    }

    private func detector() throws -> ImageClassifier {
        let network = try Network.logoDetector(logos: 1, regressesBoxes: true)
        return try ImageClassifier(
            ModelFile(
                network: network, parameters: try Parameters(network, seed: 2), labels: ["logo", "other"],
                preprocessing: .logoDetector,
                detector: .logoDetector(logos: [.init(label: "logo", slope: 0.5)], regressesBoxes: true)))
    }

    @Test("A stream finds the objects of each frame, with the same identities in equal frames") func stream()
        async throws
    {
        let detector = try detector()
        let (frames, camera) = AsyncStream.makeStream(of: ImageSource.self)
        let image = testImage(1)
        var request = DetectionRequest(detector, minimumConfidence: 0)
        request.regionOfInterest = NormalizedRectangle(x: 0, y: 0, width: 1, height: 0.5)
        let expected = try await request.perform(on: .image(image))
        camera.yield(.image(image))
        var count = 0
        for try await element in request.detections(for: frames, every: .zero) {
            #expect(element.frame == count && element.droppedCount == 0 && element.unreadableCount == 0)
            #expect(element.objects.map(\.object) == expected && !expected.isEmpty)
            #expect(element.objects.map(\.id) == Array(1...expected.count))
            #expect(element.objects.allSatisfy { $0.frameCount == count + 1 })
            count += 1
            if count < 4 { camera.yield(.image(image)) } else { camera.finish() }
        }
        #expect(count == 4)
    }

    @Test("A paused detection stream drops frames, and a classifier is an error") func pause() async throws {
        let camera = TestCamera()
        let stream = DetectionRequest(try detector()).detections(for: camera, every: .zero)
        stream.isPaused = true
        #expect(stream.isPaused)
        var iterator = stream.makeAsyncIterator()
        try await camera.deliver(.image(testImage(1)))
        stream.isPaused = false
        try await camera.deliver(.image(testImage(2)))
        let element = try #require(try await iterator.next())
        #expect(element.frame == 1 && element.droppedCount == 1)
        camera.finish()
        #expect(try await iterator.next() == nil)
        let (others, second) = AsyncStream.makeStream(of: ImageSource.self)
        second.yield(.image(testImage(1)))
        await #expect(throws: ImprintError.notADetector(network: "small")) {
            for try await _ in DetectionRequest(try smallModel()).detections(for: others, every: .zero) {}
        }
    }
}
