import Foundation
import ImprintImages
import ImprintModel
import Synchronization
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintInterop
@testable import ImprintNetwork
@testable import ImprintSynthesis
@testable import ImprintTraining

/// Teaching a folder of photos: limits, pauses and what is kept.
@Suite struct FolderLessonTests {
    private func withPhotos(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let photos = folder.appending(path: "photos")
            try write(stripes(2, count: 6), label: "stripes", in: photos)
            try write(stripes(5, count: 4), label: "left", in: photos)
            try body(folder)
        }
    }

    private func lesson(
        _ folder: URL, cache: URL? = nil, control: PersonalizationControl = PersonalizationControl(),
        change: (inout PersonalizationConfiguration) -> Void = { _ in }, onProgress: (Int, Int) -> Void = { _, _ in }
    ) throws -> (result: PersonalizationResult, session: PersonalizationSession) {
        var configuration = PersonalizationConfiguration()
        change(&configuration)
        let session = try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
        let photos = try ImageFolder(at: folder.appending(path: "photos"), minimumClasses: 1)
        return (try session.teach(photos, cache: cache, control: control, onProgress: onProgress), session)
    }

    @Test("All photos are learned from, and broken ones are skipped; the threads make no difference")
    func all() throws {
        try withPhotos { folder in
            try Data("no picture".utf8).write(to: folder.appending(path: "photos/left/broken.png"))
            var progress: [Int] = []
            let (result, session) = try lesson(folder, onProgress: { done, _ in progress.append(done) })
            #expect(result.examples == 10 && result.skipped.count == 1 && result.leftOut == 0)
            #expect(result.ending == .completed && progress.last == 11)
            let accuracy = try #require(result.accuracy)
            #expect(accuracy.after > accuracy.before && accuracy.after >= 0.8)
            let more = try lesson(folder) { $0.threads = 3 }.session
            #expect(more.personalization == session.personalization)
            let background = try lesson(folder) { $0.isBackground = true }.session
            #expect(background.personalization == session.personalization)
        }
    }

    @Test("Without enough memory some photos are left out, of each label alike")
    func memory() throws {
        try withPhotos { folder in
            let (result, session) = try lesson(folder) { ($0.views, $0.memoryLimit) = (1, 5 * 128 + 1) }
            #expect(result.examples == 5 && result.leftOut == 5 && result.ending == .memoryLimit)
            #expect(session.personalization?.record.examples == ["left": 3, "stripes": 2])
        }
    }

    @Test("Without enough time there is a result all the same")
    func time() throws {
        try withPhotos { folder in
            let (result, session) = try lesson(folder) { $0.timeLimit = .nanoseconds(1) }
            #expect(result.ending == .timeLimit && result.examples == 2 && result.leftOut == 8)
            #expect(session.classifier.labels == ["left", "right", "stripes"])
        }
    }

    @Test("Work that is paused waits, and goes on; cancelled, it leaves everything as it was")
    func control() throws {
        try withPhotos { folder in
            let control = PersonalizationControl()
            let clock = ContinuousClock()
            var paused: ContinuousClock.Instant?
            var resumed: ContinuousClock.Instant?
            _ = try lesson(
                folder, control: control,
                onProgress: { _, _ in
                    if paused == nil {
                        paused = clock.now
                        control.pause()
                        DispatchQueue.global().asyncAfter(deadline: .now() + 0.3) { control.resume() }
                    } else if resumed == nil {
                        resumed = clock.now
                    }
                })
            #expect(try #require(resumed) - #require(paused) > .milliseconds(290))
            var session: PersonalizationSession?
            #expect(throws: CancellationError.self) {
                session = try lesson(folder, control: control, onProgress: { _, _ in control.cancel() }).session
            }
            #expect(session == nil)
        }
    }

    @Test("Features that are kept in a file are not computed again; those of another base are")
    func cache() throws {
        try withPhotos { folder in
            let cache = folder.appending(path: "features")
            let control = PersonalizationControl()
            #expect(throws: CancellationError.self) {
                try lesson(
                    folder, cache: cache, control: control, onProgress: { done, _ in if done >= 4 { control.cancel() } }
                )
            }
            #expect(try Safetensors.File(contentsOf: cache).header.tensors.count == 4)
            let plain = try lesson(folder).session
            #expect(try lesson(folder, cache: cache).session.personalization == plain.personalization)
            let file = try Safetensors.File(contentsOf: cache)
            #expect(file.header.tensors.count == 10)
            // What the file says is believed: other numbers in it give another result.
            let tensors = try file.header.tensors.map {
                Safetensors.Tensor(name: $0.name, shape: $0.shape, values: try file.values(of: $0).map { $0 + 1 })
            }
            try Safetensors.write(tensors, to: cache) { digest in
                file.header.metadata.merging(["imprint.digest": digest]) { $1 }
            }
            #expect(try lesson(folder, cache: cache).session.personalization != plain.personalization)
            // With other settings it is of no use.
            #expect(
                try lesson(folder, cache: cache) { $0.views = 2 }.session.personalization
                    == lesson(folder) { $0.views = 2 }.session.personalization)
            try Safetensors.write(tensors, to: cache) { _ in file.header.metadata }
            #expect(throws: ImprintError.damagedFeatureCache(file: cache.path)) { try lesson(folder, cache: cache) }
            try Safetensors.write([], to: cache) { _ in [:] }
            #expect(throws: ImprintError.notAFeatureCache(file: cache.path)) { try lesson(folder, cache: cache) }
        }
    }

    @Test("Where most photos are broken, nothing is learned")
    func broken() throws {
        try withPhotos { folder in
            for place in 0..<11 {
                try Data("no picture".utf8).write(to: folder.appending(path: "photos/left/x\(place).png"))
            }
            #expect(throws: ImageError.self) { try lesson(folder) }
        }
    }
}
