import Foundation
import Imprint
import ImprintCore
import ImprintModel
import Synchronization
import TestSupport
import Testing

@testable import ImprintStore

@Suite struct ModelStoreTests {
    private let models = TestModel.all

    @Test("A store keeps the model in use and the previous one, and rolls back once") func versions() async throws {
        try await withTemporaryFolder { parent in
            let folder = parent.appending(path: "new/store")
            let store = try ModelStore(at: folder)
            #expect(try store.current == nil && store.previous == nil)
            #expect(throws: StoreError.empty(folder: folder.path)) { try store.load() }
            #expect(throws: StoreError.nothingToRollBackTo(folder: folder.path)) { try store.rollBack() }

            for model in models.prefix(3) { try await model.install(into: store) }
            #expect(try store.current?.sha256 == models[2].sha256)
            #expect(try store.previous?.sha256 == models[1].sha256)
            #expect(try modelFiles(in: folder) == [models[1], models[2]].map { $0.sha256 + ".imprint" }.sorted())
            #expect(try store.answer == models[2].answer)

            let live = try store.live()
            let rolledBack = try store.rollBack()
            #expect(rolledBack.sha256 == models[1].sha256)
            #expect(try live.current.classify(TestModel.photo) == models[1].answer)
            #expect(try store.load() === live.current && store.live() === live)
            #expect(try modelFiles(in: folder) == [models[1].sha256 + ".imprint"])
            #expect(throws: StoreError.nothingToRollBackTo(folder: folder.path)) { try store.rollBack() }
            // Disk and memory agree.
            let reopened = try ModelStore(at: folder)
            #expect(try reopened.current == rolledBack)
            #expect(try reopened.answer == models[1].answer)
        }
    }

    @Test("A failing flush of the folder is an error that does not claim which model is in use") func unflushed() throws
    {
        try withTemporaryFolder { parent in
            let folder = parent.appending(path: "store")
            let disk = try Disk(folder)
            try disk.flushNames()
            try FileManager.default.removeItem(at: folder)
            let error = #expect(throws: FileError.self) { try disk.flushNames() }
            guard case .cannotWrite(folder.path, _, _) = error else {
                Issue.record("\(error.map { "\($0)" } ?? "")")
                return
            }
        }
    }

