public import Foundation
public import ImprintCore
public import ImprintImages

/// The result of personalizing a model with a folder of photos.
public struct PersonalizationResult: Sendable {
    /// The number of photos in the personalization.
    public let exampleCount: Int
    /// The photos that could not be read.
    public let skipped: [SkippedImage]
    /// The number of photos omitted because of the time or memory limit.
    public let omittedCount: Int
    /// The reason why training ended.
    public let ending: Ending
    /// The duration in seconds.
    public let seconds: Double
    /// The accuracy on the photos before personalization, and after it by cross-validation; nil if there are too few photos, the time limit was
    /// reached or training diverged in a fold.
    public let accuracy: Accuracy?
    /// The error of writing the cache file; nil if it was written, or if the call had no cache.
    public let cacheFailure: FileError?

    /// The reason why training ended.
    public enum Ending: String, Sendable {
        /// Training completed all steps with all readable photos.
        case completed
        /// The time limit was reached.
        case timeLimit = "time-limit"
        /// The memory limit was reached.
        case memoryLimit = "memory-limit"
    }

    /// The accuracy before and after personalization.
    public typealias Accuracy = PersonalizationSession.Accuracy
}

extension PersonalizationSession {
    /// Trains with the photos of a folder that has one sub-folder per label.
    ///
    /// The session reads one photo of each label in turn, so that a time or memory limit affects all labels equally. If it cannot learn from any
    /// of the photos that it reads before the time limit, it reads about 16 more. If the call throws, the session and its classifier do not change.
    /// - Parameters:
    ///   - folder: The photos by label, or nil if there are only corrections. The session adds labels that the model does not have.
    ///   - corrections: Photos, each with a label that it does not have.
    ///   - cache: A file that caches the features of photos; nil for no cache. See docs/how-to/personalization.md.
    ///   - control: A control to pause, resume or cancel the call from another thread.
    ///   - onProgress: A closure that receives the number of processed photos and the total number. It can read the session, but not
    ///     change it.
    /// - Returns: The result; its `accuracy` compares the classifier before and after. If the cache cannot be written, the session learns without
    ///   it, and the result has a `cacheFailure`.
    /// - Throws:
    ///   - `ImageError` if more than half of the photos, or all photos of a label, cannot be read.
    ///   - `ImprintError` if a label cannot be added, or the memory limit is too low for one photo; `ImprintError.noUsablePhotoInTime` if the time
    ///     limit passes before the session has read a photo that it can learn from; `ImprintError.sessionIsTraining` in a progress closure during
    ///     training.
    ///   - `CancellationError` if `control` is cancelled, and the features computed so far are in the cache; if the cache cannot be written, its
    ///     `FileError` instead.
    ///   - The errors of reading the cache file, and of creating it.
    public func teach(
        _ folder: ImageFolder?, corrections: [(photo: URL, isNot: String)] = [], cache: URL? = nil,
        control: PersonalizationControl = PersonalizationControl(),
        onProgress: (_ done: Int, _ of: Int) -> Void = { _, _ in }
    ) throws -> PersonalizationResult {
        precondition(
            folder != nil || !corrections.isEmpty, "a session learns from a folder, from corrections or from both")
        try training.checkIsNotHeldByThisThread()
        func learn() throws -> PersonalizationResult {
            try self.learn(folder, corrections, cache, control, onProgress)
        }
        return configuration.isBackground ? try onBackgroundThread(learn) : try learn()
    }

    /// The number of photos that a session reads after the time limit if it cannot learn from the photos so far.
    private static let lateCount = 16

    private func learn(
        _ folder: ImageFolder?, _ corrections: [(photo: URL, isNot: String)], _ cacheFile: URL?,
        _ control: PersonalizationControl, _ onProgress: (_ done: Int, _ of: Int) -> Void
    ) throws -> PersonalizationResult {
        let clock = RunClock()
        let photos = photosInTurn(folder, corrections)
        try checkLabels(of: photos.map(\.supervision))
        var cache = SavedCache(try cacheFile.map(openCache), clock)
        do {
            return try learn(photos, folder, &cache, clock, control, onProgress)
        } catch {
            cache.save()
            // The caller would conclude that the features are saved.
            if error is CancellationError, let failure = cache.failure { throw failure }
            throw error
        }
    }

