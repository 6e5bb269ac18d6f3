import CHeapMeter
import Foundation
import ImprintCore
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

/// Tests of personalization with a folder of photos: limits, pausing and the feature cache.
@Suite struct FolderPersonalizationTests {
    private func withPhotos(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let photos = folder.appending(path: "photos")
            try write(stripes(2, count: 6), label: "stripes", in: photos)
            try write(stripes(5, count: 4), label: "left", in: photos)
            try body(folder)
        }
    }

    /// Personalizes a classifier with the photos in `folder`.
    private func personalize(
        _ folder: URL, cache: URL? = nil, control: PersonalizationControl = PersonalizationControl(),
        change: (inout PersonalizationConfiguration) -> Void = { _ in }, onProgress: (Int, Int) -> Void = { _, _ in }
    ) throws -> (result: PersonalizationResult, session: PersonalizationSession) {
        var configuration = PersonalizationConfiguration()
        change(&configuration)
        let session = try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
        let photos = try ImageFolder(at: folder.appending(path: "photos"), minimumLabels: 1)
        return (try session.teach(photos, cache: cache, control: control, onProgress: onProgress), session)
    }

    @Test("Unreadable photos are skipped, and the result is identical for any number of threads")
    func all() throws {
        try withPhotos { folder in
            try Data("no image".utf8).write(to: folder.appending(path: "photos/left/broken.png"))
            var progress: [Int] = []
            let (result, session) = try personalize(folder, onProgress: { done, _ in progress.append(done) })
            #expect(result.exampleCount == 10 && result.skipped.count == 1 && result.omittedCount == 0)
            #expect(result.ending == .completed && progress.last == 11)
            let accuracy = try #require(result.accuracy)
            #expect(accuracy.after > accuracy.before && accuracy.after >= 0.8)
            let threaded = try personalize(folder) { $0.threads = 3 }.session
            #expect(threaded.personalization == session.personalization)
            let background = try personalize(folder) { $0.isBackground = true }.session
            #expect(background.personalization == session.personalization)
        }
    }

    @Test("A session learns from corrections without labelled photos")
    func onlyCorrections() throws {
        try withPhotos { folder in
            let session = try PersonalizationSession(leftOrRightClassifier())
            let photos = try ImageFolder.images(in: folder.appending(path: "photos/left"))
            let result = try session.teach(nil, corrections: photos.map { (photo: $0, isNot: "right") })
            #expect(result.exampleCount == 4 && result.ending == .completed)
            #expect(session.personalization?.record.corrections == ["right": 4])
            #expect(session.personalization?.record.examples.isEmpty == true)
        }
    }

    @Test("A new label is learned with corrections if its first photo is unreadable", arguments: [false, true])
    func unreadableFirstPhoto(hasTimeLimit: Bool) throws {
        try withPhotos { folder in
            let corrections = try ImageFolder.images(in: folder.appending(path: "photos/left"))
            try write(stripes(2, count: 6), label: "new", in: folder.appending(path: "others"))
            try Data("no image".utf8).write(to: folder.appending(path: "others/new/0.png"))
            var configuration = PersonalizationConfiguration()
            if hasTimeLimit { configuration.timeLimit = .nanoseconds(1) }
            let session = try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
            let others = try ImageFolder(at: folder.appending(path: "others"), minimumLabels: 1)
            let result = try session.teach(others, corrections: corrections.map { (photo: $0, isNot: "new") })
            #expect(session.classifier.labels == ["left", "right", "new"] && result.skipped.count == 1)
            #expect(result.ending == (hasTimeLimit ? .timeLimit : .completed))
            #expect(result.exampleCount + result.omittedCount == 9)
            #expect(hasTimeLimit == (result.omittedCount > 0))
        }
    }

    @Test("If the memory limit is exceeded, photos are omitted evenly from all labels")
    func memory() throws {
        try withPhotos { folder in
            let (result, session) = try personalize(folder) { ($0.views, $0.memoryLimit) = (1, 5 * 128 + 1) }
            #expect(result.exampleCount == 5 && result.omittedCount == 5 && result.ending == .memoryLimit)
            #expect(session.personalization?.record.examples == ["left": 3, "stripes": 2])
        }
    }

    @Test("If the time limit passes, the result is a personalization with fewer photos")
    func time() throws {
        try withPhotos { folder in
            let (result, session) = try personalize(folder) { $0.timeLimit = .nanoseconds(1) }
            #expect(result.ending == .timeLimit && result.exampleCount == 2 && result.omittedCount == 8)
            #expect(session.classifier.labels == ["left", "right", "stripes"])
        }
    }

    @Test("Unreadable photos of a new label do not extend the time limit", arguments: [false, true])
    func unreadableLabel(hasCorrections: Bool) throws {
        try withPhotos { folder in
            let others = folder.appending(path: "others")
            let label = others.appending(path: "new")
            try FileManager.default.createDirectory(at: label, withIntermediateDirectories: true)
            for index in 0..<(hasCorrections ? 3 : 60) {
                try Data("no image".utf8).write(to: label.appending(path: "\(index).png"))
            }
            let photo = try ImageFolder.images(in: folder.appending(path: "photos/left"))[0]
            let corrections = Array(repeating: (photo: photo, isNot: "new"), count: hasCorrections ? 60 : 0)
            var configuration = PersonalizationConfiguration()
            configuration.timeLimit = .nanoseconds(1)
            configuration.threads = 1
            let session = try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
            let photos = try ImageFolder(at: others, minimumLabels: 1)
            var readCount = 0
            let error = #expect(throws: (any Error).self) {
                _ = try session.teach(photos, corrections: corrections, onProgress: { done, _ in readCount = done })
            }
            #expect((1...20).contains(readCount), "\(readCount)")
            if hasCorrections {
                guard case .noReadableImages("new", let skipped)? = error as? ImageError else {
                    Issue.record("unexpected: \(String(describing: error))")
                    return
                }
                #expect(skipped.count == 3)
            } else {
                // The photos that were not read may be readable.
                guard case .noUsablePhotoInTime(readCount, 60, let reason?)? = error as? ImprintError else {
                    Issue.record("unexpected: \(String(describing: error))")
                    return
                }
                #expect(reason.contains(".png"))
                let text = error.map { "\($0)" } ?? ""
                #expect(text.hasPrefix("the time limit was reached after \(readCount) of 60 photos"), "\(text)")
            }
        }
    }

    @Test("Personalization can be paused, resumed and cancelled")
    func control() throws {
        try withPhotos { folder in
            let control = PersonalizationControl()
            let clock = ContinuousClock()
            var paused: ContinuousClock.Instant?
            var resumed: ContinuousClock.Instant?
            _ = try personalize(
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
                session = try personalize(folder, control: control, onProgress: { _, _ in control.cancel() }).session
            }
            #expect(session == nil)
        }
    }

    @Test("Cached features are not computed again, unless the settings differ")
    func cache() throws {
        try withPhotos { folder in
            let cache = folder.appending(path: "features")
            let control = PersonalizationControl()
            #expect(throws: CancellationError.self) {
                try personalize(
                    folder, cache: cache, control: control, onProgress: { done, _ in if done >= 4 { control.cancel() } }
                )
            }
            #expect(try Safetensors.File(contentsOf: cache).header.tensors.count == 4)
            let uncached = try personalize(folder).session
            #expect(try personalize(folder, cache: cache).session.personalization == uncached.personalization)
            let file = try Safetensors.File(contentsOf: cache)
            #expect(file.header.tensors.count == 10)
            #expect(FileKind(contentsOf: cache) == .featureCache)
            // The features are read from the cache: other values in it lead to another result.
            let tensors = try file.header.tensors.map {
                Safetensors.Tensor(name: $0.name, shape: $0.shape, values: try file.values(of: $0).map { $0 + 1 })
            }
            try Safetensors.write(tensors, to: cache) { digest in
                file.header.metadata.merging(["imprint.digest": digest]) { $1 }
            }
            #expect(try personalize(folder, cache: cache).session.personalization != uncached.personalization)
            // With other settings the cache is not used.
            #expect(
                try personalize(folder, cache: cache) { $0.views = 2 }.session.personalization
                    == personalize(folder) { $0.views = 2 }.session.personalization)
            try Safetensors.write(tensors, to: cache) { _ in file.header.metadata }
            #expect(throws: ImprintError.damagedFeatureCache(file: cache.path)) {
                try personalize(folder, cache: cache)
            }
            try Safetensors.write([], to: cache) { _ in [:] }
            #expect(throws: ImprintError.notAFeatureCache(file: cache.path)) { try personalize(folder, cache: cache) }
        }
    }

    @Test("A cache of another model, of other settings or of another version is named before it is replaced")
    func replacedCache() throws {
        try withPhotos { folder in
            let cache = folder.appending(path: "features")
            var configuration = PersonalizationConfiguration()
            let session = try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
            #expect(try session.reasonToReplaceCache(at: cache) == nil)
            _ = try personalize(folder, cache: cache)
            #expect(try session.reasonToReplaceCache(at: cache) == nil)
            configuration.views = 2
            let other = try PersonalizationSession(leftOrRightClassifier(), configuration: configuration)
            #expect(try other.reasonToReplaceCache(at: cache) == "it was made with other settings")
            let metadata = try Safetensors.File(contentsOf: cache).header.metadata
            let key = try #require(metadata["imprint.key"])
            for (changed, reason) in [
                (["imprint.key": "0" + key], "it belongs to another model"),
                (["imprint.features": "2"], "another version of Imprint wrote it"),
            ] {
                try Safetensors.write([], to: cache) { _ in metadata.merging(changed) { $1 } }
                #expect(try session.reasonToReplaceCache(at: cache) == reason)
            }
            try Data("notes".utf8).write(to: cache)
            #expect(try session.reasonToReplaceCache(at: cache) == nil)
        }
    }

    @Test("A cache that is cut off is damaged; a file that is cut off before its kind is known is not a cache")
    func truncatedCache() throws {
        try withPhotos { folder in
            let cache = folder.appending(path: "features")
            _ = try personalize(folder, cache: cache)
            let bytes = try Data(contentsOf: cache)
            // The kind is in the first 200 bytes of the header.
            for (length, error) in [
                (bytes.count - 1, .damagedFeatureCache(file: cache.path)),
                (208, .damagedFeatureCache(file: cache.path)), (40, .notAFeatureCache(file: cache.path)),
                (4, .notAFeatureCache(file: cache.path)),
            ] as [(Int, ImprintError)] {
                try bytes.prefix(length).write(to: cache)
                #expect(throws: error, "\(length) bytes") { try personalize(folder, cache: cache) }
            }
        }
    }

    @Test("If the cache cannot be written, the session learns without it, and the result has the error")
    func unwritableCache() throws {
        try withPhotos { folder in
            let cacheFolder = folder.appending(path: "cache")
            try FileManager.default.createDirectory(at: cacheFolder, withIntermediateDirectories: false)
            let cache = cacheFolder.appending(path: "features")
            let (result, session) = try personalize(
                folder, cache: cache, onProgress: { _, _ in try? FileManager.default.removeItem(at: cacheFolder) })
            guard case .cannotWrite(cache.path, _, _)? = result.cacheFailure else {
                Issue.record("unexpected: \(String(describing: result.cacheFailure))")
                return
            }
            let uncached = try personalize(folder)
            #expect(uncached.result.cacheFailure == nil)
            #expect(session.personalization == uncached.session.personalization)
        }
    }

    @Test("If the cache of a cancelled call cannot be written, the error is that of the cache")
    func cancelledUnwritableCache() throws {
        try withPhotos { folder in
            let cacheFolder = folder.appending(path: "cache")
            try FileManager.default.createDirectory(at: cacheFolder, withIntermediateDirectories: false)
            let cache = cacheFolder.appending(path: "features")
            let control = PersonalizationControl()
            let error = #expect(throws: FileError.self) {
                try personalize(
                    folder, cache: cache, control: control,
                    onProgress: { done, _ in
                        try? FileManager.default.removeItem(at: cacheFolder)
                        if done >= 4 { control.cancel() }
                    })
            }
            guard case .cannotWrite(cache.path, _, _)? = error else {
                Issue.record("unexpected: \(String(describing: error))")
                return
            }
        }
    }

    @Test("The cache does not replace a file that another program wrote in the meantime")
    func occupiedCache() throws {
        try withPhotos { folder in
            let cache = folder.appending(path: "features")
            let notes = Data("notes".utf8)
            let (result, session) = try personalize(
                folder, cache: cache, onProgress: { _, _ in try? notes.write(to: cache) })
            guard case .cannotWrite(cache.path, _, _)? = result.cacheFailure else {
                Issue.record("unexpected: \(String(describing: result.cacheFailure))")
                return
            }
            #expect(try Data(contentsOf: cache) == notes)
            #expect(session.exampleCount == 10)
        }
    }

    @Test("Computing the name of a photo in the cache takes less memory than the file")
    func cacheNames() throws {
        try withTemporaryFolder { folder in
            let photo = folder.appending(path: "photo.png")
            try Data(count: 2 << 20).write(to: photo)
            heap_meter_start()
            let name = FeatureCache.name(of: photo)
            let peak = heap_meter_stop()
            #expect(name == "5647f05ec18958947d32874eeb788fa396a05d0bab7c1b71f112ceb7e9b31eee")
            #expect(peak < 1 << 20, "\(peak) bytes")
            #expect(FeatureCache.name(of: folder) == nil)
            #expect(FeatureCache.name(of: folder.appending(path: "missing.png")) == nil)
        }
    }

    @Test("Personalization with a cache skips a pipe instead of waiting for its writer", .timeLimit(.minutes(10)))
    func pipe() throws {
        try withPhotos { folder in
            let pipe = folder.appending(path: "pipe.png")
            try #require(mkfifo(pipe.path, 0o600) == 0)
            let photos = try ImageFolder.images(in: folder.appending(path: "photos/left"))
            let session = try PersonalizationSession(leftOrRightClassifier())
            let result = try session.teach(
                nil, corrections: (photos + [pipe]).map { (photo: $0, isNot: "right") },
                cache: folder.appending(path: "features"))
            #expect(result.exampleCount == 4 && result.skipped.map(\.url) == [pipe])
        }
    }

    @Test("Personalization fails if most photos are unreadable")
    func broken() throws {
        try withPhotos { folder in
            for index in 0..<11 {
                try Data("no image".utf8).write(to: folder.appending(path: "photos/left/x\(index).png"))
            }
            #expect(throws: ImageError.self) { try personalize(folder) }
        }
    }
}
