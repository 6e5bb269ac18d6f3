import Foundation
import ImprintCore
import ImprintImages
import Synchronization
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintSynthesis
@testable import ImprintTraining

/// Errors and unreadable photos that only one of several processes has.
@Suite("Failures of one of several processes", .timeLimit(.minutes(10))) struct FailingProcessesTests {
    /// Runs a closure in two processes, and returns the description of the error of each; an empty string without an error.
    private func failures(_ body: @escaping @Sendable (ProcessGroup) throws -> Void) async throws -> [String] {
        try await inProcesses(2) { group in
            do {
                try body(group)
                return ""
            } catch {
                return "\(error)"
            }
        }
    }

    /// Photos of a logo and other photos; a process cannot read some of the other photos.
    private struct Photos: TrainingSource {
        let name = "photos"
        let labels = ["cross", "other"]
        let items: [TrainingPhoto]
        let digest = "photos"

        /// - Parameters:
        ///   - unreadableCount: The number of photos of the second label that are unreadable.
        ///   - isAffected: Whether they are unreadable now.
        init(in folder: URL, unreadableCount: Int, isAffected: @escaping @Sendable () -> Bool = { true }) {
            items = ["cross", "other"].enumerated().flatMap { label, name in
                (0..<6).map { index in
                    TrainingPhoto(identifier: "\(name)/\(index)", labels: [label]) {
                        if label == 1, index < unreadableCount, isAffected() { throw CocoaError(.fileReadNoPermission) }
                        return try Data(contentsOf: folder.appending(path: "\(name)/\(index).png"))
                    }
                }
            }
        }

        func identifier(of item: TrainingPhoto) -> String { item.identifier }
    }

    /// Trains a detector on photos; the process with the rank 1, or a single process, cannot read some of them.
    private static func trainWithUnreadablePhotos(
        _ artwork: Artwork, _ photos: URL, unreadableCount: Int, _ group: ProcessGroup?
    ) throws -> Data {
        let isAffected = group.map { $0.rank == 1 } ?? true
        let result = try trainDetector(
            ["cross": [artwork]], photos: Photos(in: photos, unreadableCount: isAffected ? unreadableCount : 0),
            backgrounds: nil, steps: [1, 1], poolSize: 2
        ) {
            $0.threads = 1
            $0.processes = group
            $0.validation = .none
        }
        return try bytes(of: result.model)
    }

    @Test(
        "If one process cannot read photos of a detector at the start, all processes skip them, or all of them end",
        arguments: [2, 6])
    func detectorPhotos(unreadableCount: Int) async throws {
        try await withTemporaryFolder { folder in
            let artwork = try writeCross(to: folder)
            let photos = folder.appending(path: "photos")
            try writeNoise(to: photos, labels: ["cross", "other"], count: 6) { _, _, _, _ in }
            if unreadableCount == 2 {
                let expected = try Self.trainWithUnreadablePhotos(
                    artwork, photos, unreadableCount: unreadableCount, nil)
                let models = try await inProcesses(2) {
                    try Self.trainWithUnreadablePhotos(artwork, photos, unreadableCount: unreadableCount, $0)
                }
                #expect(models == [expected, expected])
            } else {
                let errors = try await failures {
                    _ = try Self.trainWithUnreadablePhotos(artwork, photos, unreadableCount: unreadableCount, $0)
                }
                #expect(errors.allSatisfy { $0.contains("other") && !$0.contains("process 1 has failed") }, "\(errors)")
            }
        }
    }

    @Test("If a run stops in a scan, all processes know the photos that only one of them could not read in it")
    func stopWithUnreadablePhotos() async throws {
        try await withTemporaryFolder { folder in
            let artwork = try writeCross(to: folder)
            let photos = folder.appending(path: "photos")
            try writeNoise(to: photos, labels: ["cross", "other"], count: 6) { _, _, _, _ in }
            let results = try await inProcesses(2) { group -> [String] in
                let isMining = Mutex(false)
                var stops = false
                let source = Photos(in: photos, unreadableCount: group.isFirst ? 0 : 6) { isMining.withLock { $0 } }
                let result = try trainDetector(
                    ["cross": [artwork]], photos: source, steps: [1, 1], poolSize: 2,
                    onEvent: { event in
                        // The first scan after the first phase mines hard negatives in the photos of the second label.
                        if case .epoch = event { isMining.withLock { $0 = true } }
                        if case .scanning = event, isMining.withLock({ $0 }) {
                            isMining.withLock { $0 = false }
                            stops = true
                        }
                    }, shouldStop: { group.isFirst && stops }
                ) {
                    $0.threads = 1
                    $0.processes = group
                    $0.validation = .none
                    $0.memoryLimit = 0
                }
                #expect(result.ending == .stopped)
                return result.unreadable.map(\.url.lastPathComponent)
            }
            // Each of the processes has scanned half of the six photos.
            #expect(results[0].count == 3 && results[0] == results[1])
        }
    }

    @Test("All processes have the same backgrounds, even if one of them cannot read a photo") func backgrounds()
        async throws
    {
        let data = try withTemporaryFolder { folder in
            let file = folder.appending(path: "photo.png")
            try ImageFile.write(RasterImage(width: 120, height: 90), to: file)
            return try Data(contentsOf: file)
        }
        let results = try await inProcesses(2) { group -> ([String], [UInt8]) in
            let photos = (0..<4).map { index in
                TrainingPhoto(identifier: "\(index)", labels: []) {
                    guard index != 1 || group.isFirst else { throw CocoaError(.fileReadNoPermission) }
                    return data
                }
            }
            let backdrops = try Backdrops(photos, size: 64, workers: Workers(1, processes: group))
            // Some of them are crops of the photos.
            let samples = (0..<20).flatMap { backdrops.background(at: $0, seed: 1).samples }
            return (backdrops.skipped.map(\.url.lastPathComponent), samples)
        }
        #expect(results.map(\.0) == [["1"], ["1"]])
        #expect(results[0].1 == results[1].1)
    }

    @Test("All processes know a photo that one of them cannot read, also if its URL is relative to a folder")
    func relativePhotos() async throws {
        let unreadable = try await inProcesses(2) { group -> [[Int]] in
            let folder = URL(filePath: "/photos", directoryHint: .isDirectory)
            let photos = (0..<5).map { index in
                let url = URL(filePath: "\(index).png", directoryHint: .notDirectory, relativeTo: folder)
                return TrainingPhoto(url: url, labels: [0])
            }
            let all = UnreadablePhotos(training: photos, validation: [], labels: ["none"])
            let own = photos[3 * group.rank].url
            all.add(SkippedImage(url: own, reason: .unreadable(file: own, reason: "it is missing")))
            _ = all.share(with: group, from: 0)
            let known = photos.indices.filter {
                all.reason(for: PatchSource(photos[$0], width: 100, height: 100)) != nil
            }
            return [known, [all.all.count]]
        }
        #expect(unreadable == [[[0, 3], [2]], [[0, 3], [2]]])
    }

    @Test("If the folder of checkpoints is in use, which only the first process notices, all processes end")
    func checkpointInUse() async throws {
        try await withTemporaryFolder { folder in
            let photos = folder.appending(path: "photos")
            try writeImages(perLabel: 8, to: photos)
            let checkpoints = folder.appending(path: "run")
            try FileManager.default.createDirectory(at: checkpoints, withIntermediateDirectories: true)
            let lock = try #require(try FileLock(folder: checkpoints))
            let errors = try await failures { group in
                let configuration = quickTraining(epochs: 1) { $0.processes = group }
                _ = try train(photos, configuration, checkpoints: CheckpointOptions(folder: checkpoints))
            }
            withExtendedLifetime(lock) {}
            let expected = "\(ImprintError.checkpointInUse(folder: checkpoints.path))"
            #expect(errors == [expected, "process 0 has failed: \(expected.sentence)"])
        }
    }

    @Test("If the first process stops while photos are read, all processes end") func stopped() async throws {
        try await withTemporaryFolder { folder in
            try writeImages(perLabel: 8, to: folder)
            let errors = try await failures { group in
                let configuration = quickTraining(epochs: 1) { $0.processes = group }
                _ = try train(
                    folder, configuration, shouldStop: { group.isFirst },
                    onEvent: { if case .batch = $0 { Issue.record("a step was trained") } })
            }
            let expected = "\(ImprintError.stoppedTooEarly(checkpoint: nil))"
            #expect(errors == [expected, "process 0 has failed: \(expected.sentence)"])
        }
    }

    @Test("If the scan of a photo fails in one process, all processes end", arguments: [0, 1])
    func scan(failing rank: Int) async throws {
        let errors = try await failures { group in
            let start = try DetectorStart(base: nil, logos: 1)
            var evaluator = DetectorEvaluator(
                labels: ["cross", "other"], logos: ["cross"], photos: DetectorPhotos(),
                workers: Workers(1, processes: group), compositeCount: 1)
            evaluator.onPortion = { _, _ in if group.rank == rank { throw ImprintError.outOfMemory(byteCount: 5) } }
            let images = (0..<4).map { _ in PatchSource(RasterImage(width: 70, height: 50)) }
            _ = try evaluator.scan(images, start.network, try start.parameters(seed: 1), peaks: 1)
        }
        let expected = "\(ImprintError.outOfMemory(byteCount: 5))"
        #expect(errors[rank] == expected)
        #expect(errors[1 - rank] == "process \(rank) has failed: \(expected.sentence)")
    }

    @Test("If a process stops a scan, all processes stop it after the same portion, even with other numbers of threads")
    func stoppedScan() async throws {
        let portions = try await inProcesses(2) { group -> [Int] in
            let start = try DetectorStart(base: nil, logos: 1)
            let parameters = try start.parameters(seed: 1)
            var evaluator = DetectorEvaluator(
                labels: ["cross", "other"], logos: ["cross"], photos: DetectorPhotos(),
                workers: Workers(1 + group.rank, processes: group), compositeCount: 1)
            var portions: [Int] = []
            evaluator.onPortion = { done, _ in
                portions.append(done)
                if group.rank == 1 && portions.count == 2 { throw CancellationError() }
            }
            // One process has 25 of them, the other one 24.
            let images = (0..<49).map { _ in PatchSource(RasterImage(width: 70, height: 50)) }
            do {
                _ = try evaluator.scan(images, start.network, parameters, peaks: 1)
                Issue.record("the scan was not stopped")
            } catch is CancellationError {}
            return portions
        }
        #expect(portions == [[8, 16], [8, 16]])
    }

    @Test("A scan covers all images if some processes have no image in the last portion", arguments: [1, 3, 33])
    func unevenScan(count: Int) async throws {
        let scanned = try await inProcesses(2) { group -> Int in
            let start = try DetectorStart(base: nil, logos: 1)
            let evaluator = DetectorEvaluator(
                labels: ["cross", "other"], logos: ["cross"], photos: DetectorPhotos(),
                workers: Workers(1, processes: group), compositeCount: 1)
            let images = (0..<count).map { _ in PatchSource(RasterImage(width: 70, height: 50)) }
            let scans = try evaluator.scan(images, start.network, try start.parameters(seed: 1), peaks: 1)
            return scans.count { $0 != nil }
        }
        #expect(scanned == [count, count])
    }

    @Test("Processes that make different checks end with an error") func differentChecks() async throws {
        let errors = try await failures { group in
            let common: [(name: String, value: String)] = [("photos", "a")]
            try group.checkSame(group.isFirst ? common : common + [(name: "files", value: "b")])
        }
        let difference = "process 1 differs from process 0 in files (found \"b\", expected nothing)."
        #expect(errors.allSatisfy { $0.contains(difference) }, "\(errors)")
    }
}
