import Foundation
import Imprint
import ImprintCore
import TestSupport
import Testing

@testable import ImprintStore

/// The state of a store after a power cut or a disk failure at each of its file operations.
@Suite struct PowerCutTests {
    /// A change of a store, and the possible models afterwards; nil means none.
    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The indices of the models installed before, in order.
        let before: [Int]
        let old: Int?
        let new: Int?
        let run: @Sendable (ModelStore) async throws -> Void
    }

    static let changes = [
        Change(testDescription: "the first model", before: [], old: nil, new: 0) {
            try await TestModel.all[0].install(into: $0)
        },
        Change(testDescription: "a third model", before: [0, 1], old: 1, new: 2) {
            try await TestModel.all[2].install(into: $0)
        },
        Change(testDescription: "the same model again", before: [0, 1], old: 1, new: 1) {
            try await TestModel.all[1].install(into: $0)
        },
        Change(testDescription: "the previous model", before: [0, 1], old: 1, new: 0) {
            try await TestModel.all[0].install(into: $0)
        },
        Change(testDescription: "a wrong model", before: [0, 1], old: 1, new: 1) { store in
            try await TestModel.all[2].inFile { file in
                let verification = try TestModel.all[3].verification
                await #expect(throws: (any Error).self) {
                    try await store.install(from: file, verification: verification)
                }
            }
        },
        Change(testDescription: "roll back", before: [0, 1], old: 1, new: 0) { try $0.rollBack() },
        Change(testDescription: "a model from the web, the rest of it", before: [0, 1], old: 1, new: 2) { store in
            let model = TestModel.all[2]
            let server = try RawServer { request, connection in
                connection.sendFile(model.bytes, tag: "\"1\"", for: request, cutAfter: request.range == nil ? 900 : nil)
            }
            defer { server.stop() }
            await #expect(throws: (any Error).self) {
                try await store.install(from: server.url, verification: model.verification, limits: .patient)
            }
            try await store.install(from: server.url, verification: model.verification, limits: .patient)
        },
    ]

    private func files(with models: [Int]) async throws -> MemoryFiles {
        let files = MemoryFiles()
        let store = ModelStore(files, folder: "memory")
        for index in models { try await TestModel.all[index].install(into: store) }
        return files
    }

    /// Checks that the store in `files` has one of the models, intact, and is usable.
    private func checkUsable(_ files: MemoryFiles, _ change: Change, mustBeNew: Bool) async throws {
        let store = ModelStore(files, folder: "memory")
        let expected = (mustBeNew ? [change.new] : [change.old, change.new]).map { $0.map { TestModel.all[$0].sha256 } }
        let current = try store.current?.sha256
        try #require(expected.contains(current))
        if let model = TestModel.all.first(where: { $0.sha256 == current }) {
            #expect(try store.answer == model.answer)
        }
        // If there is a previous model, a rollback works.
        if let previous = try store.previous {
            let model = try #require(TestModel.all.first { $0.sha256 == previous.sha256 })
            try ModelStore(files.copy(), folder: "memory").rollBack()
            let other = ModelStore(files.copy(), folder: "memory")
            try other.rollBack()
            #expect(try other.answer == model.answer)
        } else {
            #expect(change.before.isEmpty || change.testDescription == "roll back")
        }
        try await TestModel.all[3].install(into: store)
        #expect(try store.answer == TestModel.all[3].answer)
    }

    @Test("A power cut leaves the old or the new model intact", arguments: changes)
    func powerCut(_ change: Change) async throws {
        let before = try await files(with: change.before)
        let whole = before.copy()
        try await change.run(ModelStore(whole, folder: "memory"))
        #expect(whole.operationCount > 5)
        // The last power cut is after all operations.
        for operation in 0...whole.operationCount {
            let files = before.copy(failingAt: operation)
            var isDone = false
            do {
                try await change.run(ModelStore(files, folder: "memory"))
                isDone = true
            } catch {}
            for loss in MemoryFiles.Loss.allCases {
                for seed in 0..<(loss == .some ? 4 : 1) {
                    do {
                        try await checkUsable(files.rebooted(losing: loss, seed: seed), change, mustBeNew: isDone)
                    } catch {
                        Issue.record(
                            "cut at operation \(operation) of \(whole.operationCount), losing \(loss) (\(seed)): \(error)"
                        )
                        return
                    }
                }
            }
        }
    }

    @Test("A single disk failure leaves the old or the new model, on disk and live", arguments: changes)
    func failingDisk(_ change: Change) async throws {
        let before = try await files(with: change.before)
        let whole = before.copy()
        try await change.run(ModelStore(whole, folder: "memory"))
        for operation in 0..<whole.operationCount {
            let files = before.copy(failingAt: operation, .error)
            let store = ModelStore(files, folder: "memory")
            var isNew = true
            do {
                try await change.run(store)
            } catch FileError.notConfirmed {
                // The only error after which the new model is in use.
            } catch {
                isNew = false
            }
            let expected = (isNew ? change.new : change.old).map { TestModel.all[$0].sha256 }
            #expect(try store.current?.sha256 == expected, "operation \(operation)")
            if try store.current != nil {
                let classifier = try store.load()
                #expect(try store.live().current === classifier)
            }
            try await checkUsable(files, change, mustBeNew: false)
        }
    }
}
