public import Foundation
internal import ImprintCore
public import ImprintImages

/// What came of the photos of a folder.
public struct PersonalizationResult: Sendable {
    /// How many photos were learned from.
    public let examples: Int
    /// The photos that could not be read.
    public let skipped: [SkippedImage]
    /// How many photos there was no time or no memory for.
    public let leftOut: Int
    /// Why it ended.
    public let ending: Ending
    /// How long it took.
    public let seconds: Double
    /// The share of the photos that was judged rightly before, 0…1, and by personalizations that learned from other parts of the folder;
    /// nil if there are too few photos or there was no time.
    public let accuracy: Accuracy?

    /// Why learning ended.
    public enum Ending: String, Sendable {
        /// All photos were learned from, in all steps.
        case completed
        /// The time was up.
        case timeLimit = "time-limit"
        /// There was no memory for all photos.
        case memoryLimit = "memory-limit"
    }

    /// Shares of the photos, 0…1.
    public typealias Accuracy = PersonalizationSession.Accuracy
}

extension PersonalizationSession {
    /// Shows the photos of a folder, one sub-folder per label, and photos that are not of a label.
    ///
    /// Photos are taken of each label in turn, so that where time or memory ends before the photos do, all labels have had their share.
    /// - Parameters:
    ///   - folder: Photos by label; labels that the model does not know are added.
    ///   - corrections: Photos that are not of a label.
    ///   - cache: A file that keeps features; what is in it is not computed again.
    ///   - control: What may pause or end the work.
    ///   - onProgress: Told now and then how many photos are done, of how many.
    /// - Throws: `ImageError` if more than half of the photos, or all of a label, cannot be read, `ImprintError` where a label cannot be
    ///   added, `CancellationError` where the control says so; then the classifier is as it was.
    public func teach(
        _ folder: ImageFolder, corrections: [(photo: URL, isNot: String)] = [], cache: URL? = nil,
        control: PersonalizationControl = PersonalizationControl(),
        onProgress: (_ done: Int, _ of: Int) -> Void = { _, _ in }
    ) throws -> PersonalizationResult {
        func learn() throws -> PersonalizationResult {
            try self.learn(folder, corrections, cache, control, onProgress)
        }
        return configuration.isBackground ? try onBackgroundThread(learn) : try learn()
    }

    private func learn(
        _ folder: ImageFolder, _ corrections: [(photo: URL, isNot: String)], _ cache: URL?,
        _ control: PersonalizationControl, _ onProgress: (_ done: Int, _ of: Int) -> Void
    ) throws -> PersonalizationResult {
        let clock = RunClock()
        let limit = configuration.timeLimit?.seconds ?? .infinity
        // A fifth is for the steps.
        func isTimeUp(_ share: Double) -> Bool { clock.seconds >= limit * share }
        let all = inTurn(
            folder.items.map { (photo: $0.url, evidence: Evidence.isLabel(folder.labels[$0.label])) }
                + corrections.map { (photo: $0.photo, evidence: Evidence.isNot($0.isNot)) })
        var saved = clock.seconds
        let store = try cache.map {
            try FeatureCache(
                $0, base: base.weights.identity, blocks: configuration.blocks, views: views.count,
                length: base.runtime.featureCount(blocks: configuration.blocks))
        }
        defer { try? store?.save() }

        var examples: [Example] = []
        var skipped: [SkippedImage] = []
        var ending = PersonalizationResult.Ending.completed
        let workers = Workers(configuration.isBackground ? 1 : configuration.threads)
        let portion = 2 * workers.count
        for start in stride(from: 0, to: all.count, by: portion) {
            try control.check()
            if isTimeUp(0.8) && !examples.isEmpty {
                ending = .timeLimit
                break
            }
            let next = Array(all[start..<min(start + portion, all.count)])
            for (item, outcome) in zip(next, try features(next, store, workers)) {
                switch outcome {
                case .success(let example):
                    examples.append(example)
                case .failure(let reason): skipped.append(SkippedImage(url: item.photo, reason: reason))
                }
            }
            onProgress(min(start + portion, all.count), all.count)
            // Whatever ends the process, no more than this is computed again.
            if clock.seconds - saved > 5 {
                try store?.save()
                saved = clock.seconds
            }
            let bytes = examples.reduce(0) { $0 + $1.byteCount }
            if let each = examples.first?.byteCount, bytes / each > room(for: each) {
                examples = Array(examples.prefix(room(for: each)))
                ending = .memoryLimit
                break
            }
        }
        try store?.save()
        if examples.isEmpty && ending == .memoryLimit {
            throw ImprintError.featuresExceedMemoryLimit(byteCount: configuration.memoryLimit + 1, limit: configuration.memoryLimit)
        }
        if ending == .completed {
            try SkippedImage.checkEnoughIsLeft(
                of: folder.items,
                readable: folder.items.filter { item in !skipped.contains { $0.url == item.url } }, skipped: skipped,
                labels: folder.labels)
        }
        guard !examples.isEmpty, 2 * skipped.count <= all.count else {
            throw ImageError.tooManyUnreadable(images: all.count, skipped: skipped)
        }
        func stops() throws -> Bool {
            onProgress(all.count, all.count)
            try control.check(waits: false)
            return isTimeUp(1)
        }
        try show(examples) {
            let isOver = try stops()
            if isOver { ending = .timeLimit }
            return isOver
        }
        let accuracy = isTimeUp(0.5) ? nil : try crossValidated(folds: 5, shouldStop: stops)
        return PersonalizationResult(
            examples: examples.count, skipped: skipped, leftOut: all.count - skipped.count - examples.count,
            ending: ending, seconds: clock.seconds, accuracy: accuracy)
    }

    /// The examples of some photos, or why there are none.
    private func features(
        _ photos: [(photo: URL, evidence: Evidence)], _ store: FeatureCache?, _ workers: Workers
    ) throws -> [Result<Example, ImageError>] {
        // A photo that cannot be read is skipped further down.
        let names = photos.map { item in store == nil ? nil : try? FeatureCache.name(of: item.photo) }
        let known = names.map { name in name.flatMap { store?.features($0) } }
        let outcomes = try workers.parallelMap(photos.count) { place throws -> Result<Example, ImageError> in
            if let views = known[place] { return .success(Example(evidence: photos[place].evidence, views: views)) }
            do {
                return .success(try example(.file(photos[place].photo), photos[place].evidence))
            } catch let error as ImageError {
                return .failure(error)
            }
        }
        for (name, outcome) in zip(names, outcomes) {
            if let name, let example = try? outcome.get() { store?.add(name, example.views) }
        }
        return outcomes
    }
}

/// The photos of each label in turn, and those that are not of it.
private func inTurn(_ photos: [(photo: URL, evidence: Evidence)]) -> [(photo: URL, evidence: Evidence)] {
    var rounds: [Evidence: Int] = [:]
    let numbered = photos.enumerated().map { place, photo in
        defer { rounds[photo.evidence, default: 0] += 1 }
        return (round: rounds[photo.evidence, default: 0], place: place)
    }
    return numbered.sorted { ($0.round, $0.place) < ($1.round, $1.place) }.map { photos[$0.place] }
}