    /// Learns from photos, and adds their features to the cache.
    private func learn(
        _ photos: [(photo: URL, supervision: Supervision)], _ folder: ImageFolder?, _ cache: inout SavedCache,
        _ clock: RunClock, _ control: PersonalizationControl, _ onProgress: (_ done: Int, _ of: Int) -> Void
    ) throws -> PersonalizationResult {
        let limit = configuration.timeLimit?.seconds ?? .infinity
        func isTimeUp(_ fraction: Double) -> Bool { clock.seconds >= limit * fraction }

        // Feature extraction may take 80 % of the time limit; the rest is for training.
        let extracted = try extractFeatures(
            of: photos, folder, &cache, control, isTimeUp: { isTimeUp(0.8) }, onProgress)
        let skipped = extracted.skipped
        var (examples, ending) = (extracted.examples, extracted.ending)
        cache.save()
        if ending != .completed { examples = learnable(examples, folder) }
        try checkEnoughExamples(
            examples, skipped, ending, readCount: extracted.readCount, of: photos.count, folder)

        func shouldStop() throws -> Bool {
            onProgress(photos.count, photos.count)
            try control.check(waits: false)
            return isTimeUp(1)
        }
        try add(examples) {
            let isOver = try shouldStop()
            if isOver { ending = .timeLimit }
            return isOver
        }
        let accuracy: Accuracy?
        do {
            accuracy = isTimeUp(0.5) ? nil : try crossValidated(folds: 5, shouldStop: shouldStop)
        } catch ImprintError.personalizationDiverged {
            // The session has changed already, and its personalization is valid.
            accuracy = nil
        }
        return PersonalizationResult(
            exampleCount: examples.count, skipped: skipped,
            omittedCount: photos.count - skipped.count - examples.count,
            ending: ending, seconds: clock.seconds, accuracy: accuracy, cacheFailure: cache.failure)
    }

    /// Returns the photos of the folder and the corrections, in turn over the labels.
    private func photosInTurn(
        _ folder: ImageFolder?, _ corrections: [(photo: URL, isNot: String)]
    ) -> [(photo: URL, supervision: Supervision)] {
        let labelled = folder.map { folder in
            folder.items.map { (photo: $0.url, supervision: Supervision.isLabel(folder.labels[$0.label])) }
        }
        return interleaved(
            (labelled ?? []) + corrections.map { (photo: $0.photo, supervision: Supervision.isNot($0.isNot)) })
    }

    private func openCache(_ file: URL) throws -> FeatureCache {
        try FeatureCache(
            file, base: base.model.identity, blocks: configuration.blocks, views: views.count,
            length: base.runtime.featureCount(blocks: configuration.blocks))
    }

    /// Returns the reason why `teach` does not use the features of a cache file, but replaces it, as a clause.
    ///
    /// It is nil if the features can be used, or if the file is missing or not a cache.
    package func reasonToReplaceCache(at file: URL) throws -> String? {
        try FeatureCache.mismatch(
            of: file, base: base.model.identity, blocks: configuration.blocks, views: views.count,
            length: base.runtime.featureCount(blocks: configuration.blocks))
    }

    /// Extracts the features of photos, until a limit is reached.
    /// - Parameters:
    ///   - photos: The photos.
    ///   - folder: The folder, whose labels may be new.
    ///   - cache: The cache, which gets the new features.
    ///   - control: A control to pause or cancel the extraction.
    ///   - isTimeUp: Whether the time limit is reached; without an example to learn from, the extraction continues for `lateCount` photos.
    ///   - onProgress: Receives the number of processed photos and the total number.
    /// - Returns: The examples, the unreadable photos, the number of photos that were read or are unreadable, and the limit that ended the
    ///   extraction or `completed`.
    /// - Throws: `CancellationError`, and errors other than those of unreadable photos.
    private func extractFeatures(
        of photos: [(photo: URL, supervision: Supervision)], _ folder: ImageFolder?, _ cache: inout SavedCache,
        _ control: PersonalizationControl, isTimeUp: () -> Bool, _ onProgress: (_ done: Int, _ of: Int) -> Void
    ) throws -> (examples: [Example], skipped: [SkippedImage], readCount: Int, ending: PersonalizationResult.Ending) {
        var (examples, skipped): ([Example], [SkippedImage]) = ([], [])
        var readCount = 0
        /// The number of photos that were read in time; nil until the time is up.
        var countInTime: Int?
        let workers = Workers(configuration.isBackground ? 1 : configuration.threads)
        let chunkSize = 2 * workers.count
        for start in stride(from: 0, to: photos.count, by: chunkSize) {
            try control.check()
            if isTimeUp() {
                let inTime = countInTime ?? readCount
                countInTime = inTime
                if readCount - inTime >= Self.lateCount || !learnable(examples, folder).isEmpty {
                    return (examples, skipped, readCount, .timeLimit)
                }
            }
            let chunk = Array(photos[start..<min(start + chunkSize, photos.count)])
            for (item, outcome) in zip(chunk, try features(chunk, cache.cache, workers)) {
                switch outcome {
                case .success(let example): examples.append(example)
                case .failure(let reason): skipped.append(SkippedImage(url: item.photo, reason: reason))
                }
            }
            readCount += chunk.count
            onProgress(readCount, photos.count)
            cache.saveIfDue()
            let bytes = examples.reduce(0) { $0 + $1.byteCount }
            if let each = examples.first?.byteCount, bytes / each > capacity(for: each) {
                return (Array(examples.prefix(capacity(for: each))), skipped, readCount, .memoryLimit)
            }
        }
        return (examples, skipped, readCount, .completed)
    }

