import Foundation
import ImprintCore
import ImprintImages
import ImprintSynthesis
import Synchronization
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintTraining

/// Training runs that several processes share.
@Suite("Training with several processes", .timeLimit(.minutes(10))) struct TrainingProcessesTests {
    /// Trains the same classifier in several processes, and returns the bytes of its file in each.
    private func trainClassifier(
        _ folder: URL, _ count: Int, _ configuration: ClassifierConfiguration, checkpoints: CheckpointOptions? = nil,
        stopAfter limit: Int = .max, onEvent: @escaping @Sendable (Int, TrainingEvent) -> Void = { _, _ in }
    ) async throws -> [Data] {
        try await inProcesses(count) { group in
            var configuration = configuration
            configuration.processes = group
            var steps = 0
            do {
                let model = try train(
                    folder, configuration, checkpoints: checkpoints,
                    // Only the first process decides.
                    shouldStop: { steps >= limit && group.isFirst },
                    onEvent: {
                        if case .batch = $0 { steps += 1 }
                        onEvent(group.rank, $0)
                    })
                return try bytes(of: model)
            } catch ImprintError.stoppedTooEarly {
                return Data()
            }
        }
    }

    @Test(
        "The model file does not depend on the number of processes",
        arguments: [nil, 0, 5000] as [Int?], [1, 2])
    func classifier(memoryLimit: Int?, threads: Int) async throws {
        try await withTemporaryFolder { folder in
            try writeImages(perLabel: 22, to: folder)
            let configuration = try quickTraining(epochs: 2) {
                $0.memoryLimit = memoryLimit
                $0.threads = threads
                $0.batchSize = 16
                $0.validation = .fraction(0.3)
                $0.augmentation = try Augmentation(named: "flip,blur")
            }
            let expected = try bytes(of: train(folder, configuration))
            for count in [2, 4, 8] {
                let models = try await trainClassifier(folder, count, configuration)
                #expect(models == Array(repeating: expected, count: count), "\(count) processes")
            }
        }
    }

    @Test("A run resumes with another number of processes") func resumed() async throws {
        try await withTemporaryFolder { folder in
            let photos = folder.appending(path: "photos")
            try writeImages(perLabel: 20, to: photos)
            let configuration = quickTraining(epochs: 3) { $0.batchSize = 16 }
            let expected = try bytes(of: train(photos, configuration))
            let checkpoints = CheckpointOptions(
                folder: folder.appending(path: "run"), interval: .seconds(1000), resumes: true)
            var models: [Data] = []
            for count in [2, 1, 4, 2] {
                models = try await trainClassifier(photos, count, configuration, checkpoints: checkpoints, stopAfter: 2)
            }
            models = try await trainClassifier(photos, 2, configuration, checkpoints: checkpoints)
            #expect(models == [expected, expected])
        }
    }

    @Test("A time limit ends the run of all processes after the same step") func timeLimit() async throws {
        try await withTemporaryFolder { folder in
            try writeImages(perLabel: 20, to: folder)
            let configuration = quickTraining(epochs: 1000) {
                $0.batchSize = 16
                $0.timeLimit = .milliseconds(300)
            }
            let models = try await trainClassifier(folder, 2, configuration)
            #expect(models[0] == models[1] && !models[0].isEmpty)
        }
    }

    @Test("If a photo vanishes, all processes continue without it", arguments: [2, 4]) func vanished(
        count: Int
    ) async throws {
        try await withTemporaryFolder { folder in
            try writeImages(perLabel: 20, to: folder)
            let photo = folder.appending(path: "left/7.png")
            let configuration = quickTraining(epochs: 4) {
                $0.memoryLimit = 0
                $0.batchSize = 16
            }
            let models = try await trainClassifier(folder, count, configuration) { rank, event in
                if rank == 0, case .epoch(let metrics, _) = event, metrics.epoch == 2 {
                    try? FileManager.default.removeItem(at: photo)
                }
            }
            #expect(Set(models).count == 1)
            let model = try ModelFile([UInt8](models[0]), named: "the model")
            #expect(model.training?.history.count == 4)
        }
    }

    @Test("If a photo vanishes in a batch that is not used, later batches have the same photos in all processes")
    func unusedBatch() async throws {
        try await withTemporaryFolder { folder in
            try writeImages(perLabel: 8, to: folder)
            let items = try ImageFolder(at: folder).items
            // Process 0 reads the first half of each batch.
            let order = BatchOrder(count: items.count, batchSize: 8, shuffles: true, seed: 1)
            let photo = try #require(order.batches(epoch: 0)[1].first)
            let later = try #require(
                (1..<100).first { epoch in
                    order.batches(epoch: epoch).contains { batch in batch.suffix(4).contains(photo) }
                })
            let read = try await inProcesses(2) { group -> [Int] in
                let loader = try BatchLoader(
                    items: items, labels: ["left", "right"], preprocessing: Preprocessing(width: 16, height: 16),
                    batchSize: 8, shuffles: true, seed: 1, workers: Workers(1, processes: group), memoryLimit: 0)
                var batches: (any BatchIterator)? = loader.batches(epoch: 0)
                if group.isFirst { try FileManager.default.removeItem(at: items[photo].url) }
                // Waits until the file is removed.
                _ = group.any(false)
                // Reads the second batch ahead.
                _ = try batches?.next(onUnreadable: { _ in })
                batches = nil
                var indices: [Int] = []
                try loader.forEachBatch(epoch: later, onUnreadable: { _ in }) { indices += $0.indices }
                return indices
            }
            #expect(read[0].count == 15 && !read[0].contains(photo) && read[0] == read[1])
        }
    }

    @Test(
        "If one process cannot read photos of a detector, all processes continue without them, or all of them end",
        arguments: [(unreadable: 2, others: 0), (unreadable: 4, others: 0), (unreadable: 4, others: 8)])
    func detectorPhotos(unreadable: Int, others: Int) async throws {
        let failed = Mutex<[Int]>([])
        let counts = try? await inProcesses(2) { group -> Int in
            let photos = (0..<4).map { index in
                TrainingPhoto(
                    identifier: "\(index)", labels: [0],
                    content: group.isFirst || index >= unreadable
                        ? .decoded(RasterImage(width: 120, height: 120)) : .encoded([]))
            }
            let otherPhotos = (0..<others).map { TrainingPhoto(url: URL(filePath: "/photos/\($0).png"), label: 0) }
            let unreadablePhotos = UnreadablePhotos(
                training: photos + otherPhotos, validation: [], labels: ["none"])
            let patches = DetectorPatches(
                compositors: [],
                negatives: photos.map { GroundTruthImage(source: PatchSource($0, width: 120, height: 120)) },
                positives: [], unreadable: unreadablePhotos, seed: 1, workers: Workers(1, processes: group),
                batchSize: 64, poolSize: 1)
            let phase = DetectorPhase(
                steps: 1, learningRate: 0, composites: 0, hardNegatives: 0, background: 1, mined: 0, located: 0)
            var memory = [UInt8](repeating: 0, count: 64 * DetectorHead.patchSide * DetectorHead.patchSide * 3)
            do {
                _ = try memory.withUnsafeMutableBufferPointer { try patches.fill($0, of: phase, step: 0) }
            } catch {
                failed.withLock { $0.append(group.rank) }
                throw error
            }
            return unreadablePhotos.all.count
        }
        let continues = unreadable == 2
        #expect(counts == (continues ? [2, 2] : nil))
        #expect(failed.withLock { $0.count } == (continues ? 0 : 2))
    }

    @Test(
        "Processes with other photos or settings end with an error that names the difference",
        arguments: [
            ("training photos", "training photos (found "),
            ("epochs", "numbers of epochs (found \"2\", expected \"1\")"),
            ("batch size", "batch size (found \"16\", expected \"8\")"),
        ])
    func mismatch(of property: String, difference: String) async throws {
        let ofPhotos = property == "training photos"
        try await withTemporaryFolder { folder in
            for name in ["0", "1"] { try writeImages(perLabel: 12, to: folder.appending(path: name)) }
            if ofPhotos { try FileManager.default.removeItem(at: folder.appending(path: "1/left/3.png")) }
            let messages = try await inProcesses(2) { group -> String in
                do {
                    let configuration = quickTraining(epochs: property == "epochs" ? 1 + group.rank : 1) {
                        $0.processes = group
                        $0.batchSize = property == "batch size" ? 8 * (1 + group.rank) : 8
                    }
                    _ = try train(folder.appending(path: ofPhotos ? "\(group.rank)" : "0"), configuration)
                    return ""
                } catch {
                    return "\(error)"
                }
            }
            let message = "process 1 differs from process 0 in \(difference)"
            #expect(messages.allSatisfy { $0.contains(message) }, "\(messages)")
        }
    }

    @Test("Fine-tuning a base model does not depend on the number of processes") func baseModel() async throws {
        try await withTemporaryFolder { folder in
            try writeImages(perLabel: 20, to: folder)
            var configuration = ClassifierConfiguration()
            configuration.start = .builtInBase
            configuration.epochs = 1
            configuration.threads = 1
            let expected = try bytes(of: train(folder, configuration))
            #expect(try await trainClassifier(folder, 2, configuration) == [expected, expected])
        }
    }

    @Test("A detector does not depend on the number of processes, even if its run resumes with another number")
    func detector() async throws {
        try await withTemporaryFolder { folder in
            let artwork = try writeCross(to: folder)
            let photos = folder.appending(path: "photos")
            try writeNoise(to: photos, labels: ["cross", "other"], count: 6) { label, image, left, top in
                for y in 0..<24 where label == "cross" {
                    for x in 0..<24 { image.samples[((top + y) * 120 + left + x) * 3] = 200 }
                }
            }
            @Sendable func train(
                _ group: ProcessGroup?, _ checkpoints: CheckpointOptions? = nil, stops: Bool = false
            ) throws -> Data {
                var steps = 0
                do {
                    let result = try trainDetector(
                        ["cross": [artwork]], photos: ImageFolder(at: photos, minimumLabels: 1), backgrounds: nil,
                        steps: [2, 2], poolSize: 4, checkpoints: checkpoints,
                        onEvent: { if case .batch = $0 { steps += 1 } },
                        shouldStop: { stops && steps >= 1 && group?.isFirst ?? true }
                    ) {
                        $0.threads = 1
                        $0.processes = group
                        $0.validation = .fraction(0.34)
                    }
                    return try bytes(of: result.model)
                } catch ImprintError.stoppedTooEarly {
                    return Data()
                }
            }
            let expected = try train(nil)
            for count in [2, 4] {
                let models = try await inProcesses(count) { try train($0) }
                #expect(models == Array(repeating: expected, count: count), "\(count) processes")
            }
            let checkpoints = CheckpointOptions(
                folder: folder.appending(path: "run"), interval: .seconds(1000), resumes: true)
            for count in [2, 4, 1] { _ = try await inProcesses(count) { try train($0, checkpoints, stops: true) } }
            #expect(try await inProcesses(2) { try train($0, checkpoints) } == [expected, expected])
        }
    }
}
