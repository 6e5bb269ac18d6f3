internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// Runs a cross-validation on the caller's thread.
struct CrossValidationRunner {
    private let photos: any TrainingSource
    private let options: CrossValidation.Options
    private let training: FoldTraining
    private let onEvent: (CrossValidationEvent) -> Void
    private let shouldStop: () -> Bool

    init(
        _ validation: CrossValidation, onEvent: @escaping (CrossValidationEvent) -> Void,
        shouldStop: @escaping () -> Bool
    ) {
        (photos, options, training) = (validation.photos, validation.options, validation.training)
        self.onEvent = onEvent
        self.shouldStop = shouldStop
    }

    private var seeds: [UInt64] { options.seeds ?? [training.seed] }

    func run() throws -> CrossValidationResult {
        try check()
        let settings = try training.settings()
        let store = try options.foldsFolder.map {
            try FoldStore(
                $0, settings: self.settings(settings), photos: photos, kind: training.kind,
                annotations: training.annotations)
        }
        // The folder stays locked until the run ends.
        defer { withExtendedLifetime(store) {} }
        guard let groups = try findGroups() else { return end([], nil, isComplete: false) }
        SystemMemory.returnFreed()
        let splits = try seeds.map { (seed: $0, folds: try groups.folds(options.folds, seed: $0)) }
        onEvent(
            .started(
                CrossValidationStart(
                    labels: photos.labels, foldCount: options.folds, seeds: seeds, imageCount: groups.photoCount,
                    groupCount: groups.groups.count, skipped: groups.skipped)))
        var finished: [CrossValidationFold] = []
        do {
            let isComplete = try run(splits, store, &finished)
            return end(finished, groups, isComplete: isComplete)
        } catch {
            // Without the finished folds, their training would be lost.
            if !finished.isEmpty { _ = end(finished, groups, isComplete: false) }
            throw error
        }
    }

    /// Returns the groups of photos that stay in one fold; nil if the run was stopped.
    private func findGroups() throws -> PhotoGroups? {
        do {
            return try PhotoGroups(
                photos, additional: options.groups, keepsGroupsTogether: training.keepsGroupsTogether,
                workers: Workers(training.threads)
            ) { done in
                onEvent(.comparing(done: done, of: photos.items.count))
                if shouldStop() { throw CancellationError() }
            }
        } catch is CancellationError {
            return nil
        }
    }

    /// Trains and evaluates the folds that the folder does not have.
    /// - Parameters:
    ///   - splits: The seed and the folds of each repeat.
    ///   - finished: Receives each finished fold.
    /// - Returns: Whether all folds are finished; false if the run was stopped.
    private func run(
        _ splits: [(seed: UInt64, folds: [[Int]])], _ store: FoldStore?, _ finished: inout [CrossValidationFold]
    ) throws -> Bool {
        for (seed, folds) in splits {
            for index in folds.indices {
                let split = Split(number: index + 1, seed: seed, folds: folds)
                let kept = try keptFold(split, store)
                let trained = try kept == nil ? train(split) : nil
                guard let fold = kept ?? trained?.fold else { return false }
                if let labels = finished.first?.result.labels, labels != fold.result.labels {
                    throw CrossValidationError.differentLabels(
                        fold: split.number, seed: seed, found: fold.result.labels, expected: labels)
                }
                finished.append(fold)
                onEvent(.fold(fold))
                // Afterwards, so that a full disk does not lose the fold.
                if let trained { try keep(trained.fold, trained.model, store) }
            }
        }
        return true
    }

    /// Returns a fold of the folder of finished folds, or nil if it does not have it or its model is damaged.
    private func keptFold(_ split: Split, _ store: FoldStore?) throws -> CrossValidationFold? {
        guard let store, let fold = try store.fold(split) else { return nil }
        guard let reason = try store.damageOfModel(split) else { return fold }
        onEvent(.damagedFold(fold: split.number, seed: split.seed, reason: reason))
        return nil
    }

    /// Writes a fold to the folder of finished folds, and reports an error of writing, which does not end the run.
    private func keep(_ fold: CrossValidationFold, _ model: ModelFile, _ store: FoldStore?) throws {
        do {
            try store?.save(fold, model)
        } catch let error as FileError {
            onEvent(.foldNotSaved(fold: fold.number, seed: fold.seed, error))
        }
    }

    /// A fold and the other folds, as indices of the photos.
    struct Split {
        /// The number of the fold, from 1.
        let number: Int
        let seed: UInt64
        let folds: [[Int]]

        var evaluated: [Int] { folds[number - 1] }
        var training: [Int] { folds.indices.filter { $0 != number - 1 }.flatMap { folds[$0] }.sorted() }
    }