    @Test("A model is loaded once, and stays usable after its file is removed") func loadedOnce() async throws {
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            try await models[0].install(into: store)
            let classifier = try store.load()
            try await models[0].install(into: store)
            #expect(try store.load() === classifier)
            #expect(try store.previous == nil)
            for model in models.dropFirst() { try await model.install(into: store) }
            #expect(try !modelFiles(in: folder).contains(models[0].sha256 + ".imprint"))
            #expect(try classifier.classify(TestModel.photo) == models[0].answer)
        }
    }

    @Test("A model installed by another process is loaded and used by live classifiers") func otherProcesses()
        async throws
    {
        try await withTemporaryFolder { folder in
            let (first, second) = (try ModelStore(at: folder), try ModelStore(at: folder))
            try await models[0].install(into: first)
            let live = try second.live()
            try await models[1].install(into: first)
            try await models[2].install(into: first)
            #expect(try second.current?.sha256 == models[2].sha256)
            #expect(try second.answer == models[2].answer)
            #expect(try live.current.classify(TestModel.photo) == models[2].answer)
        }
    }

    @Test(
        "A flipped bit on the disk is an error, and a rollback or a new installation fixes it",
        arguments: [true, false])
    func flippedOnDisk(rollsBack: Bool) async throws {
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            for model in models.prefix(2) { try await model.install(into: store) }
            let file = folder.appending(path: models[1].sha256 + ".imprint")
            for offset in [0, 50, models[1].bytes.count - 1] {
                var bytes = models[1].bytes
                bytes[offset] ^= 1
                // A new file, because the old one is mapped.
                try bytes.write(to: file, options: .atomic)
                #expect {
                    try ModelStore(at: folder).load()
                } throws: { error in
                    if case .damaged(file.path, _, canRollBack: true)? = error as? StoreError { true } else { false }
                }
            }
            let reopened = try ModelStore(at: folder)
            if rollsBack {
                try reopened.rollBack()
                #expect(try reopened.answer == models[0].answer)
            } else {
                try await models[1].install(into: reopened)
                #expect(try ModelStore(at: folder).answer == models[1].answer)
                #expect(try reopened.previous?.sha256 == models[0].sha256)
            }
        }
    }

    @Test("A rollback to a damaged model is an error") func damagedPrevious() async throws {
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            for model in models.prefix(2) { try await model.install(into: store) }
            try models[2].bytes.write(to: folder.appending(path: models[0].sha256 + ".imprint"), options: .atomic)
            #expect(throws: StoreError.self) { try store.rollBack() }
            try FileManager.default.removeItem(at: folder.appending(path: models[0].sha256 + ".imprint"))
            #expect(throws: StoreError.self) { try store.rollBack() }
            #expect(try store.answer == models[1].answer)
        }
    }

    @Test("A damaged model does not replace the last intact one as the previous model") func damagedCurrent()
        async throws
    {
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            for model in models.prefix(2) { try await model.install(into: store) }
            try Data("damaged".utf8).write(to: folder.appending(path: models[1].sha256 + ".imprint"), options: .atomic)
            try await models[2].install(into: store)
            #expect(try store.previous?.sha256 == models[0].sha256)
            try store.rollBack()
            #expect(try store.answer == models[0].answer)
        }
    }

    @Test("A damaged index is an error that changes no file, until it is removed") func damagedIndex() async throws {
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            for model in models.prefix(2) { try await model.install(into: store) }
            let file = folder.appending(path: "models.json")
            let text = try String(contentsOf: file, encoding: .utf8)
            let outside = text.replacingOccurrences(of: models[1].sha256, with: "../" + models[1].sha256.dropFirst(3))
            for damaged in ["", "{}", String(text.dropLast(9)), outside] {
                try damaged.write(to: file, atomically: true, encoding: .utf8)
                #expect(throws: StoreError.damagedIndex(file: file.path)) { try store.load() }
                #expect(throws: StoreError.damagedIndex(file: file.path)) { try store.current }
                #expect(throws: StoreError.damagedIndex(file: file.path)) { try store.rollBack() }
                await #expect(throws: StoreError.damagedIndex(file: file.path)) {
                    try await models[2].install(into: store)
                }
                #expect(try Data(contentsOf: file) == Data(damaged.utf8))
                #expect(try modelFiles(in: folder) == models.prefix(2).map { $0.sha256 + ".imprint" }.sorted())
            }
            let newer = text.replacingOccurrences(of: "\"format\" : 1", with: "\"format\" : 9")
            try newer.write(to: file, atomically: true, encoding: .utf8)
            await #expect(throws: StoreError.newerIndex(file: file.path, found: 9, newest: 1)) {
                try await models[2].install(into: store)
            }
            try FileManager.default.removeItem(at: file)
            try await models[2].install(into: store)
            #expect(try store.answer == models[2].answer)
        }
    }

    /// The answers of the tasks that use a store while its model is replaced.
    private final class Readers: Sendable {
        /// The number of running tasks, and of the answers of each model.
        let state = Mutex((running: 8, counts: [0, 0]))
    }

    @Test("While models are replaced a thousand times, eight tasks get only consistent results")
    func hotSwap() async throws {
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            let pair = [models[0], models[1]]
            try await pair[0].install(into: store)
            let live = try store.live()
            let answers = pair.map(\.answer)
            #expect(answers[0] != answers[1])
            let readers = Readers()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        defer { readers.state.withLock { $0.running -= 1 } }
                        while !Task.isCancelled {
                            let answer = try live.current.classify(TestModel.photo)
                            let index = try #require(answers.firstIndex(of: answer))
                            readers.state.withLock { $0.counts[index] += 1 }
                            await Task.yield()
                        }
                    }
                }
                // Every other change is a rollback.
                try await pair[1].inFile { file in
                    for swap in 0..<1000 {
                        let current = (swap + 1) % 2
                        if swap.isMultiple(of: 2) {
                            try await store.install(from: file, verification: pair[1].verification)
                        } else {
                            try store.rollBack()
                        }
                        #expect(try live.current.classify(TestModel.photo) == answers[current])
                        // The test is meaningless if the tasks never see one of the models.
                        let seen = readers.state.withLock { $0.counts[current] }
                        while readers.state.withLock({ $0.running > 0 && $0.counts[current] == seen }) {
                            await Task.yield()
                        }
                    }
                }
                group.cancelAll()
                try await group.waitForAll()
            }
            #expect(readers.state.withLock { $0.counts.allSatisfy { $0 >= 500 } })
        }
    }
}

