import Foundation
import Imprint
import ImprintImages
import TestSupport
import Testing

@testable import ImprintTraining

/// Tests of cross-validations that are stopped, or in which a fold fails.
@Suite("The end of a cross-validation", .timeLimit(.minutes(10))) struct CrossValidationEndTests {
    private func validation(_ folder: URL, folds: Int = 2, foldsFolder: URL? = nil) throws -> CrossValidation {
        var options = CrossValidation.Options()
        (options.folds, options.foldsFolder) = (folds, foldsFolder)
        let configuration = quickTraining(epochs: 1) { $0.keepsGroupsTogether = false }
        return CrossValidation(photos: try ImageFolder(at: folder), configuration: configuration, options: options)
    }

    @Test("Stopping while photos are compared ends the run after the current portion") func comparison() throws {
        try withImages(perLabel: 20) { folder in
            var compared: [Int] = []
            var kinds: Set<String> = []
            let result = try validation(folder).run(
                onEvent: { event in
                    kinds.insert(String("\(event)".prefix { $0.isLetter }))
                    if case .comparing(let done, _) = event { compared.append(done) }
                }, shouldStop: { !compared.isEmpty })
            #expect(compared == [32] && kinds == ["comparing", "finished"])
            #expect(result.folds.isEmpty && result.metrics == nil && !result.isComplete)
        }
    }

    @Test("Stopping while a fold is evaluated ends the run after the current portion, without the fold")
    func evaluation() throws {
        try withImages(perLabel: 40) { folder in
            var evaluated: [Int] = []
            let result = try validation(folder).run(
                onEvent: { if case .evaluating(_, _, let done, _) = $0 { evaluated.append(done) } },
                shouldStop: { !evaluated.isEmpty })
            #expect(evaluated == [32])
            #expect(result.folds.isEmpty && !result.isComplete)
        }
    }

    /// Calls `body` with a cross-validation whose third fold cannot be read, and the photos of the other folds.
    private func withDamagedFold(_ body: (CrossValidation, Set<URL>) async throws -> Void) async throws {
        try await withTemporaryFolder { root in
            let photos = root.appending(path: "photos")
            try writeImages(perLabel: 6, to: photos)
            let kept = root.appending(path: "kept", directoryHint: .isDirectory)
            let validation = try validation(photos, folds: 3, foldsFolder: kept)
            let complete = try validation.run()
            try Data("{}".utf8).write(to: kept.appending(path: "seed-0-fold-3.json"))
            try await body(validation, Set(complete.folds.prefix(2).flatMap { $0.result.predictions.map(\.url) }))
        }
    }

    @Test("If a fold fails, the run reports the finished folds before the error") func failure() async throws {
        try await withDamagedFold { validation, photos in
            var events: [CrossValidationEvent] = []
            do {
                for try await event in validation.start() { events.append(event) }
                Issue.record("the third fold cannot be read")
            } catch CrossValidationError.unusableFold {}
            guard case .finished(let result)? = events.last else {
                Issue.record("the last event is \(String(describing: events.last))")
                return
            }
            #expect(!result.isComplete && result.folds.map(\.number) == [1, 2] && result.metrics != nil)
            #expect(Set(result.evaluation?.results.map(\.url) ?? []) == photos)
        }
    }

    @Test("A fold that cannot be kept is reported, and the run continues") func unwritableFolds() throws {
        try withImages(perLabel: 6) { folder in
            try withTemporaryFolder { root in
                let kept = root.appending(path: "kept", directoryHint: .isDirectory)
                var failures: [Int] = []
                let result = try validation(folder, foldsFolder: kept).run(
                    onEvent: { event in
                        if case .fold = event { try? FileManager.default.removeItem(at: kept) }
                        if case .foldNotSaved(let fold, _, .cannotWrite) = event { failures.append(fold) }
                    })
                #expect(failures == [1, 2] && result.isComplete)
            }
        }
    }

    @Test("A fold whose kept model is cut off is reported and trained again", arguments: [0, 8, -4])
    func damagedModel(byteCount: Int) throws {
        try withImages(perLabel: 6) { folder in
            try withTemporaryFolder { root in
                let kept = root.appending(path: "kept", directoryHint: .isDirectory)
                let validation = try validation(folder, foldsFolder: kept)
                _ = try validation.run()
                let model = kept.appending(path: "seed-0-fold-1.imprint")
                let whole = try Data(contentsOf: model)
                // A negative number counts from the end.
                try whole.prefix(byteCount < 0 ? whole.count + byteCount : byteCount).write(to: model)
                var reasons: [String] = []
                let again = try validation.run(
                    onEvent: { if case .damagedFold(1, 0, let reason) = $0 { reasons.append(reason) } })
                #expect(again.folds.map(\.wasRestored) == [false, true])
                #expect(reasons.count == 1 && reasons.allSatisfy { $0.contains(model.path) }, "\(reasons)")
                #expect(try Data(contentsOf: model) == whole)
            }
        }
    }

    @Test("A file of another kind in the place of a kept model is an error, and is not replaced") func otherFile()
        throws
    {
        try withImages(perLabel: 6) { folder in
            try withTemporaryFolder { root in
                let kept = root.appending(path: "kept", directoryHint: .isDirectory)
                let validation = try validation(folder, foldsFolder: kept)
                _ = try validation.run()
                let file = kept.appending(path: "seed-0-fold-1.imprint")
                let document = Data("%PDF-1.7\na document".utf8)
                try document.write(to: file)
                let error = #expect(throws: CrossValidationError.self) { try validation.run() }
                guard case .unusableFold(file.path, let reason)? = error else {
                    Issue.record("unexpected: \(String(describing: error))")
                    return
                }
                #expect(reason.hasSuffix("it seems to be a PDF") && !reason.contains(file.path), "\(reason)")
                #expect(try Data(contentsOf: file) == document)
            }
        }
    }

    @Test("Kept folds of other photos are an error in words") func otherPhotos() throws {
        try withImages(perLabel: 6) { folder in
            try withTemporaryFolder { root in
                let kept = root.appending(path: "kept", directoryHint: .isDirectory)
                _ = try validation(folder, foldsFolder: kept).run()
                try FileManager.default.copyItem(
                    at: folder.appending(path: "left/0.png"), to: folder.appending(path: "left/new.png"))
                let error = #expect(throws: CrossValidationError.self) {
                    try validation(folder, foldsFolder: kept).run()
                }
                guard case .otherInputs(_, ["photos"])? = error else {
                    Issue.record("unexpected: \(String(describing: error))")
                    return
                }
                #expect("\(try #require(error))".contains("before a change of the photos: files were added"))
            }
        }
    }

    @Test("If the first fold fails, there is only the error") func failureOfFirstFold() async throws {
        try await withDamagedFold { validation, _ in
            let kept = try #require(validation.options.foldsFolder)
            try Data("{}".utf8).write(to: kept.appending(path: "seed-0-fold-1.json"))
            var isFinished = false
            #expect(throws: CrossValidationError.self) {
                try validation.run(onEvent: { if case .finished = $0 { isFinished = true } })
            }
            #expect(!isFinished)
        }
    }
}