    /// Checks that there are examples to learn from, and that most photos could be read.
    private func checkEnoughExamples(
        _ examples: [Example], _ skipped: [SkippedImage], _ ending: PersonalizationResult.Ending,
        readCount: Int, of photoCount: Int, _ folder: ImageFolder?
    ) throws {
        if examples.isEmpty && ending == .memoryLimit {
            throw ImprintError.featuresExceedMemoryLimit(
                byteCount: configuration.memoryLimit + 1, limit: configuration.memoryLimit)
        }
        if ending == .completed || examples.isEmpty, let folder {
            // Photos that were not read in time may be readable.
            let unreadable = Set(skipped.map(\.url))
            try SkippedImage.checkEnoughAreReadable(
                of: folder.items, readable: folder.items.filter { !unreadable.contains($0.url) }, skipped: skipped,
                labels: folder.labels)
        }
        if SkippedImage.areTooMany(skipped.count, of: photoCount) {
            throw ImageError.tooManyUnreadable(images: readCount, skipped: skipped)
        }
        guard !examples.isEmpty else {
            throw ImprintError.noUsablePhotoInTime(
                read: readCount, of: photoCount, reason: skipped.first?.reason.description)
        }
    }

    /// Returns the examples without the corrections of new labels of the folder that have no photo yet.
    ///
    /// A limit may omit all readable photos of a label, but not its corrections.
    private func learnable(_ examples: [Example], _ folder: ImageFolder?) -> [Example] {
        let missing = Set(folder?.labels ?? []).subtracting(
            classifier.labels + examples.map(\.supervision).positiveLabels)
        return examples.filter { !missing.contains($0.supervision.label) }
    }

    /// Returns the example of each photo, from the cache if possible, or the reason why it cannot be read.
    private func features(
        _ photos: [(photo: URL, supervision: Supervision)], _ store: FeatureCache?, _ workers: Workers
    ) throws -> [Result<Example, ImageError>] {
        let outcomes = try workers.parallelMap(photos.count) {
            index throws -> (newName: String?, outcome: Result<Example, ImageError>) in
            let (photo, supervision) = photos[index]
            // A photo that cannot be read has no name; decoding it reports the error.
            let name = store == nil ? nil : FeatureCache.name(of: photo)
            if let name, let views = store?.features(name) {
                return (nil, .success(Example(supervision: supervision, views: views)))
            }
            do {
                return (name, .success(try example(.file(photo), supervision)))
            } catch let error as ImageError {
                return (name, .failure(error))
            }
        }
        for (newName, outcome) in outcomes {
            if let newName, case .success(let example) = outcome { store?.add(newName, example.views) }
        }
        return outcomes.map(\.outcome)
    }
}

/// The cache of a call, whose error of writing does not end the call.
private struct SavedCache {
    /// The cache; nil without one.
    let cache: FeatureCache?
    /// The error of the last attempt to save; nil if it succeeded.
    private(set) var failure: FileError?
    private let clock: RunClock
    /// The time of the last save during the extraction, in seconds.
    private var lastSave = 0.0

    init(_ cache: FeatureCache?, _ clock: RunClock) { (self.cache, self.clock) = (cache, clock) }

    /// Saves new features.
    mutating func save() {
        do throws(FileError) {
            try cache?.save()
            failure = nil
        } catch {
            failure = error
        }
    }

    /// Saves new features if the last save was more than five seconds ago, the most work that is lost if the process is killed.
    mutating func saveIfDue() {
        guard clock.seconds - lastSave > 5, failure == nil else { return }
        save()
        lastSave = clock.seconds
    }
}

/// Returns the photos in turn over the labels: the first photo of each label, then the second of each, and so on.
private func interleaved(_ photos: [(photo: URL, supervision: Supervision)]) -> [(photo: URL, supervision: Supervision)]
{
    var turns: [Supervision: Int] = [:]
    let numbered = photos.enumerated().map { index, photo in
        defer { turns[photo.supervision, default: 0] += 1 }
        return (turn: turns[photo.supervision, default: 0], index: index)
    }
    return numbered.sorted { ($0.turn, $0.index) < ($1.turn, $1.index) }.map { photos[$0.index] }
}