/// The state of a store after the installing process is killed.
@Suite struct KilledInstallTests {
    @Test(
        "A store stays usable whenever a process is killed during installations and rollbacks"
    )
    func killed() async throws {
        let pair = [TestModel.all[0], TestModel.all[1]]
        try await withTemporaryFolder { parent in
            let files = [parent.appending(path: "0.imprint"), parent.appending(path: "1.imprint")]
            for (model, file) in zip(pair, files) { try model.bytes.write(to: file) }
            let arguments = zip(pair, files).flatMap { [$1.path, $0.sha256] }
            var random = RandomStream(seed: 1, "moments")
            var found = [0, 0]
            for round in 0..<48 {
                // New folders from time to time, so that first installations are killed too.
                let folder = parent.appending(path: "store \(round / 6)")
                let (isFirst, delay) = (round % 6 == 0, random.uniform(in: 0...0.06))
                try await killInstalling(
                    into: folder, arguments, after: isFirst ? nil : pair[round % 2].sha256, delay: delay)
                let store = try ModelStore(at: folder)
                guard let current = try store.current else {
                    #expect(isFirst, "after kill \(round)")
                    continue
                }
                let index = try #require(pair.firstIndex { $0.sha256 == current.sha256 })
                #expect(try store.answer == pair[index].answer, "after kill \(round)")
                found[index] += 1
                if let previous = try store.previous {
                    let model = try #require(TestModel.all.first { $0.sha256 == previous.sha256 })
                    try store.rollBack()
                    #expect(try store.answer == model.answer, "after kill \(round)")
                }
                try await TestModel.all[2].install(into: store)
                #expect(try store.answer == TestModel.all[2].answer)
            }
            // The kills must be spread over both models.
            #expect(found.allSatisfy { $0 > 5 }, "\(found)")
        }
    }

    /// Starts the process, and kills it a delay after it has created the folder, or after a model is in use.
    /// - Parameters:
    ///   - model: The digest of the model; nil for the folder.
    ///   - delay: The delay in seconds.
    private func killInstalling(
        into folder: URL, _ arguments: [String], after model: String?, delay: Float
    ) async throws {
        let process = Process()
        process.executableURL = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(
            path: "InstallLoop")
        process.arguments = [folder.path] + arguments
        try withoutBlockedSignals { try process.run() }
        let deadline = Date(timeIntervalSinceNow: 60)
        func hasStarted() -> Bool {
            model.map { $0 == currentModel(in: folder) } ?? FileManager.default.fileExists(atPath: folder.path)
        }
        while !hasStarted(), process.isRunning, Date() < deadline { try await Task.sleep(for: .microseconds(200)) }
        try await Task.sleep(for: .seconds(Double(delay)))
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        #expect(process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGKILL)
    }

    /// Returns the digest of the model in use in a store that another process changes; nil without a model.
    private func currentModel(in folder: URL) -> String? {
        struct Index: Decodable {
            struct Model: Decodable { let sha256: String }
            let current: Model
        }
        let index = try? Data(contentsOf: folder.appending(path: StoreIndex.fileName))
        return index.flatMap { try? JSONDecoder().decode(Index.self, from: $0) }?.current.sha256
    }
}