    private func check() throws {
        try photos.checkLabelsAndIdentifiers()
        let problem: (name: String, found: String, expected: String)? =
            if options.folds < 2 || options.folds > photos.items.count {
                ("folds", "\(options.folds)", "2 to \(max(photos.items.count, 2)), the number of photos")
            } else if seeds.isEmpty || Set(seeds).count < seeds.count {
                ("seeds", "\(seeds)", "at least one, each of them once")
            } else if let folder = training.validationFolder {
                (
                    "validationFolder", folder.displayPath,
                    "none, because its photos could resemble the test photos of a fold; validate on a fraction of the photos"
                )
            } else if options.averagesFlipped && training.trainsDetector {
                ("averagesFlipped", "true", "false for a logo detector, which already evaluates an image pyramid")
            } else {
                nil
            }
        if let problem {
            throw ImprintError.invalidSetting(name: problem.name, found: problem.found, expected: problem.expected)
        }
    }

    /// Returns the settings that a finished fold depends on, by name.
    private func settings(_ settings: [String: String]) -> [String: String] {
        var settings = settings
        settings["photos"] = String(photos.digest.prefix(12))
        settings["labels"] = photos.labels.joined(separator: ", ")
        settings["folds"] = "\(options.folds)"
        settings["averaging over flips"] = options.averagesFlipped ? "yes" : "no"
        let groups = options.groups.filter { $0.count > 1 }.map { $0.sorted().joined(separator: "\n") }.sorted()
        let digest = SHA256.hexadecimal(of: Array(groups.joined(separator: "\n\n").utf8)).prefix(12)
        settings["groups"] = groups.isEmpty ? "none" : "\(groups.count) (\(digest))"
        return settings
    }

    /// Trains and evaluates the model of a fold.
    /// - Returns: The fold and its model, or nil if the run was stopped.
    private func train(_ split: Split) throws -> (fold: CrossValidationFold, model: ModelFile)? {
        guard !shouldStop() else { return nil }
        let (number, seed) = (split.number, split.seed)
        let evaluated = TrainingSubset(photos, items: split.evaluated.map { photos.items[$0] })
        let trainer = training.trainer(split.training.map { photos.items[$0] }, evaluated.items, seed)
        let result: TrainingResult
        do {
            result = try trainer.train(
                onEvent: { [onEvent] in onEvent(.training(fold: number, seed: seed, $0)) }, shouldStop: shouldStop)
        } catch ImprintError.stoppedTooEarly where shouldStop() {
            return nil
        }
        if let error = result.photoError { throw error }
        if let error = result.divergence { throw error }
        guard result.ending != .stopped else { return nil }
        let classifier = try ImageClassifier(result.model, averagesFlipped: options.averagesFlipped)
        let evaluation: ModelEvaluation
        do {
            let flag = CancellationFlag()
            evaluation = try training.evaluate(classifier, on: evaluated) { done in
                onEvent(.evaluating(fold: number, seed: seed, done: done, of: evaluated.items.count))
                // Another thread must not call the closure.
                if shouldStop() { flag.set() }
            } checkCancellation: {
                try flag.check()
            }
        } catch is CancellationError {
            return nil
        }
        SystemMemory.returnFreed()
        let fold = CrossValidationFold(
            number: number, seed: seed, result: evaluation, trainingImages: split.training.count,
            seconds: result.seconds, wasRestored: false)
        return (fold, result.model)
    }

    /// Sends the result of a run.
    /// - Parameter groups: The groups of photos; nil if the run was stopped before they were known.
    private func end(
        _ folds: [CrossValidationFold], _ groups: PhotoGroups?, isComplete: Bool
    ) -> CrossValidationResult {
        let indices = Dictionary(
            photos.items.enumerated().map { ($1.url, $0) }, uniquingKeysWith: { first, _ in first })
        var seen: Set<URL> = []
        let skipped = ((groups?.skipped ?? []) + folds.flatMap(\.result.skipped)).filter {
            seen.insert($0.url).inserted
        }
        let pooled = PooledEvaluation(
            seeds.map { seed in folds.filter { $0.seed == seed } }.filter { !$0.isEmpty },
            kind: training.kind, labels: folds.first?.result.labels ?? photos.labels, skipped: skipped
        ) { url in
            indices[url].flatMap { groups?.groupOfPhoto[$0] } ?? 0
        }
        let evaluated = folds.lazy.flatMap(\.result.predictions).compactMap { photo in
            indices[photo.url].flatMap { groups?.groupOfPhoto[$0] }
        }
        let result = CrossValidationResult(
            folds: folds, pooled: pooled, groups: Set(evaluated).count, isComplete: isComplete)
        onEvent(.finished(result))
        return result
    }
}
