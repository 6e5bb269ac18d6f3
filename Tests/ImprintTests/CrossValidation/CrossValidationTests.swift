import Foundation
import Imprint
import ImprintImages
import ImprintModel
import TestSupport
import Testing

@testable import ImprintTraining

@Suite("Cross-validation", .timeLimit(.minutes(10))) struct CrossValidationTests {
    /// Noise images can resemble each other, so most tests form no groups of near-duplicates.
    private func validation(
        _ folder: URL, _ configuration: ClassifierConfiguration? = nil,
        change: (inout CrossValidation.Options) -> Void = { _ in }
    ) throws -> CrossValidation {
        try validation(of: ImageFolder(at: folder), configuration, change: change)
    }

    private func validation(
        of photos: some TrainingSource, _ configuration: ClassifierConfiguration? = nil,
        change: (inout CrossValidation.Options) -> Void = { _ in }
    ) throws -> CrossValidation {
        var configuration = try configuration ?? quickTraining(epochs: 1)
        configuration.keepsGroupsTogether = false
        var options = CrossValidation.Options()
        options.folds = 3
        change(&options)
        return CrossValidation(photos: photos, configuration: configuration, options: options)
    }

    private func predictions(_ result: CrossValidationResult) -> [String] {
        result.folds.flatMap { fold in
            fold.result.predictions.map {
                "\(fold.seed)/\(fold.number) \($0.url.lastPathComponent) \($0.labels) \($0.predicted) \($0.confidences)"
            }
        }
    }

    @Test("Each photo is predicted once per seed, by a model that was trained on the other folds") func folds() throws {
        try withImages(perLabel: 6) { folder in
            var trainingCounts: [Int] = []
            var kinds: [String] = []
            let result = try validation(folder, change: { $0.seeds = [1, 2] }).run(
                onEvent: { event in
                    let kind = String("\(event)".prefix { $0.isLetter })
                    if kinds.last != kind { kinds.append(kind) }
                    if case .training(_, _, .started(let start)) = event {
                        trainingCounts.append(start.trainingImages)
                    }
                })
            #expect(kinds.first == "comparing" && kinds.last == "finished")
            #expect(kinds.contains("training") && kinds.contains("evaluating") && kinds.contains("fold"))
            #expect(result.isComplete && result.folds.map(\.number) == [1, 2, 3, 1, 2, 3])
            #expect(trainingCounts == result.folds.map { 12 - $0.result.imageCount })
            #expect(result.folds.allSatisfy { $0.trainingImages + $0.result.imageCount == 12 && !$0.wasRestored })
            for seed in [UInt64(1), 2] {
                let files = result.folds.filter { $0.seed == seed }.flatMap { $0.result.predictions.map(\.url.path) }
                #expect(files.count == 12 && Set(files).count == 12)
            }
            let metrics = try #require(result.metrics)
            let pooled = try #require(result.evaluation)
            #expect(pooled.results.count == 24)
            #expect(abs(metrics.accuracy.value - pooled.accuracy) < 1e-12)
            #expect(result.multiLabelEvaluation == nil && result.multiLabelMetrics == nil)
            #expect(metrics.auc != nil && metrics.foldStandardDeviation != nil && metrics.seedStandardDeviation != nil)
            let page = Report(result, command: "imprint train photos --folds 3").html
            #expect(page.contains("Cross-validation") && page.contains("2/3"))
            #expect(page.contains("Confusion matrix") && page.contains("imprint train photos --folds 3"))
        }
    }

    @Test("A list and photos in memory have the same folds and predictions as their folder, and keep them")
    func sources() throws {
        try withImages(perLabel: 4) { folder in
            let photos = try ImageFolder(at: folder)
            let paths = photos.items.map { photos.identifier(of: $0) }
            let list = folder.appending(path: "photos.csv")
            let lines = paths.map { "\($0),\($0.prefix { $0 != "/" })\n" }
            try Data(("photo,label\n" + lines.joined()).utf8).write(to: list)
            var inMemory = InMemorySource(labels: photos.labels)
            for (item, path) in zip(photos.items, paths) {
                try inMemory.append(
                    Data(contentsOf: item.url), labels: [photos.labels[item.label]], identifier: path)
            }
            func change(_ options: inout CrossValidation.Options) {
                (options.folds, options.groups) = (2, [["left/0.png", "right/1.png"]])
            }
            let expected = try validation(of: photos, change: change).run()
            #expect(expected.isComplete && expected.groups == 7)
            for (name, source) in [("list", try LabelList(at: list)), ("memory", inMemory)]
                as [(
                    String, any TrainingSource
                )]
            {
                try withTemporaryFolder { root in
                    let kept = root.appending(path: name, directoryHint: .isDirectory)
                    func run(_ source: some TrainingSource) throws -> CrossValidationResult {
                        try validation(of: source) { options in
                            change(&options)
                            options.foldsFolder = kept
                        }.run()
                    }
                    #expect(try predictions(run(source)) == predictions(expected), "\(name)")
                    let again = try run(source)
                    #expect(
                        again.folds.allSatisfy(\.wasRestored) && predictions(again) == predictions(expected), "\(name)")
                    let file = kept.appending(path: "seed-0-fold-1.json")
                    let text = try String(contentsOf: file, encoding: .utf8)
                    #expect(paths.count { text.contains("\"\($0)\"") } == again.folds[0].result.imageCount)
                }
            }
        }
    }

    @Test("The result does not depend on the number of threads") func determinism() throws {
        try withImages(perLabel: 4) { folder in
            let one = try validation(folder, change: { $0.folds = 2 }).run()
            let two = try validation(folder, quickTraining(epochs: 1) { $0.threads = 2 }, change: { $0.folds = 2 })
                .run()
            #expect(predictions(one) == predictions(two))
            #expect(one.metrics == two.metrics)
        }
    }

    @Test("A model learns in each fold, from scratch and from a base model") func accuracy() throws {
        try withImages(perLabel: 12) { folder in
            let scratch = try validation(folder, quickTraining(epochs: 12), change: { $0.folds = 2 }).run()
            #expect((scratch.metrics?.accuracy.value ?? 0) > 0.8)
            let base = try train(folder, quickTraining(epochs: 12))
            let frozen = try validation(
                folder, quickTraining(epochs: 3) { $0.start = .base(base, trainableLayers: .head) },
                change: { $0.folds = 2 }
            ).run()
            #expect((frozen.metrics?.accuracy.value ?? 0) > 0.8)
        }
    }

    @Test("A second run reads the finished folds, and other settings are an error that names the setting")
    func foldsFolder() throws {
        try withImages(perLabel: 4) { folder in
            try withTemporaryFolder { root in
                let kept = root.appending(path: "kept", directoryHint: .isDirectory)
                func run(
                    seeds: [UInt64]? = nil, epochs: Int = 1, groups: [[String]] = []
                ) throws -> CrossValidationResult {
                    try validation(folder, quickTraining(epochs: epochs)) { options in
                        (options.folds, options.seeds, options.groups) = (2, seeds, groups)
                        options.foldsFolder = kept
                    }.run()
                }
                let first = try run()
                #expect(FileManager.default.fileExists(atPath: kept.appending(path: "seed-0-fold-2.imprint").path))
                try FileManager.default.removeItem(at: kept.appending(path: "seed-0-fold-2.json"))
                let second = try run(seeds: [0, 5])
                #expect(second.folds.map(\.wasRestored) == [true, false, false, false])
                #expect(predictions(first) == predictions(second).filter { $0.hasPrefix("0/") })
                let third = try run(seeds: [0, 5])
                #expect(third.metrics == second.metrics && third.folds.allSatisfy(\.wasRestored))
                let error = #expect(throws: CrossValidationError.self) { try run(epochs: 2) }
                let text = "\(try #require(error))"
                #expect(text.contains("another setting of epochs: it was 1 and is now 2"))
                #expect(throws: CrossValidationError.self) { try run(groups: [["left/0.png", "left/1.png"]]) }
                for content in ["", "{}", #"{"seconds": 1, "labels": ["left", "right"], "images": []}"#] {
                    try Data(content.utf8).write(to: kept.appending(path: "seed-0-fold-1.json"))
                    let error = #expect(throws: CrossValidationError.self) { try run() }
                    let text = "\(try #require(error))"
                    #expect(text.contains("seed-0-fold-1.json is not a usable fold"))
                }
                let file = kept.appending(path: "seed-0-fold-1.json")
                try FileManager.default.removeItem(at: file)
                try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: "/dev/null")
                let device = #expect(throws: CrossValidationError.self) { try run() }
                let problem = "\(try #require(device))"
                #expect(problem.contains("seed-0-fold-1.json is not a usable fold: it is a device"))
            }
        }
    }

    @Test("Photos whose names differ only in their Unicode normalization have separate predictions and groups")
    func normalization() throws {
        try withImages(perLabel: 4) { folder in
            let files = try ImageFolder(at: folder)
            let names = ["caf\u{e9}", "cafe\u{301}"]
            var photos = InMemorySource(labels: files.labels)
            for (index, item) in files.items.enumerated() {
                try photos.append(
                    Data(contentsOf: item.url), labels: [files.labels[item.label]],
                    identifier: index < 2 ? names[index] : files.identifier(of: item))
            }
            let groups = try PhotoGroups(
                photos, additional: [[names[1], photos.items[2].identifier]], keepsGroupsTogether: false,
                workers: .init(1), onProgress: { _ in }
            ).groups
            #expect(groups.prefix(2) == [[0], [1, 2]])
            try withTemporaryFolder { root in
                func run() throws -> CrossValidationResult {
                    try validation(of: photos) { options in
                        options.folds = 2
                        options.foldsFolder = root.appending(path: "kept", directoryHint: .isDirectory)
                    }.run()
                }
                let first = try run()
                let second = try run()
                #expect(second.folds.allSatisfy(\.wasRestored) && predictions(second) == predictions(first))
            }
        }
    }

    @Test("A folder without finished folds accepts other settings") func folderWithoutFolds() throws {
        try withImages(perLabel: 4) { folder in
            try withTemporaryFolder { root in
                func run(
                    folds: Int, epochs: Int = 1, shouldStop: @escaping () -> Bool = { false }
                ) throws -> CrossValidationResult {
                    try validation(folder, quickTraining(epochs: epochs)) { options in
                        // The label "left" has two groups.
                        options.groups = [["left/0.png", "left/1.png", "left/2.png"]]
                        options.folds = folds
                        options.foldsFolder = root.appending(path: "kept", directoryHint: .isDirectory)
                    }.run(shouldStop: shouldStop)
                }
                let error = CrossValidationError.tooFewGroups(label: "left", groups: 2, photos: 4, folds: 3)
                #expect(throws: error) { try run(folds: 3) }
                let stopped = try run(folds: 2, epochs: 2, shouldStop: { true })
                #expect(stopped.folds.isEmpty)
                let completed = try run(folds: 2)
                #expect(completed.isComplete)
                #expect(throws: CrossValidationError.self) { try run(folds: 2, epochs: 2) }
            }
        }
    }

    @Test("Only one run at a time uses the folder of finished folds") func lock() throws {
        try withImages(perLabel: 4) { folder in
            try withTemporaryFolder { root in
                func run(
                    onEvent: @escaping (CrossValidationEvent) -> Void = { _ in }
                ) throws -> CrossValidationResult {
                    try validation(folder) { options in
                        options.folds = 2
                        options.foldsFolder = root.appending(path: "kept", directoryHint: .isDirectory)
                    }.run(onEvent: onEvent)
                }
                var error: CrossValidationError?
                let first = try run { event in
                    guard case .fold = event, error == nil else { return }
                    error = #expect(throws: CrossValidationError.self) { try run() }
                }
                let text = "\(try #require(error))"
                #expect(
                    text.contains("/kept") && text.contains("is in use by another cross-validation. Wait until it ends")
                )
                #expect(first.isComplete && !first.folds.contains(where: \.wasRestored))
                let second = try run()
                #expect(second.folds.allSatisfy(\.wasRestored) && predictions(second) == predictions(first))
            }
        }
    }

    @Test("Finished folds of another recipe are an error") func recipes() throws {
        let base = try withImages(perLabel: 4) { try train($0, quickTraining(epochs: 1)) }
        try withImages(perLabel: 4) { folder in
            try withTemporaryFolder { root in
                func run(_ recipe: ClassifierRecipe, layerDecay: Float = 0.4) throws -> CrossValidationResult {
                    let configuration = quickTraining(epochs: 1) {
                        $0.start = .pretrained(base, recipe: recipe)
                        $0.fineTuning.layerDecay = layerDecay
                    }
                    return try validation(folder, configuration) { options in
                        options.folds = 2
                        options.foldsFolder = root.appending(path: recipe.rawValue, directoryHint: .isDirectory)
                    }.run()
                }
                _ = try run(.head)
                #expect(try run(.head).folds.allSatisfy(\.wasRestored))
                try FileManager.default.copyItem(
                    at: root.appending(path: "head"), to: root.appending(path: "fine-tune"))
                let error = #expect(throws: CrossValidationError.self) { try run(.fineTuning) }
                let text = "\(try #require(error))"
                #expect(text.contains("another setting of recipe: it was head and is now fine-tune"))
                try FileManager.default.removeItem(at: root.appending(path: "fine-tune"))
                _ = try run(.fineTuning)
                #expect(throws: CrossValidationError.self) { try run(.fineTuning, layerDecay: 0.5) }
            }
        }
    }

    @Test("A stopped run returns the finished folds; a cancelled one ends") func stop() async throws {
        try await withTemporaryFolder { folder in
            try withImages(perLabel: 4) { images in
                try FileManager.default.copyItem(at: images, to: folder.appending(path: "photos"))
            }
            func result(
                of validation: CrossValidation, stoppingAt isLast: (CrossValidationEvent) -> Bool
            ) async throws -> CrossValidationResult {
                let run = validation.start()
                var result: CrossValidationResult?
                for try await event in run {
                    if isLast(event) { run.stop() }
                    if case .finished(let finished) = event { result = finished }
                }
                return try #require(result)
            }
            // Far more folds than the run can finish before it is stopped.
            let long = try validation(folder.appending(path: "photos")) { $0.seeds = Array(0..<1000) }
            let stopped = try await result(of: long) { if case .fold = $0 { true } else { false } }
            #expect(stopped.folds.count >= 1 && !stopped.isComplete)
            // Each photo is a group of its own.
            let evaluated = Set(stopped.folds.flatMap { $0.result.predictions.map(\.url) })
            #expect(stopped.groups == evaluated.count)
            #expect(stopped.evaluation?.results.count == stopped.folds.reduce(0) { $0 + $1.result.imageCount })
            let endless = try validation(folder.appending(path: "photos"), quickTraining(epochs: 100_000))
            let unfinished = try await result(of: endless) {
                if case .training(_, _, .epoch) = $0 { true } else { false }
            }
            #expect(unfinished.folds.isEmpty && unfinished.metrics == nil && !unfinished.isComplete)
            let task = Task {
                for try await event in endless.start() { if case .training(_, _, .epoch) = event { return true } }
                return false
            }
            #expect(try await task.value)
            let early = try endless.run(shouldStop: { true })
            #expect(early.folds.isEmpty && early.metrics == nil && !early.isComplete)
        }
    }

    @Test("Settings out of range are an error that names them")
    func invalidSettings() throws {
        try withImages(perLabel: 3) { folder in
            func name(
                _ configuration: ClassifierConfiguration?, _ change: (inout CrossValidation.Options) -> Void
            ) throws -> String {
                let error = #expect(throws: ImprintError.self) {
                    try validation(folder, configuration, change: change).run()
                }
                guard case .invalidSetting(let name, _, _)? = error else { return "\(String(describing: error))" }
                return name
            }
            var found: [String] = []
            for folds in [-1, 0, 1, 7] { found.append(try name(nil) { $0.folds = folds }) }
            found.append(try name(nil) { $0.seeds = [] })
            found.append(try name(nil) { $0.seeds = [1, 1] })
            found.append(try name(quickTraining { $0.validationFolder = folder }) { _ in })
            found.append(try name(quickTraining(epochs: 0)) { _ in })
            #expect(found == Array(repeating: "folds", count: 4) + ["seeds", "seeds", "validationFolder", "epochs"])
        }
    }

    @Test("Unreadable photos are left out and listed once") func unreadable() throws {
        try withImages(perLabel: 4) { folder in
            try Data("no image".utf8).write(to: folder.appending(path: "left/broken.png"))
            let result = try validation(folder, change: { ($0.folds, $0.seeds) = (2, [1, 2]) }).run()
            #expect(result.evaluation?.skipped.map(\.url.lastPathComponent) == ["broken.png"])
            #expect(result.evaluation?.results.count == 16)
        }
    }
}
